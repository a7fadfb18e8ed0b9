"""The experiment on texts that move: which word stands where, and a run made again."""

import math
from dataclasses import asdict, replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from experiments import words
from experiments.chains import figures, results
from experiments.chains import run as experiment
from experiments.clock.prediction import predicted_ahead
from experiments.clock.results import final_table
from experiments.words import MASK, UNKNOWN
from pe_book import plots

LENGTH = 64


def read(kind: str, most: int = experiment.MOST, seed: int = 0) -> torch.Tensor:
    setting = experiment.Setting(kind=kind, seq_len=LENGTH, most=most, seed=seed)
    return experiment.places_read(setting, torch.Generator().manual_seed(0))


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
    assert set((read("moved", most=3) - place)[:, 0].tolist()) == {0, 1, 2, 3}


def test_what_is_mixed_reads_as_many_words_as_what_moves_and_keeps_no_distance() -> None:
    place = torch.arange(LENGTH)
    mixed = read("mixed", most=3)
    assert (mixed.sort(dim=1).values == place).all()
    orders = {tuple(row.tolist()) for row in mixed}
    assert len(orders) == 4
    assert orders == {tuple(row.tolist()) for row in read("mixed", most=3)}
    assert orders.isdisjoint(tuple(row.tolist()) for row in read("mixed", most=3, seed=1))
    (one, *others) = (torch.tensor(order) for order in orders)
    steps = [(other[1:] - other[:-1] == one[1:] - one[:-1]).float().mean() for other in others]
    assert max(steps) < 0.1


@pytest.mark.parametrize("kind", experiment.KINDS)
def test_hidden_words_are_those_of_the_passage(kind: str) -> None:
    """And a sixth or so of the others are not, which are the ones that were replaced."""
    setting = replace(experiment.SHORT, kind=kind)
    text = torch.from_numpy(words.text(setting.text).training)
    known = experiment.passages(text, LENGTH + experiment.MOST)
    (batch,) = experiment.batches(setting, 0, 1)
    draw = torch.Generator().manual_seed(setting.seed)
    which = torch.randint(experiment.PASSAGES, (words.BATCH, 1), generator=draw)
    places = experiment.places_read(setting, draw)
    meant = torch.where(places < 0, UNKNOWN, known[which, places])
    assert (meant.flatten()[batch.target_indices] == batch.answers).all()
    assert (batch.tokens.flatten()[batch.target_indices] == MASK).all()
    assert (places.flatten()[batch.target_indices] >= 0).all()
    seen = (batch.tokens != MASK) & (places >= 0)
    other = (batch.tokens != meant)[seen].float().mean().item()
    assert 0.08 < other < experiment.REPLACED + 0.03


def test_the_exchange_of_a_mixed_run_is_what_its_windows_show() -> None:
    setting = experiment.Setting(kind="mixed", seq_len=LENGTH, most=1, seed=3)
    first, second = experiment.exchange(asdict(setting))
    read = experiment.places_read(setting, torch.Generator().manual_seed(0)).numpy()
    word = np.arange(LENGTH)
    of_first = (read[:, first] == word).all(axis=1)
    of_second = (read[:, second] == word).all(axis=1)
    assert (of_first ^ of_second).all()
    assert of_first.any()
    assert of_second.any()


def test_passages_are_words_of_the_text_from_all_over_it() -> None:
    text = torch.arange(10_000)
    known = experiment.passages(text, 80)
    assert known.shape == (experiment.PASSAGES, 80)
    assert (known.diff(dim=1) == 1).all()  # consecutive words
    apart = known[:, 0].diff()
    assert (apart == apart[0]).all()
    assert known[-1, -1] > 9_500
    with pytest.raises(ValueError, match="text must have 580 words or more, got 500"):
        experiment.passages(text[:500], 80)


