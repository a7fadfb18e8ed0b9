"""A report against what a model expects, and which of its layers that is."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pe_lib import _checks as check
from pe_lib.doctor.numbers import entries_of, number, spans, whole
from pe_lib.doctor.reading import BARS, ROUNDINGS
from pe_lib.doctor.report import (
    NAMES,
    Code,
    Fault,
    Floats,
    Report,
    layers_of,
    not_tested,
    with_fault,
    with_note,
)
from pe_lib.doctor.words import describe
from pe_lib.rope import LayerRotation, RotarySettings, families, rotary_settings
from pe_lib.rope.configuration import loaded, text_model

OTHER_FREQUENCIES = 1e-5  # relative: above what a power computed in float32 is off by
OTHER_FACTOR = 1e-3  # relative: less changes no score by more than a rounding to bfloat16 does


# ---- What is expected, and of which layers


def expectation(expect: Any) -> RotarySettings | LayerRotation:
    """All layers of a model, or one, from whatever a caller may give."""
    if isinstance(expect, LayerRotation | RotarySettings):
        return expect
    return _of_module(expect) if _is_module(expect) else rotary_settings(expect)


def longest_of(expect: Any, expected: RotarySettings | LayerRotation) -> int | None:
    """The length that a configuration says itself, for which tables are made; None without one.
    ``expected`` is what was read from it.

    A default of the family is not taken: nobody has said that this model has it. Nor is the length
    beside "dynamic", since texts that are longer are what that scaling is for."""
    if isinstance(expected, LayerRotation) or expect is expected:
        return None
    if any(kind.rope_type == "dynamic" for kind in expected.kinds):
        return None
    given = text_model(loaded(expect))
    own = families().get(str(given.get("model_type")), {}).get("names", {})
    name = "max_position_embeddings"
    length = given.get(name, given.get(own.get(name, name)))
    if not isinstance(length, int | float) or not 1 <= length < math.inf:
        return None
    return int(length)


def of_lengths(
    expect: Any, expected: RotarySettings | LayerRotation, longest: int | None
) -> list[RotarySettings | LayerRotation]:
    """What a file with LongRoPE asks of short texts and of long ones, or for ``longest`` alone.

    Of another file it is one reading, ``expected``. Settings were read for some length already."""
    if isinstance(expected, LayerRotation) or expect is expected:
        return [expected]
    if not any(kind.rope_type == "longrope" for kind in expected.kinds):
        return [expected]
    if longest is not None:
        return [rotary_settings(expect, longest)]
    length = longest_of(expect, expected)
    long = expected if length is None else rotary_settings(expect, length)
    return [expected] if long.layers == expected.layers else [expected, long]


def one_layer(settings: RotarySettings, layer: Any, name: str = "layer") -> LayerRotation:
    """What a layer that the argument ``name`` names turns by."""
    number, last = check.integer(name, layer, at_least=0), len(settings.layers) - 1
    if number > last:
        raise ValueError(f"{name} must be from 0 to {last}, got {number}")
    found = settings.layers[number]
    if found is None:
        raise ValueError(f"{name} must be a layer that turns, got {number}, which does not turn")
    return found


def refuse_several(settings: RotarySettings, name: str = "layer") -> None:
    """No function is held to the whole of a model whose layers turn in different ways."""
    if len(settings.kinds) > 1:
        own = [layers_of(settings, kind) for kind in settings.kinds]
        kinds = "; ".join(f"{layers[0]} stands for layers {spans(layers)}" for layers in own)
        raise ValueError(
            f"{name} must be given, because {len(own)} kinds of layers of "
            f"{settings.model_type!r} turn in different ways: {kinds}"
        )


def kinds_of_layer(
    expected: RotarySettings | LayerRotation, layer: Any, head_dim: Any
) -> list[LayerRotation]:
    """The different rotations that are expected, of this width: that of ``layer``, or all.

    Where no width is given, it is the one that all of them have."""
    if isinstance(expected, LayerRotation):
        if layer is not None:
            raise ValueError(
                f"layer must be left out where expect is one layer, got {check.brief(layer)}"
            )
        kinds = [expected]
    elif layer is not None:
        kinds = [one_layer(expected, layer)]
    else:
        kinds = list(expected.kinds)
    if not kinds:
        raise ValueError("expect must have a layer that turns, and in this configuration none does")
    widths = sorted({each.head_dim for each in kinds})
    if head_dim is None and len(widths) > 1:
        raise ValueError(
            "layer or head_dim must be given, because heads of expect have the widths "
            f"{' and '.join(map(str, widths))}"
        )
    fitting = [each for each in kinds if head_dim is None or each.head_dim == head_dim]
    if not fitting:
        raise ValueError(f"head_dim must be the width that expect says, {widths}, got {head_dim}")
    return fitting


def _is_module(expect: Any) -> bool:
    return hasattr(expect, "frequencies") and hasattr(expect, "layout")


def _of_module(module: Any) -> LayerRotation:
    """The settings of a ``RotaryPositionalEncoding``, of which this file knows only the names.

    Where all of its frequencies are negative, it turns backward."""
    omega = np.asarray(module.frequencies, np.float64)
    direction = -1 if np.any(omega < 0) and not np.any(omega > 0) else 1
    axes = module.pair_axes
    return LayerRotation(
        head_dim=int(module.head_dim),
        rotary_dim=2 * len(omega),
        layout=module.layout,
        layout_out=module.layout,
        frequencies=tuple((direction * omega).tolist()),
        attention_factor=float(module.attention_factor),
        direction=direction,
        pair_axes=None if axes is None else tuple(int(each) for each in axes),
    )


# ---- What differs


def compare(report: Report, kind: LayerRotation, *, same_cache: bool = True) -> Report:
    """A report of `examine` without ``expect``, with its faults against one kind of layer.

    With ``same_cache`` another order of the outputs is a fault, and else a note: scores are equal.
    """
    report = replace(report, expected=kind)
    if report.follows_length and is_for_long_texts(kind):
        report, kind = _at_the_length(report, kind)
    if kind.pair_axes is not None and report.pair_axes is None:
        axes = max(kind.pair_axes) + 1
        report = not_tested(report, f"which axis turns a pair (position_axes={axes})")
    broken = {Code.POSITIONS_IGNORED, Code.NOT_A_ROTATION, Code.STALE_TABLE, Code.NOT_FINITE}
    if report.layout is None or broken & set(report.codes):
        if report.layout is None and not report.faults:
            report = with_fault(report, _fault_unturned())
        return report
    for check_one in (
        _compare_layout,
        _compare_direction,
        _compare_part,
        _compare_frequencies,
        _compare_factor,
        _compare_axes,
        _compare_length,
    ):
        fault = check_one(report, kind)
        if fault is None:
            continue
        if fault.code is Code.LAYOUT_OUT and not same_cache:
            report = with_note(report, f"{fault.difference}: {fault.consequence}")
        else:
            report = with_fault(report, fault)
    return _with_exact_angles(report, kind)


def distance(report: Report) -> tuple[int, float]:
    """How far a report is from what it was held to: its faults, then the error of scores.

    Two bases are one fault each, so the faults alone do not say which of them is nearer."""
    found, expected = _found(report), report.expected
    readable = report.layout in NAMES and 2 * len(found.frequencies) == found.rotary_dim
    if expected is None or not readable:
        return len(report.faults), 0.0
    return len(report.faults), _score_error(found, expected, 100)


def is_for_long_texts(kind: LayerRotation) -> bool:
    """Whether the frequencies are those of a text beyond the length of the first training, with a
    scaling that has others for shorter ones."""
    if kind.rope_type not in ("dynamic", "longrope") or kind.base is None:
        return False
    pairs = len(kind.frequencies)
    plain = kind.base ** (-np.arange(pairs) / pairs)
    if kind.rope_type == "dynamic":
        return not np.allclose(kind.frequencies, plain, rtol=OTHER_FREQUENCIES, atol=0)
    divisors = np.array(dict(kind.rope_parameters).get("long_factor", np.nan), np.float64)
    return np.allclose(kind.frequencies, plain / divisors, rtol=OTHER_FREQUENCIES, atol=0)


def _at_the_length(report: Report, kind: LayerRotation) -> tuple[Report, LayerRotation]:
    """What to compare where a function follows the length, and frequencies of long texts are meant.

    LongRoPE has one list for all long texts. Under "dynamic" each length has its own frequencies,
    and which length is meant they do not say: a near call is held to those of short texts."""
    if kind.rope_type == "dynamic":
        pairs = len(kind.frequencies)
        assert kind.base is not None
        plain = kind.base ** (-np.arange(pairs) / pairs)
        report = not_tested(report, "the frequencies of long texts, which expect asks for")
        return report, replace(kind, frequencies=tuple(plain.tolist()))
    assert report.far_frequencies is not None
    assert report.far_frequency_errors is not None
    assert report.far_attention_factor is not None
    report = replace(
        report,
        frequencies=report.far_frequencies,
        frequency_errors=report.far_frequency_errors,
        attention_factor=report.far_attention_factor,
    )
    return with_note(report, "frequencies and factor are those of a call with far positions"), kind


def _with_exact_angles(report: Report, kind: LayerRotation) -> Report:
    """The errors of angles beside the model's frequencies, where these are what was meant."""
    wrong = {
        Code.LAYOUT,
        Code.PART,
        Code.FREQUENCIES,
        Code.BASE,
        Code.SCALING,
        Code.SPACING,
        Code.HALF_FREQUENCIES,
    }
    found = report.frequencies
    if wrong & set(report.codes) or report.layout == "other" or report.follows_length:
        return report
    rounding = np.abs(found - np.array(kind.frequencies))[found != 0]
    if len(rounding) != len(report.angle_errors):
        return report
    return replace(report, angle_errors=report.angle_errors + rounding * report.angle_at)


