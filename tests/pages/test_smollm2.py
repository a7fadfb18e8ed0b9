"""The reader of book/data/smollm2: means of scores by offset, and the errors of scores."""

from pathlib import Path

import numpy as np
import pytest

from pe_book import smollm2

FOLDER = Path(__file__).resolve().parent.parent.parent / "book" / "data" / "smollm2"
STORED = smollm2.load(FOLDER)
TEXTS = smollm2.ordinary_texts(FOLDER)
OFFSETS = STORED["offsets"]


def test_a_score_that_falls_by_a_number_a_doubling_has_this_fall() -> None:
    slopes = np.linspace(-2, 2, smollm2.HEADS)
    scores = 3 - np.outer(slopes, np.log2(OFFSETS))
    np.testing.assert_allclose(smollm2.falls(scores, OFFSETS), slopes, atol=1e-12)


@pytest.mark.parametrize("text", ["text", *TEXTS])
def test_waves_of_the_means_are_nearly_the_mean_scores(text: str) -> None:
    """Two ways to the same scores, of which the extract keeps both."""
    waves = np.exp(1j * np.outer(smollm2.BASE ** (-np.arange(32) / 32), OFFSETS))
    of_means = (smollm2.mean_products(STORED, text) @ waves).real
    scores = smollm2.mean_scores(STORED, text)
    alike = [np.corrcoef(*pair)[0, 1] for pair in zip(scores, of_means, strict=True)]
    assert np.median(alike) > 0.98


@pytest.mark.parametrize("text", TEXTS)
def test_errors_of_scores_have_the_order_of_their_causes(text: str) -> None:
    """Angles in float32 lose digits as positions grow; what is rounded to bfloat16 does not."""
    kinds = {kind: smollm2.score_errors(STORED, text, kind) for kind in smollm2.KINDS}
    for error in kinds.values():
        assert error.shape == (len(STORED["positions"]), smollm2.HEADS)
        assert ((error > 0) & (error < 1)).all()
    rising = np.median(kinds["float32"], axis=1)
    assert (rising[1:] > 2 * rising[:-1]).all()
    for kind in ("cosines", "rows"):
        level = np.median(kinds[kind], axis=1)
        assert level.max() < 2 * level.min()


def test_the_same_seed_draws_the_same_angles() -> None:
    name = next(iter(TEXTS))
    first, again, other = (
        smollm2.heads_that_fall_at_random_angles(STORED, name, draws=3, seed=seed)
        for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert first.shape == (3,)
