"""What all experiments share: one small Transformer, its training, provenance, and stored results.

An experiment is a package with one command, `python -m experiments.NAME`, and one file of results,
`results.jsonl`, in which each line is a run. Nothing is lost when a command is stopped: a run is
appended when it ends, and one that has not ended goes on from its last checkpoint.
"""

import argparse
import datetime
import functools
import json
import math
import multiprocessing
import os
import platform
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from experiments.stored import Run

# What a seed draws: the weights from the seed itself, and the data from streams far apart from it.
TRAINING_STREAM, TEST_STREAM = 1_000_000, 2_000_000


# The model


@dataclass(frozen=True)
class Size:
    """The size of a model and of what it reads."""

    d_model: int = 96
    layers: int = 2
    heads: int = 4
    seq_len: int = 48
    vocabulary: int = 2048


SIZES = {"small": Size(), "large": Size(d_model=208, layers=3, heads=8)}


class Encoding(nn.Module):
    """Words without positions. Each encoding overrides the methods at whose place it acts.

    ``layers`` are the layers in which `turn`, `bias` and `score_rows` act. Words are drawn with
    standard deviation ``word_std``, by default d^(-1/2), and multiplied by ``word_factor``, by
    default √d, as in Vaswani et al. (2017). So each entry has variance 1, and a row of the
    sinusoidal table, of norm √(d/2), is 3 dB below a word.
    """

    def __init__(
        self, size: Size, word_std: float | None = None, word_factor: float | None = None
    ) -> None:
        super().__init__()
        self.size = size
        self.layers: Sequence[int] = range(size.layers)
        self.d_words = self.d_stream = size.d_model
        self.word_std: float | None = size.d_model**-0.5 if word_std is None else word_std
        self.word_factor = size.d_model**0.5 if word_factor is None else word_factor

    def enter(self, words: Tensor) -> Tensor:
        """Input of the first layer: (batch, length, d_stream)."""
        return words

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, (batch, heads, length, d_head), as they are multiplied."""
        return queries, keys

    def bias(self, length: int) -> Tensor | None:
        """What is added to the scores: (heads, length, length)."""
        return None

    def score_rows(self, length: int) -> Tensor | None:
        """Rows added to the input of the maps to queries and keys alone: (length, d_stream)."""
        return None

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor] | None:
        """A table of words and one of positions whose sum `enter` is, if it is a sum.

        ``words`` are rows as `enter` takes them, (words, d_words). The result has the shapes
        (words, d_stream) and (length, d_stream).
        """
        return None


FUSED_FROM = 256  # words in a window: from here on the fused kernel takes 0.6 of the time


class Attention(nn.Module):
    """Multi-head self-attention, written out so that its weights can be looked at.

    In long windows PyTorch's fused kernel gives the same up to rounding, where no one looks.
    ``places``, (batch, asking), are those whose queries ask; without it all do.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(
        self,
        x: Tensor,
        encoding: Encoding,
        bias: Tensor | None,
        seen: list[Tensor] | None,
        places: Tensor | None = None,
    ) -> Tensor:
        projected = self.qkv(x)
        rows = encoding.score_rows(x.shape[1])
        if rows is not None:  # the maps are linear, so adding rows before or after is the same
            for_scores = rows @ self.qkv.weight[: 2 * x.shape[-1]].T
            projected = projected + F.pad(for_scores, (0, x.shape[-1]))
        heads = projected.unflatten(-1, (3, self.heads, -1))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        queries, keys = encoding.turn(queries, keys)
        if places is not None:
            queries = queries.take_along_dim(places[:, None, :, None], dim=2)
            if bias is not None:
                bias = bias.expand(self.heads, -1, -1)[:, places].transpose(0, 1)
        if seen is None and x.shape[1] >= FUSED_FROM:
            fused = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
            return self.joined(fused)
        scores = queries @ keys.mT * queries.shape[-1] ** -0.5
        if bias is not None:
            scores = scores + bias
        weights = scores.softmax(dim=-1)
        if seen is not None:
            seen.append(weights)
        return self.joined(weights @ values)

    def joined(self, heads: Tensor) -> Tensor:
        """The heads, (batch, heads, length, d_head), as one: (batch, length, width)."""
        mixed: Tensor = self.out(heads.transpose(1, 2).flatten(-2))
        return mixed


