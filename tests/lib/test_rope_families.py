"""The stored table of families, against the classes of transformers.

Each family is built small, from its own default configuration, with random weights. While it reads
a few tokens, its rotation is watched: which layers call it, what goes in and what comes out. Then
the settings that the table gives say which layers must have turned, and which module of ours does
the same. This knows nothing of the doctor, with which the table was made.
Nothing is downloaded.
"""

import importlib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from pe_lib.rope import LayerRotation, rotary_settings
from pe_lib.torch import RotaryPositionalEncoding, rotary_frequencies

LAYERS, LENGTH = 12, 7
FAMILIES = (
    *("llama", "mistral", "qwen2", "qwen3", "gemma2", "phi3", "falcon", "granite", "olmo"),
    *("olmo2", "starcoder2", "gpt_oss", "gemma3", "modernbert", "smollm3", "qwen2_vl"),
    *("qwen2_5_vl", "qwen3_vl", "phi", "nemotron", "glm4_moe", "gpt_neox", "stablelm"),
    *("qwen3_next", "cohere", "ernie4_5", "cohere2", "llama4", "deepseek_v3", "glm4", "gptj"),
    "codegen",
)
AXES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")

# Sizes only: what the table speaks of comes from the default configuration of each class.
SMALL = {
    "vocab_size": 32,
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
}
DENSE = {"first_k_dense_replace": LAYERS}  # no layer with experts
SMALL_GPTJ = {"vocab_size": 32, "n_layer": LAYERS, "n_embd": 256, "n_head": 1, "n_inner": 32}
SMALL_QWEN_VL = SMALL | {"head_dim": 128, "hidden_size": 512}  # as wide as the default sections
LATENT_ATTENTION = {
    "num_key_value_heads": 4,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
}
SIZES: dict[str, dict[str, Any]] = {
    "falcon": {name: value for name, value in SMALL.items() if name != "head_dim"},
    "gptj": SMALL_GPTJ,
    "codegen": SMALL_GPTJ | {"n_embd": 1024, "n_head": 4},  # no fewer heads
    "glm4_moe": SMALL | DENSE,
    "deepseek_v3": SMALL | DENSE | LATENT_ATTENTION,
    "qwen3_next": SMALL | {"num_experts": 2, "moe_intermediate_size": 16},
    "qwen2_vl": SMALL_QWEN_VL,
    "qwen2_5_vl": SMALL_QWEN_VL,
    "qwen3_vl": SMALL_QWEN_VL,
}
WITH_IMAGES = {
    "gemma3",
    "llama4",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_vl",
}  # a part of them is watched
ROTATIONS = {"llama4": "apply_rotary_emb", "deepseek_v3": "apply_rotary_pos_emb_interleave"}


class Call(NamedTuple):
    """Queries or keys before and after a family's rotation, of shape (batch, heads, seq, width)."""

    before: Tensor
    after: Tensor


class Watched(NamedTuple):
    """A family that was watched: its configuration, and the calls of each layer that turned."""

    config: Any
    calls: dict[int, list[Call]]


def watch(family: str, monkeypatch: pytest.MonkeyPatch, positions: Tensor | None = None) -> Watched:
    config = AutoConfig.for_model(
        f"{family}_text" if family in WITH_IMAGES else family, **SIZES.get(family, SMALL)
    )
    model = AutoModel.from_config(config).eval()
    layer_now = -1
    calls = defaultdict(list)

    def enter(index: int) -> Any:
        def hook(*_: Any) -> None:
            nonlocal layer_now
            layer_now = index

        return hook

    (layers,) = (
        part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part) == LAYERS
    )
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(enter(index))

    code = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    name = ROTATIONS.get(family, "apply_rotary_pos_emb")
    original = getattr(code, name)

    def watched(*arguments: Any, **options: Any) -> Any:
        results = original(*arguments, **options)
        after = results if isinstance(results, tuple) else (results,)
        for x, turned in zip(arguments, after, strict=False):  # the other arguments are cos and sin
            calls[layer_now].append(Call(heads_first(x), heads_first(turned)))
        return results

    monkeypatch.setattr(code, name, watched)
    ids = torch.randint(3, 32, (1, LENGTH))
    with torch.no_grad():
        model(ids) if positions is None else model(ids, position_ids=positions)
    return Watched(config, dict(calls))


def heads_first(x: Tensor) -> Tensor:
    return x.transpose(1, 2) if x.shape[1] == LENGTH else x


def is_turned_by(
    rotary: RotaryPositionalEncoding, calls: list[Call], positions: Tensor | None = None
) -> bool:
    """Whether our module gives the same scores of queries and keys. Scores, and not entries, are
    compared, because DeepSeek moves the pairs to other places, those of queries and keys alike."""
    queries, keys = calls
    ours = [rotary(call.before, positions=positions)[:, 0] for call in (queries, keys)]
    expected = queries.after[:, 0] @ keys.after[:, 0].mT
    found = ours[0] @ ours[1].mT
    return bool((found - expected).abs().max() < 1e-5 * expected.abs().max())


def module_of(layer: LayerRotation, width: int, **changed: Any) -> RotaryPositionalEncoding:
    """Our module for what a layer is said to turn by, or for something else; for vectors of a
    width, since some families hand over only what turns."""
    options = {
        "layout": layer.layout,
        "frequencies": torch.tensor(layer.frequencies, dtype=torch.float64),
        "attention_factor": layer.attention_factor,
    } | changed
    return RotaryPositionalEncoding(width, rotary_dim=2 * len(options["frequencies"]), **options)


@pytest.mark.parametrize("family", FAMILIES)
def test_family_turns_as_the_stored_table_says(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not with the other layout, with half of the pairs, or faster."""
    config, calls = watch(family, monkeypatch)
    settings = rotary_settings(config)
    assert {i for i, layer in enumerate(settings.layers) if layer is not None} == set(calls)
    for index, layer_calls in calls.items():
        layer = settings.layers[index]
        assert layer is not None
        width = layer_calls[0].before.shape[-1]
        assert width in (layer.head_dim, layer.rotary_dim)
        assert is_turned_by(module_of(layer, width), layer_calls)
        frequencies = torch.tensor(layer.frequencies, dtype=torch.float64)
        for name, value in (
            ("layout", "interleaved" if layer.layout == "split" else "split"),
            ("frequencies", frequencies[: len(frequencies) // 2]),
            ("frequencies", 2 * frequencies),
        ):
            other = module_of(layer, width, **{name: value})
            assert not is_turned_by(other, layer_calls), f"the check does not see {name}"


def test_gpt_oss_without_its_attention_factor() -> None:
    found = rotary_frequencies(64, **AutoConfig.for_model("gpt_oss").rope_parameters)
    assert 0.4 < 1 - 1 / found.attention_factor**2 < 0.5
    sheet = (Path(__file__).parents[2] / "book" / "cheat_sheet.md").read_text(encoding="utf-8")
    assert "are too small by almost a half" in sheet


@pytest.mark.parametrize("family", AXES)
def test_pairs_turn_by_the_axis_that_the_stored_table_says(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = torch.stack(
        [torch.arange(LENGTH), torch.arange(LENGTH) * 3, torch.arange(LENGTH) ** 2]
    )
    config, calls = watch(family, monkeypatch, positions[:, None])
    layer = rotary_settings(config).layers[0]
    assert layer is not None
    rotary = module_of(layer, layer.head_dim, pair_axes=layer.pair_axes)
    assert len(calls) == LAYERS
    assert is_turned_by(rotary, calls[0], positions[:, None])
    assert not is_turned_by(rotary, calls[0], positions[[0, 2, 1], None])
