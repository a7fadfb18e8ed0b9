"""The experiment of experiments/rank: its tables, the price by hand, its stored results."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from experiments import length_transfer as lt
from experiments import rank
from experiments.rank import run as experiment


@pytest.mark.parametrize("rank", experiment.RANKS)
def test_price_is_what_the_best_matrix_loses(rank: int) -> None:
    """Against least squares on sums of random words with all positions. The loss of jobs drawn at
    random, (x, p) times a normal matrix, is on average that of x and p themselves."""
    p = experiment.table(rank).double().repeat(200, 1)
    x = torch.randn(len(p), 64, dtype=torch.float64)
    asked = torch.hstack((x, p))
    lost = asked - (x + p) @ torch.linalg.lstsq(x + p, asked).solution
    assert float(lost.square().sum() / asked.square().sum()) == pytest.approx(
        experiment.price(rank), rel=0.02
    )


def test_a_place_is_read_off_one_circle_as_its_spacing_says() -> None:
    """Rank 2: rows on a circle of radius √32. The nearest is right up to an error of half a step.

    Along the circle the words add a standard normal number, so about P(|z| < √32 π/64).
    """
    half = math.sqrt(32) * math.pi / 64
    assert experiment.read_off(2) == pytest.approx(math.erf(half / 2**0.5), abs=0.02)


def test_as_drawn_words_are_not_trained_and_joining_has_a_matrix_more() -> None:
    for words in experiment.WORDS:
        for way in experiment.WAYS:
            model = experiment.encoder(experiment.Job(words, 8, way, 0))
            assert model.embed.weight.requires_grad == (words == "trained")
            joins = isinstance(model.encoding, experiment.JoinTable)
            assert joins == (way == "join")
            assert model(torch.zeros(2, 64, dtype=torch.long)).shape == (2, 64, 256)


def test_stored_results_are_whole_and_of_this_code() -> None:
    stored = rank.stored()
    now = experiment.provenance(stored["settings"]["seeds"])
    assert (stored["settings"], stored["command"]) == (now["settings"], now["command"])
    runs = [{key: run[key] for key in experiment.Job._fields} for run in stored["runs"]]
    assert runs == [job._asdict() for job in experiment.jobs(stored["settings"]["seeds"])]
    assert all(0 <= run["accuracy"] <= 1 for run in stored["runs"])


def test_stored_controls_are_whole() -> None:
    stored = rank.stored("controls")
    runs = [{key: run[key] for key in experiment.Job._fields} for run in stored["runs"]]
    assert runs == [job._asdict() for job in experiment.controls(stored["settings"]["seeds"])]


@torch.no_grad()
def test_positions_are_added_or_joined_as_long_as_asked_for() -> None:
    tokens = torch.randint(experiment.VOCABULARY, (2, experiment.LENGTH))
    for way in experiment.WAYS:
        model = experiment.encoder(experiment.Job("trained", 8, way, 0, rows_times=3.0))
        words, rows = model.embed(tokens), 3 * experiment.table(8).expand(2, -1, -1)
        entered = words + rows
        if isinstance(model.encoding, experiment.JoinTable):
            entered = torch.cat((words, rows), dim=-1) @ model.encoding.join.weight.T
        torch.testing.assert_close(model(tokens), model.scores_of(entered))


@pytest.mark.parametrize("turning", experiment.RANKS)
def test_rows_are_as_long_at_every_rank(turning: int) -> None:
    rows = experiment.table(turning)
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

    monkeypatch.setattr(experiment, "fit", fit)
    monkeypatch.setattr(lt, "right", right)
    for seed in (0, 1):
        experiment.run(experiment.Job("as drawn", 8, "add", seed, steps=7))
    first, second = shown
    assert len(first) == 7
    assert not torch.equal(first[0], second[0])
    assert measured == [0, 1]
