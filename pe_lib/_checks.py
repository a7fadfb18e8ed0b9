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


class Spec(NamedTuple):
    """What fixes the frequencies, checked: a key of caches."""

    d_model: int
    base: float
    spacing: Spacing
    given: tuple[float, ...] | None


def check_spec(
    d_model: SupportsIndex,
    base: SupportsFloat,
    spacing: Spacing,
    frequencies: object = None,
    name: str = "d_model",
) -> Spec:
    """The arguments that every function takes; ``name`` is what the caller calls the width."""
    check_spacing(spacing)
    width, base = check_even(name, d_model), check_base(base)
    if frequencies is None:
        return Spec(width, base, spacing, None)
    if base != 10_000 or spacing != "paper":
        raise ValueError(f"base and spacing must be left out beside frequencies, got {base:g}")
    return Spec(width, base, spacing, check_frequencies(frequencies, width))


def check_frequencies(frequencies: object, d_model: int) -> tuple[float, ...]:
    """d_model/2 finite numbers of magnitude up to 2²⁰, from a sequence, an array or a tensor."""
    allowed = f"{d_model // 2} finite numbers of magnitude up to 2**20"
    try:
        listed = frequencies.tolist() if hasattr(frequencies, "tolist") else list(frequencies)  # type: ignore[call-overload]
        given = tuple([check_real("frequencies", value) for value in listed])
    except (TypeError, ValueError, RuntimeError):  # a tensor without values has no list
        raise TypeError(f"frequencies must be {allowed}, got {frequencies!r}") from None
    if len(given) != d_model // 2:
        raise ValueError(f"frequencies must be {allowed}, got {len(given)} of them")
    if not all(abs(value) <= 2**20 for value in given):
        raise ValueError(f"frequencies must be {allowed}, got {max(given, key=abs)}")
    return given


def check_integer(name: str, value: SupportsIndex, *, at_least: int | None = None) -> int:
    """An integer (Python's or NumPy's, no bool), not below ``at_least``."""
    allowed = "an integer" if at_least is None else f"an integer of at least {at_least}"
    if _is_python_s(value, int):
        integer: int = value  # type: ignore[assignment]
    else:
        if isinstance(value, bool) or not hasattr(value, "__index__") or not _is_one_number(value):
            raise TypeError(f"{name} must be {allowed}, got {value!r}")
        try:
            integer = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be {allowed}, got {value!r}") from None
    if at_least is not None and integer < at_least:
        raise ValueError(f"{name} must be {allowed}, got {integer}")
    return integer


def check_start(start: SupportsIndex, seq_len: int) -> int:
    """A first position; like the last one, it must fit 64 bits."""
    integer = check_integer("start", start)
    if not -(2**63) <= integer <= 2**63 - max(seq_len, 1):
        last = f"2**63 - {max(seq_len, 1)}"
        raise ValueError(f"start must be an integer from -2**63 to {last}, got {integer}")
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
    if _is_python_s(value, float):
        number: float = value  # type: ignore[assignment]
    else:
        refused = isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__")
        if refused or not _is_one_number(value):
            raise TypeError(f"{name} must be a finite real number, got {value!r}")
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{name} must be a finite real number, got {value!r}") from None
    if not -math.inf < number < math.inf:
        raise ValueError(f"{name} must be a finite real number, got {number!r}")
    return number


def _is_python_s(value: object, kind: type) -> bool:
    """A Python number, or PyTorch's symbol of one in a graph, whose value is not to be fixed."""
    return type(value) is kind or type(value).__name__ == {int: "SymInt", float: "SymFloat"}[kind]


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


def check_row_width(name: str, width: int, d_model: int, called: str = "d_model") -> None:
    """The last axis of an array that holds rows of ``d_model`` entries."""
    if width != d_model:
        raise ValueError(f"the last axis of {name} must be {called} = {d_model}, got {width}")


def check_terms(
    x: tuple[int, ...],
    y: tuple[int, ...],
    e: tuple[int, ...],
    f: tuple[int, ...],
    w_q: tuple[int, ...],
    w_k: tuple[int, ...],
) -> None:
    """The shapes of what `attention_terms` takes: one row of position for each row of content, a
    single row is never repeated silently; what stands before the rows must broadcast."""
    if len(w_q) != 2 or w_q != w_k:
        raise ValueError(f"w_q and w_k must have one shape (d_model, d_k), got {w_q} and {w_k}")
    for name, shape in (("x", x), ("y", y), ("e", e), ("f", f)):
        check_row_width(name, shape[-1], w_q[0])
    for name, shape, other, rows in (("e", e, "x", x), ("f", f, "y", y)):
        if shape[-2] != rows[-2]:
            raise ValueError(f"{name} must have {other}'s {rows[-2]} rows, got {shape[-2]}")
    leading = [shape[-3::-1] for shape in (x, e, y, f)]  # from the last of them to the first
    if any(len(set(sizes) - {1}) > 1 for sizes in zip_longest(*leading, fillvalue=1)):
        found = ", ".join(map(str, (x, e, y, f)))
        raise ValueError(f"the leading axes of x, e, y, f must broadcast, got shapes {found}")


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
