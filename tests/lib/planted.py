"""Rotary functions that are right, and the same with one fault each, for the doctor's own table.

``python tests/lib/planted.py`` prints the table, faults planted, caught and false alarms, and
writes it to ``book/data/doctor_faults.json``.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pe_lib import doctor
from pe_lib.rope import LayerRotation, rotary_frequencies

Array = NDArray[Any]
Turn = Callable[[Array, Array], Array]

BASE, WIDTH = 1_000_000.0, 64
YARN: dict[str, Any] = {
    "rope_type": "yarn",
    "rope_theta": BASE,
    "factor": 4.0,
    "original_max_position_embeddings": 32_768,
}
LLAMA3: dict[str, Any] = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
PLAIN: dict[str, Any] = {"rope_theta": BASE}


def bfloat16(values: Any) -> Array:
    """Rounded to bfloat16, ties to even, in float32. The doctor's own rounding is tested by it."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


def expected(
    fields: dict[str, Any] = PLAIN, layout: Any = "split", width: int = WIDTH, **changed: Any
) -> LayerRotation:
    """What a model expects: a whole head, or with ``rotary_dim`` a part of it."""
    part = changed.pop("rotary_dim", width)
    frequencies, factor = rotary_frequencies(part, **fields)
    settings: dict[str, Any] = {
        "head_dim": width,
        "rotary_dim": part,
        "layout": layout,
        "layout_out": layout,
        "frequencies": tuple(frequencies.tolist()),
        "attention_factor": factor,
        "base": fields["rope_theta"],
        "rope_type": fields.get("rope_type", "default"),
    }
    return LayerRotation(**(settings | changed))


def turned(
    x: Array, cos: Array, sin: Array, layout: str = "split", out: str | None = None, start: int = 0
) -> Array:
    """x turned by cosines and sines of shape (…, pairs), as the most careful code would."""
    pairs = cos.shape[-1]
    stop = start + 2 * pairs
    y = x.copy()
    first, second = slice(start, start + pairs), slice(start + pairs, stop)
    if layout == "interleaved":
        first, second = slice(start, stop, 2), slice(start + 1, stop, 2)
    a, b = x[..., first], x[..., second]
    if (out or layout) == "split":
        first, second = slice(start, start + pairs), slice(start + pairs, stop)
    else:
        first, second = slice(start, stop, 2), slice(start + 1, stop, 2)
    y[..., first], y[..., second] = a * cos - b * sin, a * sin + b * cos
    return y


def rotation(
    kind: LayerRotation,
    *,
    angles: Callable[[Array, Array], Array] = np.multiply.outer,
    rounded: Callable[[Any], Array] = np.asarray,
    start: int = 0,
) -> Turn:
    """A right function for what is expected, in the forms (seq, d) and (batch, heads, seq, d)."""
    omega = np.array(kind.frequencies)

    def turn(x: Array, positions: Array) -> Array:
        angle = kind.direction * angles(positions, omega)
        if x.ndim == 4:
            angle = angle[:, np.newaxis]
        cos = rounded(kind.attention_factor * np.cos(angle))
        sin = rounded(kind.attention_factor * np.sin(angle))
        return rounded(turned(x, cos, sin, kind.layout, kind.layout_out, start))

    return turn


def float32_angles(positions: Array, omega: Array) -> Array:
    return np.multiply.outer(positions.astype(np.float32), omega.astype(np.float32))


@dataclass(frozen=True)
class Planted:
    """A fault: the code that the doctor should give, a function that has it, what is expected."""

    name: str
    code: str
    turn: Turn
    kind: LayerRotation


def simple(name: str, code: str, kind: LayerRotation, **changed: Any) -> Planted:
    """A function that is right for another rotation than the one expected."""
    return Planted(name, code, rotation(replace(kind, **changed)), kind)


def _with_positions(change: Callable[[Array], Array], kind: LayerRotation | None = None) -> Turn:
    right = rotation(kind or expected())
    return lambda x, positions: right(x, change(positions))


def _ignores_positions(x: Array, positions: Array) -> Array:
    return rotation(expected())(x, np.broadcast_to(np.arange(x.shape[-2]), positions.shape))


def _stale() -> Turn:
    kept: dict[str, Array] = {}
    right = rotation(expected())

    def turn(x: Array, positions: Array) -> Array:
        kept.setdefault("positions", positions)
        where = kept["positions"]
        return right(x, where.ravel()[: positions.size].reshape(positions.shape))

    return turn


