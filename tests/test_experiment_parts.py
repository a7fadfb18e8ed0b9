"""Parts of the experiments by hand: what is drawn, trained, looked at, chosen and counted.

A run that is made again elsewhere may differ a little, so it does not show a fault in one part.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
import torch
from small_encoder import EVERYWHERE, TINY, made_up, some_words, tiny
from torch import Tensor, nn

from experiments import length_transfer, positions_results, rank
from experiments import positions as experiment
from experiments.positions_model import WAYS, Layer, NoPositions, RelativeBias
from pe_lib.torch import frequencies


class Recorder(torch.optim.SGD):
    """Notes the rate of every step, and changes nothing."""

    rates: list[float]

    def __init__(self, weights: Any, lr: float, **_: Any) -> None:
        super().__init__(weights, lr=lr)
        Recorder.rates = []

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        Recorder.rates.append(self.param_groups[0]["lr"])


# The model of `positions.py`


@torch.no_grad()
def test_a_norm_comes_before_each_part_or_after_each_sum() -> None:
    way, x = NoPositions(TINY), 3 + 5 * torch.randn(2, TINY.seq_len, 16)
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


@pytest.mark.parametrize(
    ("way", "std"),
    [
        ("none", 1.0),
        ("add", 1.0),
        ("add-norm-1", 1 / 8),
        ("add-variance-1", 1.0),
        ("add-0.02", 0.02),
        ("add-learned", 0.02),
        ("add-learned-fast", 0.02),
        ("add-small", 0.02),
        ("split-16", 1.0),
        ("split-16-small", 0.02),
        ("keep-both-16", 1.0),
        ("project", 1.0),
    ],
)
@torch.no_grad()
def test_words_are_drawn_as_large_as_the_way_says(way: str, std: float) -> None:
    encoder = tiny(way)
    words = encoder.embed.weight * encoder.way.word_factor
    assert float(words.std()) == pytest.approx(std, rel=0.1)
    if way == "project":  # which keeps them as large as they are in `add`
        found = encoder.way.tables(words)
        assert found
        words, _ = found
        assert float(words.std()) == pytest.approx(1, rel=0.2)
    if way.startswith("add-learned"):
        found = encoder.way.tables(words)
        assert found
        _, rows = found
        assert float(rows.std()) == pytest.approx(0.02, rel=0.2)
    if way.endswith("-small"):
        rows = dict(encoder.way.named_buffers())["rows"]
        assert float(rows.square().mean().sqrt()) == pytest.approx(0.02)


def test_alibi_takes_off_a_multiple_of_the_distance() -> None:
    bias = WAYS["alibi-unmasked"](TINY).bias()
    assert bias is not None
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for m, n in ((0, 0), (0, 5), (5, 0), (11, 10)):
            assert float(bias[head, m, n]) == -slope * abs(m - n)


@torch.no_grad()
def test_a_relative_bias_has_a_number_for_each_offset_on_either_side() -> None:
    way = RelativeBias(TINY)
    bias = way.bias()
    for m, n in ((0, 0), (0, 11), (11, 0), (4, 7)):
        assert torch.equal(bias[:, m, n], way.values[:, n - m + 11])


# Its training


def test_decay_spares_the_table_of_words_and_all_vectors() -> None:
    model = tiny("add-learned")
    setting = experiment.Setting("add-learned", rate=0.5, embedding_rate=3.0)
    optimiser = experiment.optimiser_of(model, setting)
    decays = {id(w): g["weight_decay"] for g in optimiser.param_groups for w in g["params"]}
    rates = {id(w): g["lr"] for g in optimiser.param_groups for w in g["params"]}
    for weight in model.parameters():
        is_table = weight is model.embed.weight
        assert decays[id(weight)] == (0 if is_table or weight.ndim < 2 else 0.01)
        assert rates[id(weight)] == (1.5 if is_table else 0.5)
    plain = experiment.optimiser_of(model, replace(setting, optimiser="SGD"))
    assert {(g["momentum"], g["weight_decay"]) for g in plain.param_groups} == {(0.9, 0.0)}


def test_the_rate_rises_and_then_falls_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        experiment, "optimiser_of", lambda model, _: Recorder(model.parameters(), lr=1.0)
    )
    setting = experiment.Setting("none", steps=8, warm_up=3)
    windows = some_words().expand(2, -1)
    draw = torch.Generator().manual_seed(0)
    batch = experiment.asked("masked", torch.cat((windows, windows[:, :1]), dim=1), draw, 3)
    experiment.train(tiny("none"), iter([batch] * 8), setting, lambda step, loss: None)
    assert Recorder.rates == pytest.approx([1 / 4, 2 / 4, 3 / 4, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize(("task", "asked"), [("masked", 7), ("next", 48)])
def test_held_out_windows_lie_one_after_the_other(task: str, asked: int) -> None:
    text = torch.arange(2, 2 + 5 * 48 + 1)
    setting = experiment.Setting("add", task=task)
    ((tokens, target_indices, answers),) = experiment.held_out_batches(text, setting)
    assert answers.shape == (5 * asked,)
    read = (
        tokens.flatten().scatter(0, target_indices, answers)
        if task == "masked"
        else tokens.flatten()
    )
    assert torch.equal(read, text[:-1])
    ((fewer, _, _),) = experiment.held_out_batches(text, setting, every=2)
    assert len(fewer) == 3


# What is looked at


def test_neighbours_are_the_word_before_the_same_and_the_next() -> None:
    """Of ALiBi's heads, with their mask, every second looks back only, and the others ahead."""
    target_indices = EVERYWHERE
    batch = experiment.Batch(some_words(), target_indices, some_words().flatten())
    for layer in experiment.neighbours(tiny("alibi"), batch):
        for head, (before, same, after) in enumerate(layer):
            assert same > 0
            assert (before > 0, after > 0) == ((True, False) if head % 2 == 0 else (False, True))