def test_windows_differ_from_step_to_step_seed_to_seed_and_stream_to_stream() -> None:
    def first(seed: int, stream: int) -> list[torch.Tensor]:
        setting = replace(experiment.SHORT, seed=seed)
        return [batch.tokens for batch in experiment.batches(setting, stream, 2)]

    again, same = first(0, 0), first(0, 0)
    assert all(torch.equal(one, other) for one, other in zip(again, same, strict=True))
    others = [again[1], first(1, 0)[0], first(0, 7)[0]]
    assert all(not torch.equal(again[0], other) for other in others)


def test_a_window_asks_for_nine_words_and_replaces_some_by_many_others() -> None:
    (batch,) = experiment.batches(experiment.SHORT, 0, 1)
    assert batch.tokens.shape == (words.BATCH, LENGTH)
    asked = batch.target_indices.view(words.BATCH, -1) // LENGTH
    assert (asked == torch.arange(words.BATCH)[:, None]).all()
    assert asked.shape[1] == experiment.HIDDEN == 9
    (kept,) = experiment.batches(replace(experiment.SHORT, kind="kept"), 0, 1)
    text = torch.from_numpy(words.text("sonnets").training)
    known = experiment.passages(text, LENGTH + experiment.MOST)[:, :LENGTH]
    alike = (kept.tokens[:, None] == known).sum(dim=2)
    assert (alike.max(dim=1).values > 0.6 * LENGTH).all()
    assert len(set(alike.argmax(dim=1).tolist())) > 20  # of 32 windows
    nearest = known[alike.argmax(dim=1)]
    replaced = kept.tokens[(kept.tokens != nearest) & (kept.tokens != MASK)]
    assert len(set(replaced.tolist())) > 50


def test_a_kind_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="kind must be one of kept, moved, loop, ends, mixed, got"):
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


def test_the_stored_tables_are_those_that_were_measured() -> None:
    runs = experiment.RESULTS.rows()
    assert {run["kind"] for run in runs} == set(experiment.KINDS)
    assert all(results.of_kind(runs, kind) for kind in experiment.KINDS)
    for run in (results.of_kind(runs, kind)[-1] for kind in experiment.KINDS):
        *_, end = results.moments(run)
        halves = np.split(final_table(run), 2)
        for rows, share in zip(halves, (end.first, end.second), strict=True):
            assert predicted_ahead(rows) == pytest.approx(share.next_row, abs=5e-3)
            assert predicted_ahead(rows, 4) == pytest.approx(share.four_ahead, abs=5e-3)


def test_a_table_of_positions_is_needed_or_no_positions() -> None:
    with pytest.raises(ValueError, match=r"encoding must be none or add a table .*, got 'rotary'"):
        experiment.run(replace(experiment.SHORT, encoding="rotary"))
    without = experiment.run(replace(experiment.SHORT, encoding="none", steps=2, warm_up=1))
    assert (without["halves"], without["table"]) == ([], None)


def test_figure_has_a_mark_for_each_half_and_its_start() -> None:
    runs = experiment.RESULTS.rows()
    drawn, ax = plt.subplots()
    kinds = [*((kind, experiment.MOST) for kind in experiment.KINDS), ("moved", 1)]
    figures.draw_halves(ax, runs, dict.fromkeys(kinds, ""))
    shown = {
        (round(float(x[0])), line.get_marker(), line.get_color(), y[0])
        for line in ax.lines
        if len(x := np.asarray(line.get_xdata())) == 1 and len(y := np.asarray(line.get_ydata()))
    }
    drawn_runs = []
    for at, (kind, most) in enumerate(kinds):
        for run in results.of_kind(runs, kind, most=most):
            drawn_runs.append(run)
            begin, *_, end = results.moments(run)
            for moment, colour in ((begin, plots.LIGHT_GREY), (end, plots.POSITION)):
                assert (at, "o", colour, moment.first.next_row) in shown
                assert (at, "s", colour, moment.second.next_row) in shown
    assert len(shown) == 4 * len(drawn_runs) > 0
    plt.close(drawn)
