"""The examination without an expectation: what a function does, and what no model wants."""

import math
from dataclasses import replace

import numpy as np

from pe_lib.doctor.calls import REACHES, Caller, Refused
from pe_lib.doctor.numbers import listed, number, spans, whole
from pe_lib.doctor.reading import (
    ROUNDOFF,
    SINGLE,
    SURE,
    Fit,
    Pairs,
    Unreadable,
    complex_of,
    dtype_of,
    find_pairs,
    fit_frequencies,
    layout_of,
    not_pairs,
    offset_of,
    wrap,
)
from pe_lib.doctor.report import (
    UNTESTED,
    Array,
    Code,
    Fault,
    Floats,
    Report,
    not_tested,
    with_fault,
    with_note,
)
from pe_lib.doctor.trials import (
    checked_writes,
    positions_ignored,
    with_angles,
    with_batches,
    with_calls,
    with_linearity,
    with_step,
)

# A block of M(p) that is so far from a rotation, relative to its length, is none: four entries that
# are rounded to bfloat16 leave 4·2⁻⁸ at most.
STRETCHED = 0.02
# Lengths of pairs that differ by a smaller share are the same: cosines that are computed fast leave
# less, and no score shows it.
SAME_LENGTH = 1e-4
# A smaller offset, in positions, is none: phases of slow pairs do not say more.
NO_OFFSET = 0.02
# A pair turns with an axis if this axis alone turns it by such a share of what all axes do.
TURNS = 0.25


def examine_blind(caller: Caller, longest: int | None = None) -> Report:
    """What the function does, and what no model wants.

    Where a table ends after ``longest`` positions or later, that is a note and no fault."""
    matrices, positions, error_beyond = caller.first_matrices()
    report = _examined(caller, longest, matrices, positions)
    asked = int(positions.max())
    if asked < REACHES[0]:
        beyond = whole(max(asked, report.reach))
        report = not_tested(report, f"positions beyond {beyond}, where it raised {error_beyond}")
    return report


def _examined(caller: Caller, longest: int | None, matrices: Floats, positions: Array) -> Report:
    """The same, from the first matrices, which are those at these positions."""
    report = Report(caller.width, untested=UNTESTED, axes=caller.axes or "seq")
    steps = positions[0, : 1 + int(positions[0].max()).bit_length()]
    finite = np.isfinite(matrices.reshape(len(matrices), -1)).all(axis=-1)
    finite = np.asarray(finite, np.bool_)
    if not finite[: len(steps)].all():
        bad = int(steps[int(np.argmin(finite[: len(steps)]))])
        report = _at_its_end(report, _fault_not_finite(bad), bad, longest)
        if bad <= 16:
            return checked_writes(report, caller)
        steps = steps[steps < bad]
        keep = (positions.max(axis=0) < bad) & finite
        matrices, positions = matrices[keep], positions[:, keep]
    try:
        return _read(report, caller, longest, matrices, positions, steps)
    except Unreadable as error:
        fault = positions_ignored(caller) or error.fault
        report = replace(report, untested=(*report.untested, "everything after this fault"))
        return checked_writes(with_fault(report, fault), caller)
    except Refused as error:
        fault = Fault(
            Code.RAISES,
            f"a further call raised {error}",
            "none are made",
            "let it take any number of rows, at any positions",
        )
        return checked_writes(with_fault(report, fault), caller)


def _read(
    report: Report,
    caller: Caller,
    longest: int | None,
    matrices: Floats,
    positions: Array,
    steps: Array,
) -> Report:
    """What the matrices at these positions, the first of which are ``steps``, say; then trials."""
    unit = float(np.abs(matrices[0]).max())
    pairs = find_pairs(matrices, unit)
    report = replace(report, dtype=dtype_of(matrices), reach=int(steps[-1]))
    if len(pairs.entries) == 0:
        return checked_writes(_with_nothing_turned(report, matrices[0], unit), caller)
    z, rest = complex_of(matrices, pairs)
    z, rest = z[: len(steps)], rest[: len(steps)]
    length = np.abs(z)
    factor = float(np.median(length))
    rounding = ROUNDOFF.get(report.dtype, SINGLE)
    noise = _noise(rest / factor, rounding, pairs)
    if np.any(np.abs(length / factor - 1) > SURE * noise + SAME_LENGTH):
        report = with_fault(report, _fault_length(length / factor, steps))
    fit = fit_frequencies(z, steps, rounding, SINGLE)
    if fit.lost is not None:
        ignored = positions_ignored(caller)
        if ignored is not None:
            raise Unreadable(ignored)
        report = _at_its_end(report, _fault_far(fit.lost, fit.reach), fit.lost, longest)
        steps = steps[steps <= fit.reach]
    report = replace(
        report,
        reach=fit.reach,
        attention_factor=factor,
        attention_factor_error=noise * factor,
    )
    report = _with_pairs(report, pairs, fit, noise)
    report = _with_axes(report, caller, matrices, positions, pairs, fit)
    report = _with_rest_of_head(report, matrices[0], pairs)
    report = with_calls(report, caller, pairs, noise, z[: len(steps)], steps)
    report = _with_last_position(report, caller, pairs, rounding, longest)
    return checked_writes(_with_trials(report, caller, matrices[0], pairs, noise), caller)