def test_overlap_by_hand() -> None:
    """Positions on a circle of the first two axes. Words differ along the first, one of them in
    four comes 2 further, and all are moved by 3 along the third."""
    angle = 2 * math.pi * torch.arange(8, dtype=torch.float64) / 8
    rows = torch.stack((angle.cos(), angle.sin(), 0 * angle, 0 * angle), dim=-1)
    words = torch.tensor([[2.0, 0, 3, 0], [0, 0, 3, 0]], dtype=torch.float64)
    found = experiment.overlap_of(words, rows, torch.tensor([0.25, 0.75], dtype=torch.float64))
    assert found["ratio_db"] == pytest.approx(10.0)  # 0.25 · 13 + 0.75 · 9 = 10, beside 1
    assert found["aligned"] == pytest.approx(math.sqrt(0.5), abs=1e-4)
    assert found["word_share"] == 1
    assert found["even_share"] == 0.5


# Which runs there are


def test_rates_are_chosen_by_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates beyond the grid are tried until the best lies between others, or two have been."""
    made: set[experiment.Setting] = set()
    best = {"add": 8e-3, "rotary": 5e-4, "none": 2e-3, "project": 1}

    def load(setting: experiment.Setting) -> positions_results.Run:
        loss = abs(math.log(setting.rate / best[setting.way]))
        return positions_results.PLAIN | asdict(setting) | {"loss": loss}

    monkeypatch.setattr(experiment, "stored", made.__contains__)
    monkeypatch.setattr(experiment, "load", load)
    monkeypatch.setattr(experiment, "load_results", lambda: list(map(load, made)))
    for _ in range(3):
        assert experiment.at_best_rate("masked", list(best), seed=1) == []
        made.update(experiment.wider_grid("masked", list(best)))
    grid = set(experiment.GRID)
    assert {
        way: {setting.rate for setting in experiment.wider_grid("masked", [way])} for way in best
    } == {
        "add": grid | {8e-3, 16e-3},
        "rotary": grid | {5e-4, 25e-5},
        "none": grid,
        "project": grid | {8e-3, 16e-3},
    }
    chosen = experiment.at_best_rate("masked", list(best), seed=1)
    assert {setting.way: setting.rate for setting in chosen} == best | {"project": 16e-3}
    usual = experiment.compared("masked", list(best), seed=1)
    assert [replace(setting, rate=positions_results.RATE) for setting in chosen] == usual
    large = {setting.rate for setting in experiment.large("masked")}
    assert large == {positions_results.RATE / 2}


@pytest.mark.parametrize(
    "changed",
    [
        {"size": "large"},
        {"optimiser": "SGD"},
        {"norm": "post"},
        {"matched": False},
        {"tied": True},
        {"norm_sum": True},
        {"embedding_rate": 2.0},
        {"warm_up": 0},
    ],
)
def test_runs_of_controls_are_not_plain(changed: dict[str, Any]) -> None:
    usual = made_up("add", 0, 4.0)
    defaults = experiment.Setting("add")
    assert positions_results.plain([usual, made_up("add", 0, 4.0, **changed)]) == [usual]
    assert {name: getattr(defaults, name) for name in changed} != changed
    assert all(usual[name] == getattr(defaults, name) for name in changed)
    assert not experiment.is_control(replace(defaults, task="next", seed=1, steps=9, rate=1.0))
    assert experiment.is_control(replace(defaults, **changed)) == ("size" not in changed)


@pytest.mark.parametrize("losses", [*itertools.permutations((4.99, 5.01, math.nan))])
def test_a_run_that_diverged_counts_as_the_highest(losses: tuple[float, ...]) -> None:
    """In whichever order the runs were read: NaN has no place in the usual order."""
    split = [made_up("split-16", 0, loss, rate=0.1 * loss) for loss in losses]
    others = [made_up("add", 0, 5.0), made_up("project", 0, 5.03), made_up("none", 0, math.nan)]
    found = positions_results.spread(split)
    assert (found.median, found.lowest, found.seeds) == (5.01, 4.99, 3)
    assert math.isnan(found.highest)
    order = ["add", "split-16", "project", "none"]
    assert list(positions_results.by(split + others, "way")) == order

    short = {"steps": positions_results.GRID_STEPS, "seed": positions_results.GRID_SEED}
    assert positions_results.best_rate([run | short for run in split], "masked", "split-16") == (
        pytest.approx(0.1 * 4.99)
    )


def test_the_results_know_the_model_and_the_settings() -> None:
    """They say for themselves what needs PyTorch elsewhere."""
    assert experiment.SIZES["small"].d_model == positions_results.WIDTH
    settings = {field.name for field in fields(experiment.Setting)}
    assert {*positions_results.SETTINGS, "seed"} == settings
    assert set(positions_results.PLAIN) <= settings


# The experiment on rank


@torch.no_grad()
def test_positions_are_added_or_joined_as_long_as_asked_for() -> None:
    tokens = torch.randint(rank.VOCABULARY, (2, rank.LENGTH))
    for way in rank.WAYS:
        model = rank.Encoder(8, way, "trained", rows_times=3.0)
        words, rows = model.embed(tokens), 3 * rank.table(8).expand(2, -1, -1)
        joined = torch.cat((words, rows), dim=-1)
        entered = words + rows if model.join is None else joined @ model.join.weight.T
        torch.testing.assert_close(model(tokens), model.score(model.layers(entered)))


@pytest.mark.parametrize("turning", rank.RANKS)
def test_rows_are_as_long_at_every_rank(turning: int) -> None:
    rows = rank.table(turning)
    assert torch.linalg.matrix_rank(rows) == turning
    torch.testing.assert_close(rows.square().sum(dim=1), torch.full((64,), 32.0))


def test_a_run_on_rank_has_its_own_steps_and_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[Tensor]] = []
    measured: list[int] = []

    def fit(model: nn.Module, task: str, batches: Iterator[Tensor], steps: int, *_: Any) -> None:
        shown.append(list(batches))
        assert len(shown[-1]) == steps

    def right(*_: Any, seed: int, **__: Any) -> Tensor:
        measured.append(seed)
        return torch.ones(1)

    monkeypatch.setattr(length_transfer, "fit", fit)
    monkeypatch.setattr(length_transfer, "right", right)
    for seed in (0, 1):
        rank.run(rank.Job("as drawn", 8, "add", seed, steps=7))
    first, second = shown
    assert len(first) == 7
    assert not torch.equal(first[0], second[0])
    assert measured == [0, 1]


# The experiment on length


class Copy(nn.Module):
    """Scores that are right for the task "copy", and wrong for others."""

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = nn.functional.one_hot(tokens.roll(3, dims=1), length_transfer.VOCABULARY)
        return scores


def test_right_answers_are_counted_on_fresh_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def batches(seed: int, *sizes: int) -> Iterator[Tensor]:
        seeds.append(seed)
        return draw(seed, *sizes)

    draw = length_transfer.batches
    monkeypatch.setattr(length_transfer, "batches", batches)
    assert length_transfer.accuracy(Copy(), "copy", 48, seed=3) == 1
    assert length_transfer.accuracy(Copy(), "block", 48, seed=3) < 0.5
    assert seeds == [length_transfer.TEST_STREAM + 3] * 2


def test_the_rate_falls_to_zero_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    model = length_transfer.Encoder("none")
    shown = length_transfer.batches(0, 4, 2, length_transfer.LENGTH)
    length_transfer.fit(model, "copy", shown, 4, 1.0)
    assert Recorder.rates == pytest.approx([1, 0.75, 0.5, 0.25])


def test_frequencies_are_stretched_from_those_of_training() -> None:
    once, twice = (length_transfer.Encoder("rotary") for _ in range(2))
    once.stretch("YaRN", 4)
    twice.stretch("interpolation", 2)
    twice.stretch("YaRN", 4)
    omegas = [
        [part.omega for part in model.modules() if isinstance(part, length_transfer.Attention)]
        for model in (once, twice)
    ]
    assert all(map(torch.equal, *omegas))
    trained = frequencies(length_transfer.SMALL.d_model // length_transfer.HEADS).double()
    expected = length_transfer.stretched(trained, "YaRN", 4)
    assert not torch.equal(expected, trained)
    assert all(torch.equal(omega, expected) for omega in omegas[0])
