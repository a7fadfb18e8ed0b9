"""The arguments that models in use need: axes, offsets for each row of a batch, scaled attention,
positions of several axes, and which shapes of positions are accepted."""

import pickle
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from backends import both_layouts
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import LlamaConfig, PreTrainedModel
from transformers.models.ernie4_5_vl_moe import configuration_ernie4_5_vl_moe as ernie
from transformers.models.ernie4_5_vl_moe import modeling_ernie4_5_vl_moe as modeling_ernie
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3_vl

import pe_lib.numpy
from pe_lib.torch import (
    RotaryPositionalEncoding,
    RotaryTables,
    SinusoidalPositionalEncoding,
    frequencies,
    rotary_frequencies,
    rotary_modules,
    rotate,
)

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 5, 8
exactly = partial(torch.testing.assert_close, rtol=0, atol=0)


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def heads(**options: Any) -> Tensor:
    return torch.randn(BATCH, HEADS, LENGTH, WIDTH, **options)


# Which axis counts the positions


@both_layouts
@pytest.mark.parametrize("rotary_dim", [8, 4])
def test_seq_dim_names_the_axis_of_the_sequence(layout: Any, rotary_dim: int) -> None:
    """(batch, seq, heads, head_dim) and (seq, batch, heads, head_dim), counted from either end."""
    x, ids, starts = heads(), torch.randint(0, 99, (BATCH, LENGTH)), torch.tensor([4, 70])
    options: dict[str, Any] = {"layout": layout, "rotary_dim": rotary_dim}
    usual = RotaryPositionalEncoding(WIDTH, **options)
    calls: list[dict[str, Any]] = [
        {},
        {"offset": 7},
        {"offset": starts},
        {"positions": ids},
        {"positions": ids[:1]},
        {"positions": ids[0]},
        {"tables": usual.tables(ids)},
        {"tables": usual.tables(ids[0])},
    ]
    for order in ((0, 2, 1, 3), (2, 0, 1, 3)):
        place = order.index(2)
        for seq_dim in (place, place - 4):
            rotary = RotaryPositionalEncoding(WIDTH, seq_dim=seq_dim, **options)
            for call in calls:
                found, expected = rotary(x.permute(order), **call), usual(x, **call)
                torch.testing.assert_close(found, expected.permute(order))


@pytest.mark.parametrize("length", [5, 2])  # 2 is the size of the batch as well
def test_seq_dim_of_the_sinusoidal_module(length: int) -> None:
    x, starts = torch.randn(2, length, 8), torch.tensor([3, 0])
    ids = torch.randint(0, 99, (2, length))
    usual, first = SinusoidalPositionalEncoding(8), SinusoidalPositionalEncoding(8, seq_dim=0)
    for call in ({}, {"offset": 3}, {"offset": starts}, {"positions": ids}):
        exactly(first(x.transpose(0, 1), **call), usual(x, **call).transpose(0, 1))


def test_long_sequences_are_rotated_in_parts_along_their_own_axis() -> None:
    x, ids = torch.randn(2, 300, 16, 64), torch.randint(0, 999, (2, 300))
    usual = RotaryPositionalEncoding(64, layout="split")
    rotary = RotaryPositionalEncoding(64, layout="split", seq_dim=1)
    for call in ({}, {"positions": ids}, {"tables": usual.tables(ids)}):
        expected = usual(x.transpose(1, 2), **call).transpose(1, 2)
        exactly(rotary(x, **call), expected)


# An offset for each row of the batch


@pytest.mark.parametrize("starts", [[3, 0], [2047, 5], [2048, 4095], [10**7, 2], [-4, 6]])
def test_an_offset_for_each_row_of_the_batch(starts: list[int]) -> None:
    """Within the cached rows, past them, far off, and, of the sinusoidal module, before 0."""
    offset = torch.tensor(starts)
    modules: list[nn.Module] = [SinusoidalPositionalEncoding(WIDTH)]
    if min(starts) >= 0:
        modules.append(RotaryPositionalEncoding(WIDTH, layout="split"))
        modules.append(RotaryPositionalEncoding(WIDTH, layout="interleaved"))

    def row(module: Any, x: Tensor, start: int) -> Tensor:
        found: Tensor = module(x, positions=start + torch.arange(x.shape[-2]))
        return found

    for module in modules:
        for x in (torch.randn(2, LENGTH, WIDTH), torch.randn(2, 1, WIDTH)):
            rows = [row(module, x[n], start) for n, start in enumerate(starts)]
            torch.testing.assert_close(module(x, offset=offset), torch.stack(rows))
    for rotary in modules[1:]:
        x = heads()
        rows = [row(rotary, x[n], start) for n, start in enumerate(starts)]
        torch.testing.assert_close(rotary(x, offset=offset), torch.stack(rows))