def ending(length: int, beyond: str) -> Turn:
    """A table of a fixed length, and what a gather beyond it gives."""

    def turn(x: Array, positions: Array) -> Array:
        if beyond == "clamp":
            return rotation(expected())(x, np.minimum(positions, length - 1))
        if beyond == "wrap":
            return rotation(expected())(x, positions % length)
        y = rotation(expected())(x, positions)
        outside = positions >= length
        y[outside if x.ndim == 2 else np.broadcast_to(outside[:, None], y.shape[:3])] = np.nan
        return y

    return turn


def _growing(x: Array, positions: Array) -> Array:
    """Dynamic NTK: frequencies follow the longest position of the call."""
    fields: dict[str, Any] = {
        "rope_theta": BASE,
        "rope_type": "dynamic",
        "factor": 4.0,
        "max_position_embeddings": 2048,
    }
    omega, _ = rotary_frequencies(WIDTH, seq_len=int(positions.max()) + 1, **fields)
    return rotation(expected(frequencies=tuple(omega.tolist())))(x, positions)


def _in_place(x: Array, positions: Array) -> Array:
    x[...] = rotation(expected())(x, positions)
    return x


def _first_row(x: Array, positions: Array) -> Array:
    where = positions if x.ndim == 2 else np.broadcast_to(positions[:1], positions.shape)
    return rotation(expected())(x, where)


def _wrong_axis(x: Array, positions: Array) -> Array:
    """Cosines of (batch, seq, d) stand beside heads and positions, or beside batch and heads."""
    if x.ndim == 2:
        return rotation(expected())(x, positions)
    if x.shape[1] != x.shape[2]:
        return rotation(expected())(x, positions)
    angle = np.multiply.outer(positions, np.array(expected().frequencies))[:, :, np.newaxis]
    return turned(x, np.cos(angle), np.sin(angle))


def _batch_beside_heads(x: Array, positions: Array) -> Array:
    """Cosines of (batch, seq, d) beside (heads, seq, d), which is silent where sizes agree."""
    right = rotation(expected())
    if x.ndim == 2 or x.shape[0] != x.shape[1]:
        return right(x, positions)
    angle = np.multiply.outer(positions, np.array(expected().frequencies))
    return turned(x, np.cos(angle), np.sin(angle))


def _step_from_zero(x: Array, positions: Array) -> Array:
    """One token is taken for the first."""
    return rotation(expected())(x, positions * (x.shape[-2] > 1))


def _one_sine_wrong(x: Array, positions: Array) -> Array:
    angle = np.multiply.outer(positions, np.array(expected().frequencies))
    if x.ndim == 4:
        angle = angle[:, np.newaxis]
    a, b = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([a * cos - b * sin, b * cos - a * sin], axis=-1)


def _mixed(x: Array, positions: Array) -> Array:
    """Halves are exchanged as in split code, beside cosines that are repeated as in interleaved."""
    angle = np.repeat(np.multiply.outer(positions, np.array(expected().frequencies)), 2, axis=-1)
    if x.ndim == 4:
        angle = angle[:, np.newaxis]
    a, b = np.split(x, 2, axis=-1)
    y: Array = x * np.cos(angle) + np.concatenate([-b, a], axis=-1) * np.sin(angle)
    return y


def _norm_inside(x: Array, positions: Array) -> Array:
    size = np.sqrt((x**2).mean(axis=-1, keepdims=True) * WIDTH)
    return rotation(expected())(x / np.maximum(size, 1e-6), positions)


def _xpos(x: Array, positions: Array) -> Array:
    y = rotation(expected())(x, positions)
    scale = 0.5 ** (np.minimum(positions, 4096) / 512)
    return y * (scale[..., np.newaxis] if x.ndim == 2 else scale[:, np.newaxis, :, np.newaxis])


def _state() -> Turn:
    count = [0]
    right = rotation(expected())

    def turn(x: Array, positions: Array) -> Array:
        count[0] += 1
        return right(x, positions + 3 * (count[0] - 1))

    return turn


