"""What the experiment on the clock has stored, for the pages of the book. Needs no PyTorch."""

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.clock.hands import (
    CRITERIA,
    DIRECTIONS,
    Plane,
    explained,
    explained_ahead,
    meets,
    planes,
    planes_of_table,
    step_matrix,
)
from experiments.clock.tables import STORED, unpacked
from experiments.order import results as order
from experiments.positions.results import left_plateau, where
from experiments.stored import Run, rows_beside

CONTROLS_FILE = Path(__file__).parent / "controls.json"
KIND = ("task", "text", "seq_len", "steps")
SEEDS = 5  # of a kind, before anything is said of it beside the others
MARGIN = 0.1  # nats below the plateau, from where on a model counts as having left it

Array = NDArray[np.floating]


def load_results() -> list[Run]:
    """The runs of kinds that have all their seeds, and those without positions, as they ended."""
    runs = rows_beside(__file__)
    seeds = Counter(map(kind_of, trained(runs)))
    return [run for run in runs if run["encoding"] == "none" or seeds[kind_of(run)] >= SEEDS]


def load_begun() -> list[Run]:
    """The runs of kinds of which more seeds are still to be made."""
    runs = trained(rows_beside(__file__))
    seeds = Counter(map(kind_of, runs))
    return [run for run in runs if seeds[kind_of(run)] < SEEDS]


def kind_of(run: Run) -> tuple[Any, ...]:
    """What runs that differ in the seed alone have in common."""
    return tuple(run[name] for name in KIND)


def trained(runs: list[Run], **wanted: object) -> list[Run]:
    """The runs that trained a table, with these settings, by seed."""
    return sorted(where(runs, encoding="add-learned", **wanted), key=lambda run: run["seed"])


def controls(name: str = "hand") -> dict[str, dict[str, float | None]]:
    """The fastest plane of each kind of control table that meets a criterion, by table length."""
    stored = json.loads(CONTROLS_FILE.read_text(encoding="utf-8"))["periods"]
    return {
        length: {kind: found[name] for kind, found in kinds.items()}
        for length, kinds in stored.items()
    }


@functools.cache
def fastest_control(length: int, name: str = "hand") -> float:
    """The period below which a plane of a table of this length counts as a "hand" or "wave"."""
    periods = controls(name)
    if str(length) not in periods:
        raise ValueError(f"length must be one of {', '.join(periods)}, got {length}")
    return float(min(period for period in periods[str(length)].values() if period is not None))


def counting(planes: list[Plane], length: int, name: str = "hand") -> list[Plane]:
    """Those of the planes of a table of this length that count as hands, or as waves."""
    bound = fastest_control(length, name)
    return [plane for plane in planes if meets(plane, CRITERIA[name], bound)]


def hands_of(rows: Array, name: str = "hand") -> list[Plane]:
    """The hands, or waves, of a whole table, the fastest first."""
    return counting(planes_of_table(rows), len(rows), name)


class Moment(NamedTuple):
    """A table of positions after a step of training."""

    step: int
    components: Array  # centred rows in their ten strongest directions: (length, 10)
    energy: float  # the sum of the squares of the whole centred table
    matrix: float  # share of the next rows that one matrix explains, in six directions
    identity: float  # the same if the next row is taken to be the row itself
    ahead: float  # share of the second half that the matrix of the first half explains
    planes: list[Plane]  # that turn at least twice within the table
    hands: list[Plane]  # those that count
    waves: list[Plane]  # those that count by the weaker criterion

    @property
    def periods(self) -> list[float]:
        """Positions a turn of each hand, the fastest first."""
        return [hand.period for hand in self.hands]


def moments(run: Run) -> list[Moment]:
    """The table of a run along its training, as stored."""
    length = run["seq_len"]
    found = []
    for table in run["tables"]:
        components = table["unit"] * unpacked(table["components"], STORED)
        strongest = components[:, :DIRECTIONS]
        turning = planes(strongest, table["energy"])
        found.append(
            Moment(
                table["step"],
                components,
                table["energy"],
                explained(strongest, step_matrix(strongest)),
                explained(strongest, np.eye(DIRECTIONS)),
                explained_ahead(strongest),
                turning,
                counting(turning, length),
                counting(turning, length, "wave"),
            )
        )
    return found


def final_table(run: Run) -> Array:
    """The whole table at the end: (length, width)."""
    stored = run["table"]
    flat = unpacked(stored["rows"], 1)
    return np.asarray(stored["unit"] * flat.reshape(run["seq_len"], -1))


def turned_to(components: Array, target: Array) -> Array:
    """Rows turned and mirrored so that they lie as near to ``target`` as they can.

    Strongest directions come in no fixed order or sign, so tables of different steps are turned
    before they are drawn: the orthogonal Procrustes problem (Schönemann, 1966).
    """
    left, _, right = np.linalg.svd(components.T @ target)
    return np.asarray(components @ left @ right)


def plateau(runs: list[Run], like: Run) -> float | None:
    """The lowest point on the curves of a run without positions of the same task, text and window.

    The runs of the experiment on order are looked at too, and of all of them those of 3,000 steps.
    None where no such run is stored.
    """
    same = {name: like[name] for name in ("task", "text", "seq_len")} | {"steps": 3000}
    without = where([*runs, *order.load_results()], encoding="none", **same)
    points = [loss for run in without for _, loss, _ in run["curve"]]
    return min(points, default=None)


def exit_step(runs: list[Run], run: Run) -> int | None:
    """The first step on the curve of a run that lies `MARGIN` below the plateau, if known."""
    level = plateau(runs, run)
    return None if level is None else left_plateau(run, level - MARGIN)


class Line(NamedTuple):
    """A kind of run in the table of the page: its settings, and each seed's hands at the end."""

    task: str
    text: str
    seq_len: int
    steps: int
    periods: dict[int, list[float]]  # of the hands at the end, by seed
    waves: dict[int, list[float]]  # of the planes that meet the weaker criterion
    matrix: list[float]
    identity: list[float]
    losses: list[float]

    @property
    def with_hand(self) -> int:
        """How many seeds end with at least one hand."""
        return sum(bool(found) for found in self.periods.values())

    @property
    def with_wave(self) -> int:
        """How many seeds end with at least one wave."""
        return sum(bool(found) for found in self.waves.values())


def table(runs: list[Run]) -> list[Line]:
    """One line for each kind of run that is stored."""
    lines = []
    for kind in dict.fromkeys(map(kind_of, trained(runs))):
        settings = dict(zip(KIND, kind, strict=True))
        of = trained(runs, **settings)
        ends = {run["seed"]: moments(run)[-1] for run in of}
        lines.append(
            Line(
                **settings,
                periods={seed: end.periods for seed, end in ends.items()},
                waves={s: [plane.period for plane in end.waves] for s, end in ends.items()},
                matrix=[end.matrix for end in ends.values()],
                identity=[end.identity for end in ends.values()],
                losses=[run["loss"] for run in of],
            )
        )
    return sorted(lines)
