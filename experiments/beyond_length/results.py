"""What `run.py` has stored, for the pages of the book. Needs neither PyTorch nor the texts.

Losses are in nats a token. A position is counted from the first token of the text that was read.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results.jsonl"
LENGTH = 8192  # tokens, the trained length
BIN = 128  # tokens whose losses are stored as one mean
AHEAD = tuple(range(-2, 9))  # the tokens that a run of "answers" counts
# The names of the methods, in the order in which pages show them.
METHODS = {
    "none": "no scaling",
    "linear": "linear",
    "ntk": "NTK-aware",
    "dynamic": "dynamic NTK",
    "yarn": "YaRN",
    "yarn without factor": "YaRN without its factor",
}
CONTROLS = {"ntk with factor": "NTK-aware, YaRN's factor"}
TEXTS = {
    "persuasion": "Persuasion, a novel",
    "handbook": "The Debian Administrator's Handbook, a manual",
    "hamlet": "Hamlet, a play",
    "faq": "An Anarchist FAQ, essays",
    "moby-dick": "Moby-Dick, a novel",
}

Run = dict[str, Any]  # the fields of `run.Run` beside what was measured


class Spread(NamedTuple):
    """Median and range over texts, and how many texts."""

    median: float
    lowest: float
    highest: float
    texts: int

    def __str__(self) -> str:
        return f"{self.median:+.2f} ({self.lowest:+.2f} to {self.highest:+.2f})"


def load(file: Path = RESULTS) -> list[Run]:
    """All runs that are stored."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def where(runs: list[Run], **wanted: Any) -> list[Run]:
    """The runs with these settings, such as ``what="text", method="yarn"``."""
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def spread(values: list[float]) -> Spread:
    """Median and range. One value for each text."""
    if not values:
        raise ValueError("values must hold at least one number, got none")
    return Spread(median(values), min(values), max(values), len(values))


def reading(runs: list[Run], text: str, method: str, scale: int) -> Run | None:
    """The run in which a method read `scale` times the trained length, if it is stored.

    Without scaling the same positions have the same loss in a longer run, so a run of four times
    the length answers for twice the length as well.
    """
    found = where(runs, what="text", text=text, method=method, scale=scale, start=0)
    if not found and method == "none":
        longer = where(runs, what="text", text=text, method=method, start=0)
        found = [run for run in longer if run["scale"] >= scale]
    return found[0] if found else None


def cut(runs: list[Run], text: str, scale: int) -> Run | None:
    """The run without scaling that read only the last 8,192 tokens of that length."""
    start = (scale - 1) * LENGTH
    found = where(runs, what="text", text=text, method="none", start=start)
    return found[0] if found else None


def mean_loss(run: Run, low: int, high: int) -> float:
    """Mean loss of the tokens at positions from `low` to below `high`, multiples of 128."""
    first, last = (low - run["start"]) // BIN, (high - run["start"]) // BIN
    if not 0 <= first < last <= len(run["loss"]):
        raise ValueError(f"low and high must lie in the tokens that were read, got {low}, {high}")
    return float(np.mean(run["loss"][first:last]))