def _fault_unturned() -> Fault:
    return Fault(
        Code.UNTURNED,
        "nothing turns",
        "the same at every distance: the model sees no order but what its mask shows",
        "call the rotation; look for a layer that was left out, or for positions that are all 0",
    )


def _matrix(rotation: LayerRotation, position: float) -> Floats:
    """M(p) of a rotation that is described, (head_dim, head_dim)."""
    matrix = np.eye(rotation.head_dim)
    entries = _entries(rotation.layout, rotation.rotary_dim) + rotation.rotary_start
    outputs = _entries(rotation.layout_out, rotation.rotary_dim) + rotation.rotary_start
    angle = rotation.direction * np.array(rotation.frequencies) * position
    matrix[np.ix_(entries.ravel(), outputs.ravel())] = 0
    cos, sin = rotation.attention_factor * np.cos(angle), rotation.attention_factor * np.sin(angle)
    (a, b), (c, d) = entries.T, outputs.T
    matrix[a, c], matrix[b, d], matrix[a, d], matrix[b, c] = cos, cos, sin, -sin
    return matrix


def _entries(layout: str, rotary_dim: int) -> NDArray[np.int64]:
    """The entries of each pair, (K, 2)."""
    numbers = np.arange(rotary_dim)
    return numbers.reshape(-1, 2) if layout == "interleaved" else numbers.reshape(2, -1).T


