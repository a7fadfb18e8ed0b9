"""The experiment "Add or concatenate": one stored run is made again, and the parts are tried."""

import itertools
import math
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from small_encoder import TINY, made_up, one_thread, tiny

from experiments import common, words
from experiments.common import Results, Transformer, parameters
from experiments.encodings import ENCODINGS
from experiments.positions import results
from experiments.positions import run as experiment
from experiments.stored import Run

__all__ = ["one_thread"]


def test_a_stored_run_is_made_again() -> None:
    """To the last digit on the same processor and versions, within 0.02 nats elsewhere."""
    (then,) = experiment.SHORT.rows()
    now = experiment.make_short()
    assert math.isclose(now["loss"], then["loss"], abs_tol=0.02)
    assert math.isclose(now["standard_error"], then["standard_error"], rel_tol=0.1)
    for (step, held_out, training), stored in zip(now["curve"], then["curve"], strict=True):
        assert step == stored[0]
        assert [held_out, training] == pytest.approx(stored[1:], abs=0.02)
    if now["made"] | {"date": ""} == then["made"] | {"date": ""}:  # the same machine and versions
        then["curve"] = [tuple(point) for point in then["curve"]]  # JSON has no tuples
        for run in (now, then):
            del run["cpu_seconds"], run["made"]
        assert now == then


@pytest.mark.parametrize("way", [*results.MAIN_WAYS, *experiment.others("next")])
def test_whoever_predicts_the_next_word_sees_all_the_words_before_it(way: str) -> None:
    bias = tiny(way, causal=True).bias(TINY.seq_len)
    assert bias is not None
    hidden = bias.isneginf()
    assert torch.equal(hidden, torch.ones_like(hidden).triu(1))


def test_the_price_is_what_the_best_matrix_loses() -> None:
    """The theorem's R against least squares over all pairs, for keeping words and dropping rows."""
    draw = torch.Generator().manual_seed(0)
    table = torch.randn(30, 6, generator=draw, dtype=torch.float64)
    rows = torch.randn(20, 6, generator=draw, dtype=torch.float64) * torch.arange(1, 7) / 3
    frequency = torch.rand(30, generator=draw, dtype=torch.float64)
    frequency = frequency / frequency.sum()
    shifted, moved = table + rows.mean(dim=0), rows - rows.mean(dim=0)
    sums = (shifted[:, None] + moved).flatten(0, 1)
    wanted = shifted[:, None].expand(-1, 20, -1).flatten(0, 1)
    weight = (frequency / 20).repeat_interleave(20).sqrt()[:, None]
    best = torch.linalg.lstsq(weight * sums, weight * wanted).solution
    lost = (weight * (sums @ best - wanted)).square().sum()
    of_both = frequency @ shifted.square().sum(dim=1) + moved.square().sum(dim=1).mean()
    found = experiment.overlap_of(table, rows, frequency)["price"]
    assert found == pytest.approx(float(2 * lost / of_both), abs=1e-4)


