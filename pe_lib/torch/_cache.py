"""The module below both modules: rows for the positions from 0 on, made as they are needed."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Generic, SupportsIndex
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

from pe_lib import _checks as check
from pe_lib._angles import ROWS_PER_TASK
from pe_lib._checks import FrequencyConfig, Layout, Shape
from pe_lib.torch._arguments import as_positions_of, check_no_offset, common_offset
from pe_lib.torch._axes import align, positions_from_offsets
from pe_lib.torch._device import is_capturing, is_exporting, is_ordinary, smallest_and_largest
from pe_lib.torch._rotation import Rows, map_rows

FIRST_ROWS = 2048  # the fewest rows that are cached
FARTHEST = 2**20  # no call on its own makes the cache reach beyond
CALL = 256  # to compute the rows of a call costs about as much as so many rows of a table do

Key = tuple[torch.device, torch.dtype]


class Cache(Generic[Rows]):
    """Rows for the positions from 0 on, for each device and dtype. Modules of equal settings share
    one, which goes with the last of them."""

    def __init__(self) -> None:
        self.rows: dict[Key, Rows] = {}
        self.computed: dict[Key, int] = {}  # rows that calls beyond the cache have cost so far
        self.captured: set[Key] = set()  # whose rows a captured CUDA graph reads,
        self.replaced: list[Rows] = []  # and which must stay when longer ones take their place


_caches: WeakValueDictionary[Hashable, Cache[Any]] = WeakValueDictionary()


class CachedPositions(nn.Module, Generic[Rows]):
    """A module that caches its rows for the positions from 0 on.

    The cached rows are no buffer: there is nothing to save, to move or to average, and nothing that
    a loader can leave uninitialised.

    What `forward` calls, and who calls whom:

        _rows
        ├── _check_first        of an offset, where its value can be looked at
        ├── _rows_of_range      one offset for the whole batch: a slice
        │   ├── _cached             of the cache, which may grow
        │   └── _compute_range
        └── _rows_at            positions, or an offset for each row: single rows
            ├── _cached
            └── _compute_at

    The modules define `_compute_range` and `_compute_at`, for what is not in the cache and cannot
    be added to it.
    """

    # Attributes that cannot be set once the module is made: the arguments, whether or not they are
    # attributes, and what is made of them. Cached rows would not follow a change.
    FIXED = frozenset({"config", "base", "frequencies", "layout", "seq_dim"})
    _is_made = False  # the last line of each module's __init__ sets it

    __call__: Callable[..., Tensor]
    _before_positions: Shape = ()  # the axis that positions have before (seq,) or (batch, seq)
    _origin = ""  # for the repr: what frequencies of their own were computed from

    def __init__(
        self, config: FrequencyConfig, layout: Layout, seq_dim: SupportsIndex, *others: Hashable
    ) -> None:
        """``others`` are further settings that the rows depend on."""
        super().__init__()
        self.config, self.layout = config, layout
        self.seq_dim = check.integer("seq_dim", seq_dim)
        if self.seq_dim == -1:
            raise ValueError("seq_dim must name another axis than the last, got -1")
        self._settings_of_rows = (config, layout, *others)
        self._share_cache()

    def _share_cache(self) -> None:
        key = (type(self)._compute_range, type(self)._compute_at, self._settings_of_rows)
        self._cache: Cache[Rows] = _caches.setdefault(key, Cache())

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made and name in self.FIXED:
            got = check.brief(value)
            raise AttributeError(
                f"{name} is fixed when a module is made, got {got}: make a new module"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        return {name: value for name, value in state.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._share_cache()

    def extra_repr(self) -> str:
        width, base, spacing, own = self.config
        shown = f"{base=:.15g}" if own is None else f"frequencies=({own[0]:g}, …){self._origin}"
        if spacing != "paper":
            shown += f", {spacing=}"
        text = f"{width}, {shown}, layout={self.layout!r}"
        return text if self.seq_dim == -2 else f"{text}, seq_dim={self.seq_dim}"

    def _compute_range(
        self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device
    ) -> Rows:
        """Rows for contiguous positions, computed: the first axis is that of the positions."""
        raise NotImplementedError

    def _compute_at(self, positions: Tensor, dtype: torch.dtype) -> Rows:
        """Rows for any positions, computed: the first axes are those of ``positions``."""
        raise NotImplementedError

    def _rows(
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
            rows = self._rows_at(as_positions_of("positions", positions, x), dtype)
            return align("positions", rows, x, axis, self._before_positions)
        if isinstance(offset, Tensor) and offset.ndim > 0:
            places = positions_from_offsets(offset, x, axis)
            extremes = smallest_and_largest(places)
            if extremes is not None:
                self._check_first(extremes[0])
            return self._rows_within(extremes, places, dtype)
        start = common_offset(offset)
        self._check_first(start)
        return self._rows_of_range(x, start, axis, dtype)

    def _check_first(self, position: int) -> None:
        """Refuse a first position that the module cannot mean. It may be a symbol in a graph."""

    def _rows_of_range(self, x: Tensor, start: int, axis: int, dtype: torch.dtype) -> Rows:
        """Rows for the positions from ``start`` on, one for each step along ``axis`` of x."""
        seq_len = x.shape[axis]
        cached = self._cached(x, dtype, start, start + seq_len, seq_len)
        if cached is None:
            if not torch.compiler.is_compiling():
                check.window("offset", start, seq_len)
            rows = self._compute_range(seq_len, start, dtype, x.device)
        else:
            rows = map_rows(lambda part: part.narrow(0, start, seq_len), cached)
        return rows if axis == -2 else align("rows", rows, x, axis)

    def _rows_at(self, positions: Tensor, dtype: torch.dtype) -> Rows:
        """Rows for the positions that a caller gave: the first axes are theirs."""
        return self._rows_at_one_axis(positions, dtype)

    def _rows_at_one_axis(self, positions: Tensor, dtype: torch.dtype) -> Rows:
        """Rows for positions of one axis: cached ones, or else computed ones."""
        return self._rows_within(smallest_and_largest(positions), positions, dtype)

    def _rows_within(
        self, extremes: tuple[int, int] | None, positions: Tensor, dtype: torch.dtype
    ) -> Rows:
        """The same, when the positions have been looked at already."""
        cached = self._cached_for(extremes, positions, dtype)
        if cached is None:
            return self._compute_at(positions, dtype)
        return map_rows(partial(functional.embedding, positions), cached)

    def _cached_for(
        self, extremes: tuple[int, int] | None, positions: Tensor, dtype: torch.dtype
    ) -> Rows | None:
        """The cached rows, where the positions are integers and all of them in reach. ``extremes``
        are their `smallest_and_largest`."""
        if extremes is None:
            return None
        first, last = extremes
        return self._cached(positions, dtype, first, last + 1, positions.numel())

    def _cached(
        self, like: Tensor, dtype: torch.dtype, start: int, end: int, count: int
    ) -> Rows | None:
        """The cached rows on the device of ``like``, if they hold the positions start … end − 1, of
        which ``count`` are asked for, and may be used, or else None. They grow by what calls beyond
        their end have cost so far: at once where a sequence or a batch runs on, late where one
        token stands far off."""
        key = (like.device, dtype)
        rows = self._cache.rows.get(key)
        length = 0 if rows is None else rows[0].shape[0]
        if torch.compiler.is_compiling():
            if is_exporting():  # an exported graph must hold at any length: it computes its rows
                return None
            return rows if start >= 0 and end <= length else None
        if type(like) is not Tensor and type(like) is not nn.Parameter:
            return None  # a FakeTensor cannot be combined with real rows
        if start < 0:
            return None
        if is_capturing(like.device):  # what is computed now has no values before the replay
            if rows is None or end > length:
                return None
            self._cache.captured.add(key)
            return rows
        if end <= length:
            return rows
        spent = self._cache.computed.get(key, 0) + max(count, CALL)
        if end - length > spent or end > max(FARTHEST, length + count):
            self._cache.computed[key] = spent
            return None
        return self._grow(max(end, length + length // 4, FIRST_ROWS), key, rows)

    def _grow(self, length: int, key: Key, old: Rows | None) -> Rows:
        """Cache ``length`` rows from position 0 on. Those that are there are kept, but for the last
        ones: a table is computed so many rows at a time, and each part from its own first row, so
        rows have the same bits however often they grew."""
        device, dtype = key
        kept = 0 if old is None else old[0].shape[0] // ROWS_PER_TASK * ROWS_PER_TASK
        with torch.inference_mode(False):  # or no derivative could be taken through them later
            rows = self._compute_range(length - kept, kept, dtype, device)
            if old is not None and kept > 0:
                rows = map_rows(lambda before, new: torch.cat((before[:kept], new)), old, rows)
        if all(map(is_ordinary, rows)):
            if old is not None and key in self._cache.captured:
                self._cache.captured.discard(key)
                self._cache.replaced.append(old)
            self._cache.rows[key] = rows
            self._cache.computed[key] = 0
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