def _score_error(found: LayerRotation, expected: LayerRotation, distance: int) -> float:
    """The error of a score of Gaussian q and k, whose standard deviation is 1 without a factor.

    A score is q·A·kᵀ/√d with A = M(distance)·M(0)ᵀ; the difference of two has the standard
    deviation ‖A − A′‖/√d, with Frobenius' norm."""
    a, b = (_matrix(each, distance) @ _matrix(each, 0).T for each in (found, expected))
    return float(np.linalg.norm(a - b) / math.sqrt(expected.head_dim))


def _found(report: Report) -> LayerRotation:
    """What was read, in the form of what is expected."""
    return LayerRotation(
        head_dim=report.head_dim,
        rotary_dim=report.rotary_dim,
        rotary_start=report.rotary_start,
        layout="split" if report.layout == "split" else "interleaved",
        layout_out="split" if report.layout_out == "split" else "interleaved",
        direction=report.direction or 1,
        frequencies=tuple(report.frequencies.tolist()),
        attention_factor=report.attention_factor,
    )


def _scores_off(expected: LayerRotation, **changed: Any) -> str:
    """By how much scores are off if only these fields are as they were found."""
    other = replace(expected, **changed)
    parts = [
        f"{_score_error(other, expected, n):.2g} at distance {whole(n)}" for n in (1, 100, 10_000)
    ]
    return f"off by {', '.join(parts)} (their standard deviation is 1)"


def _compare_layout(report: Report, kind: LayerRotation) -> Fault | None:
    one_pair = kind.rotary_dim == 2
    if report.layout != kind.layout and not one_pair:
        wanted = f"{kind.layout} ({NAMES[kind.layout]})"
        consequence = "wrong at every distance"
        if report.layout in NAMES:
            consequence = _scores_off(kind, layout=report.layout, layout_out=report.layout)
        return Fault(
            Code.LAYOUT,
            f"pairs are {report.layout} and the model's are {wanted}",
            consequence,
            f"set the flag, or reorder the weights once: convert_layout(w, {kind.head_dim}, "
            f"to={report.layout!r}), and with them the biases and the norms of q and k",
        )
    if report.layout_out != kind.layout_out and not one_pair:
        return Fault(
            Code.LAYOUT_OUT,
            f"it writes {report.layout_out} and the model's own code writes {kind.layout_out}",
            "equal, if queries and keys go through the same function; cached keys are in another "
            "order and cannot be exchanged with the model's own code",
            "nothing if the cache stays with this function; else reorder its outputs",
        )
    return None


