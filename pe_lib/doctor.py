"""What does a rotary function do? Feed it the identity and read its rotation off the answer.

A wrong rotation of queries and keys raises no error: scores are finite, their norms are right, and
the model writes worse text. `examine` takes anybody's function ``turn(x, positions)``, with NumPy
arrays in and out, and says which pairs it forms, in which direction and how fast each of them
turns, and by what it multiplies them. Given what the model expects, as its ``config.json`` or as
settings, it names what differs, what that does to the scores, and what to do about it.

How it reads: the rows of the identity at one position p give the whole matrix M(p) of a rotation,
x ↦ x·M(p) for a row vector x. Which entries of M(p) are not 0 says which pairs there are; a pair
is then one complex number m·exp(i(ωp + φ)). The phases at p = 1, 2, 4, … give ω: each doubling
halves its error, and the turns that were lost are known from the position before.

Notation: K pairs turn, r = 2K entries; pair k turns by ω_k radians a position.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pe_lib import _checks as check
from pe_lib.rope import LayerRotation, RotarySettings, rotary_settings

__all__ = ["ADAPTERS", "Fault", "Report", "assert_turns_as", "compare", "examine"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
Turn = Callable[[Array, Array], ArrayLike]
Axes = Literal["seq", "batch heads seq", "batch seq heads"]
AXES: tuple[Axes, ...] = ("seq", "batch heads seq", "batch seq heads")

REACHES = (2**20, 2**17, 2**15, 2**13, 2**12, 2**11, 2**10, 2**9, 2**8, 2**6, 2**4)
NEAR = 64  # the longest position of a call that is short for every model
ODD = (3, 5, 100, 257, 1000, 2049, 4099, 10_001, 32_769, 100_000, 100_001, 1_000_003)
FLOAT32 = 2.0**-24  # the largest relative error of a rounding to float32
OTHER_FREQUENCIES = 1e-5  # relative: above what a power computed in float32 is off by

NAMES = {
    "split": "rotate_half, NEOX, interleaved=False",
    "interleaved": "GPT-J, NORM, interleaved=True",
}
UNTESTED = ("softmax scale", "query temperature", "masks", "which layers call it", "gradients")


# A few lines each, in which the names of what you examine are yours to fill in.
ADAPTERS = {
    "torch": """\
def turn(x, positions):
    y = kernel(torch.from_numpy(x).to(device), torch.from_numpy(positions).to(device))
    return y.float().cpu().numpy()
""",
    "transformers": """\
def turn(x, positions):  # axes="batch heads seq"
    q = torch.from_numpy(x)
    cos, sin = model.rotary_emb(q, torch.from_numpy(positions))
    return apply_rotary_pos_emb(q, q, cos, sin)[0].float().numpy()
""",
    "flash-attn": """\
def turn(x, positions):  # axes="batch seq heads"; cos and sin are your tables, (length, pairs)
    rows = [
        apply_rotary_emb(torch.from_numpy(row[None]).to(device), cos[at], sin[at], interleaved)
        for row, at in zip(x, torch.from_numpy(positions).to(cos.device))
    ]
    return torch.cat(rows).float().cpu().numpy()
""",
    "jax": """\
def turn(x, positions):
    return np.asarray(kernel(jnp.asarray(x), jnp.asarray(positions)), np.float32)
""",
    "mlx": """\
def turn(x, positions):  # axes="seq": mx.fast.rope takes a first position, so one row a call
    rows = [
        mx.fast.rope(mx.array(row[None, None]), dims, traditional=traditional, base=base,
                     scale=1.0, offset=int(at), freqs=freqs)
        for row, at in zip(x, positions)
    ]
    return np.array(mx.concatenate(rows)[:, 0])
""",
    "ctypes": """\
def turn(x, positions):  # axes="seq"; kernel(x, positions, y, rows, head_dim) in C
    y = np.empty_like(x)
    floats, integers = ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_int64)
    kernel(x.ctypes.data_as(floats), positions.ctypes.data_as(integers),
           y.ctypes.data_as(floats), len(x), x.shape[-1])
    return y
""",
}


class Fault(NamedTuple):
    """One difference: a code to test for, what differs, what scores suffer, what to do."""

    code: str
    difference: str
    consequence: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.difference}. {self.consequence}. {self.remedy}."


class _Line(NamedTuple):
    """A line of the printed report, and the codes that would make it a fault."""

    name: str
    found: str
    codes: tuple[str, ...]
    verdict: str = ""


@dataclass(frozen=True)
class Report:
    """What `examine` found. Printed, it is a table; ``str(report)`` is what is printed.

    Attributes
    ----------
    layout, layout_out
        Which entries of an input, and of an output, make a pair: "split" for i and i + r/2,
        "interleaved" for 2i and 2i + 1, "other", or None where nothing turns.
    direction
        1 for (x₁, x₂) ↦ (x₁cos − x₂sin, x₁sin + x₂cos), as nearly all models do, and −1 for the
        other way round; 0 where nothing turns, or where pairs differ.
    rotary_dim, rotary_start
        How many entries turn, counted from which.
    frequencies, frequency_errors
        In radians a position, float64, one for each pair; and how far each may be off.
    attention_factor
        By what the part that turns is multiplied.
    pair_axes
        For each pair the axis of the positions that turns it; None where positions have one axis.
    offset
        What is added to every position: a constant of the function's own, or a cache's length.
    dtype
        "float32", or the half type that all outputs fit.
    reach
        The furthest position that was examined.
    angle_errors, angle_at
        The error of each pair's angle, in radians, at this position: beside the frequencies that
        were read or, with ``expect``, those of the model. ``angle_error`` is the largest, and
        ``score_error`` what it does to a score whose standard deviation is 1.
    faults, notes
        What is wrong; and what is worth knowing and is not wrong.
    tested, untested
        Which further calls were made, and what was not looked at.
    """

    head_dim: int
    layout: str | None = None
    layout_out: str | None = None
    direction: int = 0
    rotary_dim: int = 0
    rotary_start: int = 0
    frequencies: Floats = field(default_factory=lambda: np.zeros(0))
    frequency_errors: Floats = field(default_factory=lambda: np.zeros(0))
    attention_factor: float = 1.0
    attention_factor_error: float = 0.0
    pair_axes: tuple[int, ...] | None = None
    offset: float = 0.0
    dtype: str = "float32"
    axes: str = "seq"
    reach: int = 0
    angle_errors: Floats = field(default_factory=lambda: np.zeros(0))
    angle_at: int = 0
    follows_length: bool = False
    far_frequencies: Floats | None = None
    pairs_in: tuple[tuple[int, int], ...] = ()
    pairs_out: tuple[tuple[int, int], ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    expected: LayerRotation | None = None
    lines: tuple[_Line, ...] = ()

    @property
    def angle_error(self) -> float:
        """The largest error of an angle at ``angle_at``, in radians."""
        return float(self.angle_errors.max(initial=0.0))

    @property
    def score_error(self) -> float:
        """The error of a score of Gaussian q and k, whose standard deviation is 1, if one of them
        stands at ``angle_at`` and the other at 0."""
        return _rms(self.angle_errors) if len(self.angle_errors) else 0.0

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the faults."""
        return tuple(fault.code for fault in self.faults)

    def __str__(self) -> str:
        width = max((len(line.found) for line in self.lines), default=0)
        width = min(width, 52)
        rows = [f"{each.name:<12} {each.found:<{width}}  {each.verdict}" for each in self.lines]
        rows += [f"{'note':<12} {note}" for note in self.notes]
        rows.append(f"{'not tested':<12} {', '.join(self.untested)}")
        for fault in self.faults:
            rows += ["", f"{fault.code}: {fault.difference}"]
            rows += [f"    scores  {fault.consequence}", f"    remedy  {fault.remedy}"]
        return "\n".join(row.rstrip() for row in rows)

    __repr__ = __str__


