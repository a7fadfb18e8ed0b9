"""The encodings of experiments/encodings.py do what their names say."""

import math
from typing import Any

import pytest
import torch
from small_encoder import EVERYWHERE, TINY, some_words, tiny
from torch import Tensor

from experiments.common import SIZES, Attention, Layer, Size, Transformer, parameters
from experiments.encodings import (
    ENCODINGS,
    Add,
    Project,
    RelativeBias,
    ScoreRows,
    SideBySide,
    Untied,
    folded,
    kernel,
    matched_hidden,
)
from experiments.positions.run import overlap_of


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("way", ENCODINGS)
def test_all_ways_have_as_many_parameters_as_add(way: str, size: Size) -> None:
    torch.manual_seed(0)
    found = parameters(Transformer(ENCODINGS[way](size), matched_hidden(way, size)))
    wanted = parameters(Transformer(ENCODINGS["add"](size), 4 * size.d_model))
    assert abs(found / wanted - 1) < 0.001


@torch.no_grad()
def test_without_positions_shuffled_words_give_shuffled_scores() -> None:
    order = torch.randperm(TINY.seq_len, generator=torch.Generator().manual_seed(1))
    encoder = tiny("none")
    shuffled = encoder(some_words()[:, order], EVERYWHERE)
    torch.testing.assert_close(shuffled, encoder(some_words(), EVERYWHERE)[order])


@pytest.mark.parametrize("way", [way for way in ENCODINGS if way != "none"])
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
    positions = ENCODINGS[way](TINY)
    query, key = torch.randn(2, 1, TINY.heads, 1, 16).expand(-1, -1, -1, TINY.seq_len, -1)
    queries, keys = positions.turn(query, key)
    bias = positions.bias(TINY.seq_len)
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
    queries, keys = ENCODINGS["rotary"](TINY).turn(query, key)
    m, n = 3, TINY.seq_len - 1
    angles = (m - n) * 10000.0 ** (-torch.arange(8) / 8)
    q = torch.view_as_complex(query[0, 0, m].view(8, 2))
    k = torch.view_as_complex(key[0, 0, n].view(8, 2))
    score = (q * k.conj() * torch.polar(torch.ones(8), angles)).real.sum()
    torch.testing.assert_close(queries[0, 0, m] @ keys[0, 0, n], score)


@pytest.mark.parametrize("way", ["alibi", "alibi-unmasked"])
def test_alibi_has_the_slopes_of_its_paper(way: str) -> None:
    """With four heads a word of distance 1 costs 1/4, 1/16, 1/64 and 1/256."""
    bias = ENCODINGS[way](TINY).bias(TINY.seq_len)
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


@torch.no_grad()
def test_untied_scores_are_two_products() -> None:
    encoder = tiny("untied")
    way, layer = encoder.encoding, encoder.layers[0]
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
    positions = ENCODINGS[way](TINY)
    assert isinstance(positions, SideBySide)
    given = torch.randn(3, TINY.seq_len, positions.d_words)
    entered = positions.enter(given)
    assert entered.shape[-1] == positions.d_words + r
    assert positions.d_words == TINY.d_model - (0 if way.startswith("keep") else r)
    assert torch.equal(entered[..., :-r], given)
    assert torch.equal(entered[..., -r:], positions.rows.expand(3, -1, -1))
    table, rows = positions.tables(given[0])
    even = torch.full((len(table),), 1 / len(table), dtype=torch.float64)
    assert overlap_of(table.double(), rows.double(), even)["price"] == 0


@pytest.mark.parametrize("way", ["add", "add-norm-1", "add-learned", "project"])
@torch.no_grad()
def test_what_enters_is_the_sum_of_two_tables(way: str) -> None:
    positions = ENCODINGS[way](TINY)
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
    assert not any("weight" in name for name, _ in adding.encoding.named_parameters())


@pytest.mark.parametrize(
    ("way", "std"),
    [
        ("none", 1.0),
        ("add", 1.0),
        ("add-norm-1", 1 / 8),
        ("add-variance-1", 1.0),
        ("add-0.02", 0.02),
        ("add-learned", 0.02),
        ("add-learned-fast", 0.02),
        ("add-small", 0.02),
        ("split-16", 1.0),
        ("split-16-small", 0.02),
        ("keep-both-16", 1.0),
        ("project", 1.0),
    ],
)
@torch.no_grad()
def test_words_are_drawn_as_large_as_the_way_says(way: str, std: float) -> None:
    encoder = tiny(way)
    words = encoder.embed.weight * encoder.encoding.word_factor
    assert float(words.std()) == pytest.approx(std, rel=0.1)
    if way == "project":  # which keeps them as large as they are in `add`
        found = encoder.encoding.tables(words)
        assert found
        words, _ = found
        assert float(words.std()) == pytest.approx(1, rel=0.2)
    if way.startswith("add-learned"):
        found = encoder.encoding.tables(words)
        assert found
        _, rows = found
        assert float(rows.std()) == pytest.approx(0.02, rel=0.2)
    if way.endswith("-small"):
        rows = dict(encoder.encoding.named_buffers())["rows"]
        assert float(rows.square().mean().sqrt()) == pytest.approx(0.02)