@pytest.mark.parametrize("pair_axes", [None, [0, 1, 1, 0]])
@pytest.mark.parametrize("length", [LENGTH, 1])
def test_a_negative_offset_is_refused_in_every_form(length: int, pair_axes: Any) -> None:
    """It was meant to move keys that are turned already. A graph does not look at tensors."""
    rotary = RotaryPositionalEncoding(WIDTH, layout="split", pair_axes=pair_axes)
    x = torch.randn(BATCH, HEADS, length, WIDTH)
    numbers = -300, np.int64(-300), torch.tensor(-300)
    of_rows = torch.tensor([5, -300]), torch.tensor([-300, -4], dtype=torch.int32)
    for offset in (*numbers, *of_rows):
        with pytest.raises(ValueError, match=r"offset must be .* at least 0, got -300; .*shift"):
            rotary(x, offset=offset)
    for good in (np.int64(3), torch.tensor(3), torch.tensor([3, 3])):
        torch.testing.assert_close(rotary(x, offset=good), rotary(x, offset=3))


@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_ragged_offsets_and_positions_compile_whole(layout: Any) -> None:
    x, offset, ids = heads(), torch.tensor([900, 3]), torch.randint(0, 99, (BATCH, LENGTH))
    rotary = RotaryPositionalEncoding(WIDTH, layout=layout, attention_factor=1.5)
    graph = torch.compile(rotary, fullgraph=True, backend="aot_eager", dynamic=True)
    for call in ({"offset": offset}, {"positions": ids}, {"tables": rotary.tables(ids)}):
        torch.testing.assert_close(graph(x, **call), rotary(x, **call))


# Shapes of positions


def test_positions_of_the_field_s_shapes_are_accepted_and_mean_the_same() -> None:
    x, ids = heads(), torch.randint(0, 99, (BATCH, LENGTH))
    rotary = RotaryPositionalEncoding(WIDTH, layout="interleaved")
    expected = torch.stack([rotary(x[n], positions=ids[n]) for n in range(BATCH)])
    for positions in (ids, ids[:, None], ids[:, None].expand(-1, HEADS, -1), ids.double()):
        torch.testing.assert_close(rotary(x, positions=positions), expected)
        torch.testing.assert_close(rotary(x, tables=rotary.tables(positions)), expected)
    exactly(rotary(x, positions=ids[:1]), rotary(x, positions=ids[0]))


@both_layouts
@pytest.mark.parametrize("seq_dim", [-2, -3, 2, 1, 0])
def test_tables_are_taken_and_refused_as_their_positions_are(layout: Any, seq_dim: int) -> None:
    """Beside x without heads, with heads, and with more axes; some sizes agree by chance."""
    rotary = RotaryPositionalEncoding(WIDTH, layout=layout, seq_dim=seq_dim)
    batches_and_lengths = product((1, 3, 4), (1, 3, 4, 5))
    shapes_of_positions = [(1,), (3,), (4,), (5,), *batches_and_lengths]
    shapes_of_x = [(3, 4, WIDTH), (3, 4, 5, WIDTH), (3, 4, 3, WIDTH), (3, 4, 5, 3, WIDTH)]
    taken = refused = 0
    for shape_of_x, shape in product(shapes_of_x, shapes_of_positions):
        x, positions = torch.randn(shape_of_x), torch.randint(0, 99, shape)
        tables = rotary.tables(positions)
        try:
            expected = rotary(x, positions=positions)
        except ValueError:
            refused += 1
            with pytest.raises(ValueError, match=r"tables must be of shape|seq_dim"):
                rotary(x, tables=tables)
        else:
            taken += 1
            exactly(rotary(x, tables=tables), expected)
    assert taken >= 8
    assert refused >= 40


# Scaled attention