def test_the_factor_is_also_a_learning_rate() -> None:
    """Under Adam, words times √d learn as words of variance 1 whose table has √d times the rate."""
    text = torch.from_numpy(words.sonnets().training)
    setting = experiment.Setting("add", steps=8, warm_up=0)
    root = math.sqrt(common.SIZES["small"].d_model)

    def curve(setting: experiment.Setting) -> list[float]:
        losses: list[float] = []
        batches = experiment.training_batches(text, setting)
        model = experiment.transformer(setting)
        common.train(model, batches, setting, lambda _, loss: losses.append(loss))
        return losses

    compensated = replace(setting, way="add-variance-1", embedding_rate=root)
    np.testing.assert_allclose(curve(setting), curve(compensated), atol=2e-3)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("way", "rotery", "'none', 'add', "),
        ("task", "Masked", "'masked', 'next'"),
        ("size", "medium", "'small', 'large'"),
        ("optimiser", "Adam", "'AdamW', 'SGD'"),
        ("norm", "Pre", "'pre', 'post'"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused(name: str, value: str, allowed: str) -> None:
    """It would be trained as another one, and stored under its own name."""
    settings: dict[str, Any] = {"way": "add", name: value}
    with pytest.raises(ValueError, match=f"^{name} must be one of {allowed}.*, got '{value}'$"):
        experiment.Setting(**settings)


def test_names_tell_settings_apart() -> None:
    settings = {setting for _, some in experiment.series() for setting in some}
    assert len({setting.name for setting in settings}) == len(settings)


def test_stored_runs_are_as_large_and_as_long_as_they_say() -> None:
    runs = experiment.STORED.rows()
    assert len(runs) > 200
    settings = [experiment.setting_of(run) for run in runs]
    assert len(set(settings)) == len(settings)
    for run, setting in zip(runs, settings, strict=True):
        assert run["curve"][-1][0] == run["steps"]
        if setting.matched and not setting.tied and not setting.norm_sum:
            size = common.SIZES[setting.size]
            wanted = parameters(Transformer(ENCODINGS["add"](size), 4 * size.d_model))
            assert abs(run["parameters"] / wanted - 1) < 0.01
        measured = setting.way == "project" and not experiment.is_control(setting)
        assert ("folding_moves_loss_by" in run) == measured
        if measured:
            assert run["folding_moves_loss_by"] < 1e-4


def test_results_are_put_in_the_order_of_their_medians() -> None:
    """Which is neither that of the best seeds, nor that in which the runs come."""
    runs = [made_up("rotary", seed, loss) for seed, loss in enumerate((3.9, 4.3, 4.4))]
    runs += [made_up("add", seed, loss) for seed, loss in enumerate((4.5, 4.0, 4.1))]
    runs += [made_up("rotary", 0, 9.0, norm="post")]
    plain = results.plain(runs, task="masked")
    groups = results.by(plain, "way")
    assert list(groups) == ["add", "rotary"]
    assert results.spread(groups["add"]) == (4.1, 4.0, 4.5, 3)
    lines = results.summary(runs)
    assert len(lines) == 3
    assert any("add" in line and "4.100 (4.000 to 4.500, 3 seeds)" in line for line in lines)
    assert any("norm=post" in line and "9.000" in line for line in lines)


def test_the_main_ways_are_compared_at_one_rate_and_one_length() -> None:
    def run(way: str, seed: int, steps: int, rate: float, loss: float) -> Run:
        return made_up(way, seed, loss, steps=steps, rate=rate)

    short, long = results.GRID_STEPS, results.STEPS
    runs = [
        run("add", results.GRID_SEED, short, 2e-3, 4.6),
        run("add", results.GRID_SEED, short, 4e-3, 4.5),
        run("add", 0, long, 2e-3, 4.1),
        run("add", 1, long, 2e-3, 4.2),
        run("add", 0, long, 4e-3, 4.0),
        run("add", 0, 2 * long, 2e-3, 3.9),
        run("rotary", 0, long, 2e-3, 3.7),
        run("rotary", 0, long, 2e-3, 9.0) | {"tied": True},
        run("add-norm-1", 0, long, 2e-3, 3.6),
    ]
    found = results.compared(runs, "masked")
    assert list(found) == ["rotary", "add"]
    assert [one["loss"] for one in found["add"]] == [4.1, 4.2]
    assert results.compared(runs, "next") == {}
    assert results.best_rate(runs, "masked", "add") == 4e-3


def test_the_plateau_ends_where_the_curve_falls_below_a_level() -> None:
    """The curve is that of the text held out: 5.0 at step 100, 4.6 at step 200."""
    for level, step in ((5.05, 100), (4.8, 200), (4.65, 200), (4.6, None), (4.0, None)):
        assert results.left_plateau(made_up("add", 0, 4.0), level) == step


def test_the_strongest_neighbour_is_not_the_word_itself() -> None:
    """It may be the word before or the one after, in any layer."""
    before = {"neighbours": [[[0.1, 0.9, 0.2]], [[0.3, 0.1, 0.05]]]}
    after = {"neighbours": [[[0.1, 0.9, 0.4]]]}
    assert results.strongest_neighbour(before) == 0.3
    assert results.strongest_neighbour(after) == 0.4


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


def test_rates_are_chosen_by_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates beyond the grid are tried until the best lies between others, or two have been."""
    made: set[experiment.Setting] = set()
    best = {"add": 8e-3, "rotary": 5e-4, "none": 2e-3, "project": 1}

    def load(setting: experiment.Setting) -> Run:
        loss = abs(math.log(setting.rate / best[setting.way]))
        return results.PLAIN | asdict(setting) | {"loss": loss}

    monkeypatch.setattr(experiment, "stored", made.__contains__)
    monkeypatch.setattr(experiment, "load", load)
    rows = Results(results.RESULTS)
    monkeypatch.setattr(rows, "rows", lambda: list(map(load, made)))
    monkeypatch.setattr(experiment, "STORED", rows)
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
    assert [replace(setting, rate=results.RATE) for setting in chosen] == usual
    large = {setting.rate for setting in experiment.large("masked")}
    assert large == {results.RATE / 2}


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
    assert results.plain([usual, made_up("add", 0, 4.0, **changed)]) == [usual]
    assert {name: getattr(defaults, name) for name in changed} != changed
    assert all(usual[name] == getattr(defaults, name) for name in changed)
    assert not experiment.is_control(replace(defaults, task="next", seed=1, steps=9, rate=1.0))
    assert experiment.is_control(replace(defaults, **changed)) == ("size" not in changed)


@pytest.mark.parametrize("losses", [*itertools.permutations((4.99, 5.01, math.nan))])
def test_a_run_that_diverged_counts_as_the_highest(losses: tuple[float, ...]) -> None:
    """In whichever order the runs were read: NaN has no place in the usual order."""
    split = [made_up("split-16", 0, loss, rate=0.1 * loss) for loss in losses]
    others = [made_up("add", 0, 5.0), made_up("project", 0, 5.03), made_up("none", 0, math.nan)]
    found = results.spread(split)
    assert (found.median, found.lowest, found.seeds) == (5.01, 4.99, 3)
    assert math.isnan(found.highest)
    order = ["add", "split-16", "project", "none"]
    assert list(results.by(split + others, "way")) == order

    short = {"steps": results.GRID_STEPS, "seed": results.GRID_SEED}
    assert results.best_rate([run | short for run in split], "masked", "split-16") == (
        pytest.approx(0.1 * 4.99)
    )


def test_the_results_know_the_model_and_the_settings() -> None:
    """They say for themselves what needs PyTorch elsewhere."""
    assert common.SIZES["small"].d_model == results.WIDTH
    settings = {field.name for field in fields(experiment.Setting)}
    assert {*results.SETTINGS, "seed"} == settings
    assert set(results.PLAIN) <= settings


def test_exits_and_losses_are_of_comparable_runs_that_left_the_plateau() -> None:
    """The level is 4.6 − 0.1, from the lowest point of the run without positions."""
    runs = [
        made_up("none", 0, 4.7, steps=results.STEPS, rate=results.RATE),
        made_up("add", 0, 4.0, steps=results.STEPS) | {"curve": [[100, 4.4, 4.4]]},
        made_up("add", 1, 3.9, steps=results.STEPS) | {"curve": [[100, 4.6, 4], [200, 4.4, 4]]},
        made_up("add", 2, 4.8, steps=results.STEPS),  # stays on it
        made_up("mask-alone", 0, 4.0, steps=results.STEPS) | {"curve": [[100, 4.4, 4.4]]},
        made_up("rotary", 0, 4.0) | {"curve": [[100, 4.4, 4.4]]},  # too few steps
        made_up("rotary", 0, 4.0, steps=results.STEPS, norm="post"),
    ]
    found = results.exits_and_losses(runs)
    assert found == [("add", 0, 100, 4.0, None), ("add", 1, 200, 3.9, None)]
    assert results.rank_correlation(found) == pytest.approx(-1)


def test_the_correlation_within_ways_ignores_what_lies_between_them() -> None:
    """Late ways end low here, but within each way late seeds end high."""
    pairs = [
        results.ExitAndLoss(way, seed, step + 10 * seed, loss + seed / 100, loss if seed else None)
        for way, step, loss in (("add", 900, 3.0), ("split-16", 500, 4.0))
        for seed in range(3)
    ]
    found = results.rank_within(pairs)
    assert results.rank_correlation(pairs) < 0
    assert found.correlation == pytest.approx(1)
    assert found.chance == pytest.approx(1 / 3)  # 1 and −1, of 6 orders
    assert (found.ways, found.runs) == (2, 6)
    lonely = [*pairs, results.ExitAndLoss("project", 0, 100, 9.0)]
    assert results.rank_within(lonely) == found


def test_seeds_are_exchanged_in_all_ways_at_once() -> None:
    """Two ways that order three seeds alike are no more surprising than one."""
    pairs = [results.ExitAndLoss("add", seed, seed, float(seed)) for seed in range(3)]
    twice = [*pairs, *(pair._replace(way="project") for pair in pairs)]
    assert results.rank_within(twice).chance == results.rank_within(pairs).chance


def test_the_loss_from_a_step_is_on_the_curve() -> None:
    run = {"curve": [[100, 5.0, 5.0], [200, 4.0, 5.0]]}
    assert [results.loss_from(run, step) for step in (100, 101, 200, 201)] == [5.0, 4.0, 4.0, None]


def test_the_rank_correlation_is_that_of_ranks_by_hand() -> None:
    """Pearson's correlation of ranks, where runs that are equal share the mean of their ranks."""
    steps, losses = (300, 300, 400, 900), (3.6, 3.7, 3.65, 4.0)
    pairs = [results.ExitAndLoss("add", 0, s, x) for s, x in zip(steps, losses, strict=True)]
    by_hand = np.corrcoef([1.5, 1.5, 3, 4], [1, 3, 2, 4])[0, 1]
    assert results.rank_correlation(pairs) == pytest.approx(by_hand)


def test_exit_ranks_the_stored_runs_almost_as_their_loss_does() -> None:
    """What the pages say: 0.93 over 172 runs. A smaller margin says the same."""
    runs = results.load_results()
    pairs = results.exits_and_losses(runs)
    assert len(pairs) == 172
    assert results.rank_correlation(pairs) == pytest.approx(0.93, abs=0.005)
    assert results.rank_correlation(results.exits_and_losses(runs, margin=0.05)) > 0.9
