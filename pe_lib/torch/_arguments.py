"""Arguments of the functions and modules: checked, and in their plain form.

`pe_lib._checks` has what needs no tensor.
"""

from contextlib import suppress
from typing import SupportsIndex

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pe_lib import _checks as check
from pe_lib._checks import Layout
from pe_lib.torch._device import FLOAT_DTYPES, FLOATS, HALF_DTYPES, real_dtype

Device = torch.device | str | int | None
GivenFrequencies = Tensor | ArrayLike | None


def check_options(layout: Layout, dtype: torch.dtype) -> None:
    check.choice("layout", layout, check.LAYOUTS)
    if dtype not in FLOAT_DTYPES:
        raise TypeError(f"dtype must be {FLOATS}, got {dtype!r}")


def check_device_has(dtype: torch.dtype, device: torch.device) -> None:
    if dtype == torch.float64 and real_dtype(device) != dtype:
        allowed = f"torch.float32 or a half type on {device.type}, which has no float64"
        raise TypeError(f"dtype must be {allowed}, got {dtype}")


def check_floats(name: str, x: Tensor, *, axes: int) -> None:
    if not isinstance(x, Tensor) or x.dtype not in FLOAT_DTYPES:
        got = x.dtype if isinstance(x, Tensor) else check.brief(x)
        raise TypeError(f"{name} must be a tensor of {FLOATS}, got {got}")
    if x.layout != torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else x.layout
        raise TypeError(f"{name} must be a dense tensor, got layout {kind}")
    if x.ndim < axes:
        check.ndim(name, tuple(x.shape), at_least=axes)


def check_same_device(name: str, values: Tensor, x: Tensor) -> None:
    if values.device != x.device:
        raise ValueError(f"{name} and x must be on one device, got {values.device} and {x.device}")


# Devices and positions


def resolved(device: Device) -> torch.device:
    """The device that is meant, with its index: "cuda" may be "cuda:0", None the default device."""
    return torch.empty(0, device=device).device


def as_positions(name: str, values: Tensor | ArrayLike, device: Device) -> Tensor:
    """Real numbers as an int64 or floating tensor, their range checked if they are on the CPU."""
    if not isinstance(values, Tensor):
        return _host_positions(name, values, resolved(device))
    _check_real_numbers(name, values)
    if values.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_range(name, values)
    elif values.dtype == torch.uint64:
        raise TypeError(
            f"{name} must be of int64, smaller integers, float32 or float64 where values are not "
            f"looked at, on a device and in a compiled graph; got {values.dtype}"
        )
    if not values.is_floating_point():
        values = values.long()
    return values if device is None else _moved(values, resolved(device))


def _moved(values: Tensor, device: torch.device) -> Tensor:
    """float64 becomes float32 on the way to a device without float64."""
    dtype = real_dtype(device) if values.dtype == torch.float64 else values.dtype
    return values.to(device, dtype)


def _check_real_numbers(name: str, values: Tensor) -> None:
    if values.dtype.is_complex or values.dtype == torch.bool or values.layout != torch.strided:
        got = f"dtype {values.dtype}, layout {values.layout}"
        raise TypeError(f"{name} must be real numbers in a dense tensor, got {got}")
    if values.dtype in HALF_DTYPES:
        raise TypeError(check.half_positions(name, values.dtype))


def _check_range(name: str, values: Tensor) -> None:
    """They must be finite and fit int64, which all integers but those of uint64 do."""
    if values.dtype == torch.uint64:
        good = values.view(torch.int64) >= 0  # its highest bit is not set
    elif values.is_floating_point():
        good = (values >= -(2.0**63)) & (values < 2.0**63)
    else:
        return
    with suppress(RuntimeError):  # vmap and FakeTensor have no values
        if not good.all():
            at = good.flatten().tolist().index(False)
            bad = values.flatten().tolist()[at]
            raise ValueError(f"{name} must be finite and fit 64 bits, got {bad}")


def _host_positions(name: str, values: ArrayLike, device: torch.device) -> Tensor:
    """Python numbers, lists and NumPy arrays as a tensor on the device."""
    if torch.compiler.is_compiling():
        tensor = torch.as_tensor(values, device=device)
        if tensor.dtype == torch.bool:
            raise TypeError(
                f"{name} must be real numbers that fit 64 bits, got {check.brief(values)}"
            )
        if not tensor.is_floating_point():  # float64 would round integers above 2⁵³
            return tensor.to(torch.int64)
        return torch.as_tensor(values, dtype=real_dtype(device), device=device)
    array = check.as_positions(name, values)
    dtype = torch.int64 if array.dtype.kind == "i" else real_dtype(device)
    if array.ndim == 0:  # filled in on the device: a copy from the host would wait for it
        return torch.full((), array.item(), dtype=dtype, device=device)
    return torch.as_tensor(array, dtype=dtype, device=device)


def as_positions_of(name: str, values: Tensor | ArrayLike, x: Tensor) -> Tensor:
    """The same on the device of x. A tensor must lie there, but for one number on the host."""
    on_host = not isinstance(values, Tensor) or (values.ndim == 0 and values.device.type == "cpu")
    positions = as_positions(name, values, x.device if on_host else None)
    check_same_device(name, positions, x)
    return positions


def as_shift(by: Tensor | ArrayLike, x: Tensor, instead: str) -> Tensor:
    """Positions by which rows move on: signed numbers. Of arrays in a graph nobody can tell.
    ``instead`` is for the message: what is right where they have no sign."""
    if isinstance(by, Tensor) or not torch.compiler.is_compiling():
        check.signed("by", by, instead)
    return as_positions_of("by", by, x)


# Offsets and tables of the modules


def common_offset(offset: SupportsIndex) -> int:
    """One offset for all rows of the batch."""
    or_else = ", or an integer tensor of shape (batch,); positions= takes any other positions"
    return check.integer("offset", offset, or_else=or_else)


def _is_zero(offset: SupportsIndex | Tensor) -> bool:
    if type(offset) is int:  # as in most calls
        return offset == 0
    if isinstance(offset, Tensor) and offset.ndim > 0:
        return False  # an offset for each row
    return common_offset(offset) == 0


def check_no_offset(offset: SupportsIndex | Tensor) -> None:
    if not _is_zero(offset):
        raise ValueError(f"offset must be 0 where positions are given, got {check.brief(offset)}")


def check_nothing_else(positions: Tensor | None, offset: SupportsIndex | Tensor) -> None:
    """Positions and offset must be left out where there are tables."""
    left_out = "positions and offset must be left out where tables are given"
    if positions is not None:
        raise ValueError(f"{left_out}, got positions {check.brief(positions)}")
    if not _is_zero(offset):
        raise ValueError(f"{left_out}, got offset {check.brief(offset)}")
