"""Checks of arguments, shared by both implementations.

Each function returns the value in its plain form, or raises an error that names the argument, the
value it got and what is allowed.
"""

import math
import operator
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, SupportsFloat, SupportsIndex, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Layout = Literal["interleaved", "split"]
Spacing = Literal["paper", "tensor2tensor"]
LAYOUTS, SPACINGS = get_args(Layout), get_args(Spacing)
Shape = tuple[int, ...]
DEFAULT_BASE = 10_000.0
LARGEST_FREQUENCY = 2**20


class _Brief(reprlib.Repr):
    """The short form of a value for a message. A huge integer is described: beyond a limit, of 4300
    digits or what the user has set, Python refuses to write it out."""

    def repr_int(self, x: int, level: int) -> str:
        bits = x.bit_length()
        return f"<an integer of {bits} bits>" if bits > 2000 else super().repr_int(x, level)

    def repr_Tensor(self, x: Any, level: int) -> str:  # the name that reprlib looks for
        if x.is_meta:
            return "tensor(..., device='meta'), which has no values"
        return self.repr_instance(x, level)


brief = _Brief().repr


class FrequencyConfig(NamedTuple):
    """The checked arguments that determine the frequencies. It serves as a key of caches."""

    d_model: int
    base: float
    spacing: Spacing
    frequencies: tuple[float, ...] | None  # the caller's own, in place of a base


def frequency_config(
    d_model: SupportsIndex,
    base: SupportsFloat,
    spacing: Spacing,
    frequencies: Any = None,
    width_name: str = "d_model",
) -> FrequencyConfig:
    """The arguments that every function takes; ``width_name`` is the caller's name for d_model."""
    choice("spacing", spacing, SPACINGS)
    width = even(width_name, d_model)
    number = real("base", base)
    if number < 1:
        raise ValueError(f"base must be a finite number of at least 1, got {number!r}")
    if frequencies is None:
        return FrequencyConfig(width, number, spacing, None)
    if number != DEFAULT_BASE:
        raise ValueError(f"base must be left out beside frequencies, got {base!r}")
    if spacing != "paper":
        raise ValueError(f"spacing must be left out beside frequencies, got {spacing!r}")
    numbers = _frequencies_of_caller(frequencies, width, width_name)
    return FrequencyConfig(width, number, spacing, numbers)


class Rotation(NamedTuple):
    """The checked arguments of a rotation: which entries turn how fast, and by what they grow."""

    config: FrequencyConfig  # its d_model is the number of entries that turn
    attention_factor: float


def rotation(
    width: SupportsIndex,
    *,
    width_name: str,
    base: SupportsFloat = DEFAULT_BASE,
    spacing: Spacing = "paper",
    frequencies: Any = None,
    attention_factor: SupportsFloat | None = None,
    rotary_dim: SupportsIndex | None = None,
) -> Rotation:
    """The arguments of what turns rows of this ``width``. ``frequencies`` may be the pair that
    `rotary_frequencies` returns: it knows its factor, how many entries turn, and of which head.
    Whatever else has a factor is refused: it has a layout as well, which would be dropped."""
    width = even(width_name, width)
    turned = width if rotary_dim is None else even("rotary_dim", rotary_dim)
    if turned > width:
        raise ValueError(f"rotary_dim must be at most {width_name} = {width}, got {turned}")
    if hasattr(frequencies, "attention_factor"):
        if not isinstance(frequencies, tuple):
            raise TypeError(
                "frequencies must be one number for each pair, or what rotary_frequencies returns, "
                f"got {type(frequencies).__name__}; {INSTEAD_OF_A_LAYER}"
            )
        pair: Any = frequencies
        frequencies = pair.frequencies
        if attention_factor is not None:
            raise ValueError(
                "attention_factor must be left out beside frequencies that have one, as those of "
                f"rotary_frequencies do, got {attention_factor!r}"
            )
        attention_factor = pair.attention_factor
        made_for = getattr(pair, "head_dim", None)
        if made_for is not None and made_for != width:
            raise ValueError(
                f"frequencies must be made for {width_name} = {width}, "
                f"got those of rotary_frequencies({made_for}, …)"
            )
        if rotary_dim is None:
            turned = min(2 * len(frequencies), width)
    factor = 1.0 if attention_factor is None else real("attention_factor", attention_factor)
    if factor <= 0:
        raise ValueError(f"attention_factor must be positive, got {factor!r}")
    turned_name = width_name if rotary_dim is None and turned == width else "rotary_dim"
    config = frequency_config(turned, base, spacing, frequencies, turned_name)
    return Rotation(config, factor)


