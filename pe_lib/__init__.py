"""Positional encodings of Transformers, sinusoidal and rotary.

``pe_lib.numpy``
    The functions on arrays: the readable reference.
``pe_lib.torch``
    The same functions on tensors of any device, and two modules to put into a model.
``pe_lib.rope``
    RoPE as checkpoints have it: what a configuration says. Needs NumPy alone.
``pe_lib.doctor``
    What does a rotary function do? Needs NumPy alone.

Importing the package itself imports none of them.
"""

__version__ = "0.4.0"
