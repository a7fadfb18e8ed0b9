"""Checks of arguments, shared by both implementations.

Every check returns the value in its plain form, or raises an error that names the argument, the
value it got and what is allowed.
"""

import math
import numbers
import operator
from itertools import zip_longest
from typing import Literal, NamedTuple, SupportsFloat, SupportsIndex, get_args

Layout = Literal["interleaved", "split"]
Spacing = Literal["paper", "tensor2tensor"]


class Clocks(NamedTuple):
    """What fixes the frequencies, checked. It serves as the key of their caches."""

    d_model: int
    base: float
    spacing: Spacing


def check_clocks(
    d_model: SupportsIndex, base: SupportsFloat, spacing: Spacing, name: str = "d_model"
) -> Clocks:
    """The arguments that every function takes; ``name`` is what the caller calls the width."""
    check_spacing(spacing)
    return Clocks(check_even(name, d_model), check_base(base), spacing)


def check_integer(name: str, value: SupportsIndex, *, at_least: int | None = None) -> int:
    """An integer (Python's or NumPy's, no bool), not below ``at_least``."""
    allowed = "an integer" if at_least is None else f"an integer of at least {at_least}"
    if isinstance(value, bool) or not hasattr(value, "__index__") or not _is_one_number(value):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    try:
        integer = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {allowed}, got {value!r}") from None
    if at_least is not None and integer < at_least:
        raise ValueError(f"{name} must be {allowed}, got {integer}")
    return integer


def check_start(start: SupportsIndex) -> int:
    """A first position, which must fit 64 bits."""
    integer = check_integer("start", start)
    if not -(2**63) <= integer < 2**63:
        raise ValueError(f"start must be an integer from -2**63 to 2**63 - 1, got {integer}")
    return integer


def check_even(name: str, value: SupportsIndex) -> int:
    """A positive even integer: half of the entries are sines, half are cosines."""
    integer = check_integer(name, value)
    if integer <= 0 or integer % 2:
        raise ValueError(f"{name} must be a positive even integer, got {integer}")
    return integer


def check_base(base: SupportsFloat) -> float:
    """A finite real number of at least 1, so that frequencies never grow with their index."""
    number = check_real("base", base)
    if number < 1:
        raise ValueError(f"base must be a finite number of at least 1, got {number!r}")
    return number


def check_real(name: str, value: SupportsFloat) -> float:
    """One finite real number, of Python or a zero-dimensional array."""
    refused = isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__")
    if refused or not _is_one_number(value):
        raise TypeError(f"{name} must be a finite real number, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a finite real number, got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite real number, got {number!r}")
    return number


def _is_one_number(value: object) -> bool:
    """A real number, or an array of no axes that holds one, of NumPy or PyTorch."""
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return False
    dtype = getattr(value, "dtype", "float64")
    return getattr(value, "ndim", 0) == 0 and any(kind in str(dtype) for kind in ("int", "float"))


def check_layout(layout: str) -> None:
    """One of the two orders in which sines and cosines are stored."""
    _check_choice("layout", layout, get_args(Layout))


def check_spacing(spacing: str) -> None:
    """One of the two ways to space the frequencies."""
    _check_choice("spacing", spacing, get_args(Spacing))


def check_axes(name: str, shape: tuple[int, ...], *, at_least: int) -> None:
    """Enough axes for rows of ``d_model`` entries."""
    if len(shape) < at_least:
        axes = "(…, d_model)" if at_least == 1 else "(…, rows, d_model)"
        raise ValueError(f"{name} must be of shape {axes}, got {shape}")


def check_row_width(name: str, width: int, d_model: int) -> None:
    """The last axis of an array that holds rows of ``d_model`` entries."""
    if width != d_model:
        raise ValueError(f"the last axis of {name} must be d_model = {d_model}, got {width}")


def check_same_rows(
    name: str, shape: tuple[int, ...], other_name: str, other: tuple[int, ...]
) -> None:
    """One row of position for each row of content: a single row is never repeated silently."""
    if shape[-2] != other[-2]:
        raise ValueError(f"{name} must have {other_name}'s {other[-2]} rows, got {shape[-2]}")


def check_leading_axes(shapes: dict[str, tuple[int, ...]]) -> None:
    """What stands before the rows must broadcast, among all the arrays of these shapes."""
    leading = [shape[-3::-1] for shape in shapes.values()]  # from the last of them to the first
    if any(len(set(sizes) - {1}) > 1 for sizes in zip_longest(*leading, fillvalue=1)):
        names, found = ", ".join(shapes), ", ".join(map(str, shapes.values()))
        raise ValueError(f"the leading axes of {names} must broadcast, got shapes {found}")


def check_broadcast(
    name: str, shape: tuple[int, ...], target: tuple[int, ...], target_name: str
) -> None:
    """``shape`` must broadcast to ``target`` without enlarging it."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    if len(shape) > len(target) or any(a != 1 and a != b for a, b in pairs):
        raise ValueError(f"{name} must broadcast to {target_name} = {target}, got shape {shape}")


def check_probability(name: str, value: SupportsFloat) -> float:
    """A number from 0 to 1, as the rate of dropout."""
    number = check_real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {number!r}")
    return number


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
