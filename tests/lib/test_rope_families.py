"""The cheat sheet's table of RoPE by model family, against the classes of transformers.

Each family is built small, from its own default configuration, with random weights. While it reads
a few tokens, its rotation is watched: which layers call it, what goes in and what comes out. Then
each row of the table says which layers must have turned, and which module of ours does the same.
Nothing is downloaded.
"""

import importlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import page_text
import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from pe_lib.torch import RotaryPositionalEncoding, rotary_frequencies

LAYERS, LENGTH = 12, 7
SHEET = (Path(__file__).parents[2] / "book" / "cheat_sheet.md").read_text(encoding="utf-8")


class Row(NamedTuple):
    """One family in the table, each column as it is written there."""

    family: str
    layout: Any
    turned: str
    base: str
    unrotated: str


def rows_under(heading: str, columns: int) -> list[list[str]]:
    """The rows of a table whose first column names families, one row for each of them."""
    pattern = r"^\| ((?:`\w+` ?)+) \|" + r" ([^|]+) \|" * (columns - 1) + "$"
    lines = re.findall(pattern, page_text.section(SHEET, heading), re.M)
    return [
        [name, *(column.strip("`") for column in rest)]
        for names, *rest in lines
        for name in names[1:-1].split("` `")
    ]


ROWS = [Row(*columns) for columns in rows_under("RoPE by model family", 5)]
AXES = rows_under("RoPE by model family", 2)
assert len(ROWS) > 25, "the table has another form"
assert len(AXES) == 3, "the table of axes has another form"

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


def base_of(row: Row, kind_of_layer: str | None) -> float:
    """From "10,000", or "10,000 (sliding), 1,000,000 (full)", or "150,000, with YaRN"."""
    stated = dict(re.findall(r"([\d,]+\d)(?: \((\w+)\))?", row.base))
    for number, kind in stated.items():
        if not kind or f"{kind}_attention" == kind_of_layer:
            return float(number.replace(",", ""))
    raise AssertionError(f"the sheet states no base for {kind_of_layer}")


EVERY_FOURTH = {3, 7, 11}
UNROTATED = {
    "none": set(),
    "every fourth": EVERY_FOURTH,
    "three of each four": set(range(LAYERS)) - EVERY_FOURTH,
}


def module_as_stated(row: Row, config: Any, width: int, **options: Any) -> RotaryPositionalEncoding:
    """Our module for vectors of this width, with the frequencies of YaRN where the row says so."""
    if "YaRN" not in row.base:
        return RotaryPositionalEncoding(width, **options)
    assert config.rope_parameters["rope_type"] == "yarn"
    fields = config.rope_parameters | {"rope_theta": options.pop("base")}
    found = rotary_frequencies(options["rotary_dim"], **fields)
    return RotaryPositionalEncoding(width, **options, **found._asdict())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.family)
def test_family_turns_as_its_row_says(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not as a row with another layout, half as wide a part, or twice the base."""
    config, calls = watch(row.family, monkeypatch)
    assert set(range(LAYERS)) - set(calls) == UNROTATED[row.unrotated]
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    r = int(head_dim * {"all": 1, "1/2": 1 / 2, "1/4": 1 / 4}[row.turned])
    kinds = getattr(config, "layer_types", None) or [None] * LAYERS
    for index, layer_calls in calls.items():
        width = layer_calls[0].before.shape[-1]  # some families hand over only what turns
        stated = {"layout": row.layout, "rotary_dim": r, "base": base_of(row, kinds[index])}
        assert is_turned_by(module_as_stated(row, config, width, **stated), layer_calls)
        wrong = {
            "layout": "interleaved" if row.layout == "split" else "split",
            "rotary_dim": r // 2,
            "base": 2 * stated["base"],
        }
        for name, value in wrong.items():
            other = module_as_stated(row, config, width, **stated | {name: value})
            assert not is_turned_by(other, layer_calls), f"the check does not see {name}"


def test_the_sheet_names_the_version_that_it_is_held_against() -> None:
    version = ".".join(transformers.__version__.split(".")[:2])
    assert f"As `transformers {version}` has it" in SHEET


def test_gpt_oss_without_its_attention_factor() -> None:
    found = rotary_frequencies(64, **AutoConfig.for_model("gpt_oss").rope_parameters)
    assert 0.4 < 1 - 1 / found.attention_factor**2 < 0.5
    assert "are too small by almost a half" in SHEET


def test_the_unrotated_layers_of_cohere2_have_full_attention(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, calls = watch("cohere2", monkeypatch)
    turned = {config.layer_types[index] for index in calls}
    assert turned == {"sliding_attention"}


@pytest.mark.parametrize(("family", "axes"), AXES)
def test_pairs_turn_by_the_axis_that_the_sheet_says(
    family: str, axes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = torch.stack(
        [torch.arange(LENGTH), torch.arange(LENGTH) * 3, torch.arange(LENGTH) ** 2]
    )
    config, calls = watch(family, monkeypatch, positions[:, None])
    rotary = RotaryPositionalEncoding(
        config.head_dim,
        base=config.rope_parameters["rope_theta"],
        layout="split",
        pair_axes=eval(axes),
    )
    assert len(calls) == LAYERS
    assert is_turned_by(rotary, calls[0], positions[:, None])
    assert not is_turned_by(rotary, calls[0], positions[[0, 2, 1], None])
