"""The experiment on the clock: what counts as a hand, and a stored run made again."""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.typing import NDArray
from small_encoder import one_thread

from experiments.clock import figures, results
from experiments.clock import run as experiment
from experiments.clock.controls import LENGTHS, WIDTH
from experiments.clock.hands import (
    CONTROLS,
    CRITERIA,
    KINDS,
    coherence_over,
    explained,
    explained_pairs,
    fastest_of,
    in_strongest_directions,
    step_matrix,
)
from experiments.clock.tables import packed, summary_of, unpacked
from pe_book import minilm
from pe_lib import numpy as pe

__all__ = ["one_thread"]
BOOK = Path(__file__).parents[2] / "book"


def table_of(periods: list[float], length: int, *, noise: float = 0.0) -> NDArray[np.float64]:
    """Hands of equal length with these periods, each in a plane of its own, and noise."""
    draw = np.random.default_rng(1)
    angles = 2 * np.pi * np.arange(length)[:, None] / np.array(periods)
    circles = np.hstack([np.sin(angles), np.cos(angles)])
    basis = np.linalg.qr(draw.normal(size=(WIDTH, WIDTH)))[0]
    rows = circles @ basis[: 2 * len(periods)] + noise * draw.normal(size=(length, WIDTH))
    return np.asarray(rows)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_hands_that_are_there_are_found(length: int, noise: float) -> None:
    periods = [5.3, length / 7, length / 4.5]
    found = results.hands_of(table_of(periods, length, noise=noise))
    assert [hand.period for hand in found] == pytest.approx(sorted(periods), rel=0.03)
    assert all(hand.coherence > 0.9 for hand in found)
    assert sum(hand.share for hand in found) <= 1 + 1e-9


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_control_has_a_hand(length: int, kind: str) -> None:
    """Of tables that are not among those from which the bound was taken."""
    for seed in range(5):
        rows = KINDS[kind](np.random.default_rng(10**6 + seed), length, WIDTH)
        assert results.hands_of(rows) == []
        assert results.hands_of(rows, "wave") == []


def test_a_slow_hand_is_not_told_from_smoothness() -> None:
    """The price of the criterion: a hand that turns twice in the table is not counted."""
    assert results.hands_of(table_of([24.0], 48)) == []


def test_the_fastest_hand_of_minilm_is_found_in_every_window() -> None:
    """Six positions a turn, as the chapter finds it in all 506 rows and ten directions."""
    positions = minilm.load(BOOK / "data" / "minilm").positions
    for length in LENGTHS:
        for first in (1, 60, 200):
            rows = positions[first : first + length]
            fastest, *_ = results.hands_of(rows)
            assert 5.4 < fastest.period < 6.4


def test_what_holds_little_of_a_table_is_no_hand() -> None:
    """A hand of a tenth of the length of another holds about a hundredth of the squares."""
    table = table_of([7.0, 60.0], 128)
    weak = table_of([7.0], 128) * 0.1 + table_of([60.0], 128)
    assert results.hands_of(table)[0].period == pytest.approx(7, rel=1e-3)
    assert results.hands_of(weak) == []
    assert CRITERIA["hand"].share == 0.05


def test_a_wave_forgets_more_of_itself_than_a_hand() -> None:
    """Noise on a turning plane lowers its coherence: at first it is a hand, then a wave."""
    clean, noisy = (table_of([9.0], 48, noise=noise) for noise in (0.05, 0.33))
    assert len(results.hands_of(clean)) == len(results.hands_of(clean, "wave")) == 1
    (wave,) = results.hands_of(noisy, "wave")
    assert results.hands_of(noisy) == []
    assert 0.5 <= wave.coherence < 0.8


def test_stored_controls_come_out_again() -> None:
    """One kind of control made again in full, at the shortest length."""
    stored = results.controls()
    assert CONTROLS == 1000
    assert {int(length) for length in stored} == set(LENGTHS)
    assert all(set(periods) == set(KINDS) for periods in stored.values())
    kind = "noise smoothed over 1.5"
    again = fastest_of(kind, 48, WIDTH)
    for name in CRITERIA:
        assert again[name] == pytest.approx(results.controls(name)["48"][kind], rel=1e-6)
    with pytest.raises(ValueError, match="length must be one of 48, 128, 256, got 64"):
        results.fastest_control(64)


def test_coherence_by_hand() -> None:
    """Rows that turn evenly agree after a turn; of independent ones few do."""
    turning = np.exp(2j * np.pi * np.arange(60) / 6)
    assert coherence_over(turning, 6) == pytest.approx(1)
    assert coherence_over(turning * 0.9 ** np.arange(60), 6) == pytest.approx(1)
    draw = np.random.default_rng(0)
    assert coherence_over(draw.normal(size=600) + 1j * draw.normal(size=600), 6) < 0.15


def test_one_matrix_explains_sinusoids_and_the_identity_does_not() -> None:
    rows = in_strongest_directions(pe.sinusoidal_table(48, 6, dtype=np.float64))
    assert explained(rows, step_matrix(rows)) > 0.99
    assert explained(rows, np.eye(6)) < 0.9


# What is stored


