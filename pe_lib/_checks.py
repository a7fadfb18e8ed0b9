"""Checks of arguments, shared by both implementations. Each returns the value in its plain form, or
raises an error that names the argument, the value it got and what is allowed."""

import math
import operator
import reprlib
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, SupportsFloat, SupportsIndex, get_args

Layout = Literal["interleaved", "split"]
Spacing = Literal["paper", "tensor2tensor"]
LAYOUTS, SPACINGS = get_args(Layout), get_args(Spacing)
Shape = tuple[int, ...]


class Spec(NamedTuple):
    """What fixes the frequencies, checked: a key of caches."""

    d_model: int
    base: float
    spacing: Spacing
    given: tuple[float, ...] | None


def spec(
    d_model: SupportsIndex, base: SupportsFloat, spacing: Spacing, frequencies: Any = None,
    name: str = "d_model",
) -> Spec:  # fmt: skip
    """The arguments that every function takes; ``name`` is what the caller calls the width."""
    choice("spacing", spacing, SPACINGS)
    width, number = even(name, d_model), real("base", base)
    if number < 1:
        raise ValueError(f"base must be a finite number of at least 1, got {number!r}")
    if frequencies is None:
        return Spec(width, number, spacing, None)
    if number != 10_000 or spacing != "paper":
        raise ValueError(f"base and spacing must be left out beside frequencies, got base {base!r}")
    if getattr(frequencies, "requires_grad", False):
        raise ValueError("frequencies must be numbers that are not learned, got requires_grad=True")
    allowed = f"frequencies must be {width // 2} finite numbers of magnitude up to 2**20"
    try:
        listed = frequencies.tolist() if hasattr(frequencies, "tolist") else list(frequencies)
        given = tuple([real("frequencies", value) for value in listed])
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor without values
        raise TypeError(f"{allowed}, got {reprlib.repr(frequencies)}") from None
    if len(given) != width // 2 or any(abs(value) > 2**20 for value in given):
        raise ValueError(f"{allowed}, got {len(given)}: {reprlib.repr(given)}")
    return Spec(width, number, spacing, given)


def integer(name: str, value: SupportsIndex, *, at_least: int | None = None) -> int:
    """An integer (Python's or NumPy's, no bool), not below ``at_least``."""
    allowed = "an integer" if at_least is None else f"an integer of at least {at_least}"
    number = _one_number(value, int, operator.index)
    if number is None:
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    if at_least is not None and number < at_least:
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number  # type: ignore[no-any-return]


def start(value: SupportsIndex, seq_len: int) -> int:
    first, end = integer("start", value), max(seq_len, 1)
    if not -(2**63) <= first <= 2**63 - end:
        raise ValueError(f"start must be an integer from -2**63 to 2**63 - {end}, got {first}")
    return first


def even(name: str, value: SupportsIndex) -> int:
    width = integer(name, value)
    if width <= 0 or width % 2:
        raise ValueError(f"{name} must be a positive even integer, got {width}")
    return width


def real(name: str, value: SupportsFloat) -> float:
    """One finite real number, of Python or a zero-dimensional array."""
    number = _one_number(value, float, float)
    if number is None:
        raise TypeError(f"{name} must be a finite real number, got {value!r}")
    if not -math.inf < number < math.inf:
        raise ValueError(f"{name} must be a finite real number, got {value!r}")
    return number  # type: ignore[no-any-return]


def _one_number(value: Any, python: type, convert: Callable[[Any], Any]) -> Any:
    """Python's number, or PyTorch's symbol of one in a graph, whose value is not to be fixed, as it
    is; another real number, or an array of no axes that holds one, converted; else None."""
    symbol, method = {int: ("SymInt", "__index__"), float: ("SymFloat", "__float__")}[python]
    if type(value) is python or type(value).__name__ == symbol:
        return value
    kind = str(getattr(value, "dtype", "float" if hasattr(value, method) else ""))
    refused = isinstance(value, bool) or getattr(value, "ndim", 0) != 0
    if refused or not ("int" in kind or "float" in kind):
        return None
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        return None


def choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def axes(name: str, shape: Shape, *, at_least: int) -> None:
    if len(shape) < at_least:
        raise ValueError(f"{name} must have ndim of at least {at_least}, got shape {shape}")


def row_width(name: str, width: int, d_model: int, called: str = "d_model") -> None:
    if width != d_model:
        raise ValueError(f"the last axis of {name} must be {called} = {d_model}, got {width}")


def terms(x: Shape, y: Shape, e: Shape, f: Shape, w_q: Shape, w_k: Shape) -> None:
    """The shapes of `attention_terms`: one row of position for each row of content, since a single
    row is never repeated silently; what stands before the rows must broadcast."""
    if len(w_q) != 2 or w_q != w_k:
        raise ValueError(f"w_q and w_k must have one shape (d_model, d_k), got {w_q} and {w_k}")
    for name, shape in (("x", x), ("y", y), ("e", e), ("f", f)):
        row_width(name, shape[-1], w_q[0])
    for name, shape, other, rows in (("e", e, "x", x), ("f", f, "y", y)):
        if shape[-2] != rows[-2]:
            raise ValueError(f"{name} must have {other}'s {rows[-2]} rows, got {shape[-2]}")
    leading = [shape[-3::-1] for shape in (x, e, y, f)]  # from the last of them to the first
    if any(len(set(sizes) - {1}) > 1 for sizes in zip_longest(*leading, fillvalue=1)):
        found = ", ".join(map(str, (x, e, y, f)))
        raise ValueError(f"the leading axes of x, e, y, f must broadcast, got shapes {found}")


def broadcast(name: str, shape: Shape, target: Shape, target_name: str) -> None:
    """``shape`` must broadcast to ``target`` without enlarging it."""
    last = target[len(target) - len(shape) :] if len(shape) <= len(target) else shape[:0]
    if len(last) < len(shape) or any(a != 1 and a != b for a, b in zip(shape, last, strict=True)):
        raise ValueError(f"{name} must broadcast to {target_name} = {target}, got shape {shape}")
