"""The experiment "Add or concatenate?": its ways of giving positions do what their names say.

One short run that is stored is made again, and what the stored runs rest on is tried: equal
sizes, the questions asked, the price of overlap, and that the file names tell the settings.
"""

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from small_encoder import EVERYWHERE, TINY, made_up, some_words, tiny
from torch import Tensor

from experiments import positions as experiment
from experiments import positions_results, positions_text
from experiments.positions_model import (
    WAYS,
    Add,
    Encoder,
    Layer,
    Project,
    SideBySide,
    Size,
    Untied,
    folded,
    matched_hidden,
    parameters,
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the experiment, because the order of sums may depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_stored_run_is_made_again() -> None:
    """To the last digit on the same processor and versions, within 0.02 nats elsewhere."""
    then = positions_results.read(experiment.SHORT)
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


# Ways of giving positions


@pytest.mark.parametrize("size", experiment.SIZES.values(), ids=experiment.SIZES)
@pytest.mark.parametrize("way", WAYS)
def test_all_ways_have_as_many_parameters_as_add(way: str, size: Size) -> None:
    torch.manual_seed(0)
    found = parameters(Encoder(WAYS[way](size), matched_hidden(way, size)))
    wanted = parameters(Encoder(WAYS["add"](size), 4 * size.d_model))
    assert abs(found / wanted - 1) < 0.001


@torch.no_grad()
def test_without_positions_shuffled_words_give_shuffled_scores() -> None:
    order = torch.randperm(TINY.seq_len, generator=torch.Generator().manual_seed(1))
    encoder = tiny("none")
    shuffled = encoder(some_words()[:, order], EVERYWHERE)
    torch.testing.assert_close(shuffled, encoder(some_words(), EVERYWHERE)[order])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "none"])
@torch.no_grad()
def test_with_positions_they_do_not(way: str) -> None:
    order = torch.randperm(TINY.seq_len, generator=torch.Generator().manual_seed(1))
    encoder = tiny(way)
    shuffled = encoder(some_words()[:, order], EVERYWHERE)
    assert (shuffled - encoder(some_words(), EVERYWHERE)[order]).abs().max() > 1e-3


@torch.no_grad()
def scores_of_one_word(way: str) -> Tensor:
    """What a head adds up for each pair of places when the same word stands at all of them."""
    torch.manual_seed(0)
    positions = WAYS[way](TINY)
    query, key = torch.randn(2, 1, TINY.heads, 1, 16).expand(-1, -1, -1, TINY.seq_len, -1)
    queries, keys = positions.turn(query, key)
    bias = positions.bias()
    products = (queries @ keys.mT)[0]
    return products if bias is None else products + bias


def depends_on_offset_alone(scores: Tensor) -> bool:
    along, moved = scores[:, :-1, :-1], scores[:, 1:, 1:]
    return torch.allclose(along, moved, atol=1e-4)


@pytest.mark.parametrize(
    "way", ["rotary", "alibi", "alibi-unmasked", "mask-alone", "relative-bias"]
)
def test_relative_ways_see_the_offset_alone(way: str) -> None:
    scores = scores_of_one_word(way)
    assert depends_on_offset_alone(scores)
    assert (scores.diff(dim=2).nan_to_num(posinf=1).abs() > 1e-5).any()


