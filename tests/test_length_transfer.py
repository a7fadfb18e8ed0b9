"""The experiment of benchmarks/length_transfer.py: its tasks, its codes, its stored results."""

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import pe_lib.torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import length_transfer as experiment  # noqa: E402

L = experiment.LENGTH


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(experiment.RESULTS.read_text())
    return results


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


# The tasks


@pytest.mark.parametrize("length", [4, 5, L, 2 * L])
def test_sources_are_what_the_tasks_say(length: int) -> None:
    x = list(range(100, 100 + length))  # tokens that say where they stand
    answers: dict[str, dict[int, int]] = {"copy": {}, "block": {}, "first": {}}
    for t in range(length):
        if t >= 3:
            answers["copy"][t] = x[t - 3]
        block = [x[i] for i in range(length) if i // 4 == t // 4]
        if x[t] != block[0]:
            answers["block"][t] = block[0]
        if t:
            answers["first"][t] = x[0]
    assert set(answers) == set(experiment.TASKS)
    for task in experiment.TASKS:
        scored, source = experiment.sources(task, length)
        found = dict(zip(scored.tolist(), (100 + source).tolist(), strict=True))
        assert found == answers[task]


def test_only_the_relative_task_follows_a_shift() -> None:
    """Offsets say all about "copy" and leave "block" and "first" open."""
    for task, offsets in (("copy", {3}), ("block", {1, 2, 3}), ("first", set(range(1, L)))):
        scored, source = experiment.sources(task, L)
        assert set((scored - source).tolist()) == offsets


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="reverse"):
        experiment.sources("reverse", L)
    with pytest.raises(ValueError, match="grey"):
        experiment.Encoder("grey")
    with pytest.raises(ValueError, match="rotary"):
        experiment.code_values("rotary", L)


def test_chance_is_the_mean_over_random_sequences() -> None:
    draw = random.Random(0)
    for length in (2, 5, L, 2 * L):
        shares = []
        for _ in range(4000):
            others = draw.choices(range(experiment.VOCABULARY), k=length - 1)
            shares.append(max(map(others.count, others)) / len(others))
        error = math.dist(shares, [sum(shares) / 4000] * 4000) / 4000
        assert experiment.chance(length) == pytest.approx(sum(shares) / 4000, abs=4 * error + 1e-9)


# The codes


def test_codes_by_hand() -> None:
    assert experiment.code_values("index", 4).tolist() == [[0], [1], [2], [3]]
    assert experiment.code_values("normalised", 5).tolist() == [[0], [0.25], [0.5], [0.75], [1]]
    assert experiment.code_values("normalised", 1).tolist() == [[0]]
    assert experiment.code_values("sine", 2)[1].item() == pytest.approx(1e-4, rel=1e-6)
    for t, digits in enumerate(experiment.code_values("binary", 2 * L).int().tolist()):
        assert digits == [int(digit) for digit in f"{t:06b}"[::-1]]


def test_gray_code_changes_one_digit_a_step_and_never_comes_back() -> None:
    gray = experiment.code_values("gray", 2 * L)
    assert (gray[1:] - gray[:-1]).abs().sum(dim=1).tolist() == [1] * (2 * L - 1)
    assert len(gray.unique(dim=0)) == 2 * L


@pytest.mark.parametrize("code", ["add", "concatenate"])
def test_sinusoid_is_the_librarys(code: str) -> None:
    table = pe_lib.torch.sinusoidal_table(L, experiment.D_MODEL)
    assert torch.equal(experiment.code_values(code, L), table)


@pytest.mark.parametrize("masked", [True, False])
def test_alibi_by_hand(masked: bool) -> None:
    bias, n = experiment.alibi(5, masked=masked), 5
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for r in range(n):
            for s in range(n):
                seen = not masked or (s <= r if head % 2 == 0 else s >= r)
                assert bias[head, r, s] == (-slope * abs(r - s) if seen else -math.inf)


# The model