INSTEAD_OF_A_LAYER = (
    "of a layer that rotary_settings reads write frequencies=layer.frequencies, "
    "attention_factor=layer.attention_factor, rotary_dim=layer.rotary_dim, layout=layer.layout if "
    "its direction is 1, its rotary_start 0 and its pair_axes None; "
    "RotaryPositionalEncoding.from_config reads all of these itself"
)


def _frequencies_of_caller(frequencies: Any, width: int, width_name: str) -> tuple[float, ...]:
    """One finite number a pair, as a tuple."""
    if getattr(frequencies, "requires_grad", False):
        raise ValueError("frequencies must be numbers that are not learned, got requires_grad=True")
    if is_half_type(frequencies):
        raise TypeError(
            "frequencies must be float32 or float64: in a half type their rounding errors, times a "
            f"position of some thousands, are whole radians; got {frequencies.dtype}"
        )
    pairs = width // 2
    allowed = (
        f"frequencies must be {pairs} finite numbers of magnitude up to 2**20, half as many as "
        f"{width_name} = {width}"
    )
    try:
        listed = frequencies.tolist() if hasattr(frequencies, "tolist") else list(frequencies)
        numbers = tuple([real("frequencies", value) for value in listed])
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor without values
        raise TypeError(f"{allowed}, got {brief(frequencies)}") from None
    if len(numbers) != pairs or any(abs(value) > LARGEST_FREQUENCY for value in numbers):
        raise ValueError(f"{allowed}, got {len(numbers)}: {brief(numbers)}")
    return numbers


def is_half_type(values: Any) -> bool:
    """Whether these are float16 or bfloat16 numbers of NumPy or PyTorch."""
    return str(getattr(values, "dtype", "")).endswith("float16")


def half_positions(name: str, dtype: Any) -> str:
    """The message for positions in a half type."""
    largest = 256 if "bfloat16" in str(dtype) else 2048
    return (
        f"{name} must be integers, float32 or float64 numbers, got {dtype}, "
        f"which does not hold every whole number above {largest}"
    )


def integer(
    name: str, value: SupportsIndex, *, at_least: int | None = None, or_else: str = ""
) -> int:
    """One integer (of Python, NumPy or a tensor without axes; no bool), not below ``at_least``.
    ``or_else`` is what a caller takes as well, in words."""
    allowed = "an integer" if at_least is None else f"an integer of at least {at_least}"
    allowed += or_else
    if type(value) is int or type(value).__name__ == "SymInt":  # a symbol must stay a symbol
        number = cast(int, value)
    elif _is_scalar(value, ("int",), "__index__"):
        number = operator.index(value)
    else:
        raise TypeError(f"{name} must be {allowed}, got {brief(value)}")
    if at_least is not None and number < at_least:
        raise ValueError(f"{name} must be {allowed}, got {brief(number)}")
    return number


def real(name: str, value: SupportsFloat) -> float:
    """One finite real number (of Python, NumPy or a tensor without axes; no bool)."""
    allowed = "a finite real number"
    if type(value) is float or type(value).__name__ == "SymFloat":  # a symbol must stay a symbol
        number = cast(float, value)
    elif _is_scalar(value, ("int", "float"), "__float__"):
        try:
            number = float(value)
        except OverflowError:  # a Python integer beyond the range of a float64
            raise TypeError(f"{name} must be {allowed}, got {brief(value)}") from None
    else:
        raise TypeError(f"{name} must be {allowed}, got {brief(value)}")
    if not -math.inf < number < math.inf:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


