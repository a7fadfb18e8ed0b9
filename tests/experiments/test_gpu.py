"""Training on a GPU: what a graph of one step does is what training does step by step."""

import pytest
import torch
from small_encoder import one_thread

from experiments import common, gpu, words
from experiments.encodings import ENCODINGS, matched_model
from experiments.order.run import Setting, run

__all__ = ["one_thread"]

STEPS = 12
ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CUDA = pytest.param("cuda", marks=[pytest.mark.cuda, ON_GPU])


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("encoding", ["add-learned", "rotary-last", "relative-bias", "score-rows"])
def test_batches_on_the_device_train_as_batches_one_by_one(encoding: str, device: str) -> None:
    setting = Setting(encoding, steps=STEPS, warm_up=3, text="sonnets", task="next")
    training = torch.from_numpy(words.text("sonnets").training)
    drawn = list(words.training_batches(training, "next", 48, seed=0, steps=STEPS))

    def model() -> common.Transformer:
        return matched_model(encoding, setting.dimensions, seed=0, causal=True)

    one, other = model(), model().to(device)
    expected: list[float] = []
    common.train(one, drawn, setting, lambda _, loss: expected.append(loss))
    found: list[float] = []
    looks: list[int] = []

    def watch(step: int, loss: float) -> None:
        found.append(loss)
        if step in (5, STEPS):
            looks.append(step)

    stacked = words.Batch(*(torch.stack(parts).to(device) for parts in zip(*drawn, strict=True)))
    gpu.train(other, stacked, setting, watch, stops=[5, 10 * STEPS])
    assert looks == [5, STEPS]
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.cuda
@ON_GPU
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_run_on_a_gpu_is_that_on_a_cpu_but_for_rounding(encoding: str) -> None:
    setting = Setting(encoding, steps=40, warm_up=5, text="sonnets")
    here, there = (run(setting, device) for device in ("cpu", "cuda"))
    assert there["loss"] == pytest.approx(here["loss"], abs=0.01)
    assert there["made"]["gpu"]
    assert there["gpu_seconds"] > 0
