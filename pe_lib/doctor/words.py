"""Frequencies and reports in words."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pe_lib.doctor.numbers import entries_of, listed, number, spans, whole
from pe_lib.doctor.reading import BARS, ROUNDINGS, ROUNDOFF
from pe_lib.doctor.report import NAMES, Array, Code, Floats, Line, Report

# Far beyond the base of any model: where the first pairs seem to say more, they say no base.
LARGEST_BASE = 1e100
# A frequency may miss a formula by this share: some roundings of a power computed in float32.
POWER = 4e-6
# So much nearer than the unit roundoff of a half type must a frequency be known, to say that it was
# rounded to this type.
FINER = 16
# Divisors of slowed pairs are the same to this share, and all frequencies are divided by a number
# that differs from 1 by more.
SAME_DIVISOR = 1e-4
UNTOLD = "between them YaRN's ramp and Llama 3's cannot be told apart"
OF_NO_BASE = "a list of divisors (longrope), or a table of its own"


def base_of(report: Report) -> float | None:
    """The base of the frequencies that were read, rounded as far as their error bars allow; None
    where they have no single base."""
    return describe(report.frequencies, report.frequency_errors, report.head_dim).base


class _Description(NamedTuple):
    """Frequencies in words: what they are as a whole, and what becomes of the pairs."""

    whole: str
    pairs: str = ""
    joint: str = ", "
    base: float | None = None
    others: tuple[str, ...] = ()  # other settings that give the same frequencies
    between: tuple[str, ...] = ()  # what the pairs look like that are neither kept nor slowed

    @property
    def text(self) -> str:
        return self.joint.join(filter(None, (self.whole, self.pairs)))


def describe(omega: Floats, bars: Floats, head_dim: int) -> _Description:
    """Base, kept and slowed pairs, and what else fits, from frequencies alone."""
    turning = int((omega > 0).sum())
    if turning == 0:
        return _Description("none")
    if np.any(omega[:turning] <= 0) or np.any(omega < 0):
        return _Description("in no order")
    described = _of_turning(omega, bars, turning, head_dim)
    still = len(omega) - turning
    if still:
        tail = f"; {still} of {len(omega)} pairs stand still"
        described = described._replace(pairs=described.pairs + tail)
    return described


def _of_turning(omega: Floats, bars: Floats, turning: int, head_dim: int) -> _Description:
    """The same where the first ``turning`` pairs turn, and the others stand still."""
    if turning == 1:
        return _Description("one pair", f"{omega[0]:.6g} a position")
    index, pairs = np.arange(len(omega)), len(omega)
    tolerance = BARS * bars / omega.clip(1e-300) + POWER
    end = next(n for n in range(turning, 1, -1) if n == 2 or _geometric(omega[:n], tolerance[:n]))
    slope, intercept = _line(index[:end], np.log(omega[:end]), tolerance[:end])
    if not -0.01 <= -slope * pairs <= math.log(LARGEST_BASE):
        values = omega[:turning]
        spread = f"from {values.max():.6g} down to {values.min():.6g} a position"
        return _Description("no single base", spread, ": ", others=(OF_NO_BASE,))
    base = _rounded_base(math.exp(-slope * pairs), omega, bars, end)
    divisor = math.exp(-intercept)
    if end == turning:
        return _of_one_base(base, divisor, pairs, head_dim)
    return _of_half_type(omega[:turning], bars[:turning], pairs) or _of_slowed_pairs(
        omega, tolerance, turning, end, base, divisor
    )


def _divided(divisor: float) -> str:
    return "" if abs(divisor - 1) < SAME_DIVISOR else f", all divided by {number(divisor)}"


def _of_one_base(base: float, divisor: float, pairs: int, head_dim: int) -> _Description:
    """All pairs that turn have one base, and perhaps one divisor."""
    divided = _divided(divisor)
    others = _other_explanations(base, pairs, head_dim)
    if divided:
        others = (f"linear scaling by {number(divisor)} of base {number(base)}",)
    kept = f"no pair slowed{divided}"
    return _Description(f"base {number(base)}", kept, base=base, others=others)


def _of_half_type(omega: Floats, bars: Floats, pairs: int) -> _Description | None:
    """Frequencies that a half type holds exactly, if they are known well enough to say so."""
    for name, rounded in ROUNDINGS.items():
        fine = bars < omega * ROUNDOFF[name] / FINER
        if np.all(fine & (np.abs(omega - rounded(omega)) <= BARS * bars + 1e-7 * omega)):
            equal = np.full(len(omega), ROUNDOFF[name])
            slope, _ = _line(np.arange(len(omega)), np.log(omega), equal)
            near = _rounded_value(math.exp(-slope * pairs), 0.03)
            return _Description(f"base about {number(near)}", f"rounded to {name}", base=near)
    return None


def _of_slowed_pairs(
    omega: Floats, tolerance: Floats, turning: int, end: int, base: float, divisor: float
) -> _Description:
    """The first ``end`` pairs have one base; the last ones are divided by one number, or not."""
    index, pairs = np.arange(len(omega)), len(omega)
    ratio = base ** (-index / pairs) / divisor / omega.clip(1e-300)
    last = ratio[turning - 1]
    same = np.abs(ratio / last - 1) <= 2 * (tolerance + tolerance[turning - 1]) + SAME_DIVISOR
    slowed = next(k for k in range(turning) if np.all(same[k:turning]))
    known = tolerance[slowed:turning]
    last = _rounded_value(float(np.average(ratio[slowed:turning], weights=known**-2)), min(known))
    if turning - slowed >= 2 and last > 1:
        return _Description(
            f"base {number(base)}{_divided(divisor)}",
            f"pairs 0–{end - 1} kept, {slowed}–{turning - 1} divided by {number(last)}",
            ": ",
            between=_ramp(ratio, tolerance, last, end, slowed, base),
        )
    return _Description(
        "no single base",
        f"pairs 0–{end - 1} have {number(base)}, and the last is {number(last)} times slower than "
        "that",
        ": ",
        others=(OF_NO_BASE,),
    )


def _line(x: Array, y: Floats, tolerance: Floats) -> tuple[float, float]:
    slope, intercept = np.polyfit(x, y, 1, w=1 / tolerance)
    return float(slope), float(intercept)


def _geometric(omega: Floats, tolerance: Floats) -> bool:
    """Whether the logarithms lie on one line."""
    x, y = np.arange(len(omega)), np.log(omega)
    slope, intercept = _line(x, y, tolerance)
    return bool(np.all(np.abs(y - slope * x - intercept) <= 2 * tolerance))


def _rounded_value(value: float, relative: float) -> float:
    """The roundest number within a relative error."""
    for digits in range(1, 7):
        rounded = float(f"{value:.{digits - 1}e}")
        if abs(rounded / value - 1) <= relative:
            return rounded
    return value


def _rounded_base(base: float, omega: Floats, bars: Floats, end: int) -> float:
    """The base, rounded as far as its own error allows."""
    relative = bars[end - 1] / max(omega[end - 1], 1e-300) * len(omega) / max(end - 1, 1)
    return _rounded_value(base, min(0.01, 4 * relative + 3e-6))


def _other_explanations(base: float, pairs: int, head_dim: int) -> tuple[str, ...]:
    """Other settings that give the same frequencies."""
    found = []
    width = 2 * pairs
    if _digits(base) > 2 and width > 2:
        for smaller in (10_000.0, 500_000.0, 1_000_000.0):
            factor = (base / smaller) ** ((width - 2) / width)
            near = _rounded_value(factor, 2e-4)
            if factor > 1.01 and _digits(near) <= 2:
                found.append(f"base {number(smaller)} under NTK-aware scaling by {number(near)}")
    if width < head_dim:
        of_head = base ** (head_dim / width)
        near = _rounded_value(of_head, 1e-3)
        if _digits(near) <= 2 and (_digits(base) > 2 or base < 500):
            found.append(f"base {number(near)} spaced over the whole head of {head_dim}")
    return tuple(found)


def _digits(value: float) -> int:
    """The significant digits of a number, up to six."""
    return len(f"{value:.5e}".split("e")[0].replace(".", "").rstrip("0"))


def _ramp(
    ratio: Floats, tolerance: Floats, last: float, first: int, slowed: int, base: float
) -> tuple[str, ...]:
    """What the pairs between look like: linear in the index, or in the frequency."""
    if slowed - first < 3:
        return (UNTOLD,)
    index, between = np.arange(first, slowed), slice(first, slowed)
    share = (1 / ratio[between] - 1 / last) / (1 - 1 / last)  # 1 where a pair is kept
    off = 2 * tolerance[between] / (1 - 1 / last)  # how far a share may be from the true one
    found = []
    for name, x in (
        ("linear in the index, as YaRN's", index.astype(float)),
        ("linear in the frequency, as Llama 3's", base ** (-index / len(ratio))),
    ):
        line = np.polyval(np.polyfit(x, share, 1), x)
        if np.all(np.abs(line - share) < 0.01 + off):
            found.append(f"the pairs between are {name}")
    if len(found) == 1:
        return tuple(found)
    return (UNTOLD if found else "the pairs between follow neither YaRN's ramp nor Llama 3's",)


def describe_frequencies(
    frequencies: Sequence[float], head_dim: int, *, base: float | None = None
) -> str:
    """What became of a base, in words, from exact frequencies: which pairs are slowed, and by what.

    A ``base`` that is known already is not said again.

    >>> describe_frequencies([1.0, 0.1, 0.01, 0.001], 8)
    'base 10,000, no pair slowed'
    >>> describe_frequencies([1.0, 0.1, 0.01, 0.001], 8, base=10_000)
    'no pair slowed'
    """
    omega = np.array(frequencies, np.float64)
    described = describe(omega, np.zeros_like(omega), head_dim)
    known = base is not None and described.whole == f"base {number(base)}"
    return described.pairs if known else described.text


# The lines of a report and, for each, the faults that make it wrong.
CODES_OF = {
    "layout": (Code.LAYOUT, Code.LAYOUT_OUT),
    "part": (Code.PART, Code.UNTURNED),
    "direction": (Code.DIRECTION,),
    "frequencies": (
        Code.FREQUENCIES,
        Code.BASE,
        Code.SCALING,
        Code.SPACING,
        Code.HALF_FREQUENCIES,
    ),
    "factor": (Code.FACTOR, Code.LENGTH),
    "axes": (Code.AXES,),
    "offset": (Code.OFFSET, Code.PHASE),
    "positions": (
        Code.BFLOAT16_POSITIONS,
        Code.FLOAT16_POSITIONS,
        Code.FAR,
        Code.NOT_FINITE,
        Code.POSITIONS_IGNORED,
        Code.RESTARTS,
    ),
    "angles": (Code.HALF_ANGLES,),
    "calls": (
        Code.STALE_TABLE,
        Code.SECOND_CALL,
        Code.ROWS_SHARE_POSITIONS,
        Code.WRONG_AXIS,
        Code.BATCH,
        Code.CACHED_STEP,
        Code.FOLLOWS_LENGTH,
        Code.WRITES_INPUT,
        Code.RAISES,
    ),
}
# What is said of these does not depend on what a model expects.
JUDGED_BLIND = ("calls", "angles")


def lines(report: Report) -> tuple[Line, ...]:
    """The printed lines, with a verdict where something was expected or is wrong."""
    blank = report.layout is None
    texts = [
        ("layout", _layout(report)),
        ("part", "none" if blank else _part(report)),
        ("direction", "none" if blank else WAYS[report.direction]),
        *_frequencies(report),
        ("factor", f"{report.attention_factor:.4f}"),
        ("axes", "" if report.pair_axes is None else listed(report.pair_axes)),
        ("offset", number(report.offset)),
        ("positions", f"up to {whole(report.reach)}"),
        ("angles", _angles(report) if "angles" in report.tested else ""),
        ("calls", ", ".join(each for each in report.tested if each != "angles")),
    ]
    # A line of calls is printed without a text, too: for the faults that it may have.
    shown = [(name, text) for name, text in texts if text or name == "calls"]
    made = [Line(name, text, CODES_OF.get(name, ())) for name, text in shown]
    on_a_line = {code for line in made for code in line.codes}
    elsewhere = tuple(code for code in report.codes if code not in on_a_line)
    if elsewhere:
        made.append(Line("rotation", "", elsewhere))
    judged = [line._replace(verdict=_verdict(line, report)) for line in made]
    return (*_held_to(report), *judged)


def others_of(report: Report) -> str:
    """The layers that turn otherwise than what the function was held to, in words; or nothing."""
    settings = report.settings
    if settings is None or len(settings.kinds) < 2:
        return ""
    turning = [index for index, each in enumerate(settings.layers) if each is not None]
    return f"layers {spans([index for index in turning if index not in report.layers])}"


def _held_to(report: Report) -> list[Line]:
    """A first line where a model has several kinds of layers: an ok below is of one of them."""
    others = others_of(report)
    if report.settings is None or not others:
        return []
    verdict = f"1 OF {len(report.settings.kinds)} KINDS: not held to {others}"
    return [Line("held to", f"layers {spans(report.layers)}", (), verdict)]


def _verdict(line: Line, report: Report) -> str:
    differences = {fault.code: fault.difference for fault in report.faults}
    wrong = [differences[code] for code in line.codes if code in differences]
    if wrong:
        return "FAULT: " + "; ".join(wrong)
    unread = report.layout is None and report.faults
    judged = report.expected is not None or line.name in JUDGED_BLIND
    return "ok" if judged and line.codes and line.found and not unread else ""


WAYS = {1: "forward", -1: "backward", 0: "mixed"}


def _layout(report: Report) -> str:
    text = str(report.layout or "none")
    if report.layout_out != report.layout:
        text += f", written {report.layout_out}"
    if report.layout in NAMES:
        text += f" ({NAMES[report.layout]})"
    return text


def _part(report: Report) -> str:
    return f"entries {entries_of(report.rotary_start, report.rotary_dim)} of {report.head_dim}"


def _frequencies(report: Report) -> list[tuple[str, str]]:
    """What they are, in the lines below it from what it was read, and what else fits."""
    described = describe(report.frequencies, report.frequency_errors, report.head_dim)
    below = [*(f"or: {each}" for each in described.others), *described.between]
    turning = report.frequencies > 0
    if turning.any():
        omega, bars = report.frequencies[turning], report.frequency_errors[turning]
        read = f"read: {len(omega)} pairs, {omega.max():.4g} to {omega.min():.4g} a position, "
        below.insert(0, f"{read}± {(bars / omega).max():.1g} of it")
    return [("frequencies", described.text), *(("", each) for each in below)]


def _angles(report: Report) -> str:
    error = f"error {report.angle_error:.1g} at {whole(report.angle_at)}"
    return f"{error}, as in {_type_of_angles(report)}; scores {report.score_error:.1g}"


def _type_of_angles(report: Report) -> str:
    """In what type angles seem to be computed, from their error relative to the largest."""
    largest = report.angle_at * float(report.frequencies.max(initial=0.0))
    relative = report.angle_error / max(largest, 1.0)
    if relative < 1e-9:
        return "float64"
    return "float32" if relative < 1e-6 else "a half type"
