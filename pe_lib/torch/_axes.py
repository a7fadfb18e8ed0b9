"""Which axes of x positions, offsets and rows stand for."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pe_lib import _checks as check
from pe_lib._checks import Shape
from pe_lib.torch._arguments import check_same_device
from pe_lib.torch._device import OFFSET_DTYPES, smallest_and_largest
from pe_lib.torch._rotation import Rows, for_each


def beside(name: str, rows: Rows, x: Tensor, axis: int, before: Shape = ()) -> Rows:
    """``rows``, which have the axes of their positions first, as they broadcast with x. ``axis``,
    negative, is the axis of x that counts positions. ``before`` is for the message alone: the axis
    that positions had before these, as `pair_axes` asks for it."""
    shape, width = list(rows[0].shape[:-1]), rows[0].shape[-1]
    if axis == -2 and shape == [x.shape[-2]]:
        return rows  # they broadcast as they are
    leading, place = x.shape[:-1], axis + x.ndim
    sizes = _sizes_beside(shape, leading, place)
    if sizes is None:
        allowed = _allowed_shapes(tuple(leading), place, before)
        raise ValueError(f"{name} must {allowed}; got {(*before, *shape)}")
    if place == 0 and len(shape) == 2:  # (batch, seq) beside (seq, batch, …)
        rows = for_each(rows, lambda part: part.transpose(0, 1))
    elif sizes == shape:
        return rows
    return for_each(rows, lambda part: part.view(*sizes, width))


def beside_heads(rows: Rows, axis: int) -> Rows | None:
    """``rows`` for positions of shape (seq,) or (batch, seq), as they broadcast with x of shape
    (batch, heads, seq, head_dim), whose ``axis`` is −2, or (batch, seq, heads, head_dim), whose
    ``axis`` is −3. None for others."""
    if axis not in (-2, -3) or rows[0].ndim not in (2, 3):
        return None
    heads = -3 if axis == -2 else -2  # they stand before seq, or after it
    return for_each(rows, lambda part: part.unsqueeze(heads))


def fit_heads(rows: Rows, x: Tensor, axis: int) -> bool:
    """Whether x is of a shape that `beside_heads` made these rows for."""
    sizes, sizes_of_x = rows[0].shape, x.shape
    if len(sizes_of_x) != 4 or sizes[axis] != sizes_of_x[axis]:
        return False
    return len(sizes) == 3 or sizes[0] in (1, sizes_of_x[0])  # (seq,), or (batch, seq)


def _sizes_beside(shape: Sequence[int], leading: Shape, place: int) -> list[int] | None:
    """Positions of this ``shape`` stand for some of the ``leading`` axes of x, of which that at
    ``place`` counts positions. Their size along each of these axes, 1 along the others; None if
    they do not fit."""
    if len(shape) == 1:  # (seq,)
        axes = [place]
    elif len(shape) == 2 and len(leading) > 1:  # (batch, seq)
        axes = [_batch_place(place), place]
    elif len(shape) == len(leading):
        axes = list(range(len(leading)))
    else:
        return None
    sizes = [1] * len(leading)
    for axis, size in zip(axes, shape, strict=True):
        if size != leading[axis] and (size != 1 or axis == place):
            return None
        sizes[axis] = size
    return sizes


def _allowed_shapes(leading: Shape, place: int, before: Shape) -> str:
    """The shapes that positions beside x may have, in words."""
    if before:
        names = "(axes, seq)", "(axes, batch, seq)", "(axes, *x.shape[:-1])"
        each = "each after the first"
    else:
        names = "(seq,)", "(batch, seq)", "x.shape[:-1]"
        each = "each"
    seq_len = leading[place]
    allowed = f"be of shape {names[0]} = {(*before, seq_len)}"
    if len(leading) > 1:
        batch = leading[_batch_place(place)]
        allowed += f", {names[1]} = {(*before, batch, seq_len)}"
    if len(leading) > 2:
        allowed += f", or have the axes of {names[2]} = {(*before, *leading)}, "
        allowed += f"{each} of its size or 1"
    return allowed


def _batch_place(place: int) -> int:
    """The batch is the first axis of x, or the second where the first counts positions."""
    return 1 if place == 0 else 0


def positions_from_offsets(offset: Tensor, x: Tensor, axis: int) -> Tensor:
    """Positions that count from an offset of its own in each row of the batch. They broadcast with
    x but for its last axis."""
    batch = _batch_place(axis + x.ndim)
    if offset.ndim != 1 or x.ndim < 3 or offset.shape[0] != x.shape[batch]:
        shape = "(batch,)" if x.ndim < 3 else f"(batch,) = ({x.shape[batch]},)"
        raise ValueError(
            f"offset must be an integer, or an integer tensor of shape {shape} with one offset for "
            f"each row of the batch; got shape {tuple(offset.shape)} for x of {tuple(x.shape)}"
        )
    if offset.dtype not in OFFSET_DTYPES:
        allowed = "an integer, an int64 tensor, or one of smaller integers"
        raise TypeError(f"offset must be {allowed}, got {offset.dtype}")
    check_same_device("offset", offset, x)
    offset = offset.long()
    first = _along(batch, offset, x)
    if x.shape[axis] == 1:
        return first
    _check_last_positions(offset, x.shape[axis])
    return first + _along(axis + x.ndim, torch.arange(x.shape[axis], device=x.device), x)


def _check_last_positions(offset: Tensor, seq_len: int) -> None:
    """Where looking at values is free: the last position of each row must fit 64 bits."""
    found = smallest_and_largest(offset)
    if found is not None:
        _, largest = found
        check.window("offset", largest, seq_len)


def _along(place: int, vector: Tensor, x: Tensor) -> Tensor:
    """The vector along one of the axes of x but the last."""
    shape = [1] * (x.ndim - 1)
    shape[place] = -1
    return vector.view(shape)
