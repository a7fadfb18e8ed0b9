"""RoPE as checkpoints have it: what a configuration says, and weights in the layout of other code.

`rotary_settings` reads a whole ``config.json``, ``rotary_frequencies`` the fields of one kind of
layer, and ``convert_layout`` reorders weights. Needs NumPy alone.
"""

from pe_lib.rope.configuration import (
    ConfigurationError,
    LayerRotation,
    RotarySettings,
    rotary_settings,
)
from pe_lib.rope.families import UnknownFamily, families
from pe_lib.rope.fields import RopeParameters
from pe_lib.rope.layout import convert_layout, layout_order
from pe_lib.rope.scalings import RotaryFrequencies, rotary_frequencies

__all__ = [
    "ConfigurationError",
    "LayerRotation",
    "RopeParameters",
    "RotaryFrequencies",
    "RotarySettings",
    "UnknownFamily",
    "convert_layout",
    "families",
    "layout_order",
    "rotary_frequencies",
    "rotary_settings",
]