def curve(run: Run, width: int = 512) -> tuple[NDArray, NDArray]:
    """The middles of groups of `width` positions, and the mean loss of each group."""
    loss = np.array(run["loss"]).reshape(-1, width // BIN).mean(axis=1)
    return run["start"] + width * (np.arange(len(loss)) + 0.5), loss


def texts_read(runs: list[Run], scale: int, methods: tuple[str, ...] = ("none",)) -> list[str]:
    """The texts that all these methods have read at `scale` times the trained length."""
    return [t for t in TEXTS if all(reading(runs, t, method, scale) for method in methods)]


def changes(runs: list[Run], method: str, scale: int, part: str) -> dict[str, float]:
    """For each text, by how much a method changes the loss of the same tokens.

    part: "short", texts of 1,024 tokens, against no scaling; "within", the positions up to the
    trained length, against no scaling; "beyond", the last 4,096 positions, against no scaling;
    "against cutting", the same positions, against no scaling on the text cut to its last 8,192
    tokens, so that each of them sees at least 4,096 tokens.
    """
    last = (scale * LENGTH - LENGTH // 2, scale * LENGTH)
    if part == "against cutting":
        return against_cutting(runs, method, scale, *last)
    found = {}
    for text in TEXTS:
        if part == "short":
            of, base = (
                where(runs, what="short", text=text, method=name, scale=at)
                for name, at in ((method, scale), ("none", 1))
            )
            if of and base:
                found[text] = float(np.mean(of[0]["loss"]) - np.mean(base[0]["loss"]))
            continue
        run = reading(runs, text, method, scale)
        other = reading(runs, text, "none", scale)
        if run and other:
            low, high = {"within": (0, LENGTH)}.get(part, last)
            found[text] = mean_loss(run, low, high) - mean_loss(other, low, high)
    return found


def against_cutting(
    runs: list[Run], method: str, scale: int, low: int, high: int
) -> dict[str, float]:
    """For each text, how far a method's loss is above that of the text cut to its end.

    Mean over positions from ``low`` to below ``high``, counted from the first token of the whole
    text. The cut text is read without scaling.
    """
    return {
        text: mean_loss(run, low, high) - mean_loss(other, low, high)
        for text in TEXTS
        if (run := reading(runs, text, method, scale)) and (other := cut(runs, text, scale))
    }


def table(runs: list[Run], scale: int) -> dict[str, dict[str, Spread | None]]:
    """Of each method the changes of the loss, as median and range over texts. None: not run."""
    parts = ("short", "within", "beyond", "against cutting")
    return {
        method: {
            part: spread(list(found.values())) if found else None
            for part in parts
            for found in [changes(runs, method, scale, part)]
        }
        for method in METHODS
    }


def copies(
    runs: list[Run],
    method: str,
    scale: int = 2,
    measure: str = "loss",
    beyond: bool | None = None,
    what: str = "copy",
) -> dict[int, list[float]]:
    """Loss, or share of right tokens, in the second copy, by distance: a mean for each text.

    The texts stand in the order of `TEXTS`, in which the runs of two methods can be compared.

    measure: "loss", "right", or "loss_first", the loss in the first copy. beyond: True, only the
    second copies that stand beyond the trained length; False, only those within it. what: "copy",
    or "copy within" for a text of the trained length.
    """
    found: dict[int, list[float]] = {}
    of = where(runs, what=what, method=method, scale=scale)
    for run in sorted(of, key=lambda run: list(TEXTS).index(run["text"])):
        chosen = [
            copy
            for copy in run["copies"]
            if beyond is None or (copy["first"] + copy["distance"] >= LENGTH) == beyond
        ]
        for distance in sorted({copy["distance"] for copy in chosen}):
            values = [copy[measure] for copy in chosen if copy["distance"] == distance]
            found.setdefault(distance, []).append(float(np.mean(values)))
    return dict(sorted(found.items()))


def mean_curve(
    runs: list[Run], method: str, scale: int, texts: list[str], width: int = 512
) -> tuple[NDArray, NDArray]:
    """`curve` of a method, as the mean over these texts."""
    read = [reading(runs, text, method, scale) for text in texts]
    found = [curve(run, width) for run in read if run]
    if len(found) < len(texts) or not texts:
        raise ValueError(f"texts must all have been read with {method!r}, got {texts}")
    return found[0][0], np.mean([loss for _, loss in found], axis=0)


def paired_error(run: Run, other: Run, low: int, high: int) -> float:
    """Standard error of the mean difference of two runs, from the means of 128 tokens.

    Both runs read the same tokens, so the difficulty of the text cancels. Neighbouring bins are
    taken for independent.
    """
    differences = [
        mean_loss(run, at, at + BIN) - mean_loss(other, at, at + BIN)
        for at in range(low, high, BIN)
    ]
    return float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


def answers(runs: list[Run], method: str, scale: int, ahead: int) -> dict[str, float]:
    """For each text, the share of answers that name the token `ahead` of the one that is read.

    A random sequence of tokens stands in the text for the second time, 256 tokens after the first.
    1 is the token that comes next; 2 is the one after it.
    """
    found = where(runs, what="answers", method=method, scale=scale)
    return {run["text"]: run["answers"][AHEAD.index(ahead)] for run in found}