@both_layouts
def test_the_attention_factor_multiplies_queries_and_keys(layout: Any) -> None:
    """In cached rows, for positions and in tables; entries that are not turned stay as they are."""
    x, ids = heads(dtype=torch.float64), torch.randint(0, 99, (BATCH, LENGTH))
    options: dict[str, Any] = {"layout": layout, "rotary_dim": 4}
    plain = RotaryPositionalEncoding(WIDTH, **options)
    scaled = RotaryPositionalEncoding(WIDTH, attention_factor=1.25, **options)
    tables = partial(scaled.tables, dtype=torch.float64)
    assert "attention_factor=1.25" in repr(scaled)
    for ours, expected in (
        (scaled(x), plain(x)),
        (scaled(x, offset=10**9), plain(x, offset=10**9)),
        (scaled(x, positions=ids), plain(x, positions=ids)),
        (scaled(x, positions=ids + 0.5), plain(x, positions=ids + 0.5)),
        (scaled(x, tables=tables(ids)), plain(x, positions=ids)),
    ):
        torch.testing.assert_close(ours[..., :4], 1.25 * expected[..., :4])
        exactly(ours[..., 4:], x[..., 4:])


# Positions of several axes


def qwen2_vl_rotary() -> tuple[nn.Module, list[int]]:
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    config = qwen2_vl.Qwen2VLTextConfig(
        hidden_size=256, num_attention_heads=2, rope_parameters=parameters
    )
    return qwen2_vl.Qwen2VLRotaryEmbedding(config), [0] * 16 + [1] * 24 + [2] * 24


def qwen3_vl_rotary() -> tuple[nn.Module, list[int]]:
    """Interleaved sections: time, height, width, time, … and time alone at the end."""
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [24, 20, 20]}
    config = qwen3_vl.Qwen3VLTextConfig(head_dim=128, rope_parameters=parameters)
    return qwen3_vl.Qwen3VLTextRotaryEmbedding(config), [0, 1, 2] * 20 + [0] * 4


@pytest.mark.parametrize("build", [qwen2_vl_rotary, qwen3_vl_rotary])
def test_three_axes_turn_as_in_qwen_vl(build: Any) -> None:
    peer, pair_axes = build()
    x = torch.randn(BATCH, HEADS, LENGTH, 128)
    positions = torch.randint(0, 60, (3, BATCH, LENGTH))
    cos, sin = peer(x, positions)
    theirs, _ = qwen2_vl.apply_rotary_pos_emb(x, x, cos, sin)
    rotary = RotaryPositionalEncoding(128, base=1e6, layout="split", pair_axes=pair_axes)
    graph = torch.compile(rotary, fullgraph=True, backend="aot_eager")
    for ours in (
        rotary(x, positions=positions),
        rotary(x, tables=rotary.tables(positions)),
        graph(x, positions=positions),
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)  # their angles are of float32
    text = torch.arange(7, 7 + LENGTH).expand(3, BATCH, LENGTH)  # words: all axes agree
    torch.testing.assert_close(rotary(x, positions=text), rotary(x, offset=7))