class Layer(nn.Module):
    """Attention, then two linear maps, each beside a residual and with a LayerNorm.

    ``norm`` is "pre" where the LayerNorm comes before each of the two, and "post" where it comes
    after the sum with the residual.
    """

    def __init__(self, width: int, heads: int, d_hidden: int, norm: str) -> None:
        super().__init__()
        self.norm = norm
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attend = Attention(width, heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, d_hidden), nn.ReLU(), nn.Linear(d_hidden, width)
        )

    def forward(
        self,
        x: Tensor,
        encoding: Encoding,
        bias: Tensor | None,
        seen: list[Tensor] | None,
        places: Tensor | None = None,
    ) -> Tensor:
        """The stream after the layer, at all places or at ``places`` of each window alone."""
        first, second = self.norms
        kept: Tensor = x if places is None else x.take_along_dim(places[..., None], dim=1)
        if self.norm == "post":
            kept = first(kept + self.attend(x, encoding, bias, seen, places))
            kept = second(kept + self.feed_forward(kept))
        else:
            kept = kept + self.attend(first(x), encoding, bias, seen, places)
            kept = kept + self.feed_forward(second(kept))
        return kept


class Transformer(nn.Module):
    """Words in, a score for each word of the vocabulary out.

    ``causal`` hides later words from earlier ones. ``norm_sum`` puts a LayerNorm where the words,
    with whatever has joined them, enter the first layer. ``tied`` uses the table of words for the
    output as well.
    """

    def __init__(
        self,
        encoding: Encoding,
        d_hidden: int,
        *,
        causal: bool = False,
        norm: str = "pre",
        norm_sum: bool = False,
        tied: bool = False,
    ) -> None:
        super().__init__()
        size, width = encoding.size, encoding.d_stream
        self.encoding, self.d_hidden, self.norm_of_layers = encoding, d_hidden, norm
        self.no_positions = Encoding(size)
        self.embed = nn.Embedding(size.vocabulary, encoding.d_words)
        if encoding.word_std is not None:  # else they stay as PyTorch draws them
            nn.init.normal_(self.embed.weight, std=encoding.word_std)
        self.norm_sum = nn.LayerNorm(width) if norm_sum else nn.Identity()
        self.layers = nn.ModuleList(
            Layer(width, size.heads, d_hidden, norm) for _ in range(size.layers)
        )
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, size.vocabulary)
        if tied:
            self.score.weight = self.embed.weight
        self.mask = nn.Buffer(causal_bias(size.seq_len)) if causal else None

    def forward(
        self,
        tokens: Tensor,
        target_indices: Tensor | None = None,
        seen: list[Tensor] | None = None,
    ) -> Tensor:
        """Scores of the vocabulary at all places, (batch, length, vocabulary).

        With ``target_indices``, which count through the batch, as many in each window, at these
        places alone: (targets, vocabulary). The last layer is then computed for them alone. The
        attention weights of each layer are appended to ``seen``, if it is given, at all places.
        """
        return self.scores_of(self.entered(tokens), target_indices, seen)

    def scores_of(
        self,
        x: Tensor,
        target_indices: Tensor | None = None,
        seen: list[Tensor] | None = None,
    ) -> Tensor:
        """The same for what enters the first layer: (batch, length, d_stream)."""
        windows, length = x.shape[:2]
        bias, mask = self.bias(length), self.hidden(length)
        asked = None if target_indices is None else target_indices.view(windows, -1) % length
        for index, layer in enumerate(self.layers):
            places = asked if seen is None and index == len(self.layers) - 1 else None
            if index in self.encoding.layers:
                x = layer(x, self.encoding, bias, seen, places)
            else:
                x = layer(x, self.no_positions, mask, seen, places)
        if asked is not None:
            if seen is not None:
                x = x.take_along_dim(asked[..., None], dim=1)
            x = x.flatten(0, 1)
        scores: Tensor = self.score(self.norm(x))
        return scores

    def entered(self, tokens: Tensor) -> Tensor:
        """Input of the first layer: (batch, length, d_stream)."""
        words = self.embed(tokens) * self.encoding.word_factor
        result: Tensor = self.norm_sum(self.encoding.enter(words))
        return result

    def hidden(self, length: int) -> Tensor | None:
        """The causal mask, if there is one: (length, length)."""
        return None if self.mask is None else self.mask[:length, :length]

    def bias(self, length: int) -> Tensor | None:
        """The bias of the encoding plus the causal mask, in the layers where the encoding acts."""
        bias, mask = self.encoding.bias(length), self.hidden(length)
        if bias is None or mask is None:
            return mask if bias is None else bias
        return bias + mask