def test_rotary_turns_pair_i_by_10000_to_the_minus_i_over_8() -> None:
    """Eight pairs in a head of width 16, as Su et al. (2021) write it, with complex numbers."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 1, TINY.seq_len, 16)
    queries, keys = WAYS["rotary"](TINY).turn(query, key)
    m, n = 3, TINY.seq_len - 1
    angles = (m - n) * 10000.0 ** (-torch.arange(8) / 8)
    q = torch.view_as_complex(query[0, 0, m].view(8, 2))
    k = torch.view_as_complex(key[0, 0, n].view(8, 2))
    score = (q * k.conj() * torch.polar(torch.ones(8), angles)).real.sum()
    torch.testing.assert_close(queries[0, 0, m] @ keys[0, 0, n], score)


@pytest.mark.parametrize("way", ["alibi", "alibi-unmasked"])
def test_alibi_has_the_slopes_of_its_paper(way: str) -> None:
    """With four heads a word of distance 1 costs 1/4, 1/16, 1/64 and 1/256."""
    bias = WAYS[way](TINY).bias()
    assert bias is not None
    assert TINY.heads == 4
    one_step = [bias[head].diagonal(side).max() for head in range(4) for side in (-1, 1)]
    finite = sorted({-float(step) for step in one_step if step.isfinite()})
    assert finite == [1 / 256, 1 / 64, 1 / 16, 1 / 4]


def test_untied_positions_are_absolute() -> None:
    assert not depends_on_offset_alone(scores_of_one_word("untied"))


def test_alibi_tells_sides_apart_by_its_mask_alone() -> None:
    scores = scores_of_one_word("alibi-unmasked")
    torch.testing.assert_close(scores, scores.mT)
    back, ahead = scores_of_one_word("alibi")[:2].isneginf()
    assert torch.equal(back, torch.ones_like(back).triu(1))
    assert torch.equal(ahead, back.T)


@pytest.mark.parametrize("way", [*positions_results.MAIN_WAYS, *experiment.others("next")])
def test_whoever_predicts_the_next_word_sees_all_the_words_before_it(way: str) -> None:
    bias = tiny(way, causal=True).bias()
    assert bias is not None
    hidden = bias.isneginf()
    assert torch.equal(hidden, torch.ones_like(hidden).triu(1))


@torch.no_grad()
def test_untied_scores_are_two_products() -> None:
    encoder = tiny("untied")
    way, layer = encoder.way, encoder.layers[0]
    assert isinstance(way, Untied)
    assert isinstance(layer, Layer)
    attend = layer.attend
    seen: list[Tensor] = []
    encoder(some_words(), EVERYWHERE, seen)
    x = layer.norms[0](encoder.embed(some_words()) * way.word_factor)[0]
    h = TINY.d_model // TINY.heads
    w_q, w_k, _ = (x @ attend.qkv.weight.T + attend.qkv.bias).split(TINY.d_model, dim=-1)
    u_q, u_k = (way.rows @ way.project.weight.T).split(TINY.d_model, dim=-1)
    for head in range(TINY.heads):
        of = slice(head * h, (head + 1) * h)
        scores = (w_q[:, of] @ w_k[:, of].T + u_q[:, of] @ u_k[:, of].T) / math.sqrt(2 * h)
        torch.testing.assert_close(seen[0][0, head], scores.softmax(dim=-1))


@pytest.mark.parametrize(("way", "r"), [("split-8", 8), ("split-16", 16), ("keep-both-16", 16)])
def test_side_by_side_keeps_words_and_positions_apart(way: str, r: int) -> None:
    positions = WAYS[way](TINY)
    assert isinstance(positions, SideBySide)
    given = torch.randn(3, TINY.seq_len, positions.d_words)
    entered = positions.enter(given)
    assert entered.shape[-1] == positions.d_words + r
    assert positions.d_words == TINY.d_model - (0 if way.startswith("keep") else r)
    assert torch.equal(entered[..., :-r], given)
    assert torch.equal(entered[..., -r:], positions.rows.expand(3, -1, -1))
    table, rows = positions.tables(given[0])
    even = torch.full((len(table),), 1 / len(table), dtype=torch.float64)
    assert experiment.overlap_of(table.double(), rows.double(), even)["price"] == 0


@pytest.mark.parametrize("way", ["add", "add-norm-1", "add-learned", "project"])
@torch.no_grad()
def test_what_enters_is_the_sum_of_two_tables(way: str) -> None:
    positions = WAYS[way](TINY)
    assert isinstance(positions, Add | Project)
    given = torch.randn(1, TINY.seq_len, TINY.d_model)
    table, rows = positions.tables(given)
    torch.testing.assert_close(positions.enter(given), table + rows)


@pytest.mark.parametrize(
    "options", [{}, {"causal": True}, {"norm": "post"}, {"norm_sum": True}, {"tied": True}], ids=str
)
@torch.no_grad()
def test_folded_projection_is_the_same_model(options: dict[str, Any]) -> None:
    projecting = tiny("project", **options)
    adding = folded(projecting)
    expected = projecting(some_words(), EVERYWHERE)
    torch.testing.assert_close(adding(some_words(), EVERYWHERE), expected, atol=1e-5, rtol=1e-5)
    assert not any("weight" in name for name, _ in adding.way.named_parameters())


@pytest.mark.parametrize("way", ["none", "add", "untied", "alibi", "rotary"])
@torch.no_grad()
def test_a_causal_model_does_not_see_later_words(way: str) -> None:
    encoder = tiny(way, causal=True)
    changed = some_words()
    changed[0, 7:] = some_words(1)[0, 7:]
    before, after = encoder(some_words(), EVERYWHERE), encoder(changed, EVERYWHERE)
    torch.testing.assert_close(after[:7], before[:7])
    assert (after[7:] - before[7:]).abs().max() > 1e-3


# The questions


def test_masked_words_are_hidden_and_asked_for() -> None:
    windows = torch.arange(2, 2 + 3 * 13).view(3, 13)
    draw = torch.Generator().manual_seed(0)
    tokens, target_indices, answers = experiment.asked("masked", windows, draw, 4)
    read = windows[:, :-1]
    assert (tokens == positions_text.MASK).sum(dim=1).tolist() == [4, 4, 4]
    assert torch.equal(tokens.flatten()[target_indices], torch.full((12,), positions_text.MASK))
    assert torch.equal(tokens.flatten().scatter(0, target_indices, answers).view(3, 12), read)


def test_next_words_are_asked_for() -> None:
    windows = torch.arange(2, 2 + 3 * 13).view(3, 13)
    draw = torch.Generator().manual_seed(0)
    tokens, target_indices, answers = experiment.asked("next", windows, draw, 4)
    assert torch.equal(tokens, windows[:, :-1])
    assert torch.equal(answers, tokens.flatten()[target_indices] + 1)
    assert (target_indices.view(3, 4) // 12 == torch.arange(3)[:, None]).all()


def test_all_ways_see_the_same_batches() -> None:
    text = torch.arange(2, 2000)
    of_add, of_rotary = (
        next(experiment.training_batches(text, experiment.Setting(way, seed=3)))
        for way in ("add", "rotary")
    )
    assert all(map(torch.equal, of_add, of_rotary))


def test_the_text_is_numbered_word_by_word() -> None:
    text = positions_text.sonnets()
    assert text.vocabulary[:2] == ["<unknown>", "<mask>"]
    assert len(text.vocabulary) <= positions_text.VOCABULARY
    start = " ".join(text.vocabulary[i] for i in text.training[6:12])
    assert start == "from fairest creatures we desire increase"
    assert " ".join(text.vocabulary[i] for i in text.held_out[:4]) == "thus can my love"
    assert positions_text.MASK not in text.training


# What is measured


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
    text = torch.from_numpy(positions_text.sonnets().training)
    setting = experiment.Setting("add", steps=8, warm_up=0)
    root = math.sqrt(experiment.SIZES["small"].d_model)

    def curve(setting: experiment.Setting) -> list[float]:
        losses: list[float] = []
        batches = experiment.training_batches(text, setting)
        model = experiment.encoder(setting)
        experiment.train(model, batches, setting, lambda _, loss: losses.append(loss))
        return losses

    compensated = replace(setting, way="add-variance-1", embedding_rate=root)
    np.testing.assert_allclose(curve(setting), curve(compensated), atol=2e-3)


# What is stored


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


def test_file_names_tell_settings_apart() -> None:
    settings = {setting for _, some in experiment.series() for setting in some}
    assert len({setting.name for setting in settings}) == len(settings)


def test_stored_runs_are_what_their_names_say() -> None:
    names = [field.name for field in fields(experiment.Setting)]
    files = list(positions_results.RESULTS.glob("*.json"))
    assert len(files) > 200
    for file in files:
        run = positions_results.read(file)
        setting = experiment.Setting(**{name: run[name] for name in names})
        assert experiment.file_of(setting) == file
        assert run["curve"][-1][0] == run["steps"]
        if setting.matched and not setting.tied and not setting.norm_sum:
            size = experiment.SIZES[setting.size]
            wanted = parameters(Encoder(WAYS["add"](size), 4 * size.d_model))
            assert abs(run["parameters"] / wanted - 1) < 0.01
        assert run.get("folding_moves_loss_by", 0) < 1e-4


def test_results_are_put_in_the_order_of_their_medians() -> None:
    """Which is neither that of the best seeds, nor that in which the runs come."""
    runs = [made_up("rotary", seed, loss) for seed, loss in enumerate((3.9, 4.3, 4.4))]
    runs += [made_up("add", seed, loss) for seed, loss in enumerate((4.5, 4.0, 4.1))]
    runs += [made_up("rotary", 0, 9.0, norm="post")]
    plain = positions_results.plain(runs, task="masked")
    groups = positions_results.by(plain, "way")
    assert list(groups) == ["add", "rotary"]
    assert positions_results.spread(groups["add"]) == (4.1, 4.0, 4.5, 3)
    lines = positions_results.summary(runs)
    assert len(lines) == 3
    assert any("add" in line and "4.100 (4.000 to 4.500, 3 seeds)" in line for line in lines)
    assert any("norm=post" in line and "9.000" in line for line in lines)


def test_the_main_ways_are_compared_at_one_rate_and_one_length() -> None:
    def run(way: str, seed: int, steps: int, rate: float, loss: float) -> positions_results.Run:
        return made_up(way, seed, loss, steps=steps, rate=rate)

    short, long = positions_results.GRID_STEPS, positions_results.STEPS
    runs = [
        run("add", positions_results.GRID_SEED, short, 2e-3, 4.6),
        run("add", positions_results.GRID_SEED, short, 4e-3, 4.5),
        run("add", 0, long, 2e-3, 4.1),
        run("add", 1, long, 2e-3, 4.2),
        run("add", 0, long, 4e-3, 4.0),
        run("add", 0, 2 * long, 2e-3, 3.9),
        run("rotary", 0, long, 2e-3, 3.7),
        run("rotary", 0, long, 2e-3, 9.0) | {"tied": True},
        run("add-norm-1", 0, long, 2e-3, 3.6),
    ]
    found = positions_results.compared(runs, "masked")
    assert list(found) == ["rotary", "add"]
    assert [one["loss"] for one in found["add"]] == [4.1, 4.2]
    assert positions_results.compared(runs, "next") == {}
    assert positions_results.best_rate(runs, "masked", "add") == 4e-3


def test_the_plateau_ends_where_the_curve_falls_below_a_level() -> None:
    """The curve is that of the text held out: 5.0 at step 100, 4.6 at step 200."""
    for level, step in ((5.05, 100), (4.8, 200), (4.65, 200), (4.6, None), (4.0, None)):
        assert positions_results.left_plateau(made_up("add", 0, 4.0), level) == step


def test_the_strongest_neighbour_is_not_the_word_itself() -> None:
    """It may be the word before or the one after, in any layer."""
    before = {"neighbours": [[[0.1, 0.9, 0.2]], [[0.3, 0.1, 0.05]]]}
    after = {"neighbours": [[[0.1, 0.9, 0.4]]]}
    assert positions_results.strongest_neighbour(before) == 0.3
    assert positions_results.strongest_neighbour(after) == 0.4


def test_each_seed_is_shown_fresh_batches() -> None:
    text = torch.arange(2, 2000)
    batches = experiment.training_batches(text, experiment.Setting("add"))
    first, second = islice(batches, 2)
    other = next(experiment.training_batches(text, experiment.Setting("add", seed=1)))
    assert not torch.equal(first.tokens, second.tokens)
    assert not torch.equal(first.tokens, other.tokens)