def examine(
    turn: Turn,
    head_dim: int,
    *,
    expect: Any = None,
    axes: Axes | None = None,
    position_axes: int = 1,
) -> Report:
    """Say what a rotary function does and, against ``expect``, what is wrong with it.

    Parameters
    ----------
    turn
        ``turn(x, positions) -> y``. ``x`` is a float32 array; ``positions`` are int64, one for each
        row of ``x``; ``y`` is array-like, of the shape of ``x``. What it is called with is said by
        ``axes``. Adapters for other libraries' functions are a line or two each; see the notes.
    head_dim
        The width of one head, or of the part of it that ``turn`` is given.
    expect
        What the model expects: a ``config.json`` as a path, a JSON text or a dictionary; the
        `RotarySettings` or `LayerRotation` that `rotary_settings` reads from it; or a
        ``RotaryPositionalEncoding``. Where the layers of a model differ, the kind of layer that is
        nearest is taken, and named. Without it the report says what the function does, and holds as
        faults only what no model wants.
    axes
        The shape of ``x`` before its last axis, and with it that of the positions: "seq" for
        (seq, head_dim) with positions (seq,); "batch heads seq" and "batch seq heads" for four
        axes with positions (batch, seq). None tries them in this order.
    position_axes
        The number of axes of a position, as in M-RoPE. If it is not 1, positions have one axis
        more, the first, of this size.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If ``turn`` raises on every form of input, or answers with another shape each time; the
        message has the first error. Or if ``expect`` cannot be read.

    Notes
    -----
    A function that takes tensors needs an adapter of a few lines. ``ADAPTERS`` has them, by name:
    ``print(doctor.ADAPTERS["torch"])``, and "transformers", "jax", "mlx", "flash-attn", "ctypes".
    """
    width = check.even("head_dim", head_dim)
    kinds = _kinds_of_layer(expect, width)
    caller = _Caller(turn, width, axes, check.integer("position_axes", position_axes, at_least=1))
    report = _examine_blind(caller)
    if kinds:
        judged = [compare(report, kind) for kind in kinds]
        report = min(judged, key=lambda each: len(each.faults))
    return replace(report, lines=_lines(report))


def assert_turns_as(
    turn: Turn, head_dim: int, expect: Any, *, axes: Axes | None = None, position_axes: int = 1
) -> None:
    """For pytest: raise an `AssertionError` with the report if ``turn`` differs from ``expect``.

    The arguments are those of `examine`.
    """
    report = examine(turn, head_dim, expect=expect, axes=axes, position_axes=position_axes)
    if report.faults:
        raise AssertionError(f"the rotation differs from what is expected\n{report}")


# ---- Calling the function


class _Refused(Exception):
    """The function raised, or answered with another shape. The message says which."""


class _Caller:
    """``turn`` behind one face: rows (n, width) and positions (axes, n) in, rows in float64 out.

    Each call gets arrays of its own. Whether the function wrote into them is remembered."""

    def __init__(self, turn: Turn, width: int, axes: Axes | None, position_axes: int) -> None:
        self.turn, self.width, self.position_axes = turn, width, position_axes
        self.axes: Axes | None = axes
        self.forms = AXES if axes is None else (axes,)
        self.written: set[str] = set()
        self.calls = 0

    def raw(self, x: Array, positions: Array) -> Floats:
        """One call, with arrays of the function's own shapes."""
        given, where = x.astype(np.float32), positions.astype(np.int64)
        own_x, own_positions = given.copy(), where.copy()
        self.calls += 1
        try:
            answer = self.turn(own_x, own_positions)
            y = np.array(answer, dtype=np.float64)  # a copy, whatever it is a view of
        except Exception as error:  # anybody's code: whatever it raises is part of the report
            raise _Refused(f"{type(error).__name__}: {error}") from error
        self.written |= {"x"} if not np.array_equal(own_x, given) else set()
        self.written |= {"positions"} if not np.array_equal(own_positions, where) else set()
        if y.shape != x.shape:
            raise _Refused(f"an output of shape {y.shape} for an input of shape {x.shape}")
        return y

    def in_form(self, form: Axes, x: Array, positions: Array) -> Floats:
        """A call with rows, in the shape of a form."""
        where = positions if self.position_axes > 1 else positions[0]
        if form == "seq":
            return self.raw(x, where)
        shape = (1, 1, *x.shape) if form == "batch heads seq" else (1, len(x), 1, self.width)
        return self.raw(x.reshape(shape), where[..., np.newaxis, :]).reshape(x.shape)

    def rows(self, x: Array, positions: Array) -> Floats:
        """A call in the form that was found."""
        where = np.asarray(positions)
        if where.ndim == 1:
            where = np.broadcast_to(where, (self.position_axes, len(where)))
        assert self.axes is not None
        return self.in_form(self.axes, x, where)

    def matrices(self, positions: Array) -> Floats:
        """M(p) for each of the positions (axes, n), all from one call: (n, width, width)."""
        identity = np.eye(self.width, dtype=np.float32)
        x = np.tile(identity, (positions.shape[1], 1))
        where = np.repeat(positions, self.width, axis=1)
        return self.rows(x, where).reshape(-1, self.width, self.width)

    def first_matrices(self) -> tuple[Floats, Array, str]:
        """The same at 0, 1, 2, 4, …, as far as the function goes, in the first form that works; and
        what this form raised where it went no further."""
        errors: dict[Axes, str] = {}
        for reach in REACHES:
            positions = _powers(reach, self.position_axes)
            for form in self.forms:
                self.axes = form
                try:
                    return self.matrices(positions), positions, errors.get(form, "")
                except _Refused as error:
                    errors[form] = str(error)
        raise ValueError(
            "turn must take x and positions, NumPy arrays, and give an array of x's shape; it gave "
            f"{errors[self.forms[0]]} in the form {self.forms[0]!r}. If it takes tensors, or other "
            f"arguments, wrap it in an adapter: pe_lib.doctor.ADAPTERS has {', '.join(ADAPTERS)}"
        )


def _powers(reach: int, position_axes: int) -> Array:
    """Positions 0, 1, 2, 4, … on all axes at once, then on each axis alone: (axes, n)."""
    steps = np.array([0] + [2**k for k in range(reach.bit_length())], np.int64)
    together = np.broadcast_to(steps, (position_axes, len(steps)))
    if position_axes == 1:
        return together
    alone = [np.zeros((position_axes, len(steps) - 1), np.int64) for _ in range(position_axes)]
    for axis, block in enumerate(alone):
        block[axis] = steps[1:]
    return np.concatenate([together, *alone], axis=1)