def ahead(length: int) -> Tensor:
    """How far key n lies ahead of query m: n − m, (length, length)."""
    t = torch.arange(length)
    return t - t[:, None]


def causal_bias(length: int) -> Tensor:
    """−∞ where the key lies ahead of the query, else 0: (length, length)."""
    return torch.zeros(length, length).masked_fill(ahead(length) > 0, -math.inf)


def parameters(model: nn.Module) -> int:
    """How many numbers training may change."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


# Training


class Training(Protocol):
    """The settings that training reads."""

    @property
    def steps(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def warm_up(self) -> int: ...
    @property
    def optimiser(self) -> str: ...
    @property
    def embedding_rate(self) -> float: ...


def optimiser_of(
    model: Transformer, setting: Training, *, capturable: bool = False
) -> torch.optim.Optimizer:
    """AdamW, or SGD with momentum. The table of words and all vectors are free of weight decay.

    Only AdamW can be ``capturable``, that is, be part of a CUDA graph.
    """
    table = [model.embed.weight]
    rest = [weight for weight in model.parameters() if weight is not model.embed.weight]
    groups: list[dict[str, Any]] = [
        {"params": table, "lr": setting.rate * setting.embedding_rate, "weight_decay": 0.0},
        {"params": [w for w in rest if w.ndim < 2], "weight_decay": 0.0},
        {"params": [w for w in rest if w.ndim >= 2]},
    ]
    if setting.optimiser == "SGD":
        return torch.optim.SGD(groups, lr=setting.rate, momentum=0.9, weight_decay=0.0)
    return torch.optim.AdamW(
        groups, lr=setting.rate, weight_decay=0.01, fused=True, capturable=capturable
    )


def factor_of(setting: Training, step: int) -> float:
    """What multiplies the rate in a step, counted from 0: a short rise, then a line down to 0."""
    return min((step + 1) / (setting.warm_up + 1), 1 - step / setting.steps)


CHECKPOINT_EVERY = 1000  # steps
MODELS_ON_GPU = 8  # at a time


def train(
    model: Transformer,
    batches: Iterable[tuple[Tensor, Tensor, Tensor]],
    setting: Training,
    watch: Callable[[int, float], None],
    *,
    checkpoint: Path | None = None,
    watched: dict[str, Any] | None = None,
) -> None:
    """Train on each batch once. The rate rises for a short while, then falls to 0 in a line.

    A batch is (tokens, target_indices, answers). `watch(step, loss)` is called after every step,
    with the loss of its batch. With a ``checkpoint`` the state is stored in that file at times,
    together with what `watch` has noted in ``watched``, and training goes on from it.
    """
    optimiser = optimiser_of(model, setting)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: factor_of(setting, step))
    parts: dict[str, Any] = {"model": model, "optimiser": optimiser, "schedule": schedule}
    done = 0
    if checkpoint is not None and checkpoint.exists():
        stored = torch.load(checkpoint, weights_only=False)
        done = stored["step"]
        for name, part in parts.items():
            part.load_state_dict(stored[name])
        assert watched is not None
        watched.update(stored["watched"])
    for step, (tokens, target_indices, answers) in enumerate(batches, 1):
        if step <= done:  # its batch is drawn all the same, so that the later ones are the same
            continue
        loss = F.cross_entropy(model(tokens, target_indices), answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        watch(step, loss.item())
        if checkpoint is not None and step % CHECKPOINT_EVERY == 0:
            state = {name: part.state_dict() for name, part in parts.items()}
            replace_file(checkpoint, state | {"step": step, "watched": watched})


def replace_file(file: Path, state: dict[str, Any]) -> None:
    """Write all at once, so that an interruption leaves no half file."""
    file.parent.mkdir(exist_ok=True)
    unfinished = file.with_suffix(".part")
    torch.save(state, unfinished)
    unfinished.replace(file)


# Provenance


def made(device: str = "cpu") -> dict[str, str]:
    """When, where and by what a run is made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
    } | (gpu_and_driver() if device == "cuda" else {})


