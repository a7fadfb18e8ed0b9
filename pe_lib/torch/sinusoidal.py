"""The module that adds the sinusoidal encoding."""

import math
from typing import SupportsFloat, SupportsIndex

import torch
from torch import Tensor, nn

from pe_lib import _checks as check
from pe_lib._checks import Layout, Spacing
from pe_lib.torch._angles import contiguous_table, encode
from pe_lib.torch._arguments import (
    GivenFrequencies,
    check_floats,
)
from pe_lib.torch._cache import CachedPositions
from pe_lib.torch._rotation import Encodings


class SinusoidalPositionalEncoding(CachedPositions[Encodings]):
    """Add the sinusoidal encoding to embeddings: Vaswani et al. (2017), sections 3.4 and 3.5.

    The module has no parameter and no buffer. It caches rows from position 0 on, made as they are
    needed for each device and dtype of x, and shared by modules of equal settings. The cache grows
    with a sequence or a batch; the rows of single positions further on are computed. A graph of
    ``torch.compile`` reads the cache if that holds all rows of x, and computes the rows if not.
    When the cache has grown, the next call may compile once more.

    The arguments are fixed when the module is made; for others, make a new one. Only the attribute
    ``dropout``, a module like ``nn.Dropout``, may change.

    ``dropout``, from 0 to 1, is the rate after the sum. ``scale_input`` multiplies the embeddings
    by √d_model first, as the paper does. ``seq_dim`` names the axis of x that counts positions: the
    default, −2, assumes (batch, seq, d_model), and ``seq_dim=0`` is for (seq, batch, d_model). The
    other arguments are those of `sinusoidal_table`.

    >>> encode = SinusoidalPositionalEncoding(8)
    >>> encode(torch.zeros(2, 16, 8)).shape
    torch.Size([2, 16, 8])
    """

    FIXED = CachedPositions.FIXED | {"d_model", "spacing", "scale_input", "scale"}

    def __init__(
        self,
        d_model: SupportsIndex,
        *,
        dropout: SupportsFloat = 0.0,
        base: SupportsFloat = 10_000.0,
        spacing: Spacing = "paper",
        frequencies: GivenFrequencies = None,
        layout: Layout = "interleaved",
        scale_input: bool = False,
        seq_dim: SupportsIndex = -2,
    ) -> None:
        config = check.frequency_config(d_model, base, spacing, frequencies)
        check.choice("layout", layout, check.LAYOUTS)
        super().__init__(config, layout, seq_dim)
        scales = check.true_or_false("scale_input", scale_input)
        self.scale = math.sqrt(config.d_model) if scales else 1.0
        rate = check.real("dropout", dropout)
        if not 0 <= rate <= 1:
            raise ValueError(f"dropout must be a number from 0 to 1, got {rate!r}")
        self.dropout: nn.Module = nn.Dropout(rate)
        self._is_made = True

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex | Tensor = 0
    ) -> Tensor:
        """Encode ``x`` of shape (batch, seq, d_model) at positions offset … offset + seq − 1.

        ``offset`` is an integer, or an integer tensor of shape (batch,): one for each row of the
        batch. ``positions``, integers or floats of shape (seq,) or (batch, seq), take the place of
        an offset. Every position that fits 64 bits is in range; on a GPU and in a compiled graph,
        where values are not looked at, offsets of rows that run on past 2⁶³ − 1 wrap around to
        −2⁶³. The result has the shape and dtype of x.

        Raises `ValueError` for a last axis of x that is not d_model, for positions or offsets of
        another shape, and for positions beside an offset; `TypeError` for another dtype.
        """
        check_floats("x", x, axes=2)
        check.row_width("x", x.shape[-1], self.config.d_model)
        encodings = self._rows(x, self._sequence_axis(x), positions, offset, x.dtype)
        total = torch.add(encodings.rows, x, alpha=self.scale)
        dropped: Tensor = self.dropout(total)
        return dropped

    def _compute_range(
        self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device
    ) -> Encodings:
        return Encodings(contiguous_table(seq_len, start, self.config, self.layout, dtype, device))

    def _compute_at(self, positions: Tensor, dtype: torch.dtype) -> Encodings:
        return Encodings(encode(positions, self.config, self.layout, dtype))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale_input={self.scale != 1.0}"