def test_alibi_takes_off_a_multiple_of_the_distance() -> None:
    bias = ENCODINGS["alibi-unmasked"](TINY).bias(TINY.seq_len)
    assert bias is not None
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for m, n in ((0, 0), (0, 5), (5, 0), (11, 10)):
            assert float(bias[head, m, n]) == -slope * abs(m - n)


@torch.no_grad()
def test_a_relative_bias_has_a_number_for_each_offset_on_either_side() -> None:
    way = RelativeBias(TINY)
    bias = way.bias(TINY.seq_len)
    for m, n in ((0, 0), (0, 11), (11, 0), (4, 7)):
        assert torch.equal(bias[:, m, n], way.values[:, n - m + 11])


@pytest.mark.parametrize("form", ["rotary", "untied", "score-rows"])
@torch.no_grad()
def test_an_encoding_in_one_layer_leaves_the_other_alone(form: str) -> None:
    """A layer without it gives each word the same attention wherever it stands."""
    order = torch.randperm(TINY.seq_len, generator=torch.Generator().manual_seed(1))
    for where, with_order in (
        ("-first", (True, False)),
        ("-last", (False, True)),
        ("", (True,) * 2),
    ):
        model = tiny(form + where)
        for layer, expected in enumerate(with_order):
            x = torch.randn(1, TINY.seq_len, TINY.d_model)
            bias = model.bias(TINY.seq_len) if layer in model.encoding.layers else None
            encoding = model.encoding if layer in model.encoding.layers else model.no_positions
            moved = model.layers[layer](x[:, order], encoding, bias, None)
            kept = model.layers[layer](x, encoding, bias, None)[:, order]
            assert ((moved - kept).abs().max() > 1e-3) == expected


@torch.no_grad()
def test_the_model_applies_an_encoding_in_its_layers_alone() -> None:
    model = tiny("rotary-last")
    x = model.entered(some_words())
    x = model.layers[0](x, model.no_positions, None, None)
    x = model.layers[1](x, model.encoding, None, None)
    torch.testing.assert_close(model(some_words()), model.score(model.norm(x)))


@torch.no_grad()
def test_score_rows_reach_queries_and_keys_and_not_the_values() -> None:
    """By hand: the values come from x, the queries and keys from x + p."""
    model = tiny("score-rows")
    assert isinstance(model.encoding, ScoreRows)
    attend, h = model.layers[0].attend, TINY.d_model // TINY.heads
    assert isinstance(attend, Attention)
    x = torch.randn(1, TINY.seq_len, TINY.d_model)
    w_q, w_k, w_v = attend.qkv.weight.split(TINY.d_model)
    b_q, b_k, b_v = attend.qkv.bias.split(TINY.d_model)
    moved = x[0] + model.encoding.rows
    queries, keys = moved @ w_q.T + b_q, moved @ w_k.T + b_k
    values = x[0] @ w_v.T + b_v
    heads = [
        (queries[:, of] @ keys[:, of].T / math.sqrt(h)).softmax(dim=-1) @ values[:, of]
        for of in (slice(head * h, (head + 1) * h) for head in range(TINY.heads))
    ]
    expected = torch.cat(heads, dim=-1) @ attend.out.weight.T + attend.out.bias
    torch.testing.assert_close(attend(x, model.encoding, None, None)[0], expected)


def test_a_bias_may_start_at_the_kernel() -> None:
    """K(Δ)/√h by its cosines: 8 pairs in a head of width 16."""
    offsets = torch.arange(1 - TINY.seq_len, TINY.seq_len)
    omega = 10_000.0 ** (-torch.arange(8) / 8)
    expected = torch.cos(offsets[:, None] * omega).sum(dim=1) / 4
    torch.testing.assert_close(kernel(TINY), expected, atol=1e-5, rtol=0)
    way = ENCODINGS["relative-bias-kernel"](TINY)
    assert isinstance(way, RelativeBias)
    assert float((way.values.detach() - expected).std()) == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize("base", [10, 100])
def test_sinusoids_of_a_small_base_all_turn_within_the_window(base: int) -> None:
    """At the base of the paper the slowest pair turns once in 52,000 positions."""
    way = ENCODINGS[f"add-base-{base}"](Size())
    assert isinstance(way, Add)
    slowest = way.rows[:, -2:]  # sin and cos of the last pair
    angle = torch.atan2(slowest[1, 0], slowest[1, 1])
    assert float(2 * math.pi / angle) == pytest.approx(2 * math.pi * base ** (47 / 48), rel=1e-3)