@functools.cache
def gpu_and_driver() -> dict[str, str]:
    """The GPU and its driver."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    told = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    name, driver = told.splitlines()[0].split(", ")
    return {"gpu": name, "driver": driver}


def made_by(command: str) -> dict[str, Any]:
    """The same for a series of runs that one command makes."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "cpu": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"numpy": np.__version__, "torch": torch.__version__},
    }


def processor() -> str:
    """The processor by its name, family and model, where the system tells them."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    parts = ("model name", "cpu family", "model\t")
    found = [next((line for line in lines if line.startswith(part)), "") for part in parts]
    return ", ".join(line.split(":", 1)[1].strip() for line in found if line) or platform.machine()


# Rows of results


class Results:
    """The stored runs of an experiment: a file with one run a line, as JSON."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read: list[Run] = []
        self._when_read: tuple[int, int] | None = None  # the file's time and size

    def rows(self) -> list[Run]:
        """All runs, in the order in which they are stored. Read again if the file changed."""
        if not self.file.exists():
            return []
        state = self.file.stat().st_mtime_ns, self.file.stat().st_size
        if state != self._when_read:
            lines = self.file.read_text(encoding="utf-8").splitlines()
            self._read, self._when_read = [json.loads(line) for line in lines], state
        return list(self._read)

    def append(self, run: Run) -> None:
        """Add one run."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run, separators=(",", ":")) + "\n")

    @property
    def short(self) -> "Results":
        """The short run that a test makes again, in a file beside the results."""
        return Results(self.file.with_name("short.jsonl"))

    @property
    def unfinished(self) -> Path:
        """The folder of checkpoints, which git ignores."""
        return self.file.parent / "unfinished"


def read_series(results: Results, series: str) -> Run:
    """One series of runs, in one dictionary: how it was made, and its "runs"."""
    rows = [row for row in results.rows() if row["series"] == series]
    (provenance,) = (row["provenance"] for row in rows if "provenance" in row)
    runs = [
        {name: value for name, value in row.items() if name != "series"}
        for row in rows
        if "provenance" not in row
    ]
    total = round(sum(run["cpu_seconds"] for run in runs))
    result: Run = provenance | {"runs": runs, "cpu_seconds": total}
    return result


def make_series(
    results: Results,
    series: str,
    provenance: Callable[[], dict[str, Any]],
    jobs: Sequence[Any],
    run: Callable[[Any], Run],
    processes: Any,
) -> None:
    """Make the runs of a series that are missing. A job is a named tuple, which its row repeats.

    How the series is made is stored first, in a row of its own.
    """
    stored = [row for row in results.rows() if row["series"] == series]
    if not stored:
        results.append({"series": series, "provenance": provenance()})
    left = [job for job in jobs if not any(job._asdict().items() <= row.items() for row in stored)]
    print(f"{series}: {len(left)} of {len(jobs)} runs are missing", flush=True)
    for done in processes.imap(run, left):
        results.append({"series": series} | done)
        print(now(), *list(done.values())[:4], flush=True)


class Setting(Protocol):
    """A frozen dataclass: all that a run depends on besides code, data and versions."""

    @property
    def name(self) -> str: ...


def key(setting: Any) -> tuple[tuple[str, Any], ...]:
    """A setting, or the settings in a row, as something to compare."""
    return tuple(sorted(asdict(setting).items()))


def key_of_row(run: Run, names: Iterable[str]) -> tuple[tuple[str, Any], ...]:
    """The key of the setting that a row was made with."""
    return tuple(sorted((name, run[name]) for name in names))


def missing(settings: Sequence[Any], results: Results) -> list[Any]:
    """The settings that no stored run has, each once, in their order."""
    if not settings:
        return []
    names = [name for name, _ in key(settings[0])]
    seen = {key_of_row(run, names) for run in results.rows()}
    left = []
    for setting in settings:
        if key(setting) not in seen:
            seen.add(key(setting))
            left.append(setting)
    return left


def pool(workers: int | None, device: str = "cpu") -> Any:
    """Processes of one thread each, as many as there are cores where ``workers`` is None.

    On a GPU threads of one process, because kernels of several processes do not run at a time.
    """
    if device == "cuda":
        return ThreadPool(workers or MODELS_ON_GPU)
    return multiprocessing.get_context("spawn").Pool(workers, begin_worker)


def begin_worker() -> None:
    """One thread, and an end with the process that gives the work, however that one ends."""
    torch.set_num_threads(1)
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def make_all(
    settings: Sequence[Any],
    run: Callable[[Any], Run],
    results: Results,
    workers: int | None = None,
    device: str = "cpu",
) -> None:
    """Make the runs that are missing, and append each to the results when it ends."""
    left = missing(settings, results)
    print(f"{len(left)} of {len(settings)} runs are missing", flush=True)
    with pool(workers, device) as working:
        for done in working.imap_unordered(run, left):
            results.append(done)
            told = [done[name] for name, _ in key(left[0]) if isinstance(done[name], str | int)]
            print(now(), *told, *(f"{s:.0f} s" for s in seconds_in(done)), flush=True)


def command(
    description: str,
    series: dict[str, list[Any]],
    run: Callable[..., Run],
    results: Results,
    short: Any,
    seconds_a_step: dict[int, float],
) -> None:
    """The command of an experiment: make what is missing, or say what that is.

    ``short`` is the setting of the run that a test makes again, on a text that is at hand, and
    ``seconds_a_step`` are rough processor's seconds of a step by the length of the windows.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--list", action="store_true", help="say what is stored and missing")
    parser.add_argument("--short", action="store_true", help="store the run of the test again")
    parser.add_argument("--series", nargs="+", choices=tuple(series), help="only these")
    parser.add_argument("--seeds", nargs="+", type=int, help="only these")
    parser.add_argument("--workers", type=int, help="runs at a time; default: all cores, or 8")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    options = parser.parse_args()
    check_device(parser, options.device)
    names = options.series or list(series)
    chosen = {
        name: [s for s in series[name] if options.seeds is None or s.seed in options.seeds]
        for name in names
    }
    if options.list:
        print_list(chosen, results, seconds_a_step)
    elif options.short:
        results.short.file.unlink(missing_ok=True)
        results.short.append(run(short))
    else:
        settings = [setting for name in names for setting in chosen[name]]
        on_device = functools.partial(run, device=options.device)
        make_all(settings, on_device, results, options.workers, options.device)