def _is_scalar(value: Any, dtypes: tuple[str, ...], method: str) -> bool:
    """Whether ``value`` has no axes, and a dtype of these names; a Python number has ``method``."""
    if isinstance(value, bool) or getattr(value, "ndim", 0) != 0:
        return False
    if getattr(value, "is_meta", False):  # a tensor without a value
        return False
    if hasattr(value, "dtype"):
        return any(dtype in str(value.dtype) for dtype in dtypes)
    return hasattr(value, method)


def even(name: str, value: SupportsIndex) -> int:
    """A width: pairs of entries, at least one."""
    width = integer(name, value)
    if width <= 0 or width % 2:
        raise ValueError(f"{name} must be a positive even integer, got {brief(width)}")
    return width


def window(first_name: str, first: SupportsIndex, seq_len: int) -> int:
    """The first of ``seq_len`` positions that must all fit 64 bits; ``first_name`` is what the
    caller calls it."""
    first = integer(first_name, first)
    if seq_len >= 2**63:
        raise ValueError(f"seq_len must be an integer below 2**63, got {brief(seq_len)}")
    count = max(seq_len, 1)
    if not -(2**63) <= first <= 2**63 - count:
        raise ValueError(
            f"{first_name} must be an integer from -2**63 to 2**63 - {count}, got {brief(first)}"
        )
    return first


def choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def true_or_false(name: str, value: bool) -> bool:
    """A bool of Python. Anything else has a truth value too, and "False" is true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {brief(value)}")
    return value


def ndim(name: str, shape: Shape, *, at_least: int) -> None:
    if len(shape) < at_least:
        raise ValueError(f"{name} must have ndim of at least {at_least}, got shape {shape}")


def row_width(name: str, width: int, d_model: int, called: str = "d_model") -> None:
    if width != d_model:
        raise ValueError(f"the last axis of {name} must be {called} = {d_model}, got {width}")


def broadcast(name: str, shape: Shape, target: Shape, target_name: str) -> None:
    """``shape`` must broadcast to ``target`` without enlarging it."""
    padded = (1,) * (len(target) - len(shape)) + shape
    fits = len(padded) == len(target) and all(
        size in (1, wanted) for size, wanted in zip(padded, target, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} must broadcast to {target_name} = {target}, got shape {shape}")


def by_shape(shape: Shape, target: Shape) -> None:
    """A shift ``by`` is one number, of shape (seq,), or has all axes of ``target``. A rank between
    could be read in two ways: (batch, seq) is not (heads, seq)."""
    if 1 < len(shape) < len(target):
        raise ValueError(
            f"by must be a number, of shape (seq,), or have the {len(target)} axes of x.shape[:-1] "
            f"= {target}, as (batch, 1, seq) has for x of (batch, heads, seq, width); positions= "
            f"takes (batch, seq); got shape {shape}"
        )
    broadcast("by", shape, target, "x.shape[:-1]")


LAYOUT_WORDS = (
    "'split' where entry i pairs with i + rotary_dim/2 (rotate_half in transformers, NEOX, "
    "interleaved=False, MLX's traditional=False), or 'interleaved' where 2i pairs with 2i + 1 "
    "(GPT-J, Meta's own files of Llama, llama.cpp's NORM)"
)


def rotary_layout(layout: Layout | None) -> Layout:
    """There is no default: most checkpoints are split, and the wrong layout raises no error."""
    if layout is None:
        raise TypeError(f"layout must be given: {LAYOUT_WORDS}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be {LAYOUT_WORDS}, got {layout!r}")
    return layout


def sizes_in_x(shape: Sequence[int], leading: Shape, axis: int) -> list[int] | None:
    """Positions of this ``shape`` stand for some of the ``leading`` axes of x, of which ``axis``
    counts positions. Their size along each of these axes, 1 along the others; None if they do not
    fit."""
    if len(shape) == 1 and leading:  # (seq,)
        axes = [axis]
    elif len(shape) == 2 and len(leading) > 1:  # (batch, seq)
        axes = [batch_axis(axis), axis]
    elif len(shape) == len(leading):
        axes = list(range(len(leading)))
    else:
        return None
    sizes = [1] * len(leading)
    for place, size in zip(axes, shape, strict=True):
        if size != leading[place] and (size != 1 or place == axis):
            return None
        sizes[place] = size
    return sizes


def batch_axis(axis: int) -> int:
    """The batch is the first axis of x, or the second where the first counts positions."""
    return 1 if axis == 0 else 0


def shapes_of_positions(leading: Shape, axis: int, before: Shape = ()) -> str:
    """The shapes that positions of x may have, in words; ``before`` is the axis that `pair_axes`
    asks for before them."""
    if before:
        names = "(axes, seq)", "(axes, batch, seq)", "(axes, *x.shape[:-1])"
        each = "each after the first"
    else:
        names = "(seq,)", "(batch, seq)", "x.shape[:-1]"
        each = "each"
    if not leading:
        return "be one number"
    seq_len = leading[axis]
    allowed = f"be of shape {names[0]} = {(*before, seq_len)}"
    if len(leading) > 1:
        allowed += f", {names[1]} = {(*before, leading[batch_axis(axis)], seq_len)}"
    if len(leading) > 2:
        allowed += f", or have the axes of {names[2]} = {(*before, *leading)}, "
        allowed += f"{each} of its size or 1"
    return allowed


def positions_in_x(shape: Shape, leading: Shape) -> Shape:
    """The shape in which positions broadcast to the rows of x, the axis before the last of which
    counts positions. One number is the position of a single row. Beside several it could be the
    position of each of them, or of the first."""
    sizes = sizes_in_x(shape, leading, len(leading) - 1)
    if sizes is None:
        allowed = shapes_of_positions(leading, len(leading) - 1)
        got = f"{shape}" if shape else f"one number: p + arange({leading[-1]}) counts on from p"
        raise ValueError(f"positions must {allowed}; got {got}")
    return tuple(sizes)


def by_or_positions(
    by: object, positions: object, attention_factor: object, layout: Layout | None
) -> Layout:
    """Exactly one of them; only positions take a factor, and they want a layout, which is returned.

    Rows of a table that is shifted are interleaved, unless they are said to be split. Queries and
    keys of a checkpoint are either.
    """
    if (by is None) == (positions is None):
        got = "neither" if by is None else "both"
        raise TypeError(
            "rotate must be given one of by, a shift x · T(by), and positions, where RoPE turns x "
            f"by T(−position), got {got}"
        )
    if by is not None and attention_factor is not None:
        raise ValueError(
            "attention_factor must be left out beside by, since a shift leaves the factor of what "
            f"is already turned alone, got {attention_factor!r}"
        )
    if layout is None:
        if positions is not None:
            raise TypeError(
                f"layout must be given beside positions: {' or '.join(map(repr, LAYOUTS))}, as the "
                "queries and keys are, got None"
            )
        return "interleaved"
    choice("layout", layout, LAYOUTS)
    return layout


INSTEAD_OF_A_MINUS = "RoPE is rotate(x, positions=…), without a minus"  # where rotate got by


def signed(name: str, values: Any, instead: str) -> None:
    """Unsigned integers are refused where a sign matters: their minus wraps around to large
    numbers, silently. ``instead`` says what the caller may have meant."""
    if str(getattr(values, "dtype", "")).removeprefix("torch.").startswith("uint"):
        raise TypeError(
            f"{name} must be signed integers or floats, because the minus of unsigned ones wraps "
            f"around, got {values.dtype}; {instead}"
        )


def one_number(name: str, shape: Shape) -> None:
    """``shape`` must have no axis."""
    if shape:
        raise ValueError(f"{name} must be one number, got shape {shape}")


def attention_shapes(
    x: Shape,
    y: Shape,
    e: Shape,
    f: Shape,
    w_q: Shape,
    w_k: Shape,
    *,
    broadcast_shapes: Callable[..., object],
) -> None:
    """The shapes of `attention_terms`. Each row of content has a row of position of its own, since
    a single row is never repeated silently. The axes before the rows must broadcast, which the
    function of NumPy or PyTorch decides."""
    if len(w_q) != 2 or w_q != w_k:
        raise ValueError(f"w_q and w_k must have one shape (d_model, d_k), got {w_q} and {w_k}")
    for name, shape in (("x", x), ("y", y), ("e", e), ("f", f)):
        row_width(name, shape[-1], w_q[0])
    if e[-2] != x[-2]:
        raise ValueError(f"e must have x's {x[-2]} rows, got {e[-2]}")
    if f[-2] != y[-2]:
        raise ValueError(f"f must have y's {y[-2]} rows, got {f[-2]}")
    try:
        broadcast_shapes(x[:-2], e[:-2], y[:-2], f[:-2])
    except (ValueError, RuntimeError):
        shapes = ", ".join(map(str, (x, e, y, f)))
        raise ValueError(
            f"the leading axes of x, e, y, f must broadcast, got shapes {shapes}"
        ) from None


def pair_axes(values: Sequence[SupportsIndex], pairs: int) -> tuple[int, ...]:
    """For each pair, which axis of the positions turns it: from 0 on, and none left out."""
    allowed = f"pair_axes must be {pairs} integers, one for each pair"
    try:
        axes_of_pairs = tuple(
            integer(f"pair_axes[{i}]", value, at_least=0) for i, value in enumerate(values)
        )
    except TypeError:
        raise TypeError(f"{allowed}, got {brief(values)}") from None
    if len(axes_of_pairs) != pairs:
        raise ValueError(f"{allowed}, got {len(axes_of_pairs)}")
    if set(axes_of_pairs) != set(range(max(axes_of_pairs) + 1)):
        used = sorted(set(axes_of_pairs))
        raise ValueError(f"pair_axes must use every axis from 0 to the largest, got {used}")
    return axes_of_pairs


# Arrays of NumPy


def as_array(name: str, values: ArrayLike) -> NDArray:
    """The values as an array, or an error that names the argument, as NumPy's own do not."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length, got {brief(values)}") from None
    except (TypeError, RuntimeError) as error:
        if not _is_of_torch(values):
            raise
        raise TypeError(
            f"{name} must be what NumPy can read, got a torch.Tensor, {brief(values)}; "
            "use pe_lib.torch"
        ) from error  # which says why: bfloat16, for example, or a gradient


