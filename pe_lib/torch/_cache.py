"""The module below both modules: rows for the positions from 0 on, made as they are needed."""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, SupportsIndex

import torch
from torch import Tensor, nn
from torch.nn import functional

from pe_lib import _checks as check
from pe_lib._checks import FrequencyConfig, Layout, Shape
from pe_lib.torch._arguments import as_positions_of_tokens, check_no_offset, offset_of_all
from pe_lib.torch._axes import beside, positions_from_offsets
from pe_lib.torch._device import is_exporting, is_ordinary, smallest_and_largest
from pe_lib.torch._rotation import Rows, for_each

FIRST_ROWS = (
    4096  # the first call caches as many rows, or max_len if that is less, or what it needs
)


class CachedPositions(nn.Module, Generic[Rows]):
    """A module that caches its rows for the positions from 0 on, for each device and dtype.

    The cached rows are no buffer: there is nothing to save, to move or to average, and nothing that
    a loader can leave uninitialised.

    What `forward` calls, and who calls whom:

        _rows_for
        ├── _rows_from_offset            an offset for all rows of the batch: a slice
        │   ├── _cached_rows_that_hold       of the cache, which may grow
        │   └── _compute_from
        └── _rows_at_positions           positions that a caller gave
            └── _look_up_or_compute      these, or an offset for each row: single rows
                ├── _cached_rows_that_hold
                └── _compute_at

    The modules define `_compute_from` and `_compute_at`, for what is not in the cache and cannot be
    added to it.
    """

    # Attributes that cannot be set once the module is made: the arguments, whether or not they are
    # attributes, and what is made of them. Cached rows would not follow a change.
    FIXED = frozenset({"config", "base", "frequencies", "layout", "max_len", "seq_dim"})
    _is_made = False  # the last line of each module's __init__ sets it

    __call__: Callable[..., Tensor]
    _before_positions: Shape = ()  # the axis that positions have before (seq,) or (batch, seq)

    def __init__(
        self,
        config: FrequencyConfig,
        max_len: SupportsIndex,
        layout: Layout,
        seq_dim: SupportsIndex,
    ) -> None:
        super().__init__()
        check.choice("layout", layout, check.LAYOUTS)
        self.config, self.layout = config, layout
        self.max_len = check.integer("max_len", max_len, at_least=0)
        self.seq_dim = check.integer("seq_dim", seq_dim)
        if self.seq_dim == -1:
            raise ValueError("seq_dim must name another axis than the last, got -1")
        self._cache: dict[tuple[torch.device, torch.dtype], Rows] = {}
        self._replaced: list[Rows] = []  # old rows that captured CUDA graphs may still use

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made and name in self.FIXED:
            got = check.brief(value)
            raise AttributeError(
                f"{name} is fixed when a module is made, got {got}: make a new module"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        return state | {"_cache": {}, "_replaced": []}

    def extra_repr(self) -> str:
        width, base, spacing, given = self.config
        shown = f"{base=:.15g}" if given is None else f"frequencies=({given[0]:g}, …)"
        if spacing != "paper":
            shown += f", {spacing=}"
        text = f"{width}, max_len={self.max_len}, {shown}, layout={self.layout!r}"
        return text if self.seq_dim == -2 else f"{text}, seq_dim={self.seq_dim}"

    def _compute_from(
        self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device
    ) -> Rows:
        """Rows for contiguous positions, computed: the first axis is that of the positions."""
        raise NotImplementedError

    def _compute_at(self, positions: Tensor, dtype: torch.dtype) -> Rows:
        """Rows for any positions, computed: the first axes are those of ``positions``."""
        raise NotImplementedError

    def _rows_for(
        self,
        x: Tensor,
        axis: int,
        positions: Tensor | None,
        offset: SupportsIndex | Tensor,
        dtype: torch.dtype,
    ) -> Rows:
        """Rows that broadcast with x, for ``positions`` or from ``offset`` on. ``axis``, negative,
        is the axis of x that counts positions."""
        if positions is not None:
            check_no_offset(offset)
            rows = self._rows_at_positions(as_positions_of_tokens(positions, x), dtype)
            return beside("positions", rows, x, axis, self._before_positions)
        if isinstance(offset, Tensor) and offset.ndim > 0:
            return self._look_up_or_compute(positions_from_offsets(offset, x, axis), dtype)
        return self._rows_from_offset(x, offset_of_all(offset), axis, dtype)

    def _rows_from_offset(self, x: Tensor, start: int, axis: int, dtype: torch.dtype) -> Rows:
        """Rows for the positions from ``start`` on, one for each step along ``axis`` of x."""
        seq_len = x.shape[axis]
        cached = self._cached_rows_that_hold(x, dtype, start, start + seq_len)
        if cached is None:
            if not torch.compiler.is_compiling():
                check.window("offset", start, seq_len)
            rows = self._compute_from(seq_len, start, dtype, x.device)
        else:
            rows = for_each(cached, lambda part: part.narrow(0, start, seq_len))
        return rows if axis == -2 else beside("rows", rows, x, axis)

    def _rows_at_positions(self, positions: Tensor, dtype: torch.dtype) -> Rows:
        """Rows for the positions that a caller gave: the first axes are theirs."""
        return self._look_up_or_compute(positions, dtype)

    def _look_up_or_compute(self, positions: Tensor, dtype: torch.dtype) -> Rows:
        """Rows for any positions: cached ones where the positions are integers in reach, or else
        computed ones."""
        found = smallest_and_largest(positions)
        if found is not None and found[0] >= 0:
            last = found[1]
            # The cache begins at position 0, so it holds all of them if it holds the largest.
            cached = self._cached_rows_that_hold(positions, dtype, last, last + 1)
            if cached is not None:
                return for_each(cached, partial(functional.embedding, positions))
        return self._compute_at(positions, dtype)

    def _cached_rows_that_hold(
        self, like: Tensor, dtype: torch.dtype, start: int, end: int
    ) -> Rows | None:
        """The cached rows on the device of ``like``, if they hold the positions start … end − 1 and
        may be used, or else None. They grow where a sequence runs on past their end."""
        cached = self._cache.get((like.device, dtype))
        length = 0 if cached is None else cached[0].shape[0]
        if torch.compiler.is_compiling():
            if is_exporting():  # an exported graph must hold at any length: it computes its rows
                return None
            return cached if start >= 0 and end <= length else None
        if type(like) is not Tensor and type(like) is not nn.Parameter:
            return None  # a FakeTensor, for example, cannot be combined with real rows
        if start >= 0 and end <= length:
            return cached
        if not 0 <= start <= max(length, self.max_len):
            return None  # far off: rows up to there could take any amount of memory
        return self._grow(max(end, 2 * length), dtype, like.device)  # so it grows rarely

    def _grow(self, length: int, dtype: torch.dtype, device: torch.device) -> Rows:
        """Compute at least ``length`` rows from position 0 on, and cache them."""
        with torch.inference_mode(False):  # or no derivative could be taken through them later
            length = max(length, min(self.max_len, FIRST_ROWS))
            rows = self._compute_from(length, 0, dtype, device)
        if all(map(is_ordinary, rows)):
            if device.type == "cuda" and (device, dtype) in self._cache:
                self._replaced.append(self._cache[device, dtype])
            self._cache[device, dtype] = rows
        return rows

    def _sequence_axis(self, x: Tensor) -> int:
        """``seq_dim`` counted from the end: −2 is the axis before the last."""
        if self.seq_dim == -2:
            return -2
        axis = self.seq_dim if self.seq_dim < 0 else self.seq_dim - x.ndim
        if not -x.ndim <= axis <= -2:
            allowed = f"an axis of x other than its last, from {-x.ndim} to {x.ndim - 2}"
            raise ValueError(
                f"seq_dim must be {allowed} for x of {x.ndim} axes, got {self.seq_dim}"
            )
        return axis