def _compare_direction(report: Report, kind: LayerRotation) -> Fault | None:
    if report.direction == kind.direction or _same_ways(report, kind):
        return None
    which = {1: "forward", -1: "backward"}
    if report.direction == 0:
        return _fault_mixed(report, kind, which[-kind.direction], which[kind.direction])
    return Fault(
        Code.DIRECTION,
        f"pairs turn {which[report.direction]} and the model's {which[kind.direction]}",
        _scores_off(kind, direction=-kind.direction)
        + "; the past is seen as a future at the same distance",
        "change the sign of the sine",
    )


def _same_ways(report: Report, kind: LayerRotation) -> bool:
    """Whether each pair turns as it should, where some are meant to turn the other way."""
    expected = kind.direction * np.sign(kind.frequencies)
    return report.direction == 0 and np.array_equal(np.sign(report.frequencies), expected)


def _fault_mixed(report: Report, kind: LayerRotation, wrong: str, right: str) -> Fault:
    """Some pairs turn as the model's do and some the other way: frequencies have signs then."""
    ways = kind.direction * np.sign(report.frequencies)
    pairs = spans(np.flatnonzero(ways < 0).tolist())
    consequence = "wrong at every distance"
    if len(ways) == len(kind.frequencies):
        consequence = _scores_off(kind, frequencies=tuple((ways * kind.frequencies).tolist()))
    return Fault(
        Code.DIRECTION,
        f"pairs {pairs} turn {wrong} and the model's {right}, as the others do",
        f"{consequence}; these pairs see the past as a future at the same distance",
        f"change the sign of the sine of pairs {pairs} alone",
    )


def _compare_part(report: Report, kind: LayerRotation) -> Fault | None:
    found = (report.rotary_start, report.rotary_dim)
    if found == (kind.rotary_start, kind.rotary_dim) or report.layout == "other":
        return None
    same_layout = replace(kind, layout=_found(report).layout, layout_out=_found(report).layout_out)
    error = _score_error(
        replace(_found(report), attention_factor=1.0, direction=kind.direction),
        replace(same_layout, attention_factor=1.0),
        100,
    )
    return Fault(
        Code.PART,
        f"entries {entries_of(*found)} of a head turn, and the model's are "
        f"{entries_of(kind.rotary_start, kind.rotary_dim)} of {kind.head_dim}",
        f"off by {error:.2g} at distance 100 (their standard deviation is 1)",
        f"set rotary_dim={kind.rotary_dim} (partial_rotary_factor "
        f"{kind.rotary_dim / kind.head_dim:g}) and leave the rest of the head as it is",
    )


def _compare_frequencies(report: Report, kind: LayerRotation) -> Fault | None:
    expected = np.array(kind.frequencies)
    found, bars = report.frequencies, report.frequency_errors
    if len(found) != len(expected):
        return None  # the part is reported instead
    tolerance = BARS * bars + OTHER_FREQUENCIES * np.abs(expected)
    different = np.abs(found - expected) > tolerance
    if not different.any():
        return None
    why = _explain_frequencies(found, kind, different, bars)
    consequence = _scores_off(kind, frequencies=tuple(found.tolist()))
    return Fault(why.code, why.difference, consequence, why.remedy)


class _Explanation(NamedTuple):
    code: Code
    difference: str
    remedy: str


def _explain_frequencies(
    found: Floats, kind: LayerRotation, different: NDArray[np.bool_], bars: Floats
) -> _Explanation:
    """Why frequencies differ: the likeliest cause that reproduces them within their error bars."""

    def fits(candidate: Floats, extra: float = OTHER_FREQUENCIES) -> bool:
        return bool(np.all(np.abs(found - candidate) <= BARS * bars + extra * np.abs(candidate)))

    where = spans(np.flatnonzero(different).tolist())
    explained = _half_frequencies(found, kind, fits) or _other_formula(found, kind, fits, where)
    if explained is not None:
        return explained
    expected = np.array(kind.frequencies)
    ratios = found[expected != 0] / expected[expected != 0]
    if len(ratios) and np.allclose(ratios, ratios[0], rtol=min(1e-4, abs(ratios[0] - 1) / 10)):
        return _Explanation(
            Code.FREQUENCIES,
            f"all frequencies are {number(ratios[0])} times those of the model",
            "look for a factor of linear scaling that is applied once too often, or not at all",
        )
    base = describe(found, bars, 2 * len(found)).base
    if base is not None:
        wanted = "" if kind.base is None else f" and the model's is {number(kind.base)}"
        scaled = kind.rope_type not in (None, "default", "mrope")
        missing = f"; or its scaling is missing, {kind.rope_type!r}" if scaled else ""
        return _Explanation(
            Code.BASE,
            f"the base is {number(base)}{wanted}; pairs {where} differ",
            f"take rope_theta from the model's configuration{missing}",
        )
    first = int(np.flatnonzero(different)[0])
    return _Explanation(
        Code.FREQUENCIES,
        f"pairs {where} differ; pair {first} turns by {found[first]:.6g} a position and the "
        f"model's by {expected[first]:.6g}",
        "give it the frequencies of rotary_frequencies(**rope_parameters)",
    )