def states(code: str, tokens: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    with torch.no_grad():
        scores: torch.Tensor = experiment.Encoder(code)(tokens)
    return scores


# A step of sin(x/10⁴) is 10⁻⁴ long: too little to be told from rounding noise.
@pytest.mark.parametrize("code", [c for c in experiment.CODES if c != "sine"])
def test_order_counts_with_a_code_and_not_without(code: str) -> None:
    torch.manual_seed(1)
    tokens, order = torch.randint(experiment.VOCABULARY, (3, L)), torch.randperm(L)
    there, here = states(code, tokens[:, order]), states(code, tokens)[:, order]
    if code == "none":
        torch.testing.assert_close(there, here, rtol=0, atol=1e-5)
    else:
        assert (there - here).abs().max() > 0.01


@pytest.mark.parametrize("code", experiment.CODES)
def test_codes_that_cannot_tell_left_from_right(code: str) -> None:
    """Read from its end, a text gets the same answers from its end: ALiBi's mask mends that."""
    torch.manual_seed(1)
    tokens = torch.randint(experiment.VOCABULARY, (3, L))
    difference = (states(code, tokens.flip(1)) - states(code, tokens).flip(1)).abs().max()
    if code in ("none", "alibi, no mask"):
        assert difference < 1e-5
    elif code != "sine":
        assert difference > 0.01


def test_rotary_scores_depend_on_offsets_alone() -> None:
    """The module turns queries and keys, and nothing else: a later start changes no score."""
    torch.manual_seed(0)
    turn = experiment.Attention("rotary").turn
    q, k = torch.randn(2, 1, L, experiment.D_MODEL // experiment.HEADS, dtype=torch.float64)
    late = turn(q, offset=17) @ turn(k, offset=17).mT
    torch.testing.assert_close(turn(q) @ turn(k).mT, late, rtol=0, atol=1e-12)


def test_a_code_enters_along_its_directions_so_that_layer_norm_keeps_it() -> None:
    torch.manual_seed(0)
    position = experiment.Position("index", 2 * L)
    zeros = torch.zeros(1, L, experiment.D_MODEL)
    added = position(zeros)[0]
    assert torch.linalg.matrix_rank(added) == 1
    kept = torch.nn.functional.layer_norm(added, added.shape[1:])
    lost = torch.nn.functional.layer_norm(zeros[0] + torch.arange(L)[:, None], added.shape[1:])
    assert kept[1:].abs().max() > 1
    assert lost.abs().max() < 1e-3


def test_what_the_codes_share_starts_the_same() -> None:
    models = []
    for code in experiment.CODES:
        torch.manual_seed(3)
        models.append(experiment.Encoder(code).state_dict())
    shared = [name for name in models[0] if not name.startswith("position.")]
    for model in models:
        assert all(torch.equal(model[name], models[0][name]) for name in shared)


def test_untrained_rows_of_the_table_stay_as_they_were_drawn() -> None:
    torch.manual_seed(0)
    before = experiment.Encoder("learned").position.table.detach()
    after = experiment.train("learned", "copy", seed=0, steps=3).position.table.detach()
    assert torch.equal(before[L:], after[L:])
    assert not torch.isclose(before[:L], after[:L]).all(dim=1).any()


# Training and measuring


def test_training_and_test_sequences_differ() -> None:
    """torch's generator looks at the lowest 32 bits of a seed only."""
    seeds = [experiment.TRAINING_STREAM, experiment.TEST_STREAM]
    trained, tested = (next(experiment.batches(seed, 1, 4, L)) for seed in seeds)
    assert not (trained[:, None] == tested[None]).all(dim=-1).any()
    assert max(seeds) + 1000 < 2**32


def test_accuracy_counts_right_answers_at_scored_positions() -> None:
    class Answer(torch.nn.Module):
        """Copies from `back` positions before, and from itself where there is none."""

        def __init__(self, back: int) -> None:
            super().__init__()
            self.back = back

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            t = torch.arange(tokens.shape[1])
            answer = tokens[:, torch.where(t >= self.back, t - self.back, t)]
            return torch.nn.functional.one_hot(answer, experiment.VOCABULARY).float()

    assert experiment.accuracy(Answer(3), "copy", L, seed=0) == 1  # type: ignore[arg-type]
    assert experiment.accuracy(Answer(2), "copy", L, seed=0) == pytest.approx(1 / 16, abs=0.01)  # type: ignore[arg-type]


def test_a_hundred_steps_show_the_effect() -> None:
    models = {
        code: experiment.train(code, "copy", seed=0, steps=100) for code in ("none", "rotary")
    }
    reached = {
        (code, n): experiment.accuracy(model, "copy", n, seed=0, sequences=200)
        for code, model in models.items()
        for n in (L, 2 * L)
    }
    for n in (L, 2 * L):
        assert reached["rotary", n] > 0.99
        assert reached["none", n] < experiment.chance(n) + 0.02


# The stored results


def test_stored_results_hold_every_code_task_and_seed_once(stored: dict[str, Any]) -> None:
    seeds = stored["settings"]["seeds"]
    assert len(set(seeds)) == len(seeds) >= 5
    assert stored["settings"]["probe_seed"] not in seeds
    runs = [(run["code"], run["task"], run["seed"]) for run in stored["runs"]]
    wanted = {(c, t, s) for c in experiment.CODES for t in experiment.TASKS for s in seeds}
    assert len(runs) == len(wanted)
    assert set(runs) == wanted
    for run in stored["runs"]:
        assert set(run["accuracy"]) == {"L", "2L"}
        assert all(0 <= a <= 1 for a in (*run["accuracy"].values(), *run["curve"]))
        assert len(run["curve"]) == 10


def test_stored_results_were_made_by_this_script(stored: dict[str, Any]) -> None:
    now = json.loads(json.dumps(experiment.provenance(len(stored["settings"]["seeds"]))))
    now["settings"]["seeds"] = stored["settings"]["seeds"]
    for name in ("settings", "parameters", "command"):
        assert stored[name] == now[name]
    for added in stored.get("added", []):
        assert added["command"] == now["command"] + " --add"
        assert added["versions"] == stored["versions"]
        made = [run for run in stored["runs"] if run["code"] in added["codes"]]
        assert len(made) == added["runs"]
        assert all(added[name] for name in experiment.MADE_BY)
    for task in experiment.TASKS:
        assert stored["chance"][task] == pytest.approx(now["chance"][task])
    for name in ("date", "cpu", "system", "python", "versions", "seconds"):
        assert stored[name]
    assert set(stored["versions"]) == {"numpy", "torch"}


def test_learning_rate_is_the_lowest_that_solves_every_probe(stored: dict[str, Any]) -> None:
    worst = {float(rate): min(probes.values()) for rate, probes in stored["rates"].items()}
    assert tuple(worst) == experiment.RATES
    assert all(len(probes) == len(experiment.PROBES) for probes in stored["rates"].values())
    assert min(rate for rate in worst if worst[rate] >= 0.99) == experiment.LEARNING_RATE


def test_no_encoder_without_a_code_beats_chance(stored: dict[str, Any]) -> None:
    """Of 1024 sequences each counts once, as all answers of "first" hang on one token."""
    noise = 4 * 0.5 / math.sqrt(experiment.MEASURED)
    for run in stored["runs"]:
        if run["code"] == "none":
            for n, reached in run["accuracy"].items():
                assert reached < stored["chance"][run["task"]][n] + noise


class Here:
    """A pool that runs its jobs where it stands, and notes them."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []

    def map(self, run: Any, jobs: list[Any], chunksize: int) -> list[Any]:
        self.jobs += jobs
        names = ("code", "task", "seed")
        return [dict(zip(names, job, strict=False)) for job in jobs]


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: dict[str, Any]) -> Path:
    """The stored results without one code, in a file that a test may change."""
    path = tmp_path / "results.json"
    kept = [run for run in stored["runs"] if run["code"] != "gray"]
    path.write_text(json.dumps(stored | {"runs": kept}))
    monkeypatch.setattr(experiment, "RESULTS", path)
    return path


def test_adding_runs_what_is_missing_and_keeps_the_rest(copied: Path) -> None:
    before = json.loads(copied.read_text())
    pool = Here()
    experiment.add_missing(pool, 5)  # type: ignore[arg-type]
    after = json.loads(copied.read_text())
    wanted = {("gray", t, s, experiment.LEARNING_RATE) for t in experiment.TASKS for s in range(5)}
    assert len(pool.jobs) == len(wanted)
    assert set(pool.jobs) == wanted
    assert after["runs"][: len(before["runs"])] == before["runs"]
    *earlier, added = after["added"]
    assert earlier == before.get("added", [])
    assert (added["codes"], added["runs"]) == (["gray"], len(wanted))
    for name in ("date", "command", "settings", "rates"):
        assert after[name] == before[name]
    experiment.add_missing(pool, 5)  # type: ignore[arg-type]
    assert json.loads(copied.read_text()) == after


def test_adding_to_runs_of_other_settings_is_refused(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "STEPS", 7)
    with pytest.raises(SystemExit, match="other settings"):
        experiment.add_missing(Here(), 5)  # type: ignore[arg-type]
