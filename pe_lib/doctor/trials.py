"""Further calls, each against what the rotation that was read would give."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pe_lib.doctor.calls import AXES, Axes, Caller, Refused
from pe_lib.doctor.numbers import whole
from pe_lib.doctor.reading import (
    FLOAT32,
    FLOOR,
    ROUNDINGS,
    SINGLE,
    SURE,
    Pairs,
    complex_of,
    fit_frequencies,
    layout_of,
    wrap,
)
from pe_lib.doctor.report import Array, Code, Fault, Floats, Report, not_tested, with_fault

NEAR = 64  # the longest position of a call that is short for every model

# Positions that are no powers of two: bfloat16 rounds some from 257 on, and float16 from 2,049 on.
ODD = (3, 5, 100, 257, 1000, 2049, 4099, 10_001, 32_769, 100_000, 100_001, 1_000_003)
FAR = 100_000  # where errors of angles are reported

# Entries of a pair of random vectors add up to more than so many unit vectors hardly ever.
RANDOM = 5
# Random vectors are multiplied by this, so that a norm inside the function shows.
LONG = 3
# Angles that are explained by rounded positions may miss by so much more, in radians: cosines of
# such code are often rounded, too.
ROUNDED_TOO = 0.02
# An error of an angle relative to the angle: below the first, it is that of code in float32, and
# above the second one rounding to bfloat16 explains it and one to float16 does not.
SINGLE_ANGLES, BFLOAT16_ANGLES = 32 * FLOAT32, 2.0**-11
# A vector is turned by a position if its phases miss by less than this share of its length.
THAT_POSITION = 0.1


def positions_ignored(caller: Caller) -> Fault | None:
    """Whether equal rows at one position are turned differently, as by their number."""
    row = np.linspace(0.5, 1.5, caller.width)
    x = np.tile(row, (6, 1))
    same = caller.rows(x, np.full(6, 5))
    if np.allclose(same, same[0], rtol=1e-5, atol=1e-5):
        return None
    return Fault(
        Code.POSITIONS_IGNORED,
        "rows at one and the same position are turned differently: it numbers the rows itself",
        "right in a full pass from position 0, wrong in every step with a cache, and with padding",
        "turn row n by the angle of positions[n]",
    )


def _probe(pairs: Pairs, width: int) -> Floats:
    """One row with a 1 in the first entry of every pair: its output shows all angles at once."""
    row = np.zeros(width)
    row[pairs.entries[:, 0]] = 1
    return row


def _phases(
    caller: Caller, pairs: Pairs, positions: Sequence[int] | Array
) -> NDArray[np.complex128]:
    """m·exp(iθ) for each position and pair, from one call."""
    x = np.tile(_probe(pairs, caller.width), (len(positions), 1))
    y = caller.rows(x, np.asarray(positions, np.int64))
    c, d = pairs.outputs.T
    return np.asarray(y[:, c] + 1j * y[:, d])


def _unit_phases(caller: Caller, pairs: Pairs, positions: Array) -> NDArray[np.complex128]:
    """m·exp(iθ) for each position and pair, from unit vectors, as in the first call."""
    where = np.broadcast_to(positions, (caller.position_axes, len(positions)))
    return complex_of(caller.matrices(where), pairs)[0]


def with_calls(
    report: Report,
    caller: Caller,
    pairs: Pairs,
    noise: float,
    first: NDArray[np.complex128],
    steps: Array,
) -> Report:
    """A second call, of near positions alone: from a stale table, or with other frequencies?"""
    report = replace(report, tested=(*report.tested, "second call"))
    near = steps[steps <= NEAR][::-1]  # in another order than in the first call
    first = first[: len(near)][::-1]
    tolerance = SURE * noise * report.attention_factor + FLOOR

    def agree(some: NDArray[np.complex128], others: NDArray[np.complex128]) -> bool:
        return bool(np.abs(some - others).max() <= tolerance)

    z = _unit_phases(caller, pairs, near)
    if agree(z, first):
        return report
    with_far = _unit_phases(caller, pairs, np.append(near, steps[-1]))
    if agree(with_far[:-1], first):
        return _following_the_length(report, pairs, z[::-1], near[::-1], noise)
    from_first = near - near[0] + report.offset
    counted = np.exp(1j * np.multiply.outer(from_first, _signed(report, pairs)))
    if agree(z, report.attention_factor * counted):
        return with_fault(report, _fault_restarts(int(near[0])))
    stale = agree(_unit_phases(caller, pairs, near + 1), z)
    return with_fault(report, _fault_stale_table() if stale else _fault_second_call())


def _following_the_length(
    report: Report, pairs: Pairs, z: NDArray[np.complex128], near: Array, noise: float
) -> Report:
    """The frequencies of a call of near positions, and as far ones those of the first call."""
    close = fit_frequencies(z, near, 2 * noise, SINGLE)
    frequencies, bars = report.frequencies.copy(), report.frequency_errors.copy()
    index = layout_of(pairs.entries)[3]
    frequencies[index], bars[index] = np.abs(close.omega), close.bar
    note = (
        "frequencies follow the longest position of the call: in a cache older keys keep the "
        "rotation with which they were stored"
    )
    return replace(
        report,
        follows_length=True,
        far_frequencies=report.frequencies,
        far_frequency_errors=report.frequency_errors,
        far_attention_factor=report.attention_factor,
        frequencies=frequencies,
        frequency_errors=bars,
        attention_factor=float(np.median(np.abs(z))),
        notes=(*report.notes, note),
    )


def _fault_stale_table() -> Fault:
    return Fault(
        Code.STALE_TABLE,
        "a second call is turned by the positions of an earlier one",
        "right in the first call, wrong in every later one",
        "key its table by the positions, or compute the rows that are missing",
    )


def _fault_second_call() -> Fault:
    return Fault(
        Code.SECOND_CALL,
        "a second call at the same positions turns differently",
        "wrong in the second call, or in the first",
        "look for state that one call leaves to the next",
    )


def with_angles(report: Report, caller: Caller, pairs: Pairs, noise: float) -> Report:
    """Angles at positions that are no powers of two, where a rounding shows."""
    odd = np.array([p for p in ODD if p <= max(report.reach, 3)], np.int64)
    asked = np.append(odd, report.reach) if report.follows_length else odd
    z = _phases(caller, pairs, asked)[: len(odd)]
    omega = _signed(report, pairs, far=report.follows_length)
    bars = _of_pairs(report.frequency_errors, pairs)

    def misses(positions: Floats) -> Floats:
        where = np.where(np.isfinite(positions), positions, 0) + report.offset
        return np.asarray(np.abs(wrap(np.angle(z) - np.multiply.outer(where, omega))))

    error = misses(odd.astype(np.float64))
    known = SURE * noise + FLOOR + np.multiply.outer(odd, bars + 4 * FLOAT32 * np.abs(omega))
    from_first = (odd - odd.min()).astype(np.float64)
    if np.any(error > known) and np.all(misses(from_first) <= known):
        return with_fault(report, _fault_restarts(int(odd.min())))
    at = int(np.flatnonzero(odd <= FAR)[-1])
    report = replace(
        report,
        angle_errors=error[at],
        angle_at=int(odd[at]),
        tested=(*report.tested, "angles"),
    )
    if np.all(error <= known):
        return report
    for name, rounded in ROUNDINGS.items():
        where = rounded(odd)
        usable = np.isfinite(where)
        fine = known[usable] + ROUNDED_TOO
        if np.any(where[usable] != odd[usable]) and np.all(misses(where)[usable] <= fine):
            changed = int(odd[np.flatnonzero(where != odd)[0]])
            return with_fault(
                report, _fault_half_positions(name, changed, float(rounded([changed])[0]))
            )
    relative = error / np.maximum(np.multiply.outer(odd, np.abs(omega).clip(1e-12)), 1)
    worst = float(relative.max())
    if worst <= SINGLE_ANGLES:
        return report
    return with_fault(report, _fault_half_angles(report, worst))


def _fault_restarts(first: int) -> Fault:
    return Fault(
        Code.RESTARTS,
        f"each call counts from its own first position: {whole(first)} is turned as 0",
        "right in the prompt, wrong in what is generated with a cache",
        "turn by the positions that are given, not by their distance from the first",
    )


def _fault_half_angles(report: Report, relative: float) -> Fault:
    name = "bfloat16" if relative > BFLOAT16_ANGLES else "float16 or TF32"
    return Fault(
        Code.HALF_ANGLES,
        f"angles are off by up to {report.angle_error:.2g} radians at {whole(report.angle_at)}, "
        f"relatively {relative:.1e}: products or frequencies in {name}",
        f"off by {report.score_error:.2g} where their standard deviation is 1, at that position",
        "compute angles in float32 or wider, outside autocast, and round cosines and sines",
    )


def _fault_half_positions(name: str, position: int, rounded: float) -> Fault:
    return Fault(
        Code(f"{name}_positions"),
        f"positions are rounded to {name}: {whole(position)} is turned as {whole(int(rounded))}",
        "tokens that stand beside each other get one position, from there on",
        "keep positions integers until they are multiplied, in float32 or wider",
    )


def _of_pairs(values: Floats, pairs: Pairs) -> Floats:
    """The values of a report, in the order of the pairs."""
    layout, _, _, index = layout_of(pairs.entries)
    return values[index if layout != "other" else np.arange(len(index))]


def _signed(report: Report, pairs: Pairs, *, far: bool = False) -> Floats:
    """Frequencies in the order of the pairs, negative for the other direction."""
    values = report.frequencies
    if far and report.far_frequencies is not None:
        values = report.far_frequencies
    return (report.direction or 1) * _of_pairs(values, pairs)


def _pairs_of(report: Report) -> Pairs:
    return Pairs(np.array(report.pairs_in), np.array(report.pairs_out))


def _predicted(report: Report, first: Floats, x: Floats, positions: Array) -> Floats:
    """x (…, width) turned as was read, at positions that broadcast with its leading axes.

    What does not turn goes where M(0), the matrix ``first``, takes it at every position."""
    pairs = _pairs_of(report)
    (a, b), (c, d) = pairs.entries.T, pairs.outputs.T
    angles = np.multiply.outer(positions + report.offset, _signed(report, pairs))
    turned = (x[..., a] + 1j * x[..., b]) * np.exp(1j * angles) * report.attention_factor
    still_in = np.setdiff1d(np.arange(report.head_dim), pairs.entries)
    still_out = np.setdiff1d(np.arange(report.head_dim), pairs.outputs)
    y = np.zeros((*turned.shape[:-1], report.head_dim))
    y[..., still_out] = x[..., still_in] @ first[np.ix_(still_in, still_out)]
    y[..., c], y[..., d] = turned.real, turned.imag
    return np.asarray(y, np.float64)


def _random(*shape: int) -> Floats:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32).astype(np.float64)


def _tolerance(size: float, noise: float) -> float:
    """How far two answers with random vectors may be apart, if a unit vector is given ``size``."""
    return RANDOM * SURE * noise * size + 10 * FLOOR


def with_linearity(report: Report, caller: Caller, first: Floats, noise: float) -> Report:
    """A vector that is no unit vector: turned by the same matrix?"""
    positions = np.array([0, 1, 2, 4, 8, 16, 32, 64])  # which no rounding changes
    positions = positions.clip(max=max(report.reach, 1))
    x = LONG * _random(8, caller.width)
    y, expected = caller.rows(x, positions), _predicted(report, first, x, positions)
    size = max(report.attention_factor, float(np.abs(first).max()))
    if np.abs(y - expected).max() <= LONG * _tolerance(size, noise):
        return report
    return with_fault(
        report,
        Fault(
            Code.NOT_LINEAR,
            "other vectors are not turned by the matrix that unit vectors show",
            "depend on more than the rotation",
            "look for a norm of queries or keys inside the function, and give the doctor the "
            "rotation alone",
        ),
    )


def with_batches(report: Report, caller: Caller, noise: float) -> Report:
    """Four axes and other positions in each row: which of them does it take, and rightly?"""
    forms = [form for form in caller.forms if form != "seq"]
    if caller.axes != "seq":
        forms = [form for form in forms if form == caller.axes]
    if not forms:
        return not_tested(report, "axes of heads and of a batch (axes='seq')")
    form = _form_that_works(caller, forms)
    if isinstance(form, str) and form in AXES:
        report = replace(report, tested=(*report.tested, "ragged rows", "axis of heads"))
        found = _effective_positions(report, caller, form)
        fault = None if found is None else _batch_fault(*found)
        report = replace(report, axes=report.axes if report.axes != "seq" else f"seq, {form}")
        return report if fault is None else with_fault(report, fault)
    return not_tested(report, f"axes of heads and of a batch ({form})")


def _form_that_works(caller: Caller, forms: Iterable[Axes]) -> str:
    """The first form in which three different sizes are taken, or the error of the first."""
    errors = []
    for form in forms:
        sizes = (2, 3, 5) if form == "batch heads seq" else (2, 5, 3)
        try:
            caller.raw(_random(*sizes, caller.width), _positions_of_batch(caller, 2, 5))
        except Refused as error:
            errors.append(str(error))
        else:
            return form
    return errors[0]


def _positions_of_batch(caller: Caller, batch: int, length: int) -> Array:
    """Other positions in each row of a batch, equal on all axes."""
    starts = 3 + 10 * np.arange(batch)[:, np.newaxis]
    positions = starts + np.arange(length) + np.arange(batch)[:, np.newaxis] * np.arange(length)
    if caller.position_axes == 1:
        return positions
    return np.broadcast_to(positions, (caller.position_axes, batch, length))


def _effective_positions(
    report: Report, caller: Caller, form: str, size: int = 4
) -> tuple[NDArray[np.int64], Array] | None:
    """By which position each vector of an equal-sided array is turned, as (batch, heads, seq).

    With equal sides a wrong axis raises no error, as in a model whose batch has as many texts as a
    layer has heads."""
    positions = _positions_of_batch(caller, size, size)
    rows = positions if caller.position_axes == 1 else positions[0]
    pairs = _pairs_of(report)
    x = np.broadcast_to(_probe(pairs, caller.width), (size, size, size, caller.width))
    try:
        y = caller.raw(x, positions)
    except Refused:
        return np.full((size, size, size), -1), rows
    if form == "batch seq heads":
        y = y.swapaxes(1, 2)
    c, d = pairs.outputs.T
    z = y[..., c] + 1j * y[..., d]
    candidates = np.arange(0, int(rows.max()) + 8)
    angles = np.multiply.outer(candidates + report.offset, _signed(report, pairs))
    model = report.attention_factor * np.exp(1j * angles)
    distance = np.abs(z[..., np.newaxis, :] - model).max(axis=-1)
    found = candidates[distance.argmin(axis=-1)]
    found[distance.min(axis=-1) > THAT_POSITION * report.attention_factor] = -1
    right = np.array_equal(found, np.broadcast_to(rows[:, np.newaxis], found.shape))
    return None if right else (found, rows)


def _batch_fault(found: NDArray[np.int64], positions: Array) -> Fault:
    """What the positions (batch, heads, seq) that were found are, instead of positions[b, s]."""
    by_head = np.broadcast_to(positions[:, :, np.newaxis], found.shape)
    first_row = np.broadcast_to(positions[0], found.shape)
    head_number = np.all(found == found[:1, :, :1]) and np.any(found != found[0, 0, 0])
    other_row = np.broadcast_to(positions[np.newaxis], found.shape)  # (heads, seq) of (batch, seq)
    if np.array_equal(found, first_row):
        return Fault(
            Code.ROWS_SHARE_POSITIONS,
            "all rows of a batch are turned by the positions of the first",
            "right if all texts begin at one position, wrong with padding or ragged caches",
            "index cosines and sines by positions[b], not by positions[0]",
        )
    if np.array_equal(found, by_head) or head_number or np.array_equal(found, other_row):
        return Fault(
            Code.WRONG_AXIS,
            "vectors are turned by the axis of heads or of the batch, not by that of positions",
            "those of one head at all positions depend on no position, or on those of other texts",
            "let cosines have shape (batch, 1, seq, width) beside (batch, heads, seq, width)",
        )
    numbers = np.broadcast_to(np.arange(found.shape[2]), found.shape)
    if np.array_equal(found, numbers):
        return Fault(
            Code.POSITIONS_IGNORED,
            "with four axes it numbers the positions from 0",
            "right in a full pass from position 0, wrong in every step with a cache",
            "turn by the positions that are given",
        )
    return Fault(
        Code.BATCH,
        "with axes of heads and of a batch, vectors are not turned by their own positions",
        "wrong wherever more than one text, or more than one head, is turned at once",
        "compare shapes of cosines, (batch, 1, seq, width), and of x",
    )


def with_step(report: Report, caller: Caller, noise: float) -> Report:
    """A full pass, then the last token alone, as with a cache; and a chunk of three."""
    report = replace(report, tested=(*report.tested, "cached step"))
    x = _random(7, caller.width)
    positions = np.arange(20, 27)
    full = caller.rows(x, positions)
    try:
        parts = [caller.rows(x[:3], positions[:3]), caller.rows(x[3:6], positions[3:6])]
        parts.append(caller.rows(x[6:], positions[6:]))
    except Refused as error:
        what = f"a step of one token raises {error}"
    else:
        if np.abs(np.concatenate(parts) - full).max() <= _tolerance(report.attention_factor, noise):
            return report
        what = "a token that is turned alone, as with a cache, is turned otherwise than in a pass"
    fault = Fault(
        Code.CACHED_STEP,
        what,
        "right in the prompt, wrong in what is generated",
        "take the angle from the position that is given, also for one row",
    )
    return with_fault(report, fault)


def checked_writes(report: Report, caller: Caller) -> Report:
    """What the calls have shown beside their answers: whether they wrote into their input."""
    if caller.written:
        what = " and ".join(sorted(caller.written))
        report = with_fault(
            report,
            Fault(
                Code.WRITES_INPUT,
                f"it writes into {what} that it is given",
                "wrong where the caller uses the array again, as with keys that are also stored",
                "copy first, or say in its name that it works in place",
            ),
        )
    note = f"read from {caller.calls} calls, positions up to {whole(report.reach)}, outputs in "
    return replace(report, notes=(*report.notes, note + report.dtype))
