"""The experiment on places that mean something: which word stands where, and a run made again."""

import math
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from experiments import words
from experiments.chains import figures, results
from experiments.chains import run as experiment
from experiments.clock.foretelling import foretold_ahead
from experiments.words import MASK, UNKNOWN

LENGTH = 64


def read(kind: str) -> torch.Tensor:
    return experiment.places_read(kind, LENGTH, torch.Generator().manual_seed(0))


def test_what_is_kept_is_kept_and_what_moves_moves() -> None:
    place = torch.arange(LENGTH)
    assert (read("kept") == place).all()
    by = read("moved") - place
    assert (by == by[:, :1]).all()
    assert set(by[:, 0].tolist()) <= set(range(experiment.MOST + 1))
    assert len(set(by[:, 0].tolist())) > 8
    loop = read("loop") - place
    assert (loop[:, : LENGTH // 2] == 0).all()
    assert (loop[:, LENGTH // 2 :] == by[:, :1]).all()
    ends = read("ends")
    assert ((ends == place) | (ends == -1)).all()
    assert ((ends == -1).sum(dim=1) == by[:, 0]).all()


@pytest.mark.parametrize("kind", experiment.KINDS)
def test_hidden_words_are_those_of_the_passage(kind: str) -> None:
    """And a sixth or so of the others are not, which are the ones that were replaced."""
    setting = replace(experiment.SHORT, kind=kind)
    text = torch.from_numpy(words.text(setting.text).training)
    known = experiment.passages(text, LENGTH)
    (batch,) = experiment.batches(setting, 0, 1)
    draw = torch.Generator().manual_seed(setting.seed)
    which = torch.randint(experiment.PASSAGES, (words.BATCH, 1), generator=draw)
    places = experiment.places_read(kind, LENGTH, draw)
    meant = torch.where(places < 0, UNKNOWN, known[which, places])
    assert (meant.flatten()[batch.target_indices] == batch.answers).all()
    assert (batch.tokens.flatten()[batch.target_indices] == MASK).all()
    assert (places.flatten()[batch.target_indices] >= 0).all()
    seen = (batch.tokens != MASK) & (places >= 0)
    other = (batch.tokens != meant)[seen].float().mean().item()
    assert 0.08 < other < experiment.REPLACED + 0.03


def test_a_kind_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="kind must be one of kept, moved, loop, ends"):
        experiment.run(replace(experiment.SHORT, kind="still"))


def test_a_stored_run_is_made_again() -> None:
    """To the last digit on the same processor and versions, within 0.02 nats elsewhere."""
    (then,) = experiment.RESULTS.short.rows()
    now = experiment.run(experiment.SHORT)
    assert math.isclose(now["loss"], then["loss"], abs_tol=0.02)
    begin, end = results.moments(now)
    assert (begin.step, end.step) == (0, experiment.SHORT.steps)
    if now["made"] | {"date": ""} == then["made"] | {"date": ""}:
        now["curve"] = [list(point) for point in now["curve"]]
        del now["cpu_seconds"], now["made"], then["cpu_seconds"], then["made"]
        assert now == then


def test_the_stored_table_is_the_one_that_was_measured() -> None:
    for run in experiment.RESULTS.rows()[:4]:
        table = results.final_table(run)
        *_, end = results.moments(run)
        half = len(table) // 2
        for rows, share in ((table[:half], end.first), (table[half:], end.second)):
            assert foretold_ahead(rows) == pytest.approx(share.next_row, abs=5e-3)


def test_figure_has_a_mark_for_each_half_and_its_start() -> None:
    runs = experiment.RESULTS.rows()
    drawn, ax = plt.subplots()
    figures.draw_halves(ax, runs, dict.fromkeys(experiment.KINDS, ""))
    shown = np.concatenate([np.asarray(line.get_ydata()) for line in ax.lines[: 4 * len(runs)]])
    ends = [results.moments(run)[-1] for run in runs]
    for end in ends:
        assert end.first.next_row in shown
        assert end.second.next_row in shown
    plt.close(drawn)
