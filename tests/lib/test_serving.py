"""Serving with turned keys: each recipe in a few lines, with a check; and what other libraries'
functions want, each line of ``book/data/rope_conventions.yml`` beside the other's own formula.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from pe_lib.torch import RotaryPositionalEncoding, convert_layout, rotary_frequencies

DIM, SEQ = 64, 24
BASE = 500_000.0


@pytest.fixture
def rotary() -> RotaryPositionalEncoding:
    return RotaryPositionalEncoding(DIM, base=BASE, layout="split")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def heads(length: int = SEQ, batch: int = 1) -> Tensor:
    return torch.randn(batch, 2, length, DIM)


def close(a: Tensor, b: Tensor, atol: float = 2e-5) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=0)


# ---- Recipes


def test_context_shift(rotary: RotaryPositionalEncoding) -> None:
    """The oldest tokens leave, and the kept keys move down by as many positions."""
    k = heads()
    cache = rotary(k)
    moved = rotary.shift(cache[:, :, 8:], by=-8)
    close(moved, rotary(k[:, :, 8:]))


def test_a_cache_in_bfloat16_drifts_with_every_shift(rotary: RotaryPositionalEncoding) -> None:
    """So shift from the original, or keep keys unturned and turn them when they are read."""
    k = heads(4096)
    cache = rotary(k, offset=16 * 8).bfloat16()
    right = rotary(k)

    def error(found: Tensor) -> float:
        scale = right.square().sum(-1).mean().sqrt()
        return float((found.float() - right).square().sum(-1).mean().sqrt() / scale)

    at_once = rotary.shift(cache, by=-16 * 8)
    step_by_step = cache
    for _ in range(16):
        step_by_step = rotary.shift(step_by_step, by=-8)
    assert error(step_by_step) > 2 * error(at_once)
    kept = k.bfloat16()  # unturned
    assert error(rotary(kept)) < 1.1 * error(at_once)  # two roundings, however often it moves


def test_prefix_cache(rotary: RotaryPositionalEncoding) -> None:
    """A prefix that two prompts share is turned once; each goes on at the position behind it."""
    prefix, one, other = heads(10), heads(5), heads(7)
    cached = rotary(prefix)
    for rest in (one, other):
        whole = rotary(torch.cat((prefix, rest), dim=2))
        close(torch.cat((cached, rotary(rest, offset=10)), dim=2), whole)


def test_a_prefix_elsewhere_is_shifted_and_not_computed_again(
    rotary: RotaryPositionalEncoding,
) -> None:
    """A passage that was cached at 0 stands at 300 in another prompt. Positions agree then; what
    its tokens saw before them does not: that is another matter than the rotation."""
    passage = heads(10)
    close(rotary.shift(rotary(passage), by=300), rotary(passage, offset=300))


def test_sliding_eviction_with_sinks(rotary: RotaryPositionalEncoding) -> None:
    """As in StreamingLLM: positions are places in the cache. The first four keys stay where they
    are, the rest move down by what was evicted, and the query stands behind them."""
    k, q = heads(), heads(1)
    cache = rotary(k)
    kept = torch.cat((cache[:, :, :4], rotary.shift(cache[:, :, 12:], by=-8)), dim=2)
    unturned = torch.cat((k[:, :, :4], k[:, :, 12:]), dim=2)
    close(kept, rotary(unturned))
    places = kept.shape[2]
    scores = rotary(q, offset=places) @ kept.mT
    close(scores, rotary(q, offset=places) @ rotary(unturned).mT, atol=1e-4)


def test_positions_of_a_tree_of_drafts(rotary: RotaryPositionalEncoding) -> None:
    """A node of a speculative tree stands at its depth, whatever its place in the batch of drafts:
    the accepted path is what a plain pass would have cached."""
    parents = [-1, 0, 0, 1, 2, 2]
    depth = [0] * len(parents)
    for node, parent in enumerate(parents):
        depth[node] = 0 if parent < 0 else depth[parent] + 1
    drafts = heads(len(parents))
    turned = rotary(drafts, positions=20 + torch.tensor(depth))
    path = [0, 2, 5]
    close(turned[:, :, path], rotary(drafts[:, :, path], offset=20))


def test_ragged_batches(rotary: RotaryPositionalEncoding) -> None:
    """Prompts of different lengths go on together, each at its own position."""
    step = torch.randn(3, 2, 1, DIM)
    lengths = torch.tensor([5, 12, 9])
    turned = rotary(step, offset=lengths)
    for row, length in enumerate(lengths.tolist()):
        close(turned[row : row + 1], rotary(step[row : row + 1], offset=length))


def positions_of(cu_seqlens: Tensor) -> Tensor:
    """[0, 3, 7] → 0, 1, 2, 0, 1, 2, 3: positions within each text of a packed batch."""
    lengths = cu_seqlens.diff()
    starts = torch.repeat_interleave(cu_seqlens[:-1], lengths)
    return torch.arange(int(cu_seqlens[-1])) - starts


def test_packed_texts_without_an_axis_of_a_batch(rotary: RotaryPositionalEncoding) -> None:
    cu_seqlens = torch.tensor([0, 5, 6, SEQ])
    assert positions_of(cu_seqlens)[:8].tolist() == [0, 1, 2, 3, 4, 0, 0, 1]
    tokens = torch.randn(SEQ, 2, DIM)  # (tokens, heads, head_dim), as kernels take it
    packed = RotaryPositionalEncoding(DIM, base=BASE, layout="split", seq_dim=0)
    turned = packed(tokens, positions=positions_of(cu_seqlens))
    for start, stop in zip(cu_seqlens[:-1].tolist(), cu_seqlens[1:].tolist(), strict=True):
        close(turned[start:stop].transpose(0, 1), rotary(tokens[start:stop].transpose(0, 1)))


def zigzag(rank: int, ranks: int, length: int) -> Tensor:
    """The positions of one rank where a text is cut into 2·ranks chunks, and each rank has one from
    the front and one from the back, so that all do the same work under a causal mask."""
    chunk = length // (2 * ranks)
    front = torch.arange(rank * chunk, (rank + 1) * chunk)
    back = torch.arange(length - (rank + 1) * chunk, length - rank * chunk)
    return torch.cat((front, back))


def test_ring_attention_in_zigzag(rotary: RotaryPositionalEncoding) -> None:
    """Each rank turns its own part by the positions in the text, not in its part."""
    x, ranks = heads(32), 4
    whole, together = rotary(x), torch.empty_like(x)
    for rank in range(ranks):
        own = zigzag(rank, ranks, 32)
        together[:, :, own] = rotary(x[:, :, own], positions=own)
    close(together, whole)


def positions_with_an_image(before: int, rows: int, columns: int, after: int) -> Tensor:
    """Positions (time, height, width) of text, an image and text, as Qwen2-VL counts: an image has
    one time, and text behind it goes on behind the largest position of the image."""
    text = torch.arange(before).expand(3, -1)
    grid = torch.stack(
        [
            torch.zeros(rows * columns, dtype=torch.long),
            torch.arange(rows).repeat_interleave(columns),
            torch.arange(columns).repeat(rows),
        ]
    )
    image = before + grid
    rest = int(image.max()) + 1 + torch.arange(after).expand(3, -1)
    return torch.cat((text, image, rest), dim=1)


def test_positions_after_an_image_are_those_of_transformers() -> None:
    from transformers import Qwen2VLConfig, Qwen2VLModel

    sizes = {
        "hidden_size": 64,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "vocab_size": 16,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "rope_parameters": {"rope_theta": 1e6, "mrope_section": [8, 12, 12]},
    }
    vision = {"depth": 1, "embed_dim": 8, "num_heads": 1, "hidden_size": 64, "mlp_ratio": 1}
    config = Qwen2VLConfig(text_config=sizes, vision_config=vision, image_token_id=9)
    model = Qwen2VLModel(config)
    ids = torch.tensor([[3] * 4 + [9] * 6 + [4] * 5])
    grid = torch.tensor([[1, 4, 6]])  # patches, of which four make one token
    types = (ids == 9).int()
    theirs, _ = model.get_rope_index(ids, mm_token_type_ids=types, image_grid_thw=grid)
    ours = positions_with_an_image(4, 2, 3, 5)
    assert torch.equal(ours, theirs[-3:, 0].long())
    rotary = RotaryPositionalEncoding(
        64, base=1e6, layout="split", pair_axes=[0] * 8 + [1] * 12 + [2] * 12
    )
    assert rotary(torch.randn(1, 1, 15, 64), positions=ours).shape == (1, 1, 15, 64)


def test_latent_attention_turns_one_key_for_all_heads() -> None:
    """MLA: a query has a part that turns for each head, a key has one for all of them; the cache
    stores the latent vector and this one turned key. Scores depend on distance alone."""
    rotary = RotaryPositionalEncoding(16, base=10_000.0, layout="interleaved")
    q_turned, k_turned = torch.randn(1, 4, 9, 16), torch.randn(1, 1, 9, 16)
    q_kept, k_kept = torch.randn(1, 4, 9, 24), torch.randn(1, 4, 9, 24)
    scores = [
        (rotary(q_turned, offset=first) @ rotary(k_turned, offset=first).mT + q_kept @ k_kept.mT)
        / math.sqrt(16 + 24)
        for first in (0, 100)
    ]
    close(scores[0], scores[1])
    cached = rotary(k_turned)
    assert cached.shape[1] == 1  # 16 numbers a token beside the latent vector, not 4 · 16


# ---- Conventions: the other's own formula, from the arguments that our line makes

FILE = Path(__file__).parents[2] / "book" / "data" / "rope_conventions.yml"
CONVENTIONS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
Formula = Callable[[Tensor, Any, Tensor, str], Tensor]


def halves(x: Tensor, layout: str) -> tuple[Tensor, Tensor]:
    if layout == "split":
        first, second = x.chunk(2, dim=-1)
        return first, second
    return x[..., ::2], x[..., 1::2]


def joined(first: Tensor, second: Tensor, layout: str) -> Tensor:
    if layout == "split":
        return torch.cat((first, second), dim=-1)
    return torch.stack((first, second), dim=-1).flatten(-2)


def flash_attn(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    """x·cos + rotate_half(x)·sin, with cosines that are repeated in the layout."""
    cos, sin = (joined(each, each, layout)[:, None] for each in made)
    a, b = halves(x.transpose(1, 2), layout)
    return (x.transpose(1, 2) * cos + joined(-b, a, layout) * sin).transpose(1, 2)


def vllm(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    tokens = x[0].transpose(0, 1)
    cos, sin = (each[:, None] for each in made.index_select(0, positions).chunk(2, dim=-1))
    a, b = halves(tokens, layout)
    return joined(a * cos - b * sin, b * cos + a * sin, layout).transpose(0, 1)[None]


def of_transformers(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    turned: Tensor = apply_rotary_pos_emb(x, x, *made)[0]
    return turned


def transformer_engine(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    angles = joined(made, made, layout)[:, None]
    a, b = halves(x.transpose(1, 2), layout)
    turned = x.transpose(1, 2) * angles.cos() + joined(-b, a, layout) * angles.sin()
    return turned.transpose(1, 2)


def mlx(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    """With a first position: rows are counted from there."""
    rows = torch.arange(x.shape[2]) + positions[0]
    angle = (rows.float()[:, None] * made.reciprocal().float())[None, None]
    a, b = halves(x, layout)
    cos, sin = angle.cos(), angle.sin()
    return joined(a * cos - b * sin, a * sin + b * cos, layout)


def gemma_jax(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    timescale = made ** (2 * torch.arange(DIM // 2) / DIM)
    angle = positions[:, None] / timescale
    a, b = halves(x, layout)
    return joined(a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin(), layout)


def llama_cpp(x: Tensor, made: Any, positions: Tensor, layout: str) -> Tensor:
    """theta is multiplied on from pair to pair, and divided by the file's factor of the pair."""
    theta_scale = BASE ** (-2 / DIM)
    angle = torch.stack(
        [positions.double() * theta_scale**i / made[i] for i in range(DIM // 2)], dim=-1
    ).float()
    a, b = halves(x, layout)
    cos, sin = angle.cos(), angle.sin()
    return joined(a * cos - b * sin, a * sin + b * cos, layout)


FORMULAS: dict[str, tuple[Formula, tuple[str, ...]]] = {
    "flash_attn": (flash_attn, ("split", "interleaved")),
    "vllm": (vllm, ("split", "interleaved")),
    "transformers": (of_transformers, ("split",)),
    "transformer_engine": (transformer_engine, ("split", "interleaved")),
    "mlx": (mlx, ("split", "interleaved")),
    "gemma_jax": (gemma_jax, ("split",)),
    "llama_cpp": (llama_cpp, ("split", "interleaved")),
}
RUNS = [(key, layout) for key, (_, layouts) in FORMULAS.items() for layout in layouts]


def ours(key: str, **names: Any) -> Any:
    (entry,) = (each for each in CONVENTIONS if each["key"] == key)
    names |= {"torch": torch, "np": np, "convert_layout": convert_layout}
    return eval(entry["ours"], names)


@pytest.mark.parametrize(("key", "layout"), RUNS)
def test_a_convention_gives_what_ours_gives(key: str, layout: Any) -> None:
    rotary = RotaryPositionalEncoding(DIM, base=BASE, layout=layout)
    x, positions = heads(), torch.arange(700, 700 + SEQ)
    made = ours(key, rotary=rotary, positions=positions, length=1024, pairs=DIM // 2)
    formula, _ = FORMULAS[key]
    close(formula(x, made, positions, layout), rotary(x, positions=positions), atol=4e-4)


def test_scaled_frequencies_go_where_a_library_takes_a_list() -> None:
    """Llama 3.1's, as reciprocals for MLX and as divisors for llama.cpp."""
    fields: dict[str, Any] = {
        "rope_type": "llama3",
        "rope_theta": BASE,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    scaled = rotary_frequencies(DIM, **fields)
    rotary = RotaryPositionalEncoding(DIM, frequencies=scaled, layout="split")
    x, positions = heads(), torch.arange(SEQ)
    close(mlx(x, 1 / rotary.frequencies, positions, "split"), rotary(x))
    plain = RotaryPositionalEncoding(DIM, base=BASE, layout="split")
    divisors = plain.frequencies / rotary.frequencies
    assert divisors[0] == 1
    assert divisors[-1] == pytest.approx(8)
    close(llama_cpp(x, divisors, positions, "split"), rotary(x))


def test_the_permutation_of_gguf_is_convert_layout_bit_for_bit() -> None:
    weights = torch.randn(3 * DIM, 10)
    theirs = weights.reshape(3, 2, DIM // 2, 10).swapaxes(1, 2).reshape(weights.shape)
    assert torch.equal(ours("gguf", weights=weights, head_dim=DIM), theirs)


def test_every_line_that_says_run_is_run() -> None:
    run = {each["key"] for each in CONVENTIONS if each["status"] == "run"}
    assert run == set(FORMULAS) | {"gguf"}
    assert {each["status"] for each in CONVENTIONS} == {"run", "read, not run"}
    fields = {"library", "call", "layout", "x", "wants", "ours", "status", "key"}
    fields |= {"repository", "source", "at"}
    assert all(set(each) == fields for each in CONVENTIONS)
