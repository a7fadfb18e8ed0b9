"""What the experiment on texts that move has stored. Needs no PyTorch."""

from typing import NamedTuple

from experiments.stored import Run, rows_beside


class Share(NamedTuple):
    """How much of the rows of half a table is predicted, by what."""

    itself: float  # of the next row, if it is taken to be the row before it
    next_row: float  # by one matrix, of the next row, left out
    four_ahead: float  # by one matrix, of the row four ahead, left out


class Moment(NamedTuple):
    """Both halves of a table after a step of training."""

    step: int
    first: Share
    second: Share


def load_results() -> list[Run]:
    """All runs that are stored, in the order in which they ended."""
    return rows_beside(__file__)


def of_kind(
    runs: list[Run], kind: str, *, most: int = 16, encoding: str = "add-learned"
) -> list[Run]:
    """The runs of one kind, by seed."""
    wanted = kind, most, encoding
    found = [run for run in runs if (run["kind"], run["most"], run["encoding"]) == wanted]
    return sorted(found, key=lambda run: run["seed"])


def moments(run: Run) -> list[Moment]:
    """What was measured of a table along its training, from the start on."""
    return [Moment(step, Share(*first), Share(*second)) for step, first, second in run["halves"]]
