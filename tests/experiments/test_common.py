"""The Transformer, its training and the storing of results in experiments/common.py."""

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest
import torch
from small_encoder import EVERYWHERE, TINY, Recorder, some_words, tiny
from torch import nn
from torch.nn import functional as F

from experiments import common, words
from experiments.common import Encoding, Layer, Results, Transformer
from experiments.encodings import ENCODINGS
from experiments.order.run import Setting
from experiments.stored import Run

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("way", ["none", "add", "untied", "alibi", "rotary"])
@torch.no_grad()
def test_a_causal_model_does_not_see_later_words(way: str) -> None:
    encoder = tiny(way, causal=True)
    changed = some_words()
    changed[0, 7:] = some_words(1)[0, 7:]
    before, after = encoder(some_words(), EVERYWHERE), encoder(changed, EVERYWHERE)
    torch.testing.assert_close(after[:7], before[:7])
    assert (after[7:] - before[7:]).abs().max() > 1e-3


@pytest.mark.parametrize("way", ["none", "add-learned", "relative-bias", "rotary"])
@pytest.mark.parametrize("causal", [True, False])
def test_the_fused_kernel_gives_the_losses_and_the_slopes_of_the_written_out_one(
    way: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All windows count as long here. Who looks at the weights has the written-out one."""
    encoder = tiny(way, causal=causal)
    fused = MagicMock(wraps=F.scaled_dot_product_attention)
    monkeypatch.setattr(F, "scaled_dot_product_attention", fused)
    found = []
    for fused_from, seen in ((TINY.seq_len + 1, None), (TINY.seq_len, []), (TINY.seq_len, None)):
        monkeypatch.setattr(common, "FUSED_FROM", fused_from)
        encoder.zero_grad()
        loss = F.cross_entropy(encoder(some_words(), EVERYWHERE, seen), some_words()[0])
        loss.backward()
        found.append([loss.detach(), *(weight.grad for weight in encoder.parameters())])
        assert fused.call_count == (TINY.layers if len(found) == 3 else 0)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)
    torch.testing.assert_close(found[2], found[0])


@pytest.mark.parametrize("way", ["none", "add-learned", "untied", "relative-bias", "rotary-last"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_last_layer_is_computed_where_it_is_asked_and_gives_the_same(
    way: str, causal: bool, norm: str
) -> None:
    """Of two windows, other places are asked for, in no order. The other way takes them of all."""
    torch.manual_seed(0)
    model = Transformer(ENCODINGS[way](TINY), 32, causal=causal, norm=norm)
    tokens = torch.cat((some_words(), some_words(1)))
    indices = torch.tensor([7, 2, 0, TINY.seq_len + 11, TINY.seq_len + 2, TINY.seq_len + 4])
    answers = tokens.flatten()[indices]
    widths: list[torch.Size] = []
    last = model.layers[-1]
    assert isinstance(last, Layer)
    last.feed_forward.register_forward_hook(lambda *seen: widths.append(seen[2].shape))
    found = []
    for scores in (model(tokens, indices), model(tokens).flatten(0, 1)[indices]):
        model.zero_grad()
        loss = F.cross_entropy(scores, answers)
        loss.backward()
        slopes = [w.grad for w in model.parameters() if w.grad is not None]
        found.append([scores.detach(), loss.detach(), *slopes])
    assert [shape[1] for shape in widths] == [3, TINY.seq_len]
    torch.testing.assert_close(found[0], found[1])


@torch.no_grad()
def test_a_norm_comes_before_each_part_or_after_each_sum() -> None:
    way, x = Encoding(TINY), 3 + 5 * torch.randn(2, TINY.seq_len, 16)
    after = Layer(16, 4, 8, "post")(x, way, None, None)
    torch.testing.assert_close(after.mean(dim=-1), torch.zeros(2, TINY.seq_len), atol=1e-5, rtol=0)
    variance = after.var(dim=-1, correction=0)
    torch.testing.assert_close(variance, torch.ones_like(variance), atol=1e-3, rtol=0)
    before = Layer(16, 4, 8, "pre")
    changed = before(x, way, None, None) - x
    torch.testing.assert_close(before(9 * x, way, None, None) - 9 * x, changed, atol=0.1, rtol=0)
    for last in (before.attend.out, before.feed_forward[2]):
        assert isinstance(last, nn.Linear)
        last.weight.zero_()
        assert last.bias is not None
        last.bias.zero_()
    assert torch.equal(before(x, way, None, None), x)


@torch.no_grad()
@pytest.mark.parametrize("norm_sum", [True, False])
def test_a_norm_of_the_sum_forgets_how_long_the_words_are(norm_sum: bool) -> None:
    encoder = tiny("none", norm_sum=norm_sum)
    before = encoder(some_words(), EVERYWHERE)
    encoder.embed.weight.mul_(10)
    moved = (encoder(some_words(), EVERYWHERE) - before).abs().max()
    assert moved < 1e-3 if norm_sum else moved > 0.1


def test_tied_models_have_one_table_of_words() -> None:
    tied = tiny("add", tied=True)
    assert tied.score.weight is tied.embed.weight
    assert tiny("add").score.weight is not tiny("add").embed.weight


def test_decay_spares_the_table_of_words_and_all_vectors() -> None:
    model = tiny("add-learned")
    setting = Setting("add-learned", rate=0.5, embedding_rate=3.0)
    optimiser = common.optimiser_of(model, setting)
    decays = {id(w): g["weight_decay"] for g in optimiser.param_groups for w in g["params"]}
    rates = {id(w): g["lr"] for g in optimiser.param_groups for w in g["params"]}
    for weight in model.parameters():
        is_table = weight is model.embed.weight
        assert decays[id(weight)] == (0 if is_table or weight.ndim < 2 else 0.01)
        assert rates[id(weight)] == (1.5 if is_table else 0.5)
    plain = common.optimiser_of(model, replace(setting, optimiser="SGD"))
    assert {(g["momentum"], g["weight_decay"]) for g in plain.param_groups} == {(0.9, 0.0)}


def test_the_rate_rises_and_then_falls_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        common, "optimiser_of", lambda model, _: Recorder(model.parameters(), lr=1.0)
    )
    setting = Setting("none", steps=8, warm_up=3)
    windows = some_words().expand(2, -1)
    draw = torch.Generator().manual_seed(0)
    batch = words.asked("masked", torch.cat((windows, windows[:, :1]), dim=1), draw, 3)
    common.train(tiny("none"), iter([batch] * 8), setting, lambda step, loss: None)
    assert Recorder.rates == pytest.approx([1 / 4, 2 / 4, 3 / 4, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


def batches(steps: int) -> Iterator[words.Batch]:
    draw = torch.Generator().manual_seed(0)
    for _ in range(steps):
        windows = torch.randint(2, TINY.vocabulary, (4, TINY.seq_len + 1), generator=draw)
        yield words.asked("masked", windows, draw, 3)


def test_training_that_was_stopped_ends_where_it_would_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "CHECKPOINT_EVERY", 4)
    setting, checkpoint = Setting("rotary", steps=10, warm_up=2), tmp_path / "run.pt"

    def train(stop_at: int | None = None) -> tuple[Transformer, list[float]]:
        noted: dict[str, Any] = {"losses": []}
        model = tiny("rotary")

        def watch(step: int, loss: float) -> None:
            if step == stop_at:
                raise KeyboardInterrupt
            noted["losses"].append(loss)

        common.train(model, batches(10), setting, watch, checkpoint=checkpoint, watched=noted)
        return model, noted["losses"]

    whole, losses = train()
    checkpoint.unlink()
    with pytest.raises(KeyboardInterrupt):
        train(stop_at=7)
    again, losses_again = train()
    assert losses_again == losses
    assert all(map(torch.equal, whole.parameters(), again.parameters()))


def test_results_are_rows_and_what_is_missing_is_known(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    settings = [Setting("add", seed=0), Setting("add", seed=1), Setting("add", seed=1)]
    assert common.missing(settings, results) == settings[:2]
    results.append(vars(settings[0]) | {"loss": 4.0})
    assert common.missing(settings, results) == settings[1:2]
    results.append(vars(settings[1]) | {"loss": math.nan})
    assert common.missing(settings, results) == []
    assert [row["seed"] for row in results.rows()] == [0, 1]


def made_up_run(setting: Setting, device: str = "cpu") -> Run:
    return vars(setting) | {"device": device, "cpu_seconds": 1.0}


def test_what_is_missing_is_made_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "results.jsonl")
    settings = {"two seeds": [Setting("add", seed=seed) for seed in (0, 1)]}
    results.append(vars(settings["two seeds"][0]))
    monkeypatch.setattr(common, "pool", lambda *_: ThreadPool(1))
    monkeypatch.setattr("sys.argv", ["order"])
    common.command("", settings, made_up_run, results, None, {48: 0.03})
    assert [row["seed"] for row in results.rows()] == [0, 1]
    assert results.rows()[1]["device"] == "cpu"
    assert "1 of 2 runs are missing" in capsys.readouterr().out


WORKING = """
from experiments.common import pool

with pool(1) as working:
    working.apply(exec, ("import os, time; print(os.getpid(), flush=True); time.sleep(600)",))
"""


def test_workers_end_with_a_command_that_is_killed() -> None:
    command = [sys.executable, "-c", WORKING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as killed:
        assert killed.stdout is not None
        assert int(killed.stdout.readline()) != killed.pid
        killed.kill()
        killed.communicate(timeout=60)  # the worker has this output, too, until it ends


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "results.jsonl")
    monkeypatch.setattr("sys.argv", ["order", "--device", "cuda"])
    with pytest.raises(SystemExit):
        common.command("", {"one": [Setting("add")]}, made_up_run, results, None, {48: 0.03})
    assert "--device: 'cuda' needs an NVIDIA GPU" in capsys.readouterr().err
    assert not results.rows()


class Job(NamedTuple):
    seed: int


class Processes:
    """What a pool does, here and now."""

    imap = staticmethod(map)


def test_a_series_makes_what_it_lacks_and_keeps_how_it_was_made(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    run = {"accuracy": 1.0, "cpu_seconds": 2.0}

    def make(name: str, seeds: int) -> None:
        jobs = [Job(seed) for seed in range(seeds)]
        common.make_series(
            results, name, lambda: {"date": name}, jobs, lambda job: job._asdict() | run, Processes
        )

    make("one", 1)
    make("other", 2)
    make("one", 3)
    one = common.read_series(results, "one")
    assert one == {"date": "one", "cpu_seconds": 6, "runs": [{"seed": s} | run for s in range(3)]}
    assert len(results.rows()) == 2 + 3 + 2