@both_layouts
def test_axial_positions_turn_half_of_the_pairs_by_row_and_half_by_column(layout: Any) -> None:
    """On an image of 3 × 4 patches, with the frequencies of half a head for each axis."""
    row, column = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
    positions = torch.stack((row.flatten(), column.flatten()))
    omega = frequencies(8).tolist()
    x = torch.randn(2, 12, 16, dtype=torch.float64)
    axes = [0] * 4 + [1] * 4
    rotary = RotaryPositionalEncoding(16, frequencies=omega * 2, layout=layout, pair_axes=axes)
    ours = rotary(x, positions=positions)
    entries_of_axes = {
        "interleaved": ([0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]),
        "split": ([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
    }
    for entries, along in zip(entries_of_axes[layout], positions, strict=True):
        expected = rotate(x[..., entries], -along, frequencies=omega, layout=layout)
        torch.testing.assert_close(ours[..., entries], expected)


def test_three_axes_turn_as_in_ernie() -> None:
    """Height and width in turns, time for the slowest pairs, in the interleaved layout."""
    config = ernie.Ernie4_5_VLMoeTextConfig(hidden_size=256, num_attention_heads=2)
    fields = config.rope_parameters | {"mrope_section": [22, 22, 20]}
    config.rope_parameters = fields
    peer = modeling_ernie.Ernie4_5_VLMoeTextRotaryEmbedding(config)
    x, positions = torch.randn(BATCH, HEADS, LENGTH, 128), torch.randint(0, 60, (3, BATCH, LENGTH))
    theirs, _ = modeling_ernie.apply_rotary_pos_emb(x, x, *peer(x, positions))
    options: dict[str, Any] = {"layout": "interleaved", "pair_axes": [1, 2] * 22 + [0] * 20}
    scaled = rotary_frequencies(128, **fields)
    ours = RotaryPositionalEncoding(128, frequencies=scaled, **options)(x, positions=positions)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    for wrong in ([0] * 22 + [1] * 22 + [2] * 20, ([0, 1, 2] * 20 + [0] * 4)):
        rotary = RotaryPositionalEncoding(128, layout="interleaved", base=5e5, pair_axes=wrong)
        assert (rotary(x, positions=positions) - theirs).abs().max() > 0.1


# A shift of what is turned already


@both_layouts
@pytest.mark.parametrize("rotary_dim", [8, 4])
def test_a_shifted_key_is_the_key_at_another_position(layout: Any, rotary_dim: int) -> None:
    """PE(x + Δ) = PE(x)·T(Δ), for the keys of a cache. The factor is not applied twice."""
    k = heads(dtype=torch.float64)
    options: dict[str, Any] = {"layout": layout, "rotary_dim": rotary_dim}
    rotary = RotaryPositionalEncoding(WIDTH, attention_factor=1.25, **options)
    cached = rotary(k, offset=300)
    torch.testing.assert_close(rotary.shift(cached, by=-300), rotary(k))
    torch.testing.assert_close(rotary.shift(cached, by=0), cached)
    torch.testing.assert_close(rotary.shift(cached, by=2.5), rotary.shift(cached, by=5 - 2.5))
    moved = rotary.shift(cached, by=torch.tensor([-300, 40]))
    torch.testing.assert_close(moved[0], rotary(k[0]))
    torch.testing.assert_close(moved[1], rotary(k[1], offset=340))
    by_tokens = RotaryPositionalEncoding(WIDTH, seq_dim=1, attention_factor=1.25, **options)
    moved = by_tokens.shift(cached.transpose(1, 2), by=torch.tensor([-300, 40]))
    torch.testing.assert_close(moved.transpose(1, 2)[1], rotary(k[1], offset=340))
    graph = torch.compile(rotary.shift, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(graph(cached, by=-300), rotary(k))


def test_a_shift_by_several_axes() -> None:
    k, axes = heads(dtype=torch.float64), [0, 0, 1, 1]
    rotary = RotaryPositionalEncoding(WIDTH, layout="split", pair_axes=axes)
    positions = torch.randint(0, 99, (2, BATCH, LENGTH))
    cached = rotary(k, positions=positions)
    for by in (7, torch.tensor([7, 7]), torch.tensor([[7, 7], [7, 7]])):
        expected = rotary(k, positions=positions + 7)
        torch.testing.assert_close(rotary.shift(cached, by=by), expected)
    by = torch.tensor([[7, -3], [2, 90]])  # (axes, batch)
    expected = rotary(k, positions=positions + by[:, :, None])
    torch.testing.assert_close(rotary.shift(cached, by=by), expected)


@pytest.mark.parametrize("by", [np.uint8(3), torch.tensor([3, 4], dtype=torch.uint8)])
def test_a_shift_without_a_sign_is_refused_in_its_own_words(by: Any) -> None:
    rotary = RotaryPositionalEncoding(WIDTH, layout="split")
    words = (
        r"by must be signed .*uint8; shift\(k, by=n\) moves keys on, and shift\(k, by=-n\) back$"
    )
    with pytest.raises(TypeError, match=words):
        rotary.shift(heads(), by=by)


def test_a_shift_of_a_half_type_is_computed_in_float32() -> None:
    k = heads().bfloat16()
    rotary = RotaryPositionalEncoding(WIDTH, layout="split")
    exactly(rotary.shift(k, by=77), rotary.shift(k.float(), by=77).bfloat16())


# Cosines and sines for other kernels


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_cosines_and_sines_are_those_that_the_module_multiplies_by(dtype: torch.dtype) -> None:
    ids = torch.randint(0, 10**6, (BATCH, LENGTH))
    rotary = RotaryPositionalEncoding(WIDTH, layout="split", rotary_dim=4, attention_factor=1.5)
    cos, sin = rotary.cos_sin(ids, dtype=dtype)
    assert cos.shape == sin.shape == (BATCH, LENGTH, 2)
    assert cos.dtype == sin.dtype == dtype
    assert cos.is_contiguous()
    x = torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float64)
    a, b = x[..., :2], x[..., 2:4]
    c, s = cos[:, None].double(), sin[:, None].double()
    turned = torch.cat((a * c - b * s, a * s + b * c, x[..., 4:]), dim=-1)
    atol = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(turned, rotary(x, positions=ids), rtol=0, atol=atol)
    if dtype == torch.bfloat16:
        exactly(cos, rotary.cos_sin(ids)[0].bfloat16())
    cos.fill_(7)  # and what is returned is no view of a cache
    assert (rotary.cos_sin(ids)[0] <= 1.5).all()


def test_cosines_of_several_axes() -> None:
    positions = torch.randint(0, 99, (2, BATCH, LENGTH))
    options: dict[str, Any] = {"layout": "split", "pair_axes": [0, 1, 1, 0]}
    cos, sin = RotaryPositionalEncoding(WIDTH, **options).cos_sin(positions)
    plain = RotaryPositionalEncoding(WIDTH, layout="split")
    for pair, axis in enumerate(options["pair_axes"]):
        for found, expected in zip((cos, sin), plain.cos_sin(positions[axis]), strict=True):
            exactly(found[..., pair], expected[..., pair])


# The pair of frequencies and their factor


@both_layouts
def test_frequencies_come_with_their_factor_and_their_number(layout: Any) -> None:
    fields: dict[str, Any] = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0}
    fields |= {"original_max_position_embeddings": 64, "partial_rotary_factor": 0.5}
    pair = rotary_frequencies(16, **fields)
    x, ids = torch.randn(2, 3, 5, 16, dtype=torch.float64), torch.randint(0, 99, (2, 5))
    apart = RotaryPositionalEncoding(
        16,
        layout=layout,
        rotary_dim=8,
        frequencies=pair.frequencies,
        attention_factor=pair.attention_factor,
    )
    assert pair.attention_factor != 1
    together = RotaryPositionalEncoding(16, layout=layout, frequencies=pair)
    assert repr(together) == repr(apart)
    assert (together.rotary_dim, together.attention_factor) == (8, pair.attention_factor)
    exactly(together(x, positions=ids), apart(x, positions=ids))
    found = rotate(x, positions=ids, frequencies=pair, layout=layout)
    torch.testing.assert_close(found, apart(x, positions=ids))
    moved = rotate(found, by=-3, frequencies=pair, layout=layout)  # no factor a second time
    torch.testing.assert_close(moved, apart(x, positions=ids + 3))


@both_layouts
def test_rotate_turns_as_the_module_does(layout: Any) -> None:
    """Positions of its shapes, without a minus; in NumPy as well."""
    x, ids = heads(dtype=torch.float64), torch.randint(0, 99, (BATCH, LENGTH))
    rotary = RotaryPositionalEncoding(WIDTH, layout=layout)
    for positions in (ids, ids[0], ids[:, None].expand(-1, HEADS, -1), ids.to(torch.uint8)):
        expected = rotary(x, positions=positions)
        torch.testing.assert_close(rotate(x, positions=positions, layout=layout), expected)
        ours = pe_lib.numpy.rotate(x.numpy(), positions=positions.numpy(), layout=layout)
        torch.testing.assert_close(torch.from_numpy(ours), expected)


def test_one_number_is_refused_as_the_positions_of_several_rows() -> None:
    """By the module as by the function: it could be the position of each row, or of the first."""
    x, rotary = heads(), RotaryPositionalEncoding(WIDTH, layout="split")
    for number in (3, torch.tensor(3)):
        for rows in (x, x[..., :1, :]):
            with pytest.raises(ValueError, match=r"positions must be of shape .*got \(\)"):
                rotary(rows, positions=number)
            with pytest.raises(ValueError, match=r"positions must be of shape .*got one number"):
                rotate(rows, positions=number, layout="split")


# The module of a layer of a configuration

LLAMA_3_1: dict[str, Any] = {
    "model_type": "llama",
    "head_dim": 128,
    "num_hidden_layers": 2,
    "rope_theta": 500_000.0,
}
SCALED = LLAMA_3_1 | {
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
}


@pytest.mark.parametrize("config", [LLAMA_3_1, SCALED])
def test_a_configuration_is_read_under_any_default_device(config: dict[str, Any]) -> None:
    expected = RotaryPositionalEncoding.from_config(config)
    with torch.device("meta"):
        on_meta = [RotaryPositionalEncoding.from_config(config), *rotary_modules(config)]
    with FakeTensorMode():
        in_fake_mode = [RotaryPositionalEncoding.from_config(config), *rotary_modules(config)]
    x = torch.randn(1, 2, 3, 128)
    for module in on_meta + in_fake_mode:
        assert module is not None
        exactly(module(x, offset=7), expected(x, offset=7))


class Reader(PreTrainedModel):  # type: ignore[misc]
    """A model that reads its own configuration for its layers."""

    config_class = LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(11, 8)
        self.first = RotaryPositionalEncoding.from_config(config, layer=0)
        made = rotary_modules(config)
        self.layers = nn.ModuleList(each for each in made if each is not None)
        self.post_init()

    def forward(self, ids: Tensor) -> Tensor:
        x: Tensor = self.first(self.embed(ids))
        for layer in self.layers:
            x = layer(x)
        return x


@torch.no_grad()
def test_a_model_that_reads_its_configuration_comes_out_of_from_pretrained(tmp_path: Path) -> None:
    """transformers makes it on meta."""
    config = LlamaConfig(
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=2,
        rope_parameters=SCALED["rope_scaling"] | {"rope_theta": 500_000.0},
    )
    model, ids = Reader(config), torch.arange(11)[None]
    model.save_pretrained(tmp_path)
    exactly(Reader.from_pretrained(tmp_path)(ids), model(ids))


@pytest.mark.parametrize("rope_type", ["default", "mrope"])
def test_a_layer_that_is_not_scaled_is_the_module_made_by_hand(rope_type: str) -> None:
    """It takes the tables of the other, shares its cache, and is as exact far out, where the digits
    that a float64 frequency lacks are whole turns."""
    by_hand = RotaryPositionalEncoding(128, base=500_000, layout="split")
    config = LLAMA_3_1 | {"rope_scaling": {"rope_type": rope_type}}
    read = RotaryPositionalEncoding.from_config(config)
    assert repr(read) == repr(by_hand)
    assert read._cache is by_hand._cache
    ids = torch.tensor([0, 7, 10**7, 2**53])
    x = torch.randn(2, 4, 128, dtype=torch.float64)
    tables: RotaryTables = read.tables(ids, dtype=torch.float64)
    exactly(by_hand(x, tables=tables), by_hand(x, positions=ids))
    exactly(read.cos_sin(ids, dtype=torch.float64), by_hand.cos_sin(ids, dtype=torch.float64))


def test_a_scaled_layer_says_what_its_frequencies_are_of() -> None:
    rotary = RotaryPositionalEncoding.from_config(SCALED)
    said = "frequencies=(1, …) of base=500000 and rope_type='llama3', layout='split'"
    assert said in repr(rotary)
    assert repr(pickle.loads(pickle.dumps(rotary))) == repr(rotary)
    backwards = RotaryPositionalEncoding.from_config({"model_type": "nanochat"})
    assert "frequencies=(-1, …) of base=" in repr(backwards)


def test_tables_of_a_scaled_layer_are_refused_by_what_differs() -> None:
    """The frequencies, and not the base 10000 that stands beside them and means nothing."""
    scaled = RotaryPositionalEncoding.from_config(SCALED)
    by_hand = RotaryPositionalEncoding(128, base=500_000, layout="split")
    x, ids = torch.randn(3, 128), torch.arange(3)
    with pytest.raises(ValueError, match=r"with frequencies=None, as this one, got \(1\.0, "):
        by_hand(x, tables=scaled.tables(ids))
    with pytest.raises(ValueError, match=r"with frequencies=\(1\.0, .*, as this one, got None"):
        scaled(x, tables=by_hand.tables(ids))


# What a module shows


def test_a_module_shows_arguments_of_its_own() -> None:
    """`RotaryPositionalEncoding` has no spacing."""
    assert "spacing" not in repr(RotaryPositionalEncoding(8, layout="interleaved"))
    assert "spacing='tensor2tensor'" in repr(
        SinusoidalPositionalEncoding(8, spacing="tensor2tensor")
    )