# ---- Reading a rotation off its matrices


class _Pairs(NamedTuple):
    """Where the pairs stand: entries of inputs and of outputs, (K, 2) each."""

    entries: NDArray[np.int64]
    outputs: NDArray[np.int64]


class _Unreadable(Exception):
    """The matrices are not those of a rotation of pairs. It carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.difference)
        self.fault = fault


def _not_pairs(difference: str) -> _Unreadable:
    return _Unreadable(
        Fault(
            "not_a_rotation",
            difference,
            "scores depend on more than the distance of two positions",
            "compare its two lines with y₁ = x₁cos − x₂sin, y₂ = x₁sin + x₂cos",
        )
    )


def _find_pairs(matrices: Floats, unit: float) -> _Pairs:
    """The pairs, from the entries that are not 0 at some position."""
    size = np.abs(matrices).max(axis=0)
    present = size > 1e-6 * unit
    counts = present.sum(axis=1)
    if counts.max() > 2:
        most = int(counts.argmax())
        where = np.flatnonzero(present[most])
        raise _not_pairs(f"entry {most} of x goes to {len(where)} entries of y: {_brief(where)}")
    if counts.min() == 0:
        raise _not_pairs(f"entry {int(counts.argmin())} of x has no effect on y")
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in np.flatnonzero(counts == 2):
        groups.setdefault(tuple(np.flatnonzero(present[row])), []).append(int(row))
    for targets, rows in groups.items():
        if len(rows) != 2:
            raise _not_pairs(f"entries {_brief(targets)} of y are made of entries {_brief(rows)}")
    entries = np.array(list(groups.values()), np.int64).reshape(-1, 2)
    outputs = np.array(list(groups), np.int64).reshape(-1, 2)
    first = matrices[0]
    a, b = entries.T
    c, d = outputs.T
    determinant = first[a, c] * first[b, d] - first[a, d] * first[b, c]
    outputs = np.where((determinant < 0)[:, np.newaxis], outputs[:, ::-1], outputs)
    order = np.argsort(entries[:, 0], kind="stable")
    return _Pairs(entries[order], outputs[order])


def _complex(matrices: Floats, pairs: _Pairs) -> tuple[NDArray[np.complex128], Floats]:
    """For each matrix and pair m·exp(iθ), and how far its block is from m·R(θ)."""
    a, b = pairs.entries.T
    c, d = pairs.outputs.T
    aa, ab = matrices[:, a, c], matrices[:, a, d]
    ba, bb = matrices[:, b, c], matrices[:, b, d]
    rotation = (aa + bb) / 2 + 1j * (ab - ba) / 2
    rest = np.abs((aa - bb) / 2 + 1j * (ab + ba) / 2)
    return rotation, rest


def _wrap(angle: Any) -> Any:
    """The same angle between −π and π."""
    return np.remainder(angle + math.pi, 2 * math.pi) - math.pi


class _Fit(NamedTuple):
    """Frequencies, their error bars, phases at 0, and how far doubling held."""

    omega: Floats
    bar: Floats
    phase: Floats
    reach: int
    lost: int | None  # the first position at which the phases are those of no rotation


def _fit(z: NDArray[np.complex128], steps: Array, rounding: float, noise: float) -> _Fit:
    """ω from the phases at 0, 1, 2, 4, …: each doubling halves the error.

    Cosines and sines that are rounded to a half type keep their relative error, so a phase θ is
    known to ``rounding``·|sin 2θ|, which is little for a small angle; ``noise`` is the rest."""
    phase = np.angle(z[0])
    turned = np.angle(z[1:] * np.conj(z[0]))
    doubt = noise + rounding * np.abs(np.sin(2 * np.angle(z)))
    doubt = doubt[1:] + doubt[0]
    omega, bar = turned[0].copy(), doubt[0].copy()
    reach, lost = int(steps[1]), None
    for step, alpha, unsure in zip(steps[2:].tolist(), turned[1:], doubt[1:], strict=True):
        miss = _wrap(alpha - omega * step)
        if np.any(np.abs(miss) > np.maximum(0.5, 4 * bar * step)):
            lost = step
            break
        better = np.maximum(unsure, np.abs(miss) - bar * step) / step
        omega = np.where(better < bar, omega + miss / step, omega)
        bar = np.minimum(better, bar)
        reach = step
    return _Fit(omega, bar + 2 * FLOAT32 * np.abs(omega), phase, reach, lost)


def _offset(fit: _Fit, noise: float) -> float | None:
    """The c with φ_k = c·ω_k for all pairs, from the slowest pair to the fastest; or None.

    A slow pair gives c roughly and without doubt; the next faster one makes it finer."""
    order = np.argsort(np.abs(fit.omega))
    order = order[np.abs(fit.omega[order]) > 0]
    if len(order) == 0 or np.all(np.abs(fit.phase) < 8 * noise):
        return 0.0
    value = 0.0
    for k in order:
        omega, phase = fit.omega[k], fit.phase[k]
        value += float(_wrap(phase - value * omega)) / omega
    misses = np.abs(_wrap(fit.phase - value * fit.omega))
    allowed = 8 * noise + abs(value) * 4 * fit.bar
    return value if np.all(misses <= allowed + 1e-6) else None


def _layout(entries: NDArray[np.int64]) -> tuple[str, int, int, NDArray[np.int64]]:
    """Name, width, start and index of each pair, from the entries of the pairs (K, 2)."""
    a, b = entries.T
    gaps = np.unique(b - a)
    if len(gaps) == 1:
        gap, start = int(gaps[0]), int(a.min())
        if abs(gap) == 1 and len(a) > 1 and np.all((np.minimum(a, b) - start) % 2 == 0):
            start = int(np.minimum(a, b).min())
            index = (np.minimum(a, b) - start) // 2
            return "interleaved", 2 * (int(index.max()) + 1), start, index
        if gap > 0 and a.max() < start + gap:
            name = "interleaved" if gap == 1 else "split"
            return name, 2 * gap, start, a - start
    low = int(entries.min())
    return "other", int(entries.max()) + 1 - low, low, np.arange(len(a))


def _examine_blind(caller: _Caller) -> Report:
    """What the function does, and what no model wants."""
    report = Report(caller.width, untested=UNTESTED)
    matrices, positions, error_beyond = caller.first_matrices()
    steps = positions[0, : 1 + int(positions[0].max()).bit_length()]
    report = replace(report, axes=caller.axes or "seq")
    if int(steps[-1]) < REACHES[0]:
        untested = f"positions beyond {_int(steps[-1])}, where it raised {error_beyond}"
        report = replace(report, untested=(*report.untested, untested))
    finite = np.isfinite(matrices.reshape(len(matrices), -1)).all(axis=-1)
    finite = np.asarray(finite, np.bool_)
    if not finite[: len(steps)].all():
        bad = int(steps[int(np.argmin(finite[: len(steps)]))])
        report = _with(report, _fault_not_finite(bad))
        if bad <= 16:
            return _checked_writes(report, caller)
        steps = steps[steps < bad]
        keep = (positions.max(axis=0) < bad) & finite
        matrices, positions = matrices[keep], positions[:, keep]
    try:
        return _read(report, caller, matrices, positions, steps)
    except _Unreadable as error:
        fault = _positions_ignored(caller) or error.fault
        report = replace(report, untested=(*report.untested, "everything after this fault"))
        return _checked_writes(_with(report, fault), caller)
    except _Refused as error:
        fault = Fault(
            "raises",
            f"a further call raised {error}",
            "none are made",
            "let it take any number of rows, at any positions",
        )
        return _checked_writes(_with(report, fault), caller)


def _read(
    report: Report, caller: _Caller, matrices: Floats, positions: Array, steps: Array
) -> Report:
    unit = float(np.abs(matrices[0]).max())
    pairs = _find_pairs(matrices, unit)
    dtype = _dtype_of(matrices)
    report = replace(report, dtype=dtype, reach=int(steps[-1]))
    if len(pairs.entries) == 0:
        if not np.allclose(matrices[0] / unit, np.eye(caller.width), atol=0.02):
            raise _not_pairs("nothing turns, and entries change places or size")
        report = replace(report, attention_factor=unit)
        report = replace(report, notes=(*report.notes, "it turns nothing at any position"))
        return _checked_writes(report, caller)

    z, rest = _complex(matrices, pairs)
    z, rest = z[: len(steps)], rest[: len(steps)]
    length = np.abs(z)
    factor = float(np.median(length))
    rounding = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(dtype, 2.0**-22)
    if np.any(rest > max(0.02, 4 * rounding) * factor):
        k = int(np.unravel_index(rest.argmax(), rest.shape)[1])
        raise _not_pairs(f"pair {_brief(pairs.entries[k])} is stretched in one direction")
    noise = max(rounding / 2, float(rest.max()) / factor, 2.0**-23)
    if np.any(np.abs(length / factor - 1) > 8 * noise + 1e-4):
        report = _with(report, _fault_length(length / factor, steps))
    fit = _fit(z, steps, rounding, 2.0**-22)
    if fit.lost is not None:
        ignored = _positions_ignored(caller)
        if ignored is not None:
            raise _Unreadable(ignored)
        report = _with(report, _fault_far(fit.lost, fit.reach))
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
    report = _with_calls(report, caller, pairs, fit, noise, z[: len(steps)], steps)
    if not {"stale_table", "second_call", "length"} & set(report.codes):
        report = _with_linearity(report, caller, noise)
    if {"stale_table", "second_call", "length", "not_linear"} & set(report.codes):
        report = _not_tested(report, "further calls, after this fault")
    else:
        report = _with_angles(report, caller, pairs, noise)
        report = _with_batches(report, caller, noise)
        report = _with_step(report, caller, noise)
    return _checked_writes(report, caller)


def _dtype_of(values: Floats) -> str:
    """The narrowest type that holds all values that are neither 0 nor ±1 without a rounding."""
    sample = values[(values != 0) & (np.abs(values) != 1)].astype(np.float32)
    if len(sample) == 0:
        return "float32"
    if np.all(sample.view(np.uint32) & 0xFFFF == 0):
        return "bfloat16"
    with np.errstate(over="ignore"):
        return "float16" if np.all(sample.astype(np.float16) == sample) else "float32"


def _to_bfloat16(values: ArrayLike) -> Floats:
    """Rounded to the nearest bfloat16, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def _to_float16(values: ArrayLike) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)


