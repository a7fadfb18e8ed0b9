"""The experiment of experiments/length_transfer: its tasks, its encodings, its stored results."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from small_encoder import Recorder
from torch import Tensor, nn

import pe_lib.torch
from experiments import length_transfer
from experiments.common import TEST_STREAM, TRAINING_STREAM, Size
from experiments.length_transfer import run as experiment
from experiments.length_transfer.model import (
    ENCODINGS,
    HEADS,
    LENGTH,
    WAYS,
    WAYS_NAMED,
    code_values,
    rotary_of,
    stretched,
)

L = LENGTH
STORED: dict[str, Any] = length_transfer.stored()
SEEDS = STORED["settings"]["seeds"]
NAMED: dict[str, Any] = length_transfer.stored("named")


@pytest.mark.parametrize(
    ("task", "scored", "copied"),
    [
        ("copy", [3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 5, 6]),
        ("block", [1, 2, 3, 5, 6, 7, 9], [0, 0, 0, 4, 4, 4, 8]),
        ("first", [1, 2, 3, 4, 5, 6, 7, 8, 9], 9 * [0]),
    ],
)
def test_sources_by_hand(task: str, scored: list[int], copied: list[int]) -> None:
    assert [where.tolist() for where in experiment.sources(task, 10)] == [scored, copied]


def test_chance_by_hand() -> None:
    """Of two other tokens the most frequent is both or one; of three it is all, two or one."""
    assert experiment.chance(2) == 1
    assert experiment.chance(3) == pytest.approx(1 / 16 + 15 / 16 / 2)
    pairs = 3 * 15 / 16**2
    assert experiment.chance(4) == pytest.approx(1 / 256 + pairs * 2 / 3 + (255 / 256 - pairs) / 3)


def test_codes_by_hand() -> None:
    values = code_values
    assert values("index", 4).tolist() == [[0], [1], [2], [3]]
    assert values("normalised", 5).tolist() == [[0], [0.25], [0.5], [0.75], [1]]
    assert values("normalised", 1).tolist() == [[0]]
    assert values("sine", 2)[1].item() == pytest.approx(1e-4, rel=1e-6)
    for t, digits in enumerate(values("binary", 4 * L).int().tolist()):
        assert digits == [int(digit) for digit in f"{t:07b}"[::-1]]
    gray = values("gray", 4 * L)
    assert (gray[1:] - gray[:-1]).abs().sum(dim=1).tolist() == [1] * (4 * L - 1)
    assert len(gray.unique(dim=0)) == 4 * L
    assert torch.equal(values("add", L, 128), pe_lib.torch.sinusoidal_table(L, 128))
    torch.testing.assert_close(23 * values("index / 23", 4 * L), values("index", 4 * L))
    torch.testing.assert_close(values("sin x", 3)[:, 0], torch.tensor([0.0, 0.84147, 0.90930]))
    at_100 = torch.tensor([-0.50637, 0.84147, 0.86232, 0.54030])  # sines, then cosines
    torch.testing.assert_close(values("two clocks", 101)[100], at_100, rtol=0, atol=1e-5)
    assert torch.atan2(*values("one clock", 101)[100]).item() == pytest.approx(0.3)


@pytest.mark.parametrize("code", ["alibi", "alibi, no mask", "mask alone"])
def test_bias_and_masks_by_hand(code: str) -> None:
    bias = ENCODINGS[code](Size(64, 2, 4, 96)).bias(5)
    assert bias is not None
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for r in range(5):
            for s in range(5):
                seen = code == "alibi, no mask" or (s <= r if head % 2 == 0 else s >= r)
                taken_off = 0 if code == "mask alone" else slope * abs(r - s)
                assert bias[head, r, s] == (-taken_off if seen else -math.inf)


def test_ways_to_stretch_by_hand() -> None:
    """Of 8 pairs of base 10,000, the last 6 do not go round within 24 places."""
    omega = 10.0 ** (-torch.arange(8, dtype=torch.float64) / 2)
    slow = torch.tensor([False] * 2 + [True] * 6)
    ratios = {way: stretched(omega, way, 4) / omega for way in WAYS}
    assert (ratios["as trained"] == 1).all()
    assert (ratios["interpolation"] == 1 / 4).all()
    assert torch.equal(ratios["slow pairs"], torch.where(slow, 0.25, 1.0).double())
    torch.testing.assert_close(ratios["NTK"], 4.0 ** (-torch.arange(8) / 7).double())
    assert (ratios["YaRN"][slow] == 1 / 4).all()
    kept = (24 / (2 * math.pi) - 1) / 31  # of the fastest, which goes round 3.8 times
    assert ratios["YaRN"][0].item() == pytest.approx(kept + (1 - kept) / 4)
    # 32 turns are made by pair −1.8 and one turn by pair 1.2. From the whole numbers beyond them,
    # no lower than 0, pairs are mixed evenly: 0 is kept, 2 is divided, and 1 is half of each.
    by_pair = torch.tensor([1, (1 + 1 / 4) / 2] + [1 / 4] * 6, dtype=torch.float64)
    torch.testing.assert_close(ratios["YaRN by pair"], by_pair)
    fastest = torch.arange(8) == 0
    alone, others = (
        stretched(omega, way, 4) / omega for way in ("fastest pair", "all but the fastest")
    )
    assert torch.equal(alone, torch.where(fastest, 0.25, 1.0).double())
    assert torch.equal(others, torch.where(fastest, 1.0, 0.25).double())


# A step of sin(x/10⁴) is 10⁻⁴ long: too little to be told from rounding noise.
@pytest.mark.parametrize("code", [c for c in ENCODINGS if c != "sine"])
def test_order_counts_with_a_code_and_not_without(code: str) -> None:
    model = experiment.encoder(code).requires_grad_(False)
    tokens, order = torch.randint(experiment.VOCABULARY, (3, L)), torch.randperm(L)
    moved = (model(tokens[:, order]) - model(tokens)[:, order]).abs().max()
    assert moved < 1e-5 if code == "none" else moved > 0.01


def test_what_the_codes_share_starts_the_same() -> None:
    models = []
    for code in ENCODINGS:
        torch.manual_seed(3)
        models.append(experiment.encoder(code).state_dict())
    shared = [name for name in models[0] if not name.startswith("encoding.")]
    for model in models:
        assert all(torch.equal(model[name], models[0][name]) for name in shared)


def test_training_and_test_sequences_differ() -> None:
    """torch's generator looks at the lowest 32 bits of a seed only."""
    seeds = [TRAINING_STREAM, TEST_STREAM]
    trained, tested = (next(experiment.batches(seed, 1, 4, L)) for seed in seeds)
    assert not (trained[:, None] == tested[None]).all(dim=-1).any()
    assert max(seeds) + 1000 < 2**32