def check_device(parser: argparse.ArgumentParser, device: str) -> None:
    """Refuse a GPU that is not there, before anything is drawn or loaded."""
    if device == "cuda" and not torch.cuda.is_available():
        parser.error("argument --device: 'cuda' needs an NVIDIA GPU and PyTorch with CUDA")


def print_list(
    series: dict[str, list[Any]], results: Results, seconds_a_step: dict[int, float]
) -> None:
    """How many runs of each series are stored, and about how long the missing ones take."""
    total = 0.0
    for name, settings in series.items():
        left = missing(settings, results)
        hours = sum(seconds_a_step[s.seq_len] * s.steps for s in left) / 3600
        total += hours
        print(f"{len(settings) - len(left):4d} of {len(settings):3d}  {hours:5.1f} h  {name}")
    made_so_far = sum(run.get("cpu_seconds", 0) for run in results.rows()) / 3600
    print(f"{made_so_far:.1f} hours of one core so far, about {total:.1f} more for what is missing")


def now() -> str:
    return datetime.datetime.now().strftime("%H:%M:%S")


def seconds_of(started: float) -> float:
    """Processor's seconds since ``started``, a value of `time.process_time`."""
    return round(time.process_time() - started, 1)


class Stopwatch:
    """How long a run takes: of a core, or on a GPU by the clock, where other runs share it."""

    def __init__(self, device: str) -> None:
        on_gpu = device == "cuda"
        self.name, self.clock = (
            ("gpu_seconds", time.perf_counter) if on_gpu else ("cpu_seconds", time.process_time)
        )
        self.started = self.clock()

    def seconds(self) -> dict[str, float]:
        """As a field of a row."""
        return {self.name: round(self.clock() - self.started, 1)}


def seconds_in(run: Run) -> list[float]:
    """What a row says of the time, one number."""
    return [run[name] for name in ("cpu_seconds", "gpu_seconds") if name in run]
