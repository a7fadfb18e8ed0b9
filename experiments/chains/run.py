"""One run of the experiment "Texts that move": the same passages, kept, shifted or exchanged.

Published tables of positions suggest that a table becomes a clock where the same place does not
play the same part in every text. Here that alone differs. A fixed set of passages of verse is read
again and again, with some words replaced and some hidden, and a passage stands always at the same
places, or moves.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments import words
from experiments.clock.prediction import predicted_ahead, unmoved
from experiments.clock.run import table_of
from experiments.clock.tables import packed
from experiments.common import (
    TEST_STREAM,
    TRAINING_STREAM,
    Results,
    Size,
    Stopwatch,
    made,
    parameters,
    train,
)
from experiments.encodings import matched_model
from experiments.stored import Run
from experiments.words import BATCH, MASK, UNKNOWN, Batch

RESULTS = Results(Path(__file__).parent / "results.jsonl")
PASSAGES = 500
MOST = 16  # words by which a passage, or a part of it, is moved at most, where it is not said
ORDER_STREAM = 3_000_000  # seeds of the orders of *mixed* begin here, apart from those of windows
REPLACED = 0.15  # of the words, by others of the text, so that no single word names its passage
HIDDEN = 9  # words of a window, which are asked for: a seventh, or more where a passage ends early
STOPS = (0, 250, 500, 750, 1000, 1500, 2000, 2500, 3000)  # steps after which the table is measured

# What happens to a passage, in each window anew.
KINDS = {
    "kept": "stands always at the same places",
    "moved": "begins up to 16 words later in the passage",
    "loop": "its second half does: so many words are left out in the middle",
    "ends": "keeps its places and ends up to 16 words earlier",
    "mixed": "has its words in one of several orders, each drawn at random once",
}


@dataclass(frozen=True)
class Setting:
    """All that one run depends on, besides the code, the text and the versions."""

    kind: str = "kept"
    text: str = "verse"
    seq_len: int = 64
    most: int = MOST
    seed: int = 0
    steps: int = 3000
    encoding: str = "add-learned"
    rate: float = 2e-3
    warm_up: int = 100
    optimiser: str = "AdamW"
    embedding_rate: float = 1.0

    @property
    def name(self) -> str:
        moved = f"{self.kind} by {self.most}"
        return f"{self.encoding} {moved} {self.text} steps {self.steps} seed {self.seed}"

    @property
    def size(self) -> Size:
        return Size(seq_len=self.seq_len)


def places_read(setting: Setting, draw: torch.Generator) -> Tensor:
    """Which word of its passage stands at each place of 32 windows: (windows, length).

    −1 where a passage has ended.
    """
    length = setting.seq_len
    place = torch.arange(length).expand(BATCH, length)
    by = torch.randint(setting.most + 1, (BATCH, 1), generator=draw)
    return {
        "kept": place,
        "moved": place + by,
        "loop": torch.where(place < length // 2, place, place + by),
        "ends": torch.where(place < length - by, place, -1),
        "mixed": orders(setting)[by[:, 0]],
    }[setting.kind]


def orders(setting: Setting) -> Tensor:
    """The orders of a passage in the kind *mixed*: (most + 1, length). Each seed has its own."""
    draw = torch.Generator().manual_seed(ORDER_STREAM + setting.seed)
    drawn = (torch.randperm(setting.seq_len, generator=draw) for _ in range(setting.most + 1))
    return torch.stack(list(drawn))


def exchange(run: Run) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """At which place each word of a passage stands in the first two orders of a *mixed* run."""
    setting = Setting(**{field.name: run[field.name] for field in fields(Setting)})
    first, second = orders(setting)[:2].argsort(dim=1).numpy()
    return first, second


def passages(text: Tensor, length: int) -> Tensor:
    """Passages from all over a text, evenly spaced: (passages, length)."""
    apart = (len(text) - length) // PASSAGES
    if apart < 1:
        raise ValueError(f"text must have {PASSAGES + length} words or more, got {len(text)}")
    starts = torch.arange(PASSAGES) * apart
    return text[starts[:, None] + torch.arange(length)]


def batches(setting: Setting, stream: int, steps: int) -> Iterator[Batch]:
    """Windows of passages, some of whose words are replaced, and others hidden and asked for."""
    text, length = torch.from_numpy(words.text(setting.text).training), setting.seq_len
    known = passages(text, length + setting.most)
    draw = torch.Generator().manual_seed(stream + setting.seed)
    for _ in range(steps):
        which = torch.randint(PASSAGES, (BATCH, 1), generator=draw)
        read = places_read(setting, draw)
        windows = torch.where(read < 0, UNKNOWN, known[which, read])
        others = text[torch.randint(len(text), windows.shape, generator=draw)]
        replaced = (torch.rand(windows.shape, generator=draw) < REPLACED) & (read >= 0)
        order = torch.rand(windows.shape, generator=draw).masked_fill(read < 0, -1)
        places = order.topk(HIDDEN).indices + length * torch.arange(BATCH)[:, None]
        asked, answers = places.flatten(), windows.flatten()[places.flatten()]
        shown = torch.where(replaced, others, windows).flatten().index_fill(0, asked, MASK)
        yield Batch(shown.view_as(windows), asked, answers)


def run(setting: Setting, device: str = "cpu") -> Run:
    """Train one model on a device, and measure both halves of its table on the way.

    The loss at the end is that of new windows of the same passages, since there are no others.
    """
    if setting.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {setting.kind!r}")
    model = matched_model(setting.encoding, setting.size, seed=setting.seed, causal=False)
    model.to(device)
    if table_of(model) is None and setting.encoding != "none":
        raise ValueError(
            f"encoding must be none or add a table of positions, got {setting.encoding!r}"
        )
    noted: dict[str, Any] = {"curve": [], "halves": [], "since": []}
    stopwatch = Stopwatch(device)

    def measure(step: int) -> None:
        if (table := table_of(model)) is not None:
            halves = np.split(np.asarray(table), 2)
            noted["halves"].append([step, *map(shares_of, halves)])

    def watch(step: int, loss: float) -> None:
        noted["since"].append(loss)
        if step % 100 == 0 or step == setting.steps:
            noted["curve"].append((step, round(sum(noted["since"]) / len(noted["since"]), 4)))
            noted["since"].clear()
        if step in STOPS or step == setting.steps:
            measure(step)

    measure(0)
    checkpoint = RESULTS.unfinished / f"{setting.name.replace(' ', '_')}.pt"
    training = on_device(batches(setting, TRAINING_STREAM, setting.steps), device)
    train(model, training, setting, watch, checkpoint=checkpoint, watched=noted)
    new = list(on_device(batches(setting, TEST_STREAM, 50), device))
    at_end = words.losses(model, new).cpu()
    checkpoint.unlink(missing_ok=True)
    return {
        "name": setting.name,
        **asdict(setting),
        "parameters": parameters(model),
        **stopwatch.seconds(),
        "loss": round(float(at_end.mean()), 5),
        "standard_error": round(float(at_end.std() / math.sqrt(len(at_end))), 5),
        "curve": noted["curve"],
        "halves": noted["halves"],
        "made": made(device),
        "table": None if table_of(model) is None else stored(np.asarray(table_of(model))),
    }


def stored(table: NDArray[np.float64]) -> dict[str, Any]:
    """All of a table, as numbers of 16 bits in a unit of its own."""
    unit = float(abs(table).max())
    return {"unit": unit, "rows": packed(table / unit)}


def shares_of(rows: NDArray[np.float64]) -> list[float]:
    """The fields of `results.Share` for some rows of a table."""
    shares = unmoved(rows), predicted_ahead(rows, 1), predicted_ahead(rows, 4)
    return [round(share, 4) for share in shares]


def on_device(drawn: Iterator[Batch], device: str) -> Iterator[Batch]:
    return (Batch(*(part.to(device) for part in batch)) for batch in drawn)


# The run that a test makes again, on a text that is at hand.
SHORT = Setting(kind="loop", steps=60, warm_up=5, text="sonnets")


def series() -> dict[str, list[Setting]]:
    """All runs, by the question that they answer."""
    return {
        "kept or moved": [
            Setting(kind=kind, seed=seed)
            for seed in range(5)
            for kind in ("kept", "moved", "loop", "ends")
        ],
        "moved or mixed": [
            Setting(kind=kind, most=1, seed=seed)
            for seed in range(5)
            for kind in ("mixed", "moved")
        ],
        "seventeen orders": [Setting(kind="mixed", seed=seed) for seed in range(5)],
        "without positions": [
            Setting(kind=kind, encoding="none", seed=seed)
            for seed in range(3)
            for kind in ("kept", "moved")
        ],
    }
