"""Calling anybody's function: one face for its forms, and arrays of its own for each call."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pe_lib import _checks as check
from pe_lib.doctor.report import ADAPTERS, Array, Floats

Turn = Callable[[Array, Array], ArrayLike]


Axes = Literal["seq", "batch heads seq", "batch seq heads"]


AXES: tuple[Axes, ...] = ("seq", "batch heads seq", "batch seq heads")


REACHES = (2**20, 2**17, 2**15, 2**13, 2**12, 2**11, 2**10, 2**9, 2**8, 2**6, 2**4)


class Refused(Exception):
    """The function raised, or answered with another shape. The message says which."""


class Caller:
    """``turn`` behind one face: rows (n, width) and positions (axes, n) in, rows in float64 out.

    Each call gets arrays of its own. Whether the function wrote into them is remembered."""

    def __init__(self, turn: Turn, width: int, axes: Axes | None, position_axes: int) -> None:
        if axes is not None:
            check.choice("axes", axes, AXES)
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
            raise Refused(f"{type(error).__name__}: {error}") from error
        self.written |= {"x"} if not np.array_equal(own_x, given) else set()
        self.written |= {"positions"} if not np.array_equal(own_positions, where) else set()
        if y.shape != x.shape:
            raise Refused(f"an output of shape {y.shape} for an input of shape {x.shape}")
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
                except Refused as error:
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