def _is_of_torch(values: object) -> bool:
    """Without importing torch, which need not be installed."""
    package, _, _ = type(values).__module__.partition(".")
    return package == "torch"


def as_positions(name: str, values: ArrayLike) -> NDArray:
    """Real numbers below 2⁶³ in magnitude: integers as int64, others as float64."""
    array = as_array(name, values)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        if array.size and (largest := array.max()) >= 2**63:
            raise ValueError(f"{name} must be finite and fit 64 bits, got {largest}")
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise TypeError(f"{name} must be real numbers that fit 64 bits, got {brief(values)}")
    if is_half_type(array):
        raise TypeError(half_positions(name, array.dtype))
    with np.errstate(over="ignore"):  # what a float64 cannot hold becomes infinite, and is refused
        numbers = array.astype(np.float64)
    good = (numbers >= -(2.0**63)) & (numbers < 2.0**63)
    if not good.all():
        raise ValueError(f"{name} must be finite and fit 64 bits, got {numbers[~good].flat[0]}")
    return numbers


def as_float_dtype(dtype: DTypeLike) -> np.dtype:
    allowed = (np.float16, np.float32, np.float64)
    try:
        resolved = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        resolved = None
    if resolved is None or dtype is None or resolved not in allowed:
        raise TypeError(f"dtype must be float16, float32 or float64, got {dtype!r}")
    return resolved


def as_floats(name: str, values: ArrayLike, *, axes: int) -> NDArray[np.floating]:
    array = as_array(name, values)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be of float16, float32 or float64, got {array.dtype}")
    ndim(name, array.shape, at_least=axes)
    return array