def _half_frequencies(
    found: Floats, kind: LayerRotation, fits: Callable[..., bool]
) -> _Explanation | None:
    expected = np.array(kind.frequencies)
    for name, rounded in ROUNDINGS.items():
        of_single = rounded(expected.astype(np.float32))
        if fits(rounded(expected), 1e-6) or fits(of_single, 1e-6):
            turning = expected != 0
            worst = np.abs(found[turning] / expected[turning] - 1).max(initial=0.0)
            return _Explanation(
                Code.HALF_FREQUENCIES,
                f"frequencies are rounded to {name}, up to {worst:.1e} off",
                "keep inv_freq in float32 when the model is cast",
            )
    return None


def _other_formula(
    found: Floats, kind: LayerRotation, fits: Callable[..., bool], where: str
) -> _Explanation | None:
    """The model's base without its scaling, or with exponents of another width."""
    if kind.base is None:
        return None
    expected, pairs = np.array(kind.frequencies), len(found)
    index = np.arange(pairs)
    plain = kind.base ** (-index / pairs)
    if kind.rope_type not in ("default", "mrope") and fits(plain):
        ratio = (plain / expected.clip(1e-300))[expected > 0].max()
        return _Explanation(
            Code.SCALING,
            f"scaling {kind.rope_type!r} is ignored: up to {number(ratio)}× on pairs {where}",
            "give it the frequencies of rotary_frequencies(**rope_parameters), not a base",
        )
    if 2 * pairs < kind.head_dim and fits(kind.base ** (-2 * index / kind.head_dim)):
        return _Explanation(
            Code.SPACING,
            f"frequencies are spaced as for all {kind.head_dim} entries of a head, not for the "
            f"{2 * pairs} that turn",
            f"divide the exponent by rotary_dim = {2 * pairs}",
        )
    if fits(kind.base ** (-index / max(pairs - 1, 1))):
        return _Explanation(
            Code.SPACING,
            "exponents run from 0 to 1 with both ends, as in tensor2tensor",
            "let pair i have base**(-2*i/rotary_dim)",
        )
    return None


def _compare_factor(report: Report, kind: LayerRotation) -> Fault | None:
    found, expected = report.attention_factor, kind.attention_factor
    if abs(found / expected - 1) <= BARS * report.attention_factor_error / found + OTHER_FACTOR:
        return None
    share = (found / expected) ** 2
    size = f"{abs(1 - share):.0%} too {'large' if share > 1 else 'small'}"
    what = f"cosines and sines are multiplied by {found:.4f} and the model's by {expected:.4f}"
    if abs(found - expected**2) < OTHER_FACTOR:
        what += ": the factor is applied twice"
    return Fault(
        Code.FACTOR,
        what,
        f"{size}, at every distance",
        f"multiply cosines and sines by attention_factor = {expected:.6g}, once, on q and on k",
    )


def _compare_axes(report: Report, kind: LayerRotation) -> Fault | None:
    if kind.pair_axes is None or report.pair_axes == kind.pair_axes:
        return None
    if report.pair_axes is None:
        return None  # position_axes was 1, which compare says
    different = [
        k for k, (a, b) in enumerate(zip(report.pair_axes, kind.pair_axes, strict=False)) if a != b
    ]
    return Fault(
        Code.AXES,
        f"pairs {spans(different)} follow other axes of the positions than the model's",
        "right for text, whose axes are equal, and wrong for images and video",
        "take the axis of each pair from mrope_section and mrope_interleaved",
    )


def _compare_length(report: Report, kind: LayerRotation) -> Fault | None:
    follows = kind.rope_type in ("dynamic", "longrope")
    if report.follows_length and not follows:
        return Fault(
            Code.FOLLOWS_LENGTH,
            "frequencies follow the longest position of the call, and the model's do not",
            "of a new query with cached keys depend on both positions, not on their distance",
            "compute the frequencies once",
        )
    return None
