"""Training on an NVIDIA GPU, many small models at a time.

A step of these models is some three hundred kernels that take a few microseconds each, so a host
that launches them one by one is slower than the device. Here a step is captured once, as a graph
that reads its batch, its learning rate and its number from the device, and is then replayed. Each
model has a thread and a stream of its own, so that the kernels of several run side by side.

The weights and the batches are drawn on the CPU, so a run starts and reads as it would there. Only
rounding differs; how far that carries a run is measured on the page of the experiment on order.
"""

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.nn import functional as F

from experiments import common, words
from experiments.common import Training, Transformer, factor_of, optimiser_of
from experiments.words import Batch

EAGER = 3  # steps before the capture: the optimiser makes its state in the first of them
CAPTURE = threading.Lock()  # one graph at a time
UPLOAD = threading.Lock()  # so that nothing is drawn twice


class Setting(Training, Protocol):
    """The settings that training reads, and those that decide which batches it sees."""

    @property
    def text(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def seq_len(self) -> int: ...
    @property
    def seed(self) -> int: ...


def train_on(
    device: str,
    model: Transformer,
    setting: Setting,
    watch: Callable[[int, float], None],
    stops: Iterable[int],
    *,
    checkpoint: Path,
    watched: dict[str, Any],
) -> None:
    """Train a model on the device where it is, and look at it at ``stops`` and at the end.

    On the CPU there is a checkpoint, as `common.train` describes, and on a GPU there is none.
    """
    if device == "cuda":
        train(model, batches(setting), setting, watch, stops)
    else:
        drawn = draw(*drawn_by(setting))
        common.train(model, drawn, setting, watch, checkpoint=checkpoint, watched=watched)


def train(
    model: Transformer,
    batches: Batch,
    setting: Training,
    watch: Callable[[int, float], None],
    stops: Iterable[int],
) -> None:
    """As `common.train`, for a model and the batches of all steps on the same device.

    The fields of ``batches`` have the steps as their first axis. `watch` is called for every step,
    but only at ``stops`` and at the last step is the model the one after that step.
    """
    device = model.embed.weight.device
    on_gpu = device.type == "cuda"
    optimiser = optimiser_of(model, setting, capturable=on_gpu)
    for group in optimiser.param_groups:
        group["lr"] = torch.tensor(group["lr"], device=device)
    rates = [group["lr"].clone() for group in optimiser.param_groups]
    factors = torch.tensor(
        [factor_of(setting, step) for step in range(setting.steps)], device=device
    )
    losses = torch.zeros(setting.steps, device=device)
    done = torch.zeros(1, dtype=torch.long, device=device)  # steps

    def step() -> None:
        tokens, target_indices, answers = (part.index_select(0, done)[0] for part in batches)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"].copy_(rate * factors.index_select(0, done)[0])
        loss = F.cross_entropy(model(tokens, target_indices), answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.index_copy_(0, done, loss.detach()[None])
        done.add_(1)

    number, again = 0, step
    with stream_of_its_own() if on_gpu else nullcontext():
        for stop in sorted({stop for stop in stops if stop < setting.steps} | {setting.steps}):
            first = number
            while number < stop:
                if on_gpu and number == EAGER:
                    again = captured(step)
                again()
                number += 1
            for at, loss in enumerate(losses[first:stop].tolist(), first + 1):
                watch(at, loss)


@contextmanager
def stream_of_its_own() -> Iterator[None]:
    """What is launched inside comes after what was launched before, and before what follows."""
    stream, outer = torch.cuda.Stream(), torch.cuda.current_stream()
    stream.wait_stream(outer)
    with torch.cuda.stream(stream):
        yield
    outer.wait_stream(stream)


def captured(step: Callable[[], None]) -> Callable[[], None]:
    """What `step` launches on the current stream, as one graph. Nothing is computed meanwhile."""
    graph = torch.cuda.CUDAGraph()
    with (
        CAPTURE,
        torch.cuda.graph(
            graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"
        ),
    ):
        step()
    replay: Callable[[], None] = graph.replay
    return replay


def batches(setting: Setting) -> Batch:
    """The batches of all steps, on the GPU. Runs that read the same share them."""
    with UPLOAD:
        return uploaded(*drawn_by(setting))


def drawn_by(setting: Setting) -> tuple[str, str, int, int, int]:
    """The arguments of `draw`."""
    return setting.text, setting.task, setting.seq_len, setting.seed, setting.steps


def draw(text: str, task: str, length: int, seed: int, steps: int) -> Iterator[Batch]:
    """The batches of a run, one by one."""
    training = torch.from_numpy(words.text(text).training)
    return words.training_batches(training, task, length, seed=seed, steps=steps)


@functools.lru_cache(maxsize=16)
def uploaded(text: str, task: str, length: int, seed: int, steps: int) -> Batch:
    drawn = draw(text, task, length, seed, steps)
    found = Batch(*(torch.stack(parts).cuda() for parts in zip(*drawn, strict=True)))
    torch.cuda.current_stream().synchronize()  # other streams read them
    return found
