"""How much of a table one matrix predicts: on tables whose answer is known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.clock.hands import KINDS
from experiments.clock.prediction import (
    centred,
    left_of,
    likeness,
    power,
    predicted,
    predicted_ahead,
    predicted_along,
    predicted_by_likeness,
    predicted_by_place,
    predicted_by_powers,
    reach,
    ridge_matrix,
    shuffled_phases,
    told_by_powers,
    unmoved,
)
from pe_lib import numpy as pe


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def losing(keep: float, length: int) -> NDArray[np.float64]:
    """A clock that keeps this much of its row at each step, and gets noise for the rest."""
    draw = draws()
    turn = np.linalg.qr(draw.standard_normal((32, 32)))[0]
    rows = [draw.standard_normal(32)]
    while len(rows) < length:
        noise = draw.standard_normal(32)
        rows.append(keep * rows[-1] @ turn + np.sqrt(1 - keep**2) * noise)
    return np.array(rows)


@pytest.mark.parametrize(("count", "width"), [(20, 6), (6, 20)])
def test_a_ridge_matrix_is_that_of_least_squares_with_rows_added(count: int, width: int) -> None:
    """The ridge is the same as rows of λ^½ times the identity whose answer is 0."""
    draw = draws()
    rows, others = draw.standard_normal((2, count, width))
    extra = np.sqrt(0.3 * np.trace(rows.T @ rows) / width) * np.eye(width)
    expected = np.linalg.lstsq(
        np.vstack([rows, extra]), np.vstack([others, np.zeros((width, width))]), rcond=None
    )[0]
    np.testing.assert_allclose(ridge_matrix(rows, others, 0.3), expected, atol=1e-12)


def test_rows_that_are_left_out_do_not_help() -> None:
    """Wide random rows are fitted whatever they hold, and predict nothing."""
    rows, others = draws().standard_normal((2, 20, 40))
    fitted = rows @ ridge_matrix(rows, others, 1e-6)
    assert np.sum((others - fitted) ** 2) < 1e-6 * np.sum(others**2)
    assert predicted(rows, others, penalty=1e-6) < 0.1


@pytest.mark.parametrize("length", [48, 128])
def test_sinusoids_are_predicted_as_far_as_one_looks(length: int) -> None:
    table = pe.sinusoidal_table(length, 96, dtype=np.float64)
    assert predicted_ahead(table) > 0.9
    assert reach(predicted_along(table, 16)) == 16


def test_rows_drawn_alone_are_not_predicted() -> None:
    table = draws().standard_normal((48, 96))
    assert predicted_ahead(table) < 0
    assert reach(predicted_along(table, 3)) == 0


def test_a_clock_that_loses_time_is_predicted_as_far_as_it_keeps_it() -> None:
    """A share of keep² to the power of k is kept over k steps, so 0.88 keeps half for two."""
    found = predicted_along(losing(0.88, 1000), 4, penalty=0.01)
    assert found == pytest.approx([0.88 ** (2 * k) for k in (1, 2, 3, 4)], abs=0.05)
    assert reach(found) == 2
    assert reach([0.9, 0.4, 0.6]) == 1


def test_noise_on_each_row_is_not_what_a_clock_loses() -> None:
    """It lowers all shares alike, and leaves their part of that of the next row as it is."""
    clock, noise = losing(0.97, 2000), draws(1).standard_normal((2000, 32))
    clean = predicted_along(clock, 6, penalty=1e-3)
    noisy = predicted_along(0.9**0.5 * clock + 0.1**0.5 * noise, 6, penalty=1e-3)
    assert noisy[0] < clean[0] - 0.1
    assert left_of(noisy) == pytest.approx(left_of(clean), abs=0.05)
    assert left_of(clean) == pytest.approx([0.97 ** (2 * k) for k in range(6)], abs=0.05)


def test_likeness_predicts_what_a_number_does_and_no_turn() -> None:
    rows, noise = draws().standard_normal((2, 400, 6))
    alike = 0.8 * rows + 0.6 * noise
    table, places = np.vstack([rows, alike]), np.arange(400)
    assert likeness(table, places, places + 400) == pytest.approx(0.8, abs=0.03)
    assert predicted_by_likeness(rows, alike) == pytest.approx(0.64, abs=0.05)
    assert predicted(rows, alike, penalty=1e-6) == pytest.approx(0.64, abs=0.05)
    turned = rows @ np.linalg.qr(draws(1).standard_normal((6, 6)))[0]
    turned -= rows * np.sum(turned * rows) / np.sum(rows**2)
    assert abs(likeness(np.vstack([rows, turned]), places, places + 400)) < 0.05
    assert predicted_by_likeness(rows, turned) < 0.02
    assert predicted(rows, turned, penalty=1e-6) > 0.98


def test_a_walk_is_predicted_by_the_row_itself() -> None:
    table = KINDS["walk"](draws(), 128, 96)
    assert unmoved(table) > predicted_ahead(table) > 0.8
    assert unmoved(draws().standard_normal((48, 96))) < -0.8


def test_shuffled_phases_keep_what_each_direction_is() -> None:
    table = pe.sinusoidal_table(64, 32, dtype=np.float64)
    other = shuffled_phases(table, draws())
    sizes = np.linalg.svd(centred(table), full_matrices=False)[1]
    assert np.sum(other**2) == pytest.approx(np.sum(sizes**2))
    for low, high in ((2, 4), (4, 16), (16, 64)):
        assert power(other, low, high) == pytest.approx(power(table, low, high))
    assert abs(np.sum(other * centred(table))) < 0.5 * np.sum(sizes**2)


def test_power_is_found_where_the_wave_is() -> None:
    rows = np.arange(48)[:, None]
    table = np.hstack([np.cos(2 * np.pi * rows / 6), 2 * np.cos(2 * np.pi * rows / 24)])
    assert power(table, 5, 7) == pytest.approx(1 / 5)
    assert power(table, 20, 30) == pytest.approx(4 / 5)
    assert power(np.cos(np.pi * rows), 1.9, 3) == pytest.approx(1)


def test_the_piece_in_which_a_clock_begins_is_found() -> None:
    """Forty rows of noise, and then rows of sinusoids."""
    noise = draws().standard_normal((40, 32)) / np.sqrt(2)
    clock = pe.sinusoidal_table(60, 32, dtype=np.float64)
    middles, shares = predicted_by_place(np.vstack([noise, clock]), 4, piece=20, every=10, first=0)
    assert list(middles) == list(range(10, 91, 10))
    assert max(shares[:3]) < 0.2 < 0.8 < min(shares[4:])


def sinusoids_in(width: int, length: int = 64) -> NDArray[np.float64]:
    """Rows of three hands in so many dimensions."""
    hands = pe.sinusoidal_table(length, 6, base=20, dtype=np.float64)
    return hands @ draws().standard_normal((6, width))


def test_the_powers_of_one_matrix_predict_a_clock_and_nothing_of_noise() -> None:
    assert min(predicted_by_powers(sinusoids_in(40), (1, 2, 4, 8))) > 0.95
    noise = draws().standard_normal((64, 40))
    assert max(predicted_by_powers(noise, (1, 2, 4, 8))) < 0.05


def test_powers_fail_where_each_distance_has_a_matrix_of_its_own() -> None:
    """Two clocks that take turns: two rows on is a matrix, and it is no square of one."""
    turn = np.linalg.qr(draws(2).standard_normal((40, 40)))[0]
    other = [draws(1).standard_normal(40)]
    while len(other) < 32:
        other.append(other[-1] @ turn)
    mixed = np.empty((64, 40))
    mixed[::2], mixed[1::2] = sinusoids_in(40)[:32], np.array(other)
    (powers,) = predicted_by_powers(mixed, (2,), directions=12)
    assert powers < 0.3
    assert predicted_ahead(mixed, 2) > powers + 0.2


def test_powers_have_not_seen_the_rows_that_they_predict() -> None:
    """With other rows there, the same is predicted; with others just before, something else."""
    table, here = losing(0.9, 64), np.arange(24, 32)
    said, centre = told_by_powers(table, here, 8, 4)
    other = table.copy()
    other[here + 8] = draws(1).standard_normal((8, 32))
    again = told_by_powers(other, here, 8, 4)
    np.testing.assert_array_equal(said, again[0])
    np.testing.assert_array_equal(centre, again[1])
    other[10] += 1
    assert np.abs(told_by_powers(other, here, 8, 4)[0] - said).max() > 1e-3


def test_a_piece_that_is_longer_than_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="piece must be at most 20, the rows from 4 on, got 32"):
        predicted_by_place(draws().standard_normal((24, 6)), 1, first=4)