YARN_KIND, LLAMA3_KIND = expected(YARN), expected(LLAMA3)
PART = expected(rotary_dim=32)
OMEGA = np.array(expected().frequencies)
MROPE = expected(pair_axes=tuple([0] * 8 + [1] * 12 + [2] * 12))
INDEX = np.arange(WIDTH // 2)


def faults() -> list[Planted]:
    """New functions each time, because some of them remember what they were called with."""
    plain, yarn = expected(), YARN_KIND
    apart = {"layout": "interleaved", "layout_out": "interleaved"}
    whole = tuple((BASE ** (-2 * np.arange(16) / WIDTH)).tolist())
    both_ends = tuple((BASE ** (-INDEX / (len(INDEX) - 1))).tolist())
    half_split = np.r_[np.ones(16), -np.ones(16)]
    found = [
        simple("the other layout", "layout", plain, **apart),
        simple("the other layout, a part of a head", "layout", PART, **apart),
        simple(
            "split where interleaved is meant",
            "layout",
            expected(layout="interleaved"),
            layout="split",
            layout_out="split",
        ),
        simple(
            "read interleaved, written split",
            "layout_out",
            expected(layout="interleaved"),
            layout_out="split",
        ),
        simple("backward", "direction", plain, direction=-1),
        Planted(
            "half of the pairs backward",
            "direction",
            rotation(expected(frequencies=tuple((OMEGA * half_split).tolist()))),
            plain,
        ),
        simple(
            "base of another model",
            "base",
            plain,
            frequencies=expected({"rope_theta": 10_000.0}).frequencies,
        ),
        simple(
            "base 500,020 instead of 500,000",
            "base",
            expected({"rope_theta": 500_000.0}),
            frequencies=expected({"rope_theta": 500_020.0}).frequencies,
        ),
        simple("YaRN's scaling ignored", "scaling", yarn, frequencies=plain.frequencies),
        simple(
            "Llama 3's scaling ignored",
            "scaling",
            LLAMA3_KIND,
            frequencies=expected({"rope_theta": 500_000.0}).frequencies,
        ),
        simple(
            "linear scaling applied twice",
            "frequencies",
            expected({"rope_theta": BASE, "rope_type": "linear", "factor": 4.0}),
            frequencies=tuple((OMEGA / 16).tolist()),
        ),
        simple(
            "YaRN with beta_fast 16",
            "frequencies",
            yarn,
            frequencies=expected(YARN | {"beta_fast": 16.0}).frequencies,
        ),
        simple("exponents of the whole head in a part", "spacing", PART, frequencies=whole),
        simple("exponents with both ends (tensor2tensor)", "spacing", plain, frequencies=both_ends),
        simple(
            "frequencies in bfloat16",
            "half_frequencies",
            plain,
            frequencies=tuple(bfloat16(OMEGA).astype(float).tolist()),
        ),
        simple(
            "frequencies in float16",
            "half_frequencies",
            plain,
            frequencies=tuple(OMEGA.astype(np.float16).astype(float).tolist()),
        ),
        simple("factor forgotten", "factor", yarn, attention_factor=1.0),
        simple("factor twice", "factor", yarn, attention_factor=yarn.attention_factor**2),
        simple(
            "whole head instead of a part",
            "part",
            PART,
            rotary_dim=WIDTH,
            frequencies=plain.frequencies,
        ),
        simple(
            "a part instead of the whole head",
            "part",
            plain,
            rotary_dim=32,
            frequencies=PART.frequencies,
        ),
        Planted("the last entries instead of the first", "part", rotation(PART, start=32), PART),
        Planted("nothing turns", "unturned", lambda x, p: x.copy(), plain),
        Planted("positions are ignored", "positions_ignored", _ignores_positions, plain),
        Planted("positions begin at 1", "offset", _with_positions(lambda p: p + 1), plain),
        Planted(
            "a cache's length is added twice", "offset", _with_positions(lambda p: p + 37), plain
        ),
        Planted(
            "each call begins again at 0", "restarts", _with_positions(lambda p: p - p.min()), plain
        ),
        Planted(
            "each call counts from its first row",
            "restarts",
            _with_positions(lambda p: p - p[..., :1]),
            plain,
        ),
        Planted(
            "positions in bfloat16",
            "bfloat16_positions",
            _with_positions(lambda p: bfloat16(p).astype(np.float64)),
            plain,
        ),
        Planted(
            "positions in float16",
            "float16_positions",
            _with_positions(
                lambda p: (
                    p.astype(np.float32).clip(max=65_504).astype(np.float16).astype(np.float64)
                )
            ),
            plain,
        ),
        Planted(
            "angles in bfloat16",
            "half_angles",
            rotation(plain, angles=lambda p, w: bfloat16(np.multiply.outer(p, w))),
            plain,
        ),
        Planted("a table of 4,096 rows, clamped", "far", ending(4096, "clamp"), plain),
        Planted("a table of 4,096 rows, wrapped", "far", ending(4096, "wrap"), plain),
        Planted("NaN beyond a table of 4,096 rows", "not_finite", ending(4096, "nan"), plain),
        Planted("a stale table", "stale_table", _stale(), plain),
        Planted("state between calls", "second_call", _state(), plain),
        Planted("frequencies follow the longest position", "follows_length", _growing, plain),
        Planted("writes into its input", "writes_input", _in_place, plain),
        Planted("the first row's positions for all", "rows_share_positions", _first_row, plain),
        Planted("cosines beside the axis of heads", "wrong_axis", _wrong_axis, plain),
        Planted("batch beside heads", "wrong_axis", _batch_beside_heads, plain),
        Planted("one token is taken for the first", "cached_step", _step_from_zero, plain),
        Planted("one sine with the wrong sign", "not_a_rotation", _one_sine_wrong, plain),
        Planted("halves with interleaved cosines", "not_a_rotation", _mixed, plain),
        Planted("a norm inside", "not_linear", _norm_inside, plain),
        Planted("a decay with the position (xPos)", "length", _xpos, plain),
    ]
    return found


@dataclass(frozen=True)
class Right:
    """A function without a fault, and what is expected."""

    name: str
    turn: Turn
    kind: LayerRotation


def right_ones() -> list[Right]:
    """Layouts, parts, scalings and roundings as people ship them."""
    half = lambda values: np.asarray(values).astype(np.float16).astype(np.float32)  # noqa: E731
    found = []
    for layout in ("split", "interleaved"):
        scalings: dict[str, dict[str, Any]] = {
            "plain": PLAIN,
            "base 10,000": {"rope_theta": 10_000.0},
            "base 100,000,000": {"rope_theta": 1e8},
            "linear": {"rope_theta": 10_000.0, "rope_type": "linear", "factor": 8.0},
            "ntk": {"rope_theta": 10_000.0, "rope_type": "ntk", "factor": 4.0},
            "yarn": YARN,
            "llama3": LLAMA3,
        }
        for name, fields in scalings.items():
            for width, part in ((64, 64), (128, 128), (128, 32)):
                kind = expected(fields, layout, width, rotary_dim=part)
                label = f"{layout}, {name}, {part} of {width}"
                found.append(Right(label, rotation(kind), kind))
                found.append(
                    Right(f"{label}, float32 angles", rotation(kind, angles=float32_angles), kind)
                )
                found.append(
                    Right(f"{label}, bfloat16 outputs", rotation(kind, rounded=bfloat16), kind)
                )
                found.append(Right(f"{label}, float16 outputs", rotation(kind, rounded=half), kind))
    apart = expected(layout="interleaved", layout_out="split")
    found.append(Right("read interleaved, written split", rotation(apart), apart))
    back = expected(direction=-1)
    found.append(Right("backward, as nanochat", rotation(back), back))
    last = expected(rotary_dim=32, rotary_start=32)
    found.append(Right("the last entries", rotation(last, start=32), last))
    still = expected(
        {"rope_theta": BASE, "rope_type": "proportional", "partial_rotary_factor": 0.25}
    )
    found.append(Right("proportional", rotation(still), still))
    slow = expected(LLAMA3 | {"rope_theta": 12_000_000.0})
    found.append(Right("very slow pairs (Apertus)", rotation(slow), slow))
    return found


def examined(each: Planted | Right) -> doctor.Report:
    """The report, if the model's own code reads the keys as well: nothing is a note then."""
    return doctor.examine(each.turn, each.kind.head_dim, expect=each.kind, same_cache=True)


def table() -> dict[str, Any]:
    """What was planted and what was caught, as data for a page."""
    rows = []
    for each in faults():
        rows.append({"fault": each.name, "code": each.code, "found": list(examined(each).codes)})
    alarms = [each.name for each in right_ones() if examined(each).faults]
    return {"planted": rows, "right": len(right_ones()), "false_alarms": alarms}


FILE = Path(__file__).parents[2] / "book" / "data" / "doctor_faults.json"

if __name__ == "__main__":
    result = table()
    FILE.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in result["planted"]:
        mark = "caught" if row["code"] in row["found"] else "MISSED"
        print(f"{mark}  {row['fault']:<45} {row['code']:<22} {', '.join(row['found'])}")
    caught = sum(row["code"] in row["found"] for row in result["planted"])
    print(f"{caught} of {len(result['planted'])} caught")
    print(f"{len(result['false_alarms'])} false alarms in {result['right']} right functions:")
    print("\n".join(result["false_alarms"]))
