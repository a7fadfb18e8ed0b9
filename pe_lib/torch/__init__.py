"""Sinusoidal positional encoding in PyTorch: `pe_lib.numpy` on any device, and two modules.

In a model, use one of the modules: `RotaryPositionalEncoding` rotates queries and keys (RoPE), and
`SinusoidalPositionalEncoding` adds a table to the embeddings.

The functions have the names, the conventions, the algorithm and the accuracy of `pe_lib.numpy`.
They take ``device=`` beside ``dtype=``, and know bfloat16 as well as float16. A half type is
rounded from the float32 entry. The tests compare the CPU with exact values; those marked ``cuda``
do the same on an NVIDIA GPU, and need one.

The accuracy needs float64. On a device without it (MPS), entries are right to some ulp of float32.
There `frequencies` and `similarity` are float32 as well, and ``dtype=torch.float64`` is refused. It
is the default of `rotation_matrix`, which needs another one there.

Values are checked where this does not make the program wait for a device: Python numbers, NumPy
arrays, and CPU tensors outside a compiled graph. Elsewhere a position that is not finite gives NaN.

The angles are computed as in `pe_lib.numpy`, in int64 and float64 on the device itself. This works
in compiled graphs and in ``torch.func`` transforms as well, derivatives included. A compiler may
fuse products with sums. Tables on the CPU are built by NumPy, which is faster.

Not supported: ``torch.fx.symbolic_trace`` and ``torch.jit.trace`` (use ``torch.export``), DTensor,
and sparse, nested and quantised tensors.
"""

from pe_lib.numpy import AttentionTerms
from pe_lib.rope import RotaryFrequencies
from pe_lib.torch.functions import (
    attention_terms,
    convert_layout,
    frequencies,
    rotary_frequencies,
    rotate,
    rotation_matrix,
    similarity,
    sinusoidal_encoding,
    sinusoidal_table,
)
from pe_lib.torch.rotary import RotaryPositionalEncoding, RotaryTables, rotary_modules
from pe_lib.torch.sinusoidal import SinusoidalPositionalEncoding

__all__ = [
    "AttentionTerms",
    "RotaryFrequencies",
    "RotaryPositionalEncoding",
    "RotaryTables",
    "SinusoidalPositionalEncoding",
    "attention_terms",
    "convert_layout",
    "frequencies",
    "rotary_frequencies",
    "rotary_modules",
    "rotate",
    "rotation_matrix",
    "similarity",
    "sinusoidal_encoding",
    "sinusoidal_table",
]
