"""Cosines and sines of positions, computed on a device: the algorithm of `pe_lib._angles`.

`encode` takes any positions, and `contiguous_table` those that follow one another.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pe_lib import _angles
from pe_lib import _checks as check
from pe_lib._angles import BLOCK, ROWS_PER_TASK
from pe_lib._checks import FrequencyConfig, Layout, Spacing
from pe_lib.torch._device import HALF_DTYPES, is_ordinary, real_dtype, smallest_and_largest

CHUNK = 2**21  # pairs computed at a time on a device, so that temporary tensors stay small
CHUNK_ON_CPU = 2**14  # and on a CPU, so that they stay in its cache


# What an angle is computed from


class _FrequencyTensors(NamedTuple):
    """`pe_lib._angles.ExactFrequencies` as tensors. ``omega`` and ``low`` are float64, or float32
    on a device without float64."""

    omega: Tensor
    high: Tensor
    low: Tensor


class _Constants(NamedTuple):
    """What an angle is computed from: frequencies, and `pe_lib._angles.grid_of_reals`."""

    omega: Tensor
    high: Tensor
    low: Tensor
    grid: Tensor


# They are never dropped, because captured CUDA graphs may still read them.
_frequencies_of_devices: dict[tuple[FrequencyConfig, torch.device], _FrequencyTensors] = {}
_grids_of_devices: dict[torch.device, Tensor] = {}
_indices_of_devices: dict[tuple[tuple[int, ...], torch.device], Tensor] = {}


def constants_on(config: FrequencyConfig, device: torch.device) -> _Constants:
    if torch.compiler.is_dynamo_compiling():
        return _Constants(*_constants_of_graph(*config, device))
    return _eager_constants(config, device)


def _eager_constants(config: FrequencyConfig, device: torch.device) -> _Constants:
    return _host_constants(config) if device.type == "cpu" else _device_constants(config, device)


def _host_constants(config: FrequencyConfig) -> _Constants:
    """Tensors on NumPy's memory. NumPy's arrays are cached and tensors are not, because a tracer
    would replace them by its own. as_tensor makes constants that `torch.export` stores; from_numpy
    does not."""
    arrays = (*_angles.exact_frequencies(config), _angles.grid_of_reals())
    return _Constants(*(torch.as_tensor(array, device="cpu") for array in arrays))


def _device_constants(config: FrequencyConfig, device: torch.device) -> _Constants:
    """One grid for all frequencies of a device."""
    frequencies = _frequencies_of_devices.get((config, device))
    if frequencies is None:
        frequencies = _move_frequencies(config, device)
    grid = _grids_of_devices.get(device)
    if grid is None:
        grid = _move_grid(device)
    return _Constants(*frequencies, grid)


def _move_frequencies(config: FrequencyConfig, device: torch.device) -> _FrequencyTensors:
    """Bring them to the device, and keep them if they are real tensors."""
    real = real_dtype(device)
    with torch.inference_mode(False):  # or no derivative could be taken through them later
        omega, high, low, _ = _host_constants(config)
        moved = _FrequencyTensors(omega.to(device, real), high.to(device), low.to(device, real))
    if all(map(is_ordinary, moved)):
        _frequencies_of_devices[config, device] = moved
    return moved


def _move_grid(device: torch.device) -> Tensor:
    """Bring it to the device, and keep it if it is a real tensor."""
    with torch.inference_mode(False):  # or no derivative could be taken through it later
        host = torch.as_tensor(_angles.grid_of_reals(), device="cpu")
        moved = host.to(device, real_dtype(device))
    if is_ordinary(moved):
        _grids_of_devices[device] = moved
    return moved


# torch.compile cannot trace decimal arithmetic, so a graph gets the constants from an operator.
# (torch.compiler.assume_constant_result refuses the arguments as soon as sizes are symbolic.)
_SCHEMA = (
    "(SymInt d_model, float base, str spacing, float[]? frequencies, Device device)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)


@torch.library.custom_op("pe_lib::constants", mutates_args=(), schema=_SCHEMA)
def _constants_of_graph(
    d_model: int,
    base: float,
    spacing: Spacing,
    frequencies: list[float] | None,
    device: torch.device,
) -> tuple[Tensor, ...]:
    own = None if frequencies is None else tuple(frequencies)
    constants = _eager_constants(FrequencyConfig(d_model, base, spacing, own), device)
    return tuple(part.clone() for part in constants)  # an operator may not return a cached tensor


@_constants_of_graph.register_fake
def _(
    d_model: int, base: float, spacing: str, frequencies: object, device: torch.device
) -> tuple[Tensor, ...]:
    omega = torch.empty(d_model // 2, dtype=real_dtype(device), device=device)
    grid = omega.new_empty(4, _angles.GRID_SIZE)
    return omega, torch.empty_like(omega, dtype=torch.int64), torch.empty_like(omega), grid


# Angles


def _cos_sin(positions: Tensor, config: FrequencyConfig) -> tuple[Tensor, Tensor]:
    """cos ω_ix and sin ω_ix, with one more axis than the positions."""
    return cos_sin_of_pairs(positions.unsqueeze(-1), config)


def cos_sin_of_pairs(positions: Tensor, config: FrequencyConfig) -> tuple[Tensor, Tensor]:
    """cos ω_ix_i and sin ω_ix_i as in `pe_lib._angles.rotations`. The last axis of the positions
    has one for each pair, or one for all. The fraction of a position carries its derivatives."""
    omega, high, low, grid = constants_on(config, positions.device)
    real = positions.to(omega.dtype)
    whole = real.detach().round()
    integers = (whole if positions.is_floating_point() else positions).to(torch.int64)

    # The phase in units of 2⁻⁶⁴ of a turn: int64 wraps around at a whole turn.
    phase = integers * high + (whole * low).round().to(torch.int64)

    # The nearest grid angle, 2⁵⁴ units apart from the next, and the rest, in radians.
    nearest = (phase + 2**53) >> 54
    angle = (phase - (nearest << 54)).to(omega.dtype) * (2 * math.pi * 2.0**-64)
    index = nearest & (_angles.GRID_SIZE - 1)

    square = angle * angle
    versine = square * (0.5 - square / 24)  # 1 − cos(angle)
    sine = angle * (1 - square * (1 / 6 - square / 120))
    grid_cos, grid_sin, missing_cos, missing_sin = (values[index] for values in grid)
    cos = grid_cos + (missing_cos - (grid_cos * versine + grid_sin * sine))
    sin = grid_sin + (missing_sin - (grid_sin * versine - grid_cos * sine))
    if not positions.is_floating_point():
        return cos, sin
    fraction_angle = (real - whole) * omega
    c, s = fraction_angle.cos(), fraction_angle.sin()
    return cos * c - sin * s, sin * c + cos * s


def encode(
    positions: Tensor, config: FrequencyConfig, layout: Layout, dtype: torch.dtype
) -> Tensor:
    """PE(x) of any positions, on their device. Integers that lie close together are looked up in a
    table of their range; others are computed."""
    if (covered := _covered_range(positions)) is not None:
        device = positions.device
        table = contiguous_table(len(covered), covered.start, config, layout, dtype, device)
        return table[positions - covered.start]

    def compute(part: Tensor) -> tuple[Tensor]:
        return (_computed(part, config, layout, dtype),)

    (rows,) = in_parts(compute, positions.reshape(-1), config)
    return rows.view(*positions.shape, config.d_model)


def encode_axes(
    positions: Tensor, pair_axes: tuple[int, ...], config: FrequencyConfig, dtype: torch.dtype
) -> Tensor:
    """The same in the split layout for positions of several axes, the first of the tensor: each
    pair turns by the position along its own."""

    def compute(part: Tensor) -> tuple[Tensor]:
        of_pairs = positions_of_pairs(part, pair_axes)
        return (_join(*cos_sin_of_pairs(of_pairs, config), "split", dtype),)

    (rows,) = in_parts(compute, positions.reshape(positions.shape[0], -1).T, config)
    return rows.view(*positions.shape[1:], config.d_model)


def in_parts(
    compute: Callable[[Tensor], tuple[Tensor, ...]], positions: Tensor, config: FrequencyConfig
) -> tuple[Tensor, ...]:
    """What ``compute`` makes of the positions, a part of their first axis at a time, so that its
    temporary tensors stay small."""
    pairs = config.d_model // 2
    size = max(1, (CHUNK_ON_CPU if positions.device.type == "cpu" else CHUNK) // pairs)
    if torch.compiler.is_compiling() or positions.shape[0] <= size:
        return compute(positions)
    parts = zip(*map(compute, positions.split(size)), strict=True)
    return tuple(torch.cat(of_parts) for of_parts in parts)


def positions_of_pairs(positions: Tensor, pair_axes: tuple[int, ...]) -> Tensor:
    """From positions of shape (…, axes), that of each pair along its own axis: (…, pairs)."""
    return positions.index_select(-1, _index_of_axes(pair_axes, positions.device))


def _index_of_axes(pair_axes: tuple[int, ...], device: torch.device) -> Tensor:
    """It is kept for a device, because a copy from the host would wait for it."""
    if torch.compiler.is_compiling():
        return torch.tensor(pair_axes, device=device)
    index = _indices_of_devices.get((pair_axes, device))
    if index is None:
        with torch.inference_mode(False):  # or it could not serve in training later
            index = torch.tensor(pair_axes, device=device)
        if is_ordinary(index):
            _indices_of_devices[pair_axes, device] = index
    return index


def _computed(
    positions: Tensor, config: FrequencyConfig, layout: Layout, dtype: torch.dtype
) -> Tensor:
    """PE(x), every row by itself."""
    return _join(*_cos_sin(positions, config), layout, dtype)


def _covered_range(positions: Tensor) -> range | None:
    """`pe_lib._angles.covered_range`, where looking at values is free. A graph computes each row:
    to ask how many positions there are would bind it to more than 63 of them, or to fewer."""
    if torch.compiler.is_compiling() or positions.numel() < BLOCK:
        return None
    extremes = smallest_and_largest(positions)
    if extremes is None:
        return None
    first, last = extremes
    return range(first, last + 1) if last - first < positions.numel() else None


def contiguous_table(
    seq_len: int,
    start: int,
    config: FrequencyConfig,
    layout: Layout,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """PE(start) … PE(start + seq_len − 1): by NumPy for the CPU and for devices without float64, on
    other devices in few kernels. A graph computes each row."""
    if torch.compiler.is_compiling():
        positions = torch.arange(start, start + seq_len, device=device)
        return _computed(positions, config, layout, dtype)
    check.window("start", start, seq_len)
    if device.type != "cpu" and real_dtype(device) == torch.float64:
        return _device_table(seq_len, start, config, layout, dtype, device)
    return _host_table(seq_len, start, config, layout, dtype).to(device)


def _host_table(
    seq_len: int, start: int, config: FrequencyConfig, layout: Layout, dtype: torch.dtype
) -> Tensor:
    """NumPy's table. Half types, since NumPy lacks bfloat16, are rounded some rows at a time."""
    threads = torch.get_num_threads()
    if dtype not in HALF_DTYPES:
        name = "float32" if dtype == torch.float32 else "float64"
        return torch.from_numpy(_angles.table(seq_len, start, config, layout, name, threads))
    rows = torch.empty(seq_len, config.d_model, dtype=dtype, device="cpu")
    for first in range(0, seq_len, ROWS_PER_TASK):
        part = rows[first : first + ROWS_PER_TASK]
        part.copy_(
            torch.from_numpy(_angles.table(len(part), start + first, config, layout, "float32"))
        )
    return rows