def test_one_matrix_explains_pairs_that_one_matrix_made() -> None:
    """All of them, also those that it was not fitted to; of pairs drawn at random, nothing."""
    draw = np.random.default_rng(0)
    rows, matrix = draw.standard_normal((48, 6)), draw.standard_normal((6, 6))
    for parts in (1, 8):
        assert explained_pairs(rows, rows @ matrix, parts) == pytest.approx(1)
    others = draw.standard_normal((48, 6))
    fitted, left_out = (explained_pairs(rows, others, parts) for parts in (1, 8))
    kept = rows @ np.linalg.pinv(rows) @ others  # what the columns of the rows can make
    assert fitted == pytest.approx(np.sum(kept**2) / np.sum(others**2))
    assert left_out < 0 < fitted < 0.3


def test_tables_are_packed_and_read_again() -> None:
    rows = np.random.default_rng(0).normal(size=(48, WIDTH))
    np.testing.assert_allclose(unpacked(packed(rows), WIDTH), rows, rtol=1e-3, atol=1e-6)
    summary = summary_of(rows)
    components = summary["unit"] * unpacked(summary["components"], 10)
    centred = rows - rows.mean(axis=0)
    sizes = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(components, axis=0), sizes[:10], rtol=1e-3)
    assert summary["energy"] == pytest.approx(np.sum(centred**2))


def test_a_turned_table_is_turned_back() -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(48, 10))
    turn = np.linalg.qr(draw.normal(size=(10, 10)))[0]
    np.testing.assert_allclose(results.turned_to(rows @ turn, rows), rows, atol=1e-12)


def test_a_stored_run_is_made_again() -> None:
    """To the last digit on the same processor and versions, within 0.02 nats elsewhere."""
    (then,) = experiment.RESULTS.short.rows()
    now = experiment.run(experiment.SHORT)
    assert math.isclose(now["loss"], then["loss"], abs_tol=0.02)
    for one, other in zip(now["tables"], then["tables"], strict=True):
        assert one["step"] == other["step"]
        assert one["energy"] == pytest.approx(other["energy"], rel=0.05)
    if now["made"] | {"date": ""} == then["made"] | {"date": ""}:
        now["curve"] = [list(point) for point in now["curve"]]
        del now["cpu_seconds"], now["made"], then["cpu_seconds"], then["made"]
        assert now == then


def test_a_table_starts_at_random_and_its_moments_are_read() -> None:
    (run,) = experiment.RESULTS.short.rows()
    first, *_, last = results.moments(run)
    assert (first.step, last.step) == (0, 60)
    assert first.components.shape == (48, 10)
    assert first.hands == []
    assert first.matrix < 0.5
    table = results.final_table(run)
    assert table.shape == (48, WIDTH)
    assert np.sum((table - table.mean(axis=0)) ** 2) == pytest.approx(last.energy, rel=1e-2)


def test_every_run_is_in_one_series_and_named_apart() -> None:
    settings = [setting for some in experiment.series().values() for setting in some]
    assert len({setting.name for setting in settings}) == len(set(settings)) == len(settings)


def test_figures_show_each_plane_and_each_row() -> None:
    (run,) = experiment.RESULTS.short.rows()
    moments = results.moments(run)
    drawn, (ax, ring) = plt.subplots(1, 2)
    figures.draw_hands(ax, moments, left_at=30)
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    drawn_points = [line for line in points if len(line.get_xdata())]  # the others are a legend's
    assert len(drawn_points) == sum(len(moment.planes) for moment in moments)
    bounds = {line.get_linestyle(): line.get_ydata()[0] for line in ax.lines[-3:-1]}
    assert bounds == {
        "-": results.fastest_control(48, "hand"),
        "--": results.fastest_control(48, "wave"),
    }
    place = np.arange(48)
    drawn_pairs, other = plt.subplots()
    pairs = {f"{k} on": (place[:-k], place[k:]) for k in (1, 2, 3)}
    figures.draw_pairs(other, [moments, moments], pairs)
    shown = [np.asarray(line.get_ydata()) for line in other.lines]
    shown = [shares for shares in shown if len(shares)]  # the others are a legend's
    assert len(shown) == 2 * len(pairs)
    assert shown[0][-1] == pytest.approx(moments[-1].matrix)
    plt.close(drawn_pairs)
    figures.draw_ring(ring, moments[-1], moments[-1])
    drawn_rows = np.column_stack(ring.lines[0].get_data())
    np.testing.assert_allclose(drawn_rows, moments[-1].components[:, :2], atol=1e-6)
    plt.close(drawn)


def test_the_order_of_tables_has_a_dot_at_the_chosen_step() -> None:
    """On its line, and a dashed line where a run leaves the plateau, if it does."""
    (run,) = experiment.RESULTS.short.rows()
    moments = results.moments(run)
    drawn, ax = plt.subplots()
    figures.draw_order(ax, [moments], [40, None], at=moments[1].step)
    shown = [np.column_stack(line.get_data()).tolist() for line in ax.lines]
    matrix, _, (dot,), (left, _) = shown[:4]
    assert [share for _, share in matrix] == [moment.matrix for moment in moments]
    assert dot == matrix[1]
    assert left[0] == 40
    assert [line.get_linestyle() for line in ax.lines].count("--") == 2  # and a legend's
    plt.close(drawn)


def test_kinds_with_all_their_seeds_and_kinds_begun_are_all_that_is_stored() -> None:
    """What the pages say of five seeds holds of no kind that has fewer."""
    whole, begun = results.load_results(), results.load_begun()
    names = [run["name"] for run in (*whole, *begun)]
    assert sorted(names) == sorted(run["name"] for run in experiment.RESULTS.rows())
    assert {len(line.losses) for line in results.table(whole)} == {results.SEEDS}
    assert all(len(line.losses) < results.SEEDS for line in results.table(begun))