def job(run: dict[str, Any]) -> Any:
    return experiment.Job(*(run[name] for name in experiment.Job._fields))


def test_a_stored_run_comes_out_again() -> None:
    """To the last digit on the processor it was made on. On another rounding differs, and 500 steps
    carry it on: the tolerances are wider than what the other stored seeds give, though not than
    what any seed could give."""
    rotary = experiment.Job("small", "rotary", "copy", 4)
    (stored,) = (run for run in STORED["runs"] if job(run) == rotary)
    again = experiment.run(rotary)
    assert again["accuracy"] == pytest.approx(stored["accuracy"], abs=0.02)
    for way, reached in stored["stretched"].items():
        assert again["stretched"][way] == pytest.approx(reached, abs=0.1)


def test_stored_results_are_whole_and_of_this_code() -> None:
    now = json.loads(json.dumps(experiment.provenance(SEEDS)))
    for name in ("settings", "parameters", "command"):
        assert STORED[name] == now[name]
    for task in experiment.TASKS:
        assert STORED["chance"][task] == pytest.approx(now["chance"][task])
    assert sorted(map(job, STORED["runs"])) == sorted(experiment.jobs(SEEDS))
    for run in STORED["runs"]:
        assert set(run["accuracy"]) == set(experiment.LENGTHS)
        assert all(0 <= a <= 1 for a in (*run["accuracy"].values(), *run["curve"]))


