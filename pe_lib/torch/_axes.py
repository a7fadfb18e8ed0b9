"""Which axes of x positions, offsets and rows stand for."""

import torch
from torch import Tensor

from pe_lib import _checks as check
from pe_lib._checks import Shape
from pe_lib.torch._arguments import check_same_device
from pe_lib.torch._device import OFFSET_DTYPES, smallest_and_largest
from pe_lib.torch._rotation import Rows, map_rows


def align(name: str, rows: Rows, x: Tensor, axis: int, before: Shape = ()) -> Rows:
    """``rows``, which have the axes of their positions first, as they broadcast with x. ``axis``,
    negative, is the axis of x that counts positions. ``before`` is for the message alone: the axis
    that positions had before these, as `pair_axes` asks for it."""
    shape = rows[0].shape[:-1]
    if axis == -2 and len(shape) == 1 and shape[0] == x.shape[-2]:
        return rows  # they broadcast as they are
    leading, place = x.shape[:-1], axis + x.ndim
    sizes = check.sizes_in_x(shape, leading, place)
    if sizes is None:
        allowed = check.shapes_of_positions(tuple(leading), place, before)
        raise ValueError(f"{name} must {allowed}; got {(*before, *shape)}")
    if place == 0 and len(shape) == 2:  # (batch, seq) for x of (seq, batch, …)
        rows = map_rows(lambda part: part.transpose(0, 1), rows)
    return map_rows(lambda part: part.view(*sizes, part.shape[-1]), rows)


def positions_from_offsets(offset: Tensor, x: Tensor, axis: int) -> Tensor:
    """Positions that count from an offset of its own in each row of the batch. They broadcast with
    x but for its last axis."""
    batch = check.batch_axis(axis + x.ndim)
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
    first = along(batch, offset, x)
    if x.shape[axis] == 1:
        return first
    _check_last_positions(offset, x.shape[axis])
    return first + along(axis + x.ndim, torch.arange(x.shape[axis], device=x.device), x)


def _check_last_positions(offset: Tensor, seq_len: int) -> None:
    """Where looking at values is free: the last position of each row must fit 64 bits."""
    extremes = smallest_and_largest(offset)
    if extremes is not None:
        _, largest = extremes
        check.window("offset", largest, seq_len)


def along(place: int, vector: Tensor, x: Tensor) -> Tensor:
    """The vector along one of the axes of x but the last."""
    shape = [1] * (x.ndim - 1)
    shape[place] = -1
    return vector.view(shape)
