"""Reading pairs, layout and frequencies off the matrices of a rotation. Nothing is called here."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pe_lib.doctor.numbers import listed
from pe_lib.doctor.report import Array, Code, Fault, Floats

# The largest relative error of a rounding to a type.
FLOAT32 = 2.0**-24
ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11}

# What an entry in float32 may be off by: cosine and product are rounded, and an angle before them.
SINGLE = 2.0**-22
# Frequencies are taken for equal where they differ by at most so many error bars.
BARS = 4
# Two answers are taken for equal where they differ by at most so many times the noise of an entry:
# code in a half type rounds cosine, product and sum, and two answers are compared.
SURE = 8
# And besides by so much, which code in float32 leaves of an angle that is computed otherwise.
FLOOR = 1e-5
# An entry of M(p) that is smaller, relative to the largest, is taken for 0: it is far below a
# rounding, and the sines of slow pairs grow beyond it far out.
NOTHING = 1e-6
# A phase that misses what half the position lets expect by so much, in radians, is that of another
# rotation. Half a turn away nothing could be told.
LOST = 0.5


class Pairs(NamedTuple):
    """Where the pairs stand: entries of inputs and of outputs, (K, 2) each."""

    entries: NDArray[np.int64]
    outputs: NDArray[np.int64]


class Unreadable(Exception):
    """The matrices are not those of a rotation of pairs. It carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.difference)
        self.fault = fault


def not_pairs(difference: str) -> Unreadable:
    return Unreadable(
        Fault(
            Code.NOT_A_ROTATION,
            difference,
            "scores depend on more than the distance of two positions",
            "compare its two lines with y₁ = x₁cos − x₂sin, y₂ = x₁sin + x₂cos",
        )
    )


def find_pairs(matrices: Floats, unit: float) -> Pairs:
    """The pairs, from the entries that are not 0 at some position."""
    size = np.abs(matrices).max(axis=0)
    present = size > NOTHING * unit
    counts = present.sum(axis=1)
    if counts.max() > 2:
        most = int(counts.argmax())
        where = np.flatnonzero(present[most])
        raise not_pairs(f"entry {most} of x goes to {len(where)} entries of y: {listed(where)}")
    if counts.min() == 0:
        raise not_pairs(f"entry {int(counts.argmin())} of x has no effect on y")
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in np.flatnonzero(counts == 2):
        groups.setdefault(tuple(np.flatnonzero(present[row])), []).append(int(row))
    for targets, rows in groups.items():
        if len(rows) != 2:
            raise not_pairs(f"entries {listed(targets)} of y are made of entries {listed(rows)}")
    entries = np.array(list(groups.values()), np.int64).reshape(-1, 2)
    outputs = np.array(list(groups), np.int64).reshape(-1, 2)
    first = matrices[0]
    a, b = entries.T
    c, d = outputs.T
    determinant = first[a, c] * first[b, d] - first[a, d] * first[b, c]
    outputs = np.where((determinant < 0)[:, np.newaxis], outputs[:, ::-1], outputs)
    order = np.argsort(entries[:, 0], kind="stable")
    return Pairs(entries[order], outputs[order])


def complex_of(matrices: Floats, pairs: Pairs) -> tuple[NDArray[np.complex128], Floats]:
    """For each matrix and pair m·exp(iθ), and how far its block is from m·R(θ)."""
    a, b = pairs.entries.T
    c, d = pairs.outputs.T
    aa, ab = matrices[:, a, c], matrices[:, a, d]
    ba, bb = matrices[:, b, c], matrices[:, b, d]
    rotation = (aa + bb) / 2 + 1j * (ab - ba) / 2
    rest = np.abs((aa - bb) / 2 + 1j * (ab + ba) / 2)
    return rotation, rest


def wrap(angle: Any) -> Any:
    """The same angle between −π and π."""
    return np.remainder(angle + math.pi, 2 * math.pi) - math.pi


class Fit(NamedTuple):
    """Frequencies, their error bars, phases at 0, and how far doubling held."""

    omega: Floats
    bar: Floats
    phase: Floats
    reach: int
    lost: int | None  # the first position at which the phases are those of no rotation


def fit_frequencies(z: NDArray[np.complex128], steps: Array, rounding: float, noise: float) -> Fit:
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
        miss = wrap(alpha - omega * step)
        if np.any(np.abs(miss) > np.maximum(LOST, BARS * bar * step)):
            lost = step
            break
        better = np.maximum(unsure, np.abs(miss) - bar * step) / step
        omega = np.where(better < bar, omega + miss / step, omega)
        bar = np.minimum(better, bar)
        reach = step
    return Fit(omega, bar + 2 * FLOAT32 * np.abs(omega), phase, reach, lost)


def offset_of(fit: Fit, noise: float) -> float | None:
    """The c with φ_k = c·ω_k for all pairs, from the slowest pair to the fastest; or None.

    A slow pair gives c roughly and without doubt; the next faster one makes it finer."""
    order = np.argsort(np.abs(fit.omega))
    order = order[np.abs(fit.omega[order]) > 0]
    if len(order) == 0 or np.all(np.abs(fit.phase) < SURE * noise):
        return 0.0
    value = 0.0
    for k in order:
        omega, phase = fit.omega[k], fit.phase[k]
        value += float(wrap(phase - value * omega)) / omega
    misses = np.abs(wrap(fit.phase - value * fit.omega))
    allowed = SURE * noise + abs(value) * BARS * fit.bar
    return value if np.all(misses <= allowed + NOTHING) else None


def layout_of(entries: NDArray[np.int64]) -> tuple[str, int, int, NDArray[np.int64]]:
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


def dtype_of(values: Floats) -> str:
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