def _device_table(
    seq_len: int,
    start: int,
    config: FrequencyConfig,
    layout: Layout,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """PE(start + 64a + b) = PE(start + 64a) · T(b), some blocks a at a time."""
    row_cos, row_sin = _cos_sin(torch.arange(BLOCK, device=device), config)
    blocks = _angles.blocks_that_hold(seq_len)
    block_starts = start + BLOCK * torch.arange(blocks, device=device)
    pairs_of_a_block = BLOCK * config.d_model // 2
    blocks_at_a_time = max(1, CHUNK // pairs_of_a_block)
    parts = []
    for part in block_starts.split(blocks_at_a_time):
        cos, sin = (each.unsqueeze(1) for each in _cos_sin(part, config))
        rows = _join(cos * row_cos - sin * row_sin, sin * row_cos + cos * row_sin, layout, dtype)
        parts.append(rows.flatten(0, 1))
    return (torch.cat(parts) if len(parts) > 1 else parts[0])[:seq_len]


def _join(cos: Tensor, sin: Tensor, layout: Layout, dtype: torch.dtype) -> Tensor:
    """Rows of sines and cosines in ``dtype``; half types are rounded from float32."""
    if dtype in HALF_DTYPES:
        cos, sin = cos.float(), sin.float()
    cos, sin = cos.to(dtype), sin.to(dtype)
    if layout == "split":
        return torch.cat((sin, cos), dim=-1)
    return torch.stack((sin, cos), dim=-1).flatten(-2)
