"""What the doctor says: faults, the report, and adapters for other libraries' functions."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pe_lib.rope import LayerRotation, RotarySettings

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
kind = []  # ["full_attention"] or ["sliding_attention"] for Gemma 3, Olmo 3 and ModernBERT


def turn(x, positions):  # axes="batch heads seq"
    q = torch.from_numpy(x)
    cos, sin = model.rotary_emb(q, torch.from_numpy(positions), *kind)
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


class Code(StrEnum):
    """What a fault is called, as a string: ``"layout" in report.codes``."""

    LAYOUT = "layout"  #: pairs are made of other entries of the input
    LAYOUT_OUT = "layout_out"  #: pairs are read as the model's and written to other entries
    PART = "part"  #: another part of the head turns
    UNTURNED = "unturned"  #: nothing turns
    DIRECTION = "direction"  #: all pairs, or some, turn the other way
    FREQUENCIES = "frequencies"  #: frequencies differ, and none of the causes below explains it
    BASE = "base"  #: frequencies are those of another base
    SCALING = "scaling"  #: frequencies are those of the base, without the model's scaling
    SPACING = "spacing"  #: exponents are spaced for another width, or with both ends
    HALF_FREQUENCIES = "half_frequencies"  #: frequencies are rounded to a half type
    FOLLOWS_LENGTH = "follows_length"  #: frequencies follow the longest position of a call
    FACTOR = "factor"  #: cosines and sines are multiplied by another factor
    LENGTH = "length"  #: pairs are multiplied by factors that differ, or change with the position
    AXES = "axes"  #: pairs follow other axes of the positions
    OFFSET = "offset"  #: a constant is added to every position
    PHASE = "phase"  #: at position 0 pairs are turned already, by angles that are no offset
    POSITIONS_IGNORED = "positions_ignored"  #: rows are turned by their number, not by positions
    RESTARTS = "restarts"  #: each call counts from its own first position
    BFLOAT16_POSITIONS = "bfloat16_positions"  #: positions are rounded to bfloat16
    FLOAT16_POSITIONS = "float16_positions"  #: positions are rounded to float16
    HALF_ANGLES = "half_angles"  #: angles are rounded to a half type, or to TF32
    FAR = "far"  #: beyond some position the angles are those of no rotation
    NOT_FINITE = "not_finite"  #: beyond some position outputs are not finite
    STALE_TABLE = "stale_table"  #: a second call is turned by the positions of an earlier one
    SECOND_CALL = "second_call"  #: a second call at the same positions turns differently
    ROWS_SHARE_POSITIONS = "rows_share_positions"  #: all rows of a batch are turned as the first
    WRONG_AXIS = "wrong_axis"  #: vectors are turned by the axis of heads or of the batch
    BATCH = "batch"  #: with four axes vectors are turned by none of the positions above
    CACHED_STEP = "cached_step"  #: a token alone is turned otherwise than in a pass
    WRITES_INPUT = "writes_input"  #: it writes into an array that it is given
    RAISES = "raises"  #: a further call raised an error
    NOT_A_ROTATION = "not_a_rotation"  #: unit vectors are not turned in pairs
    NOT_LINEAR = "not_linear"  #: other vectors are not turned as unit vectors are

    def __repr__(self) -> str:
        return repr(self.value)  # lists of codes are read by people, too


class Fault(NamedTuple):
    """One difference: a `Code` to test for, what differs, what scores suffer, what to do."""

    code: Code
    difference: str
    consequence: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.difference}. {self.consequence}. {self.remedy}."


class Line(NamedTuple):
    """A line of the printed report, and the codes that would make it a fault."""

    name: str
    found: str
    codes: tuple[Code, ...]
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
        The furthest position that was examined. With ``longest`` it is the last one of such a text,
        at least, if nothing went wrong before.
    angle_errors, angle_at
        The error of each pair's angle, in radians, at this position: beside the frequencies that
        were read or, with ``expect``, those of the model. ``angle_error`` is the largest, and
        ``score_error`` what it does to a score whose standard deviation is 1.
    follows_length, far_frequencies, far_frequency_errors, far_attention_factor
        Whether the frequencies depend on the longest position of a call, and then what was read
        from a call with far positions, beside that from one with near ones.
    faults, notes
        What is wrong; and what is worth knowing and is not wrong.
    tested, untested
        Which further calls were made, and what was not looked at.
    expected, settings
        The rotation that the function was held to, and the model that it is of, if ``expect`` was
        one. ``layers`` has the numbers of its layers that turn so.
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
    far_frequency_errors: Floats | None = None
    far_attention_factor: float | None = None
    pairs_in: tuple[tuple[int, int], ...] = ()
    pairs_out: tuple[tuple[int, int], ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    expected: LayerRotation | None = None
    settings: RotarySettings | None = None
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
    def layers(self) -> tuple[int, ...]:
        """The layers that the function was held to; none where ``expect`` was no whole model."""
        if self.settings is None or self.expected is None:
            return ()
        return layers_of(self.settings, self.expected)

    @property
    def codes(self) -> tuple[Code, ...]:
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


def layers_of(settings: RotarySettings, kind: LayerRotation) -> tuple[int, ...]:
    """The numbers of the layers that turn by this rotation."""
    return tuple(index for index, each in enumerate(settings.layers) if each == kind)


def with_fault(report: Report, fault: Fault) -> Report:
    return replace(report, faults=(*report.faults, fault))


def with_note(report: Report, note: str) -> Report:
    return replace(report, notes=(*report.notes, note))


def rms(angles: Floats) -> float:
    """The error of a score with standard deviation 1 if pairs are off by these angles."""
    return float(np.sqrt(np.mean(2 - 2 * np.cos(angles))))


def not_tested(report: Report, what: str) -> Report:
    return replace(report, untested=(*report.untested, what))
