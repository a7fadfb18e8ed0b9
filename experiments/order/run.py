"""One run of the experiment "When does a model start to use order?", and the list of all runs."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from experiments import gpu, words
from experiments.common import SIZES, Results, Size, Stopwatch, made, parameters
from experiments.encodings import ENCODINGS, matched_model
from experiments.stored import Run

RESULTS = Results(Path(__file__).parent / "results.jsonl")
EVERY = 50  # steps between two points of a curve: so finely is the step known at which it falls
LOOKS_UNTIL = 2000  # steps until which heads are looked at as often


@dataclass(frozen=True)
class Setting:
    """All that one run depends on, besides the code, the text and the versions."""

    encoding: str
    task: str = "masked"
    seed: int = 0
    steps: int = 3000
    rate: float = 2e-3  # the learning rate, before warm-up and decay multiply it
    embedding_rate: float = 1.0  # times the rate, for the table of words
    text: str = "verse"
    seq_len: int = 48
    warm_up: int = 100
    optimiser: str = "AdamW"
    size: str = "small"

    def __post_init__(self) -> None:
        """Refuse an unknown encoding, under which some other run would be stored."""
        if self.encoding not in ENCODINGS:
            allowed = ", ".join(map(repr, ENCODINGS))
            raise ValueError(f"encoding must be one of {allowed}, got {self.encoding!r}")

    @property
    def name(self) -> str:
        return (
            f"{self.encoding} {self.task} {self.text} steps {self.steps} rate {self.rate:g}"
            f" embedding rate {self.embedding_rate:g} seed {self.seed}"
        ) + ("" if self.size == "small" else f" {self.size}")

    @property
    def dimensions(self) -> Size:
        return replace(SIZES[self.size], seq_len=self.seq_len)


def run(setting: Setting, device: str = "cpu") -> Run:
    """Train one model on a device, look at its heads on the way, and measure it at the end.

    The curve is that of a part of the validation text, and so is the step at which it falls. What
    is held out is measured once, at the end.
    """
    text = words.text(setting.text)
    validation, held_out = map(torch.from_numpy, (text.validation, text.held_out))
    task, length = setting.task, setting.seq_len
    model = matched_model(
        setting.encoding, setting.dimensions, seed=setting.seed, causal=task == "next"
    ).to(device)

    def windows_of(works: torch.Tensor, every: int = 1) -> Sequence[words.Batch]:
        return words.to_device(device, words.held_out_batches(works, task, length, every=every))

    sample = windows_of(validation, every=13)
    (looked_at,) = words.to_device(
        device, words.held_out_batches(validation, task, length, every=13)[:1]
    )
    noted: dict[str, Any] = {"curve": [], "heads": [], "since": []}
    stopwatch = Stopwatch(device)

    def watch(step: int, loss: float) -> None:
        noted["since"].append(loss)
        if step % EVERY == 0 or step == setting.steps:
            now = float(words.losses(model, sample).mean())
            mean = sum(noted["since"]) / len(noted["since"])
            noted["curve"].append((step, round(now, 4), round(mean, 4)))
            noted["since"].clear()
        if step % (EVERY if step <= LOOKS_UNTIL else 10 * EVERY) == 0:
            noted["heads"].append((step, words.neighbours(model, looked_at)))

    checkpoint = RESULTS.unfinished / f"{setting.name.replace(' ', '_')}.pt"
    stops = range(EVERY, setting.steps, EVERY)
    gpu.train_on(device, model, setting, watch, stops, checkpoint=checkpoint, watched=noted)
    at_end = windows_of(held_out)
    each = words.losses_of_answers(model, at_end).cpu()
    known = words.answers_of(at_end).cpu() != words.UNKNOWN
    windows = each.mean(dim=1)
    to_choose_by = words.losses(model, windows_of(validation))
    checkpoint.unlink(missing_ok=True)
    return (
        {"name": setting.name}
        | asdict(setting)
        | {
            "parameters": parameters(model),
            "d_hidden": model.d_hidden,
            **stopwatch.seconds(),
            "validation_loss": round(float(to_choose_by.mean()), 5),
            "loss": round(float(windows.mean()), 5),
            "standard_error": round(float(windows.std() / math.sqrt(len(windows))), 5),
            "loss_known": round(float(each[known].mean()), 5),
            "known": int(known.sum()),
            "answers": known.numel(),
            "curve": noted["curve"],
            "heads": noted["heads"],
            "windows": [round(loss, 3) for loss in windows.tolist()],
            "made": made(device),
        }
    )


# The run that a test makes again, on a text that is at hand.
SHORT = Setting("score-rows-last", steps=60, warm_up=5, text="sonnets")


# Which runs there are, in the order in which they are made

FORMS = ("rotary", "untied", "score-rows")
WHERE = ("-first", "-last", "")
REFERENCES = ("none", "add")
OTHER_FORMS = ("relative-bias", "relative-bias-kernel", "add-base-10", "add-base-100")
FACTORIAL = tuple(f"{form}{where}" for form in FORMS for where in WHERE)
MAIN = ("add", "rotary", "untied", "relative-bias", "project", "split-16", "add-learned")
GRID_STEPS, GRID_SEED = 1500, 100  # of the short runs that try rates, on the validation text
RATES, EMBEDDING_RATES = (1e-3, 2e-3, 4e-3), (0.3, 1.0, 3.0)


def series() -> dict[str, list[Setting]]:
    """All runs, by the question that they answer."""
    seeds = range(5)
    short = Setting("add", steps=GRID_STEPS, seed=GRID_SEED)
    return {
        "where and in which form": [
            Setting(encoding, seed=seed)
            for seed in seeds
            for encoding in (*REFERENCES, *FACTORIAL, *OTHER_FORMS)
        ],
        "where and in which form, larger model": [
            Setting(encoding, seed=seed, rate=1e-3, size="large")
            for seed in seeds
            for encoding in (*REFERENCES, *FACTORIAL, *OTHER_FORMS)
        ],
        "longer training": [
            Setting(encoding, steps=12_000, seed=seed)
            for encoding in ("none", *MAIN)
            for seed in seeds
        ],
        "rates": [
            replace(short, encoding=encoding, rate=rate, embedding_rate=embedding_rate)
            for rate in RATES
            for embedding_rate in EMBEDDING_RATES
            for encoding in MAIN
        ],
        "where and in which form, next word": [
            Setting(encoding, task="next", seed=seed)
            for seed in seeds
            for encoding in (*REFERENCES, *FACTORIAL, *OTHER_FORMS)
        ],
        "where and in which form, prose": [
            Setting(encoding, text="prose", seed=seed)
            for seed in seeds
            for encoding in (*REFERENCES, *FACTORIAL, *OTHER_FORMS)
        ],
    }
