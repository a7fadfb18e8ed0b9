"""The experiment on order: a stored run is made again, and what the pages read is tried."""

import math
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from small_encoder import one_thread

from experiments.order import figures, results
from experiments.order import run as experiment
from experiments.positions import results as positions
from experiments.stored import Run

__all__ = ["one_thread"]


def test_a_stored_run_is_made_again() -> None:
    """To the last digit on the same processor and versions, within 0.02 nats elsewhere."""
    (then,) = experiment.RESULTS.short.rows()
    now = experiment.run(experiment.SHORT)
    for name in ("loss", "validation_loss", "loss_known"):
        assert math.isclose(now[name], then[name], abs_tol=0.02)
    assert now["windows"] == pytest.approx(then["windows"], abs=0.1)
    if now["made"] | {"date": ""} == then["made"] | {"date": ""}:
        now["curve"], now["heads"] = map(listed, (now["curve"], now["heads"]))
        del now["cpu_seconds"], now["made"], then["cpu_seconds"], then["made"]
        assert now == then


def listed(pairs: list[tuple[Any, ...]]) -> list[list[Any]]:
    """As JSON stores them."""
    return [list(pair) for pair in pairs]


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^encoding must be one of 'none', .*, got 'rotery'$"):
        experiment.Setting("rotery")


def test_every_run_is_in_one_series_and_named_apart() -> None:
    settings = [setting for some in experiment.series().values() for setting in some]
    assert len({setting.name for setting in settings}) == len(set(settings)) == len(settings)


def test_stored_runs_are_whole() -> None:
    for run in results.load_results():
        assert run["curve"][-1][0] == run["steps"]
        assert run["loss"] == pytest.approx(sum(run["windows"]) / len(run["windows"]), abs=1e-3)
        error = torch.tensor(run["windows"]).std() / math.sqrt(len(run["windows"]))
        assert run["standard_error"] == pytest.approx(float(error), abs=1e-4)
        assert 0 < run["known"] < run["answers"]


def made_up(encoding: str, seed: int, falls: int | None, windows: list[float]) -> Run:
    """A run whose curve falls from 5 to 4 at a step, as far as the readers look at it."""
    curve = [
        [step, 4.0 if falls is not None and step >= falls else 5.0, 5.0] for step in (50, 100, 150)
    ]
    loss = sum(windows) / len(windows)
    heads = [[50, [[[0.1, 0.0, 0.05]]]], [100, [[[0.1, 0.0, 0.01], [0.0, 0.9, 0.2]]]]]
    return {
        "encoding": encoding,
        "seed": seed,
        "curve": curve,
        "windows": windows,
        "loss": loss,
        "loss_known": loss - 1,
        "heads": heads,
    }


def test_a_run_leaves_the_plateau_where_its_curve_falls() -> None:
    runs = [
        made_up("none", 0, None, [5.0, 5.0]),
        made_up("add", 0, 150, [4.0, 4.2]),
        made_up("add", 1, None, [5.0, 5.2]),
        made_up("rotary", 0, 100, [3.0, 3.2]),
    ]
    level = results.plateau(runs)
    assert level == 5.0
    assert [results.exit_step(run, level) for run in runs] == [None, 150, None, 100]
    rotary, add, none = results.table(runs)
    assert (rotary.encoding, rotary.exits, rotary.seeds) == ("rotary", [100], 1)
    assert (add.encoding, add.exits, add.seeds) == ("add", [150, None], 2)
    assert none.encoding == "none"
    assert (add.median, add.lowest, add.highest) == pytest.approx((4.6, 4.1, 5.1))
    assert rotary.known == pytest.approx(2.1)
    assert results.head_step(runs[0]) == 50  # 0.1 is above a sixteenth


def test_paired_differences_are_those_of_the_windows() -> None:
    """Of 0.1, 0.2 and 0.3 the mean is 0.2, with a standard error of 0.1/√3."""
    runs = [
        made_up("add", 0, 100, [4.1, 4.2, 4.3]),
        made_up("add", 1, 100, [4.1, 4.2, 4.3]),
        made_up("rotary", 0, 100, [4.0, 4.0, 4.0]),
    ]
    (found,) = results.paired(runs, "add", "rotary")
    half = 1.959964 * 0.1 / math.sqrt(3)
    assert found.seed == 0
    assert found[1:] == pytest.approx((0.2, 0.2 - half, 0.2 + half))


def test_the_loss_after_exit_is_counted_from_the_exit() -> None:
    run = made_up("add", 0, 100, [4.0])
    assert results.loss_after_exit(run, 5.0, steps=50) == 4.0
    assert results.loss_after_exit(run, 5.0, steps=100) is None
    assert results.loss_after_exit(made_up("add", 0, None, [5.0]), 5.0) is None


def test_figures_show_each_run_and_each_encoding() -> None:
    drawn, (left, right) = plt.subplots(1, 2)
    ways = ("rotary", "untied", "split-16", "add-learned")
    pairs = [positions.ExitAndLoss(way, 0, 300, 3.7) for way in ways]
    figures.draw_exits(left, pairs)
    assert sum(len(line.get_xdata()) for line in left.lines) == len(pairs)
    runs = [made_up("add", seed, falls, [4.0]) for seed, falls in enumerate((50, 100, 100))]
    figures.draw_curves(right, runs, {"add": ("add", "k", "-"), "rotary": ("rotary", "k", "-")})
    (line,) = right.lines
    assert line.get_ydata().tolist() == [5.0, 4.0, 4.0]  # the medians
    plt.close(drawn)
