"""One run of the experiment "Where a clock comes from": a table drawn at random is trained."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments import gpu, words
from experiments.clock.tables import packed, summary_of
from experiments.common import Results, Size, Stopwatch, Transformer, made, parameters
from experiments.encodings import matched_model
from experiments.stored import Run

RESULTS = Results(Path(__file__).parent / "results.jsonl")
EVERY = 100  # steps between two points of a curve
# Steps after which the table is stored, evenly spaced on a logarithmic scale.
TABLE_STEPS = (
    *(0, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1250, 1500, 2000, 2500, 3000),
    *(4000, 5000, 6000, 8000, 10_000, 12_000),
)


@dataclass(frozen=True)
class Setting:
    """All that one run depends on, besides the code, the text and the versions."""

    task: str = "masked"
    text: str = "verse"
    seq_len: int = 48
    seed: int = 0
    steps: int = 12_000
    encoding: str = "add-learned"
    rate: float = 2e-3  # the learning rate, before warm-up and decay multiply it
    warm_up: int = 100
    optimiser: str = "AdamW"
    embedding_rate: float = 1.0

    @property
    def name(self) -> str:
        return (
            f"{self.encoding} {self.task} {self.text} window {self.seq_len}"
            f" steps {self.steps} seed {self.seed}"
        )

    @property
    def size(self) -> Size:
        return Size(seq_len=self.seq_len)


def table_of(model: Transformer) -> NDArray[np.float64] | None:
    """The table of positions that is added to the words, if the encoding has one."""
    with torch.no_grad():
        tables = model.encoding.tables(model.embed.weight)
    return None if tables is None else tables[1].detach().double().cpu().numpy()


def run(setting: Setting, device: str = "cpu") -> Run:
    """Train one model on a device, and store its table of positions on the way."""
    text = words.text(setting.text)
    validation, held_out = map(torch.from_numpy, (text.validation, text.held_out))
    task, length = setting.task, setting.seq_len
    model = matched_model(
        setting.encoding, setting.size, seed=setting.seed, causal=task == "next"
    ).to(device)
    sample = words.to_device(device, words.held_out_batches(validation, task, length, every=13))
    noted: dict[str, Any] = {"curve": [], "tables": [], "since": [], "seconds": 0.0}
    stopwatch = Stopwatch(device)

    def note_table(step: int) -> None:
        rows = table_of(model)
        if rows is not None:
            noted["tables"].append({"step": step} | summary_of(rows))

    def watch(step: int, loss: float) -> None:
        noted["since"].append(loss)
        if step % EVERY == 0 or step == setting.steps:
            now = float(words.losses(model, sample).mean())
            mean = sum(noted["since"]) / len(noted["since"])
            noted["curve"].append((step, round(now, 4), round(mean, 4)))
            noted["since"].clear()
        if step in TABLE_STEPS or step == setting.steps:
            note_table(step)

    note_table(0)
    checkpoint = RESULTS.unfinished / f"{setting.name.replace(' ', '_')}.pt"
    stops = {*range(EVERY, setting.steps, EVERY), *TABLE_STEPS[1:]}
    gpu.train_on(device, model, setting, watch, stops, checkpoint=checkpoint, watched=noted)
    at_end = words.losses(
        model, words.to_device(device, words.held_out_batches(held_out, task, length))
    ).cpu()
    checkpoint.unlink(missing_ok=True)
    done = {"name": setting.name} | asdict(setting)
    done |= {
        "parameters": parameters(model),
        "d_hidden": model.d_hidden,
        **stopwatch.seconds(),
        "loss": round(float(at_end.mean()), 5),
        "standard_error": round(float(at_end.std() / math.sqrt(len(at_end))), 5),
        "curve": noted["curve"],
        "tables": noted["tables"],
        "made": made(device),
    }
    rows = table_of(model)
    if rows is not None:
        unit = float(np.abs(rows).max())
        done["table"] = {"unit": unit, "rows": packed(rows / unit)}
    return done


# The run that a test makes again, on a text that is at hand.
SHORT = Setting(steps=60, warm_up=5, text="sonnets")


# Which runs there are, in the order in which they are made


def series() -> dict[str, list[Setting]]:
    """All runs, by the question that they answer."""
    seeds = range(5)
    return {
        "short windows": [Setting(steps=3000, seed=seed) for seed in seeds],
        "short windows, longer training": [Setting(seed=seed) for seed in seeds],
        "long windows": [Setting(seq_len=128, seed=seed) for seed in seeds],
        "no need of offsets": [
            Setting(task=task, steps=3000, seed=seed)
            for seed in seeds
            for task in ("before", "partner")
        ],
        "prose": [Setting(text="prose", steps=3000, seed=seed) for seed in seeds],
        "next word": [Setting(task="next", steps=3000, seed=seed) for seed in seeds],
        "plateau": [  # of masked verse in windows of 48, the experiment on order has it
            Setting(encoding="none", steps=3000, text="prose"),
            Setting(encoding="none", steps=3000, task="next"),
            Setting(encoding="none", steps=3000, seq_len=128),
            Setting(encoding="none", steps=3000, seq_len=128, text="prose"),
            Setting(encoding="none", steps=3000, seq_len=128, task="next"),
            Setting(encoding="none", steps=3000, seq_len=256),
            Setting(encoding="none", steps=3000, text="prose", task="next"),
            Setting(encoding="none", steps=3000, seq_len=128, text="prose", task="next"),
            Setting(encoding="none", steps=3000, seq_len=256, task="next"),
            Setting(encoding="none", steps=3000, seq_len=256, text="prose"),
            Setting(encoding="none", steps=3000, seq_len=256, text="prose", task="next"),
        ],
        "prose, long windows": [Setting(text="prose", seq_len=128, seed=s) for s in seeds],
        "next word, long windows": [Setting(task="next", seq_len=128, seed=s) for s in seeds],
        "next word, prose": [
            Setting(text="prose", task="next", steps=3000, seed=seed) for seed in seeds
        ],
        "longest windows": [Setting(seq_len=256, seed=seed) for seed in seeds],
        "next word, prose, long windows": [
            Setting(text="prose", task="next", seq_len=128, seed=seed) for seed in seeds
        ],
        "next word, longest windows": [Setting(task="next", seq_len=256, seed=s) for s in seeds],
        "prose, longest windows": [Setting(text="prose", seq_len=256, seed=s) for s in seeds],
        "next word, prose, longest windows": [
            Setting(text="prose", task="next", seq_len=256, seed=seed) for seed in seeds
        ],
    }