def _at_its_end(report: Report, fault: Fault, position: int, longest: int | None) -> Report:
    """A report with this fault of a position, or with a note if no text is so long."""
    if longest is None or position < longest:
        return with_fault(report, fault)
    what = "its output is not finite"
    if fault.code is Code.FAR:
        what = "its angle is that of no rotation that it makes before"
    of = f"beyond the {whole(longest)} positions of the longest text"
    return with_note(report, f"at {whole(position)}, {of}, {what}")


def _with_last_position(
    report: Report, caller: Caller, pairs: Pairs, rounding: float, longest: int | None
) -> Report:
    """The last position of the longest text, if the powers of two that work end before it.

    It is read by one call with positions of its own, since frequencies may follow their longest
    one. Where they do, later calls keep to the reach for which frequencies are known."""
    last = min(0 if longest is None else longest - 1, REACHES[0])
    if last <= report.reach or {Code.FAR, Code.NOT_FINITE} & set(report.codes):
        return report
    steps = np.array([0] + [2**k for k in range(last.bit_length())] + [last], np.int64)
    steps = np.unique(steps)
    try:
        matrices = caller.matrices(np.broadcast_to(steps, (caller.position_axes, len(steps))))
    except Refused:  # an error is no silent fault: these positions are among the untested
        return report
    if not np.isfinite(matrices).all():
        return with_fault(report, _fault_not_finite(last))
    fit = fit_frequencies(complex_of(matrices, pairs)[0], steps, rounding, SINGLE)
    if fit.lost is not None:
        return with_fault(report, _fault_far(fit.lost, fit.reach))
    return report if report.follows_length else replace(report, reach=last)


def _with_nothing_turned(report: Report, first: Floats, unit: float) -> Report:
    if not np.allclose(first / unit, np.eye(len(first)), atol=STRETCHED):
        raise not_pairs("nothing turns, and entries change places or size")
    note = "it turns nothing at any position"
    return with_note(replace(report, attention_factor=unit), note)


def _noise(rest: Floats, rounding: float, pairs: Pairs) -> float:
    """What an entry may be off by, relative to the length of a pair. ``rest`` is how far blocks are
    from rotations: beyond what a rounding explains, they are none."""
    if np.any(rest > STRETCHED):
        k = int(np.unravel_index(rest.argmax(), rest.shape)[1])
        raise not_pairs(f"pair {listed(pairs.entries[k])} is stretched in one direction")
    return max(rounding / 2, float(rest.max()), SINGLE / 2)


def _with_trials(
    report: Report, caller: Caller, first: Floats, pairs: Pairs, noise: float
) -> Report:
    """Further calls, as long as the faults that were found leave something to learn from them."""
    ends = {Code.STALE_TABLE, Code.SECOND_CALL, Code.RESTARTS, Code.LENGTH}
    if not ends & set(report.codes):
        report = with_linearity(report, caller, first, noise)
    if (ends | {Code.NOT_LINEAR}) & set(report.codes):
        return not_tested(report, "further calls, after this fault")
    report = with_angles(report, caller, pairs, noise)
    if Code.RESTARTS in report.codes:  # later calls would only show the same fault again
        return not_tested(report, "further calls, after this fault")
    report = with_batches(report, caller, noise)
    return with_step(report, caller, noise)


