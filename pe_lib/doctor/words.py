"""Frequencies and reports in words."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pe_lib.doctor.numbers import entries_of, listed, number, whole
from pe_lib.doctor.reading import ROUNDINGS
from pe_lib.doctor.report import NAMES, Array, Code, Floats, Line, Report


def base_of(report: Report) -> float | None:
    """The base of the frequencies that were read, rounded as far as their error bars allow; None
    where they have no single base."""
    return describe(report.frequencies, report.frequency_errors, report.head_dim).base


# Far beyond the base of any model: where the first pairs seem to say more, they say no base.
LARGEST_BASE = 1e100
OF_NO_BASE = "a list of divisors (longrope), or a table of its own"


class _Description(NamedTuple):
    text: str
    base: float | None
    explanations: tuple[str, ...] = ()


def describe(omega: Floats, bars: Floats, head_dim: int) -> _Description:
    """Base, kept and slowed pairs, and what else fits, from frequencies alone."""
    turning = int((omega > 0).sum())
    pairs = len(omega)
    tail = "" if turning == pairs else f"; {pairs - turning} of {pairs} pairs stand still"
    if turning == 0:
        return _Description("none", None)
    if np.any(omega[:turning] <= 0) or np.any(omega < 0):
        return _Description("in no order", None)
    if turning == 1:
        return _Description(f"one pair, {omega[0]:.6g} a position{tail}", None)
    index = np.arange(pairs)
    tolerance = 4 * bars / omega.clip(1e-300) + 4e-6
    end = next(
        (n for n in range(turning, 1, -1) if _geometric(omega[:n], tolerance[:n]) is not None), 2
    )
    slope, intercept = _line(index[:end], np.log(omega[:end]), tolerance[:end])
    if not -0.01 <= -slope * pairs <= math.log(LARGEST_BASE):
        values = omega[:turning]
        spread = f"from {values.max():.6g} down to {values.min():.6g} a position"
        return _Description(f"no single base: {spread}{tail}", None, (OF_NO_BASE,))
    base = _rounded_base(math.exp(-slope * pairs), omega, bars, end)
    scale = math.exp(-intercept)
    divided = "" if abs(scale - 1) < 1e-4 else f", all divided by {number(scale)}"
    if end == turning:
        other = _other_explanations(base, pairs, head_dim) if divided == "" else ()
        if divided:
            other = (f"linear scaling by {number(scale)} of base {number(base)}",)
        return _Description(f"base {number(base)}, no pair slowed{divided}{tail}", base, other)
    for name, rounded in ROUNDINGS.items():
        values = omega[:turning]
        bits = {"bfloat16": 2.0**-8, "float16": 2.0**-10}[name]
        if np.all(
            np.abs(values - rounded(values)) <= 4 * bars[:turning] + 1e-7 * values
        ) and np.all(bars[:turning] < values * bits / 16):
            slope, _ = _line(index[:turning], np.log(values), np.full(turning, bits))
            near = _rounded_value(math.exp(-slope * pairs), 0.03)
            return _Description(f"base about {number(near)}, rounded to {name}{tail}", near)
    ratio = math.exp(intercept) * base ** (-index / pairs) / omega.clip(1e-300)
    last = ratio[turning - 1]
    slowed = next(
        k
        for k in range(turning)
        if np.all(np.abs(ratio[k:turning] / last - 1) <= 2 * tolerance[k:turning] + 1e-4)
    )
    if end >= 2 and turning - slowed >= 2 and last > 1:
        ramp = _ramp(ratio[end:slowed], last, omega, end, slowed, base, pairs)
        return _Description(
            f"base {number(base)}{divided}: pairs 0–{end - 1} kept, {slowed}–{turning - 1} "
            f"divided by {number(last)}{tail}",
            None,
            ramp,
        )
    return _Description(
        f"no single base: pairs 0–{end - 1} have {number(base)}, and the last is {number(last)} "
        f"times slower than that{tail}",
        None,
        (OF_NO_BASE,),
    )


def _line(x: Array, y: Floats, tolerance: Floats) -> tuple[float, float]:
    slope, intercept = np.polyfit(x, y, 1, w=1 / tolerance)
    return float(slope), float(intercept)


def _geometric(omega: Floats, tolerance: Floats) -> tuple[float, float] | None:
    """The line through the logarithms, if all lie on it."""
    x, y = np.arange(len(omega)), np.log(omega)
    slope, intercept = _line(x, y, tolerance)
    misses = np.abs(y - slope * x - intercept)
    return (slope, intercept) if np.all(misses <= 2 * tolerance) else None


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
        whole = base ** (head_dim / width)
        near = _rounded_value(whole, 1e-3)
        if _digits(near) <= 2 and (_digits(base) > 2 or base < 500):
            found.append(f"base {number(near)} spaced over the whole head of {head_dim}")
    return tuple(found)


def _digits(value: float) -> int:
    """The significant digits of a number, up to six."""
    return len(f"{value:.5e}".split("e")[0].replace(".", "").rstrip("0"))


def _ramp(
    ratio: Floats, last: float, omega: Floats, first: int, slowed: int, base: float, pairs: int
) -> tuple[str, ...]:
    """What the pairs between look like: linear in the index, or in the frequency."""
    if len(ratio) < 3:
        return ("between them YaRN's ramp and Llama 3's cannot be told apart",)
    share = (1 / ratio - 1 / last) / (1 - 1 / last)  # 1 where a pair is kept
    index = np.arange(first, slowed)
    found = []
    for name, x in (
        ("linear in the index, as YaRN's", index.astype(float)),
        ("linear in the frequency, as Llama 3's", base ** (-index / pairs)),
    ):
        line = np.polyval(np.polyfit(x, share, 1), x)
        if np.abs(line - share).max() < 0.01:
            found.append(f"the pairs between are {name}")
    return tuple(found) or ("the pairs between follow neither YaRN's ramp nor Llama 3's",)


def describe_frequencies(frequencies: Sequence[float], head_dim: int) -> str:
    """What became of a base, in words, from exact frequencies: which pairs are slowed, and by what.

    >>> describe_frequencies([1.0, 0.1, 0.01, 0.001], 8)
    'base 10,000, no pair slowed'
    """
    omega = np.array(frequencies, np.float64)
    return describe(omega, np.zeros_like(omega), head_dim).text


def lines(report: Report) -> tuple[Line, ...]:
    """The printed lines, with a verdict where something was expected or is wrong."""
    blank = report.layout is None
    layout = "none" if blank else str(report.layout)
    if report.layout_out != report.layout:
        layout += f", written {report.layout_out}"
    if report.layout in NAMES:
        layout += f" ({NAMES[report.layout]})"
    part = f"entries {entries_of(report.rotary_start, report.rotary_dim)} of {report.head_dim}"
    ways = {1: "forward", -1: "backward", 0: "mixed"}
    described = describe(report.frequencies, report.frequency_errors, report.head_dim)
    turning = report.frequencies > 0
    read = ""
    if turning.any():
        omega, bars = report.frequencies[turning], report.frequency_errors[turning]
        read = f"read: {len(omega)} pairs, {omega.max():.4g} to {omega.min():.4g} a position, "
        read += f"± {(bars / omega).max():.1g} of it"
    lines = [
        Line("layout", layout, (Code.LAYOUT, Code.LAYOUT_OUT)),
        Line("part", "none" if blank else part, (Code.PART, Code.UNTURNED)),
        Line("direction", ways[report.direction] if not blank else "none", (Code.DIRECTION,)),
        Line(
            "frequencies",
            described.text,
            (Code.FREQUENCIES, Code.BASE, Code.SCALING, Code.SPACING, Code.HALF_FREQUENCIES),
        ),
        Line("", read, ()),
        *(
            Line("", f"or: {each}" if "the pairs between" not in each else each, ())
            for each in described.explanations
        ),
        Line("factor", f"{report.attention_factor:.4f}", (Code.FACTOR, Code.LENGTH)),
    ]
    if report.pair_axes is not None:
        lines.append(Line("axes", listed(report.pair_axes), (Code.AXES,)))
    lines += [
        Line("offset", number(report.offset), (Code.OFFSET, Code.PHASE)),
        Line(
            "positions",
            f"up to {whole(report.reach)}",
            (
                Code.BFLOAT16_POSITIONS,
                Code.FLOAT16_POSITIONS,
                Code.FAR,
                Code.NOT_FINITE,
                Code.POSITIONS_IGNORED,
                Code.RESTARTS,
            ),
        ),
    ]
    if "angles" in report.tested:
        error = f"error {report.angle_error:.1g} at {whole(report.angle_at)}, as in "
        error += f"{_type_of_angles(report)}; scores {report.score_error:.1g}"
        lines.append(Line("angles", error, (Code.HALF_ANGLES,)))
    calls = [each for each in report.tested if each != "angles"]
    lines.append(
        Line(
            "calls",
            ", ".join(calls),
            (
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
        )
    )
    named = {code for line in lines for code in line.codes}
    rest = tuple(code for code in report.codes if code not in named)
    if rest:
        lines.append(Line("rotation", "", rest))
    by_code = {fault.code: fault for fault in report.faults}
    done = []
    for line in [each for each in lines if each.name or each.found]:
        wrong = [by_code[code].difference for code in line.codes if code in by_code]
        unread = blank and bool(report.faults)
        fine = "ok" if report.expected is not None or line.name in ("calls", "angles") else ""
        if not line.codes or unread or not line.found:
            fine = ""
        done.append(line._replace(verdict="FAULT: " + "; ".join(wrong) if wrong else fine))
    return tuple(done)


def _type_of_angles(report: Report) -> str:
    """In what type angles seem to be computed, from their error relative to the largest."""
    largest = report.angle_at * float(report.frequencies.max(initial=0.0))
    relative = report.angle_error / max(largest, 1.0)
    if relative < 1e-9:
        return "float64"
    return "float32" if relative < 1e-6 else "a half type"
