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
from typing import Any

from pe_lib import _checks as check
from pe_lib.doctor.calls import Axes, Caller, Turn
from pe_lib.doctor.comparison import compare, kinds_of_layer
from pe_lib.doctor.examination import examine_blind
from pe_lib.doctor.report import ADAPTERS, Code, Fault, Report
from pe_lib.doctor.words import lines

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
        ``RotarySettings`` or ``LayerRotation`` that ``rotary_settings`` reads from it; or a
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
    kinds = kinds_of_layer(expect, width)
    caller = Caller(turn, width, axes, check.integer("position_axes", position_axes, at_least=1))
    report = examine_blind(caller)
    if kinds:
        judged = [compare(report, kind) for kind in kinds]
        report = min(judged, key=lambda each: len(each.faults))
    return replace(report, lines=lines(report))


def assert_turns_as(
    turn: Turn, head_dim: int, expect: Any, *, axes: Axes | None = None, position_axes: int = 1
) -> None:
    """For pytest: raise an `AssertionError` with the report if ``turn`` differs from ``expect``.

    Parameters
    ----------
    turn, head_dim, expect, axes, position_axes
        As in `examine`.

    Raises
    ------
    AssertionError
        If the report names a fault. The message is the whole report.
    ValueError
        As in `examine`.
    """
    report = examine(turn, head_dim, expect=expect, axes=axes, position_axes=position_axes)
    if report.faults:
        raise AssertionError(f"the rotation differs from what is expected\n{report}")