def _with_pairs(report: Report, pairs: Pairs, fit: Fit, noise: float) -> Report:
    """Layout, part and direction, and the frequencies in the order of the pairs."""
    layout, rotary_dim, start, index = layout_of(pairs.entries)
    layout_out = layout_of(pairs.outputs)[0]
    if layout_out == "other" and layout != "other":
        swapped = pairs.outputs[:, ::-1]  # a function may write the second half first
        if layout_of(swapped)[0] != "other":
            layout_out = layout_of(swapped)[0]
    signs = np.sign(fit.omega)
    direction = int(signs[0]) if np.all(signs == signs[0]) else 0
    frequencies = np.zeros(rotary_dim // 2)
    bars = np.full(rotary_dim // 2, 1e-6 / max(fit.reach, 1))
    slots = index if layout != "other" else np.arange(len(index))
    if len(frequencies) <= slots.max():
        frequencies, bars = np.zeros(len(index)), np.zeros(len(index))
    sign = direction if direction else 1
    frequencies[slots], bars[slots] = sign * fit.omega, fit.bar
    offset = offset_of(fit, noise)
    report = replace(
        report,
        layout=layout,
        layout_out=layout_out,
        direction=direction,
        rotary_dim=rotary_dim,
        rotary_start=start,
        frequencies=frequencies,
        frequency_errors=bars,
        offset=0.0 if offset is None else offset,
        pairs_in=tuple((int(a), int(b)) for a, b in pairs.entries),
        pairs_out=tuple((int(a), int(b)) for a, b in pairs.outputs),
    )
    if offset is None:
        report = with_fault(
            report,
            Fault(
                Code.PHASE,
                "at position 0 pairs are turned already, by angles that are no one offset",
                "unharmed if queries and keys have the same, and wrong with a cache of other code",
                "begin at the angle 0: cosines 1 and sines 0 at position 0",
            ),
        )
    elif abs(offset) > NO_OFFSET:
        report = with_fault(report, _fault_offset(offset))
    return report


def _fault_offset(offset: float) -> Fault:
    return Fault(
        Code.OFFSET,
        f"every position is turned as if it were {number(offset)} more",
        "unharmed if queries and keys have it alike; wrong where only one of them has",
        "a constant offset in the function and a cache's length that the caller adds twice look "
        "alike from here: look for both",
    )


def _fault_not_finite(position: int) -> Fault:
    return Fault(
        Code.NOT_FINITE,
        f"the output at position {whole(position)} is not finite",
        "they are not finite either",
        "lengthen its table, or compute angles where the table ends (a gather beyond its end gives "
        "NaN in JAX)",
    )


def _fault_far(lost: int, reach: int) -> Fault:
    return Fault(
        Code.FAR,
        f"beyond position {whole(reach)}, and at {whole(lost)}, its angles are those of no "
        "rotation that it makes before",
        "right in short texts, wrong from there on",
        "look for a table that ends there (a gather that clamps repeats its last row), positions "
        "in a half type, or a wrap-around",
    )


def _fault_length(ratio: Floats, steps: Array) -> Fault:
    by_position = np.abs(ratio - 1).max(axis=1)
    if by_position.max() > by_position[0] + SAME_LENGTH:
        worst = int(steps[int(by_position.argmax())])
        what = f"the length of a pair changes with the position, by {by_position.max():.2g} at "
        what += whole(worst)
    else:
        what = f"pairs are multiplied by different factors, from {ratio.min():.4g} to "
        what += f"{ratio.max():.4g} times their median"
    return Fault(
        Code.LENGTH,
        what,
        "a factor for positions or pairs: a decay (xPos), a temperature, or a fault",
        "if the model is not one with xPos, look at what multiplies cosines and sines",
    )


def _with_axes(
    report: Report, caller: Caller, matrices: Floats, positions: Array, pairs: Pairs, fit: Fit
) -> Report:
    """Which axis of the positions turns each pair."""
    if caller.position_axes == 1:
        return report
    z, _ = complex_of(matrices, pairs)
    origin = np.angle(z[0])
    chosen = np.full(len(fit.omega), -1)
    shared: list[int] = []
    for k, omega in enumerate(fit.omega):
        best = np.clip(round(math.log2(max(1.0, 1 / max(abs(omega), 1e-12)))), 0, 20)
        step = min(2 ** int(best), fit.reach)
        turned = []
        for axis in range(caller.position_axes):
            alone = (positions[axis] == step) & (positions.sum(axis=0) == step)
            angle = wrap(np.angle(z[int(np.flatnonzero(alone)[0]), k]) - origin[k])
            turned.append(abs(angle) > TURNS * abs(wrap(omega * step)))
        if sum(turned) == 1:
            chosen[k] = turned.index(True)
        else:
            shared.append(k)
    if shared:
        fault = Fault(
            Code.AXES,
            f"pairs {spans(shared)} follow more than one axis of the positions, or none alone",
            "right for text, whose axes are equal, and wrong for images",
            "let each pair take its angle from one axis",
        )
        return with_fault(report, fault)
    layout, rotary_dim, _, index = layout_of(pairs.entries)
    axes = np.zeros(rotary_dim // 2 if layout != "other" else len(index), np.int64)
    axes[index] = chosen
    return replace(report, pair_axes=tuple(int(each) for each in axes))


def _with_rest_of_head(report: Report, first: Floats, pairs: Pairs) -> Report:
    """The entries that do not turn: kept as they are, or multiplied, or moved."""
    still = np.setdiff1d(np.arange(report.head_dim), pairs.entries)
    if len(still) == 0:
        return report
    kept = first[still, still]
    if np.all(kept == 0):
        note = "the entries that do not turn change places"
    elif np.allclose(kept, 1, rtol=0.01):
        return report
    else:
        note = f"the entries that do not turn are multiplied by {float(np.median(kept)):.4f}"
    return with_note(report, note)