def test_named_finds_how_far_back_a_letter_stands() -> None:
    """A model that names the letter six back: entry 6 is 1, and the others are chance."""

    class SixBack(torch.nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(tokens.roll(6, dims=1), experiment.VOCABULARY)

    shares = experiment.named(SixBack(), 2 * L, seed=3)
    assert shares[6] == 1
    assert len(shares) == L + 1
    others = torch.arange(L + 1) != 6
    assert (shares[others] - 1 / experiment.VOCABULARY).abs().max() < 0.01


def test_stored_named_letters_are_whole_and_of_the_same_models() -> None:
    """Entry 3 is the accuracy of *copy*, so it has to be that of the stored runs. On the processor
    that made them it is the same to the last digit."""
    now = json.loads(json.dumps(experiment.closer_look(NAMED["settings"]["seeds"])))
    for name in ("settings", "command"):
        assert NAMED[name] == now[name]
    jobs = experiment.jobs_named(SEEDS)
    assert len(jobs) == 2 * SEEDS
    assert sorted(map(job, NAMED["runs"])) == sorted(jobs)
    before = {job(run): run for run in STORED["runs"]}
    for run in NAMED["runs"]:
        assert set(run["named"]) == set(WAYS_NAMED)
        for way, reached in before[job(run)]["stretched"].items():
            for at, share in reached.items():
                assert run["named"][way][at][3] == pytest.approx(share, abs=0.02)


def test_learning_rate_is_the_lowest_that_solves_every_probe() -> None:
    worst = {float(rate): min(probes.values()) for rate, probes in STORED["rates"].items()}
    assert tuple(worst) == experiment.RATES
    assert all(len(probes) == len(experiment.PROBES) for probes in STORED["rates"].values())
    assert min(rate for rate in worst if worst[rate] >= 0.99) == experiment.LEARNING_RATE
    assert experiment.PROBE_SEED not in {run["seed"] for run in STORED["runs"]}


class Copy(nn.Module):
    """Scores that are right for the task "copy", and wrong for others."""

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = nn.functional.one_hot(tokens.roll(3, dims=1), experiment.VOCABULARY)
        return scores


def test_right_answers_are_counted_on_fresh_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def batches(seed: int, *sizes: int) -> Iterator[Tensor]:
        seeds.append(seed)
        return draw(seed, *sizes)

    draw = experiment.batches
    monkeypatch.setattr(experiment, "batches", batches)
    assert experiment.accuracy(Copy(), "copy", 48, seed=3) == 1
    assert experiment.accuracy(Copy(), "block", 48, seed=3) < 0.5
    assert seeds == [TEST_STREAM + 3] * 2


def test_the_rate_falls_to_zero_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    model = experiment.encoder("none")
    shown = experiment.batches(0, 4, 2, LENGTH)
    experiment.fit(model, "copy", shown, 4, 1.0)
    assert Recorder.rates == pytest.approx([1, 0.75, 0.5, 0.25])


def test_frequencies_are_stretched_from_those_of_training() -> None:
    once, twice = (experiment.encoder("rotary") for _ in range(2))
    rotary_of(once).stretch("YaRN", 4)
    rotary_of(twice).stretch("interpolation", 2)
    rotary_of(twice).stretch("YaRN", 4)
    omegas = [rotary_of(model).omega for model in (once, twice)]
    assert torch.equal(*omegas)
    trained = pe_lib.torch.frequencies(experiment.SMALL.d_model // HEADS).double()
    expected = stretched(trained, "YaRN", 4)
    assert not torch.equal(expected, trained)
    assert torch.equal(omegas[0], expected)


def test_a_random_table_is_one_table_as_long_as_the_sinusoids() -> None:
    """In every model the same rows, which training does not change."""
    first, second = (experiment.encoder("random table").encoding for _ in range(2))
    rows = dict(first.named_buffers())["rows"]
    assert torch.equal(rows, dict(second.named_buffers())["rows"])
    assert not list(first.parameters())
    torch.testing.assert_close(rows.norm(dim=1), torch.full((4 * L,), 32**0.5))


@pytest.mark.parametrize(
    ("series", "jobs"),
    [("random table", experiment.jobs_random), ("step by step", experiment.jobs_stepwise)],
)
def test_stored_runs_beside_the_others_are_whole(
    series: str, jobs: Callable[[int], list[experiment.Job]]
) -> None:
    stored = length_transfer.stored(series)
    assert sorted(map(job, stored["runs"])) == sorted(jobs(SEEDS))


def test_the_fixed_divisor_is_the_divided_index_in_training() -> None:
    """So the two models are one at length L, and part only in longer texts."""
    before = {job(run): run["accuracy"]["L"] for run in STORED["runs"]}
    for run in length_transfer.stored("step by step")["runs"]:
        if run["code"] == "index / 23":
            same = job(run)._replace(code="normalised")
            assert run["accuracy"]["L"] == pytest.approx(before[same], abs=0.05)
