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

from dataclasses import replace
from typing import Any, SupportsIndex

from pe_lib import _checks as check
from pe_lib.doctor.calls import Axes, Caller, Turn
from pe_lib.doctor.comparison import (
    compare,
    distance,
    expectation,
    kinds_of_layer,
    longest_of,
    of_lengths,
    refuse_several,
)
from pe_lib.doctor.examination import examine_blind
from pe_lib.doctor.report import ADAPTERS, Code, Fault, Report, not_tested
from pe_lib.doctor.words import lines, others_of
from pe_lib.rope import RotarySettings

__all__ = [
    "ADAPTERS",
    "Axes",
    "Code",
    "Fault",
    "Report",
    "Turn",
    "assert_turns_as",
    "examine",
]


def examine(
    turn: Turn,
    head_dim: int | None = None,
    *,
    expect: Any = None,
    layer: SupportsIndex | None = None,
    axes: Axes | None = None,
    position_axes: int = 1,
    longest: SupportsIndex | None = None,
    same_cache: bool = False,
) -> Report:
    """Say what a rotary function does and, against ``expect``, what is wrong with it.

    Parameters
    ----------
    turn
        ``turn(x, positions) -> y``. ``x`` is a float32 array; ``positions`` are int64, one for each
        row of ``x``; ``y`` is array-like, of the shape of ``x``. What it is called with is said by
        ``axes``. Adapters for other libraries' functions are a line or two each; see the notes.
    head_dim
        The width of one head, or of the part of it that ``turn`` is given. It may be left out
        beside an ``expect`` whose layers have one width.
    expect
        What the model expects: a ``config.json`` as a path, a JSON text or a dictionary; the
        ``RotarySettings`` or ``LayerRotation`` that ``rotary_settings`` reads from it; or a
        ``RotaryPositionalEncoding``. Without it the report says what the function does, and holds
        as faults only what no model wants.
    layer
        The number of the layer to which the function is held, where layers of a model turn in
        different ways. Without it the nearest kind of layer is taken. The first line of the report
        says which layers these are, and that it was not held to the others.
    axes
        The shape of ``x`` before its last axis, and with it that of the positions: "seq" for
        (seq, head_dim) with positions (seq,); "batch heads seq" and "batch seq heads" for four
        axes with positions (batch, seq). None tries them in this order.
    position_axes
        The number of axes of a position, as in M-RoPE. If it is not 1, positions have one axis
        more, the first, of this size.
    longest
        How many positions the longest text has. That a table ends behind them is a note; that it
        ends before is a fault, unless the function raises an error there. None takes
        ``max_position_embeddings``, if ``expect`` is a configuration that has it, and else knows no
        end. Of a file with LongRoPE it also says which of the two lists is meant. None takes the
        nearer one, and *not tested* has the other. Positions are examined up to 2²⁰ = 1,048,576 in
        any case, as far as the function goes.
    same_cache
        Whether the model's own code reads the keys that the function writes. If so, another order
        of the outputs is a fault. Scores do not depend on it, and it is a note otherwise.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If ``turn`` raises on every form of input, or answers with another shape each time; the
        message has the first error. Or if an argument is none of what is allowed, ``expect`` cannot
        be read, or it has no such layer.

    Notes
    -----
    A function that takes tensors needs an adapter of a few lines. ``ADAPTERS`` has them, by name:
    ``print(doctor.ADAPTERS["torch"])``, and "transformers", "jax", "mlx", "flash-attn", "ctypes".
    """
    axes_of_positions = check.integer("position_axes", position_axes, at_least=1)
    width = None if head_dim is None else check.even("head_dim", head_dim)
    length = None if longest is None else check.integer("longest", longest, at_least=1)
    check.true_or_false("same_cache", same_cache)
    if expect is None:
        if layer is not None:
            raise ValueError(f"layer must be left out without expect, got {check.brief(layer)}")
        if width is None:
            raise TypeError("head_dim must be given without expect: the width of one head")
        report = examine_blind(Caller(turn, width, axes, axes_of_positions), length)
        return replace(report, lines=lines(report))
    expected = expectation(expect)
    width = kinds_of_layer(expected, layer, width)[0].head_dim
    caller = Caller(turn, width, axes, axes_of_positions)
    report = examine_blind(caller, longest_of(expect, expected) if length is None else length)
    readings = of_lengths(expect, expected, length)
    judged = [
        (compare(report, kind, same_cache=same_cache), reading)
        for reading in readings
        for kind in kinds_of_layer(reading, layer, width)
    ]
    report, reading = min(judged, key=lambda each: distance(each[0]))
    if len(readings) > 1 and not report.follows_length:
        which = "long" if reading is readings[0] else "short"
        report = not_tested(report, f"{which} texts, for which longrope has another list")
    if isinstance(reading, RotarySettings):
        report = replace(report, settings=reading)
        others = others_of(report)
        report = not_tested(report, others) if others else report
    return replace(report, lines=lines(report))


def assert_turns_as(
    turn: Turn,
    head_dim: int | None = None,
    expect: Any = None,
    *,
    layer: SupportsIndex | None = None,
    axes: Axes | None = None,
    position_axes: int = 1,
    longest: SupportsIndex | None = None,
    same_cache: bool = False,
) -> None:
    """For pytest: raise an `AssertionError` with the report if ``turn`` differs from ``expect``.

    Parameters
    ----------
    turn, head_dim, expect, layer, axes, position_axes, longest, same_cache
        As in `examine`. ``layer`` must be given where layers of the model turn in different ways:
        a function that is right for some of them is not right for the model.

    Raises
    ------
    AssertionError
        If the report names a fault. The message is the whole report.
    ValueError
        As in `examine`, and if ``layer`` is needed. The message says which layers turn alike.
    """
    expected = None if expect is None else expectation(expect)
    if layer is None and isinstance(expected, RotarySettings):
        refuse_several(expected)
    report = examine(
        turn,
        head_dim,
        expect=expect,
        layer=layer,
        axes=axes,
        position_axes=position_axes,
        longest=longest,
        same_cache=same_cache,
    )
    if report.faults:
        raise AssertionError(f"the rotation differs from what is expected\n{report}")
