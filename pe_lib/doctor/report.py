"""What the doctor says: faults, the report, and adapters for other libraries' functions."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pe_lib.rope import LayerRotation

Array = NDArray[Any]


Floats = NDArray[np.float64]


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


class Line(NamedTuple):
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
    lines: tuple[Line, ...] = ()

    @property
    def angle_error(self) -> float:
        """The largest error of an angle at ``angle_at``, in radians."""
        return float(self.angle_errors.max(initial=0.0))

    @property
    def score_error(self) -> float:
        """The error of a score of Gaussian q and k, whose standard deviation is 1, if one of them
        stands at ``angle_at`` and the other at 0."""
        return rms(self.angle_errors) if len(self.angle_errors) else 0.0

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


def with_fault(report: Report, fault: Fault) -> Report:
    return replace(report, faults=(*report.faults, fault))


def rms(angles: Floats) -> float:
    """The error of a score with standard deviation 1 if pairs are off by these angles."""
    return float(np.sqrt(np.mean(2 - 2 * np.cos(angles))))


def not_tested(report: Report, what: str) -> Report:
    return replace(report, untested=(*report.untested, what))