ROUNDINGS = {"bfloat16": _to_bfloat16, "float16": _to_float16}


def _with(report: Report, fault: Fault) -> Report:
    return replace(report, faults=(*report.faults, fault))


def _with_pairs(report: Report, pairs: _Pairs, fit: _Fit, noise: float) -> Report:
    """Layout, part and direction, and the frequencies in the order of the pairs."""
    layout, rotary_dim, start, index = _layout(pairs.entries)
    layout_out = _layout(pairs.outputs)[0]
    if layout_out == "other" and layout != "other":
        swapped = pairs.outputs[:, ::-1]  # a function may write the second half first
        if _layout(swapped)[0] != "other":
            layout_out = _layout(swapped)[0]
    signs = np.sign(fit.omega)
    direction = int(signs[0]) if np.all(signs == signs[0]) else 0
    frequencies = np.zeros(rotary_dim // 2)
    bars = np.full(rotary_dim // 2, 1e-6 / max(fit.reach, 1))
    slots = index if layout != "other" else np.arange(len(index))
    if len(frequencies) <= slots.max():
        frequencies, bars = np.zeros(len(index)), np.zeros(len(index))
    sign = direction if direction else 1
    frequencies[slots], bars[slots] = sign * fit.omega, fit.bar
    offset = _offset(fit, noise)
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
        report = _with(
            report,
            Fault(
                "phase",
                "at position 0 pairs are turned already, by angles that are no one offset",
                "unharmed if queries and keys have the same, and wrong with a cache of other code",
                "begin at the angle 0: cosines 1 and sines 0 at position 0",
            ),
        )
    elif abs(offset) > 0.02:
        report = _with(report, _fault_offset(offset))
    return report


def _fault_offset(offset: float) -> Fault:
    return Fault(
        "offset",
        f"every position is turned as if it were {number(offset)} more",
        "unharmed if queries and keys have it alike; wrong where only one of them has",
        "a constant offset in the function and a cache's length that the caller adds twice look "
        "alike from here: look for both",
    )


def _fault_not_finite(position: int) -> Fault:
    return Fault(
        "not_finite",
        f"the output at position {_int(position)} is not finite",
        "they are not finite either",
        "lengthen its table, or compute angles where the table ends (a gather beyond its end gives "
        "NaN in JAX)",
    )


def _fault_far(lost: int, reach: int) -> Fault:
    return Fault(
        "far",
        f"beyond position {_int(reach)}, and at {_int(lost)}, its angles are those of no rotation "
        "that it makes before",
        "right in short texts, wrong from there on",
        "look for a table that ends there (a gather that clamps repeats its last row), positions "
        "in a half type, or a wrap-around",
    )


def _fault_length(ratio: Floats, steps: Array) -> Fault:
    by_position = np.abs(ratio - 1).max(axis=1)
    if by_position.max() > by_position[0] + 1e-4:
        worst = int(steps[int(by_position.argmax())])
        what = f"the length of a pair changes with the position, by {by_position.max():.2g} at "
        what += _int(worst)
    else:
        what = f"pairs are multiplied by different factors, from {ratio.min():.4g} to "
        what += f"{ratio.max():.4g} times their median"
    return Fault(
        "length",
        what,
        "a factor for positions or pairs: a decay (xPos), a temperature, or a fault",
        "if the model is not one with xPos, look at what multiplies cosines and sines",
    )


def _positions_ignored(caller: _Caller) -> Fault | None:
    """Whether equal rows at one position are turned differently, as by their number."""
    row = np.linspace(0.5, 1.5, caller.width)
    x = np.tile(row, (6, 1))
    same = caller.rows(x, np.full(6, 5))
    if np.allclose(same, same[0], rtol=1e-5, atol=1e-5):
        return None
    return Fault(
        "positions_ignored",
        "rows at one and the same position are turned differently: it numbers the rows itself",
        "right in a full pass from position 0, wrong in every step with a cache, and with padding",
        "turn row n by the angle of positions[n]",
    )


def _with_axes(
    report: Report, caller: _Caller, matrices: Floats, positions: Array, pairs: _Pairs, fit: _Fit
) -> Report:
    """Which axis of the positions turns each pair."""
    if caller.position_axes == 1:
        return report
    z, _ = _complex(matrices, pairs)
    origin = np.angle(z[0])
    chosen = np.full(len(fit.omega), -1)
    shared: list[int] = []
    for k, omega in enumerate(fit.omega):
        best = np.clip(round(math.log2(max(1.0, 1 / max(abs(omega), 1e-12)))), 0, 20)
        step = min(2 ** int(best), fit.reach)
        turned = []
        for axis in range(caller.position_axes):
            alone = (positions[axis] == step) & (positions.sum(axis=0) == step)
            angle = _wrap(np.angle(z[int(np.flatnonzero(alone)[0]), k]) - origin[k])
            turned.append(abs(angle) > 0.25 * abs(_wrap(omega * step)))
        if sum(turned) == 1:
            chosen[k] = turned.index(True)
        else:
            shared.append(k)
    if shared:
        fault = Fault(
            "axes",
            f"pairs {spans(shared)} follow more than one axis of the positions, or none alone",
            "right for text, whose axes are equal, and wrong for images",
            "let each pair take its angle from one axis",
        )
        return _with(report, fault)
    layout, rotary_dim, _, index = _layout(pairs.entries)
    axes = np.zeros(rotary_dim // 2 if layout != "other" else len(index), np.int64)
    axes[index] = chosen
    return replace(report, pair_axes=tuple(int(each) for each in axes))


def _with_rest_of_head(report: Report, first: Floats, pairs: _Pairs) -> Report:
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
    return replace(report, notes=(*report.notes, note))


# ---- Further calls, each against what the rotation that was read would give


def _probe(pairs: _Pairs, width: int) -> Floats:
    """One row with a 1 in the first entry of every pair: its output shows all angles at once."""
    row = np.zeros(width)
    row[pairs.entries[:, 0]] = 1
    return row


def _phases(
    caller: _Caller, pairs: _Pairs, positions: Sequence[int] | Array
) -> NDArray[np.complex128]:
    """m·exp(iθ) for each position and pair, from one call."""
    x = np.tile(_probe(pairs, caller.width), (len(positions), 1))
    y = caller.rows(x, np.asarray(positions, np.int64))
    c, d = pairs.outputs.T
    return np.asarray(y[:, c] + 1j * y[:, d])


def _unit_phases(caller: _Caller, pairs: _Pairs, positions: Array) -> NDArray[np.complex128]:
    """The same from unit vectors, one pair at a time, as in the first call."""
    where = np.broadcast_to(positions, (caller.position_axes, len(positions)))
    return _complex(caller.matrices(where), pairs)[0]


def _with_calls(
    report: Report,
    caller: _Caller,
    pairs: _Pairs,
    fit: _Fit,
    noise: float,
    first: NDArray[np.complex128],
    steps: Array,
) -> Report:
    """A second call, of near positions alone: from a stale table, or with other frequencies?"""
    report = replace(report, tested=(*report.tested, "second call"))
    near = steps[steps <= NEAR][::-1]  # in another order than in the first call
    first = first[: len(near)][::-1]
    z = _unit_phases(caller, pairs, near)
    tolerance = 8 * noise * report.attention_factor + 1e-5
    if np.abs(z - first).max() <= tolerance:
        return report
    again = _unit_phases(caller, pairs, np.append(near, steps[-1]))
    if np.abs(again[:-1] - first).max() <= tolerance:
        close = _fit(z[::-1], near[::-1], 2 * noise, 2.0**-22)
        by_pair = {k: i for i, k in enumerate(_layout(pairs.entries)[3])}
        frequencies, bars = report.frequencies.copy(), report.frequency_errors.copy()
        for k, i in by_pair.items():
            frequencies[k], bars[k] = abs(close.omega[i]), close.bar[i]
        factor = float(np.median(np.abs(z)))
        note = (
            "frequencies follow the longest position of the call: in a cache older keys keep the "
            "rotation with which they were stored"
        )
        return replace(
            report,
            follows_length=True,
            far_frequencies=report.frequencies,
            frequencies=frequencies,
            frequency_errors=bars,
            attention_factor=factor,
            notes=(*report.notes, note),
        )
    shifted = _unit_phases(caller, pairs, near + 1)
    if np.abs(shifted - z).max() <= tolerance:
        fault = Fault(
            "stale_table",
            "a second call is turned by the positions of an earlier one",
            "right in the first call, wrong in every later one",
            "key its table by the positions, or compute the rows that are missing",
        )
    else:
        fault = Fault(
            "second_call",
            "a second call at the same positions turns differently",
            "wrong in the second call, or in the first",
            "look for state that one call leaves to the next",
        )
    return _with(report, fault)


def _with_angles(report: Report, caller: _Caller, pairs: _Pairs, noise: float) -> Report:
    """Angles at positions that are no powers of two, where a rounding shows."""
    odd = np.array([p for p in ODD if p <= max(report.reach, 3)], np.int64)
    asked = np.append(odd, report.reach) if report.follows_length else odd
    z = _phases(caller, pairs, asked)[: len(odd)]
    omega = _signed(report, pairs, far=report.follows_length)
    bars = _of_pairs(report.frequency_errors, pairs)

    def misses(positions: Floats) -> Floats:
        where = np.where(np.isfinite(positions), positions, 0) + report.offset
        return np.asarray(np.abs(_wrap(np.angle(z) - np.multiply.outer(where, omega))))

    error = misses(odd.astype(np.float64))
    at = int(np.flatnonzero(odd <= 100_000)[-1])
    report = replace(
        report,
        angle_errors=error[at],
        angle_at=int(odd[at]),
        tested=(*report.tested, "angles"),
    )
    known = 8 * noise + 1e-5 + np.multiply.outer(odd, bars + 4 * FLOAT32 * np.abs(omega))
    if np.all(error <= known):
        return report
    for name, rounded in ROUNDINGS.items():
        where = rounded(odd)
        usable = np.isfinite(where)
        fine = known[usable] + 0.02
        if np.any(where[usable] != odd[usable]) and np.all(misses(where)[usable] <= fine):
            changed = int(odd[np.flatnonzero(where != odd)[0]])
            return _with(report, _fault_half_positions(name, changed, float(rounded([changed])[0])))
    relative = error / np.maximum(np.multiply.outer(odd, np.abs(omega).clip(1e-12)), 1)
    worst = float(relative.max())
    name = "bfloat16" if worst > 2.0**-11 else "float16 or TF32"
    if worst <= 32 * FLOAT32:
        return report
    return _with(
        report,
        Fault(
            "half_angles",
            f"angles are off by up to {error[at].max():.2g} radians at {_int(odd[at])}, relatively "
            f"{worst:.1e}: products or frequencies in {name}",
            f"off by {_rms(error[at]):.2g} where their standard deviation is 1, at that position",
            "compute angles in float32 or wider, outside autocast, and round cosines and sines",
        ),
    )


def _fault_half_positions(name: str, position: int, rounded: float) -> Fault:
    return Fault(
        f"{name}_positions",
        f"positions are rounded to {name}: {_int(position)} is turned as {_int(int(rounded))}",
        "tokens that stand beside each other get one position, from there on",
        "keep positions integers until they are multiplied, in float32 or wider",
    )


def _rms(angles: Floats) -> float:
    """The error of a score with standard deviation 1 if pairs are off by these angles."""
    return float(np.sqrt(np.mean(2 - 2 * np.cos(angles))))


def _of_pairs(values: Floats, pairs: _Pairs) -> Floats:
    layout, _, _, index = _layout(pairs.entries)
    return values[index if layout != "other" else np.arange(len(index))]


def _signed(report: Report, pairs: _Pairs, *, far: bool = False) -> Floats:
    values = report.frequencies
    if far and report.far_frequencies is not None:
        values = report.far_frequencies
    return (report.direction or 1) * _of_pairs(values, pairs)


def _pairs_of(report: Report) -> _Pairs:
    return _Pairs(np.array(report.pairs_in), np.array(report.pairs_out))


def _predicted(report: Report, x: Floats, positions: Array) -> Floats:
    """x (…, width) turned as was read, at positions that broadcast with its leading axes."""
    pairs = _pairs_of(report)
    (a, b), (c, d) = pairs.entries.T, pairs.outputs.T
    angles = np.multiply.outer(positions + report.offset, _signed(report, pairs))
    turned = (x[..., a] + 1j * x[..., b]) * np.exp(1j * angles) * report.attention_factor
    still_in = np.setdiff1d(np.arange(report.head_dim), pairs.entries)
    still_out = np.setdiff1d(np.arange(report.head_dim), pairs.outputs)
    y = np.zeros((*turned.shape[:-1], report.head_dim))
    y[..., still_out] = x[..., still_in]
    y[..., c], y[..., d] = turned.real, turned.imag
    return np.asarray(y, np.float64)


def _random(*shape: int) -> Floats:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32).astype(np.float64)


def _tolerance(report: Report, noise: float) -> float:
    return float(40 * noise * report.attention_factor + 1e-4)


def _with_linearity(report: Report, caller: _Caller, noise: float) -> Report:
    """A vector that is no unit vector: turned by the same matrix?"""
    positions = np.array([0, 1, 2, 4, 8, 16, 32, 64])  # which no rounding changes
    positions = positions.clip(max=max(report.reach, 1))
    x = 3 * _random(8, caller.width)
    y, expected = caller.rows(x, positions), _predicted(report, x, positions)
    if np.abs(y - expected).max() <= 3 * _tolerance(report, noise) or report.notes:
        return report
    return _with(
        report,
        Fault(
            "not_linear",
            "other vectors are not turned by the matrix that unit vectors show",
            "depend on more than the rotation",
            "look for a norm of queries or keys inside the function, and give the doctor the "
            "rotation alone",
        ),
    )


def _with_batches(report: Report, caller: _Caller, noise: float) -> Report:
    """Four axes and other positions in each row: which of them does it take, and rightly?"""
    forms = [form for form in caller.forms if form != "seq"]
    if caller.axes != "seq":
        forms = [form for form in forms if form == caller.axes]
    if not forms:
        return _not_tested(report, "axes of heads and of a batch (axes='seq')")
    form = _form_that_works(caller, forms)
    if isinstance(form, str) and form in AXES:
        report = replace(report, tested=(*report.tested, "ragged rows", "axis of heads"))
        found = _effective_positions(report, caller, form)
        fault = None if found is None else _batch_fault(*found)
        report = replace(report, axes=report.axes if report.axes != "seq" else f"seq, {form}")
        return report if fault is None else _with(report, fault)
    return _not_tested(report, f"axes of heads and of a batch ({form})")


def _not_tested(report: Report, what: str) -> Report:
    return replace(report, untested=(*report.untested, what))


def _form_that_works(caller: _Caller, forms: Iterable[Axes]) -> str:
    """The first form in which three different sizes are taken, or the error of the first."""
    errors = []
    for form in forms:
        sizes = (2, 3, 5) if form == "batch heads seq" else (2, 5, 3)
        try:
            caller.raw(_random(*sizes, caller.width), _positions_of_batch(caller, 2, 5))
        except _Refused as error:
            errors.append(str(error))
        else:
            return form
    return errors[0]


def _positions_of_batch(caller: _Caller, batch: int, length: int) -> Array:
    """Other positions in each row of a batch, equal on all axes."""
    starts = 3 + 10 * np.arange(batch)[:, np.newaxis]
    positions = starts + np.arange(length) + np.arange(batch)[:, np.newaxis] * np.arange(length)
    if caller.position_axes == 1:
        return positions
    return np.broadcast_to(positions, (caller.position_axes, batch, length))


def _effective_positions(
    report: Report, caller: _Caller, form: str, size: int = 4
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
    except _Refused:
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
    found[distance.min(axis=-1) > 0.1 * report.attention_factor] = -1
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
            "rows_share_positions",
            "all rows of a batch are turned by the positions of the first",
            "right if all texts begin at one position, wrong with padding or ragged caches",
            "index cosines and sines by positions[b], not by positions[0]",
        )
    if np.array_equal(found, by_head) or head_number or np.array_equal(found, other_row):
        return Fault(
            "wrong_axis",
            "vectors are turned by the axis of heads or of the batch, not by that of positions",
            "those of one head at all positions depend on no position, or on those of other texts",
            "let cosines have shape (batch, 1, seq, width) beside (batch, heads, seq, width)",
        )
    number = np.broadcast_to(np.arange(found.shape[2]), found.shape)
    if np.array_equal(found, number):
        what = "with four axes it numbers the positions from 0"
        return Fault(
            "positions_ignored",
            what,
            "right in a full pass from position 0, wrong in every step with a cache",
            "turn by the positions that are given",
        )
    return Fault(
        "batch",
        "with axes of heads and of a batch, vectors are not turned by their own positions",
        "wrong wherever more than one text, or more than one head, is turned at once",
        "compare shapes of cosines, (batch, 1, seq, width), and of x",
    )


def _with_step(report: Report, caller: _Caller, noise: float) -> Report:
    """A full pass, then the last token alone, as with a cache; and a chunk of three."""
    report = replace(report, tested=(*report.tested, "cached step"))
    x = _random(7, caller.width)
    positions = np.arange(20, 27)
    full = caller.rows(x, positions)
    try:
        parts = [caller.rows(x[:3], positions[:3]), caller.rows(x[3:6], positions[3:6])]
        parts.append(caller.rows(x[6:], positions[6:]))
    except _Refused as error:
        what = f"a step of one token raises {error}"
    else:
        if np.abs(np.concatenate(parts) - full).max() <= _tolerance(report, noise):
            return report
        what = "a token that is turned alone, as with a cache, is turned otherwise than in a pass"
    fault = Fault(
        "cached_step",
        what,
        "right in the prompt, wrong in what is generated",
        "take the angle from the position that is given, also for one row",
    )
    return _with(report, fault)


def _checked_writes(report: Report, caller: _Caller) -> Report:
    if caller.written:
        what = " and ".join(sorted(caller.written))
        report = _with(
            report,
            Fault(
                "writes_input",
                f"it writes into {what} that it is given",
                "wrong where the caller uses the array again, as with keys that are also stored",
                "copy first, or say in its name that it works in place",
            ),
        )
    note = f"read from {caller.calls} calls, positions up to {_int(report.reach)}, outputs in "
    return replace(report, notes=(*report.notes, note + report.dtype))


# ---- Against what is expected


def _kinds_of_layer(expect: Any, width: int) -> list[LayerRotation]:
    """The different rotations that ``expect`` asks for, of this width."""
    if expect is None:
        return []
    if isinstance(expect, LayerRotation):
        layers: list[LayerRotation | None] = [expect]
    elif isinstance(expect, RotarySettings):
        layers = list(expect.layers)
    elif hasattr(expect, "frequencies") and hasattr(expect, "layout"):
        layers = [_of_module(expect)]
    else:
        layers = list(rotary_settings(expect).layers)
    kinds = [each for each in dict.fromkeys(layers) if each is not None]
    fitting = [each for each in kinds if each.head_dim == width]
    if not fitting:
        widths = sorted({each.head_dim for each in kinds})
        raise ValueError(
            f"head_dim must be the width that expect says, {widths or 'none: no layer turns'}, "
            f"got {width}"
        )
    return fitting


def _of_module(module: Any) -> LayerRotation:
    """The settings of a ``RotaryPositionalEncoding``, of which this file knows only the names."""
    frequencies = tuple(np.asarray(module.frequencies, np.float64).tolist())
    axes = module.pair_axes
    return LayerRotation(
        head_dim=int(module.head_dim),
        rotary_dim=2 * len(frequencies),
        layout=module.layout,
        layout_out=module.layout,
        frequencies=frequencies,
        attention_factor=float(module.attention_factor),
        pair_axes=None if axes is None else tuple(int(each) for each in axes),
    )


def compare(report: Report, kind: LayerRotation) -> Report:
    """A report of `examine` without ``expect``, with its faults against one kind of layer."""
    report = replace(report, expected=kind)
    if kind.pair_axes is not None and report.pair_axes is None:
        axes = max(kind.pair_axes) + 1
        report = _not_tested(report, f"which axis turns a pair (position_axes={axes})")
    broken = {"positions_ignored", "not_a_rotation", "stale_table", "not_finite"}
    if report.layout is None or broken & set(report.codes):
        if report.layout is None and not report.faults:
            report = _with(report, _fault_unturned())
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
        if fault is not None:
            report = _with(report, fault)
    return _with_exact_angles(report, kind)


def _with_exact_angles(report: Report, kind: LayerRotation) -> Report:
    """The errors of angles beside the model's frequencies, where these are what was meant."""
    wrong = {"layout", "part", "frequencies", "base", "scaling", "spacing", "half_frequencies"}
    found = report.frequencies
    if wrong & set(report.codes) or report.layout == "other" or report.follows_length:
        return report
    rounding = np.abs(found - np.array(kind.frequencies))[found > 0]
    if len(rounding) != len(report.angle_errors):
        return report
    return replace(report, angle_errors=report.angle_errors + rounding * report.angle_at)


def _fault_unturned() -> Fault:
    return Fault(
        "unturned",
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
        f"{_score_error(other, expected, n):.2g} at distance {_int(n)}" for n in (1, 100, 10_000)
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
            "layout",
            f"pairs are {report.layout} and the model's are {wanted}",
            consequence,
            f"set the flag, or reorder the weights once: convert_layout(w, {kind.head_dim}, "
            f"to={report.layout!r}), and with them the biases and the norms of q and k",
        )
    if report.layout_out != kind.layout_out and not one_pair:
        return Fault(
            "layout_out",
            f"it writes {report.layout_out} and the model's own code writes {kind.layout_out}",
            "equal, if queries and keys go through the same function; cached keys are in another "
            "order and cannot be exchanged with the model's own code",
            "nothing if the cache stays with this function; else reorder its outputs",
        )
    return None


def _compare_direction(report: Report, kind: LayerRotation) -> Fault | None:
    if report.direction == kind.direction:
        return None
    which = {1: "forward", -1: "backward", 0: "partly forward, partly backward"}
    return Fault(
        "direction",
        f"pairs turn {which[report.direction]} and the model's {which[kind.direction]}",
        _scores_off(kind, direction=-kind.direction)
        + "; the past is seen as a future at the same distance",
        "change the sign of the sine",
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
        "part",
        f"entries {_range(*found)} of a head turn, and the model's are "
        f"{_range(kind.rotary_start, kind.rotary_dim)} of {kind.head_dim}",
        f"off by {error:.2g} at distance 100 (their standard deviation is 1)",
        f"set rotary_dim={kind.rotary_dim} (partial_rotary_factor "
        f"{kind.rotary_dim / kind.head_dim:g}) and leave the rest of the head as it is",
    )


def _compare_frequencies(report: Report, kind: LayerRotation) -> Fault | None:
    expected = np.array(kind.frequencies)
    found, bars = report.frequencies, report.frequency_errors
    if len(found) != len(expected):
        return None  # the part is reported instead
    tolerance = 4 * bars + OTHER_FREQUENCIES * expected
    different = np.abs(found - expected) > tolerance
    if not different.any():
        return None
    why = _explain_frequencies(found, kind, different, bars)
    consequence = _scores_off(kind, frequencies=tuple(found.tolist()))
    return Fault(why.code, why.difference, consequence, why.remedy)


class _Explanation(NamedTuple):
    code: str
    difference: str
    remedy: str


def _explain_frequencies(
    found: Floats, kind: LayerRotation, different: NDArray[np.bool_], bars: Floats
) -> _Explanation:
    """Why frequencies differ: the likeliest cause that reproduces them within their error bars."""

    def fits(candidate: Floats, extra: float = OTHER_FREQUENCIES) -> bool:
        return bool(np.all(np.abs(found - candidate) <= 4 * bars + extra * np.abs(candidate)))

    where = spans(np.flatnonzero(different).tolist())
    explained = _half_frequencies(found, kind, fits) or _other_formula(found, kind, fits, where)
    if explained is not None:
        return explained
    expected = np.array(kind.frequencies)
    ratios = found[expected > 0] / expected[expected > 0]
    if np.allclose(ratios, ratios[0], rtol=min(1e-4, abs(ratios[0] - 1) / 10)):
        return _Explanation(
            "frequencies",
            f"all frequencies are {number(ratios[0])} times those of the model",
            "look for a factor of linear scaling that is applied once too often, or not at all",
        )
    base = _describe(found, bars, 2 * len(found)).base
    if base is not None:
        wanted = "" if kind.base is None else f" and the model's is {number(kind.base)}"
        scaled = kind.rope_type not in (None, "default", "mrope")
        missing = f"; or its scaling is missing, {kind.rope_type!r}" if scaled else ""
        return _Explanation(
            "base",
            f"the base is {number(base)}{wanted}; pairs {where} differ",
            f"take rope_theta from the model's configuration{missing}",
        )
    first = int(np.flatnonzero(different)[0])
    return _Explanation(
        "frequencies",
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
            worst = np.abs(found / expected - 1)[expected > 0].max()
            return _Explanation(
                "half_frequencies",
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
            "scaling",
            f"scaling {kind.rope_type!r} is ignored: up to {number(ratio)}× on pairs {where}",
            "give it the frequencies of rotary_frequencies(**rope_parameters), not a base",
        )
    if 2 * pairs < kind.head_dim and fits(kind.base ** (-2 * index / kind.head_dim)):
        return _Explanation(
            "spacing",
            f"frequencies are spaced as for all {kind.head_dim} entries of a head, not for the "
            f"{2 * pairs} that turn",
            f"divide the exponent by rotary_dim = {2 * pairs}",
        )
    if fits(kind.base ** (-index / max(pairs - 1, 1))):
        return _Explanation(
            "spacing",
            "exponents run from 0 to 1 with both ends, as in tensor2tensor",
            "let pair i have base**(-2*i/rotary_dim)",
        )
    return None


def _compare_factor(report: Report, kind: LayerRotation) -> Fault | None:
    found, expected = report.attention_factor, kind.attention_factor
    if abs(found / expected - 1) <= 4 * report.attention_factor_error / found + 1e-3:
        return None
    share = (found / expected) ** 2
    size = f"{abs(1 - share):.0%} too {'large' if share > 1 else 'small'}"
    what = f"cosines and sines are multiplied by {found:.4f} and the model's by {expected:.4f}"
    if abs(found - expected**2) < 1e-3:
        what += ": the factor is applied twice"
    return Fault(
        "factor",
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
        "axes",
        f"pairs {spans(different)} follow other axes of the positions than the model's",
        "right for text, whose axes are equal, and wrong for images and video",
        "take the axis of each pair from mrope_section and mrope_interleaved",
    )


def _compare_length(report: Report, kind: LayerRotation) -> Fault | None:
    follows = kind.rope_type in ("dynamic", "longrope")
    if report.follows_length and not follows:
        return Fault(
            "follows_length",
            "frequencies follow the longest position of the call, and the model's do not",
            "of a new query with cached keys depend on both positions, not on their distance",
            "compute the frequencies once",
        )
    return None


# ---- Words


def base_of(report: Report) -> float | None:
    """The base of the frequencies that were read, rounded as far as their error bars allow; None
    where they have no single base."""
    return _describe(report.frequencies, report.frequency_errors, report.head_dim).base


class _Description(NamedTuple):
    text: str
    base: float | None
    explanations: tuple[str, ...] = ()


def _describe(omega: Floats, bars: Floats, head_dim: int) -> _Description:
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
        ("a list of divisors (longrope), or a table of its own",),
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
    return _describe(omega, np.zeros_like(omega), head_dim).text


def _lines(report: Report) -> tuple[_Line, ...]:
    """The printed lines, with a verdict where something was expected or is wrong."""
    blank = report.layout is None
    layout = "none" if blank else str(report.layout)
    if report.layout_out != report.layout:
        layout += f", written {report.layout_out}"
    if report.layout in NAMES:
        layout += f" ({NAMES[report.layout]})"
    part = f"entries {_range(report.rotary_start, report.rotary_dim)} of {report.head_dim}"
    ways = {1: "forward", -1: "backward", 0: "mixed"}
    described = _describe(report.frequencies, report.frequency_errors, report.head_dim)
    turning = report.frequencies > 0
    read = ""
    if turning.any():
        omega, bars = report.frequencies[turning], report.frequency_errors[turning]
        read = f"read: {len(omega)} pairs, {omega.max():.4g} to {omega.min():.4g} a position, "
        read += f"± {(bars / omega).max():.1g} of it"
    lines = [
        _Line("layout", layout, ("layout", "layout_out")),
        _Line("part", "none" if blank else part, ("part", "unturned")),
        _Line("direction", ways[report.direction] if not blank else "none", ("direction",)),
        _Line(
            "frequencies",
            described.text,
            ("frequencies", "base", "scaling", "spacing", "half_frequencies"),
        ),
        _Line("", read, ()),
        *(
            _Line("", f"or: {each}" if "the pairs between" not in each else each, ())
            for each in described.explanations
        ),
        _Line("factor", f"{report.attention_factor:.4f}", ("factor", "length")),
    ]
    if report.pair_axes is not None:
        lines.append(_Line("axes", _brief(report.pair_axes), ("axes",)))
    lines += [
        _Line("offset", number(report.offset), ("offset", "phase")),
        _Line(
            "positions",
            f"up to {_int(report.reach)}",
            ("bfloat16_positions", "float16_positions", "far", "not_finite", "positions_ignored"),
        ),
    ]
    if "angles" in report.tested:
        error = f"error {report.angle_error:.1g} at {_int(report.angle_at)}, as in "
        error += f"{_type_of_angles(report)}; scores {report.score_error:.1g}"
        lines.append(_Line("angles", error, ("half_angles",)))
    calls = [each for each in report.tested if each != "angles"]
    lines.append(
        _Line(
            "calls",
            ", ".join(calls),
            (
                "stale_table",
                "second_call",
                "rows_share_positions",
                "wrong_axis",
                "batch",
                "cached_step",
                "follows_length",
                "writes_input",
                "raises",
            ),
        )
    )
    named = {code for line in lines for code in line.codes}
    rest = tuple(code for code in report.codes if code not in named)
    if rest:
        lines.append(_Line("rotation", "", rest))
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


def _int(value: Any) -> str:
    return f"{int(value):,}"


def number(value: float) -> str:
    """A number in at most six digits, with commas for thousands."""
    rounded = float(f"{value:.6g}")
    if abs(rounded) >= 1e15 or (rounded != 0 and abs(rounded) < 1e-4):
        return f"{rounded:.4g}"
    return f"{rounded:,.0f}" if rounded == round(rounded) else f"{rounded:,g}"


def _range(start: int, width: int) -> str:
    return f"{start}–{start + width - 1}"


def spans(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] as "0–2, 5"."""
    parts: list[list[int]] = []
    for each in numbers:
        if parts and each == parts[-1][-1] + 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    shown = [f"{p[0]}–{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts[:4]]
    return ", ".join(shown) + (", …" if len(parts) > 4 else "")


def _brief(values: Iterable[Any]) -> str:
    numbers = [str(each) for each in values]
    return ", ".join(numbers[:8]) + (", …" if len(numbers) > 8 else "")
