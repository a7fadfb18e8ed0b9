"""Models of other libraries give the same outputs when our module does their rotation.

Each model is small and has random weights, so nothing is downloaded. First it runs as it is. Then
its rotary module hands our module and the positions to the layers, in place of cosines and sines,
and each layer turns its queries and keys by our module. The rest stays the client's own code.
"""

import copy
import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    DynamicCache,
    Gemma3TextConfig,
    LlamaConfig,
    PhiConfig,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.phi import modeling_phi

from pe_lib.torch import RotaryPositionalEncoding, rotary_frequencies, sinusoidal_encoding

LENGTH, PREFILL = 12, 7
STEPS = [(0, PREFILL), *((place, place + 1) for place in range(PREFILL, LENGTH))]
# The clients form angles in float32. An angle of at most 12 radians is then off by 2⁻²¹ at most,
# and a few layers multiply that. Outputs are of magnitude 1.
ROUNDING = 1e-4
# How much outputs must change when nothing is rotated: otherwise a test would say nothing.
ROTATION_MATTERS = 100 * ROUNDING


@dataclass(frozen=True)
class Client:
    """A model of transformers, and what our module needs to know to stand in for its rotation."""

    family: str
    layout: Any = "split"
    options: dict[str, Any] = field(default_factory=dict)  # beside SMALL
    is_encoder: bool = False
    seq_dim: int = -2
    pair_axes: list[int] | None = None

    @property
    def code(self) -> Any:
        """The module whose rotation is replaced."""
        name = self.family.removesuffix("_text")
        return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


SMALL = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
TWO_BASES = {"layer_types": ["sliding_attention", "full_attention"]}
ONE_LAYER_UNROTATED = {"num_hidden_layers": 3, "no_rope_layers": [1, 0, 1]}
SHORT_LLAMA_3 = {  # trained on 64 positions
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
MINISTRAL_3 = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 4,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.5,  # its layers scale their queries themselves, after the rotation
}
THREE_AXES = {"rope_parameters": {"rope_theta": 100.0, "mrope_section": [2, 3, 3]}}
IN_BLOCKS = [0, 0, 1, 1, 1, 2, 2, 2]  # the axis of each pair: time, height, width
IN_TURNS = [0, 1, 2, 0, 1, 2, 0, 1]

CLIENTS = {
    "Llama": Client("llama"),
    "Llama 3.1": Client("llama", options={"rope_parameters": SHORT_LLAMA_3}),
    "Qwen 3": Client("qwen3"),
    "Gemma 3": Client("gemma3_text", options=TWO_BASES),
    "ModernBERT": Client("modernbert", options=TWO_BASES, is_encoder=True),
    "GPT-NeoX, a quarter of a head": Client("gpt_neox"),
    "GLM 4, half of a head": Client("glm4", layout="interleaved"),
    "Cohere": Client("cohere", layout="interleaved"),
    "gpt_oss, YaRN": Client("gpt_oss", options=EXPERTS),
    "Ministral 3": Client("ministral3", options={"rope_parameters": MINISTRAL_3}),
    "SmolLM3": Client("smollm3", options=ONE_LAYER_UNROTATED),
    "Llama 4": Client(
        "llama4_text",
        layout="interleaved",
        options=EXPERTS | ONE_LAYER_UNROTATED,
        seq_dim=-3,  # its queries are (batch, seq, heads, head_dim)
    ),
    "Qwen2-VL": Client("qwen2_vl_text", options=THREE_AXES, pair_axes=IN_BLOCKS),
    "Qwen2.5-VL": Client("qwen2_5_vl_text", options=THREE_AXES, pair_axes=IN_BLOCKS),
    "Qwen3-VL": Client("qwen3_vl_text", options=THREE_AXES, pair_axes=IN_TURNS),
}


def small_model(client: Client) -> nn.Module:
    config = AutoConfig.for_model(client.family, **SMALL | client.options)
    model: nn.Module = AutoModel.from_config(config).eval()
    return model


# ---- Our module in the place of a client's rotation


def rotary_of(config: Any, client: Client, kind_of_layer: str | None) -> RotaryPositionalEncoding:
    """Our module from the fields of a configuration, for all its layers or for one kind of them."""
    fields = (
        config.rope_parameters if kind_of_layer is None else config.rope_parameters[kind_of_layer]
    )
    frequencies, attention_factor = rotary_frequencies(
        config.head_dim,
        seq_len=LENGTH,
        **{"max_position_embeddings": config.max_position_embeddings} | fields,
    )
    return RotaryPositionalEncoding(
        config.head_dim,
        rotary_dim=2 * len(frequencies),
        frequencies=frequencies,
        attention_factor=attention_factor,
        layout=client.layout,
        seq_dim=client.seq_dim,
        pair_axes=client.pair_axes,
    )


class OurRotation(nn.Module):
    """Takes the place of a client's rotary module. The pair that it returns goes through the layers
    where the client's cosines and sines would, and arrives at `rotate_by_ours`."""

    def __init__(self, modules: dict[str | None, RotaryPositionalEncoding]) -> None:
        super().__init__()
        self.modules_of_kinds = modules

    def forward(self, x: Tensor, position_ids: Tensor, kind_of_layer: str | None = None) -> Any:
        return self.modules_of_kinds[kind_of_layer], position_ids


def rotate_by_ours(
    q: Tensor,
    k: Tensor,
    rotary: RotaryPositionalEncoding,
    positions: Tensor,
    unsqueeze_dim: int = 1,
) -> tuple[Tensor, Tensor]:
    return rotary(q, positions=positions), rotary(k, positions=positions)


class OurTables(OurRotation):
    """The same with cosines and sines that our module made once, for all layers, q and k."""

    def forward(self, x: Tensor, position_ids: Tensor, kind_of_layer: str | None = None) -> Any:
        rotary = self.modules_of_kinds[kind_of_layer]
        return rotary, rotary.tables(position_ids)


def rotate_by_tables(
    q: Tensor, k: Tensor, rotary: RotaryPositionalEncoding, tables: Any, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    return rotary(q, tables=tables), rotary(k, tables=tables)


class PositionsOnly(nn.Module):
    """The same for Llama 4, whose layers expect one tensor."""

    def forward(self, x: Tensor, position_ids: Tensor) -> Tensor:
        return position_ids


def modules_of(config: Any, client: Client) -> dict[str | None, RotaryPositionalEncoding]:
    """One for each kind of layer that has fields of its own, or one for all layers."""
    if "rope_type" in config.rope_parameters:
        return {None: rotary_of(config, client, None)}
    return {kind: rotary_of(config, client, kind) for kind in config.rope_parameters}


def use_our_rotation(model: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = modules_of(model.config, client)
    if client.family == "llama4_text":
        model.rotary_emb = PositionsOnly()
        monkeypatch.setattr(
            client.code,
            "apply_rotary_emb",
            lambda q, k, positions: rotate_by_ours(q, k, modules[None], positions),
        )
    else:
        model.rotary_emb = OurRotation(modules)
        monkeypatch.setattr(client.code, "apply_rotary_pos_emb", rotate_by_ours)


def use_no_rotation(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "apply_rotary_emb" if client.family == "llama4_text" else "apply_rotary_pos_emb"
    monkeypatch.setattr(client.code, name, lambda q, k, *rest, **options: (q, k))


# ---- What models do with positions. Each function returns the outputs of the real tokens.


def ids_of(batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, 64, (batch, LENGTH), generator=generator)


def positions_of(client: Client, places: Tensor) -> Tensor:
    """Of shape (batch, seq); with three axes, as for text beside an image, (3, batch, seq)."""
    if client.pair_axes is None:
        return places
    return torch.stack((places, 1 + places // 2, places // 3 + places % 3))


def whole_pass(model: Any, client: Client) -> Tensor:
    places = torch.arange(LENGTH).expand(2, LENGTH)
    output: Tensor = model(ids_of(2), position_ids=positions_of(client, places)).last_hidden_state
    return output


def decoding(model: Any, client: Client) -> Tensor:
    """The first tokens together, and each of the others alone, with a cache."""
    places = torch.arange(LENGTH).expand(2, LENGTH)
    return _in_steps(model, ids_of(2), positions_of(client, places), None).flatten(0, 1)


def left_padding(model: Any, client: Client) -> Tensor:
    """Prompts of different lengths in one batch, and then some steps of decoding."""
    mask = torch.ones(2, LENGTH, dtype=torch.int64)
    mask[1, :3] = 0
    positions = positions_of(client, (mask.cumsum(-1) - 1).clamp(min=0))
    if client.is_encoder:
        output = model(ids_of(2), attention_mask=mask, position_ids=positions).last_hidden_state
    else:
        output = _in_steps(model, ids_of(2), positions, mask)
    rows: Tensor = output[mask == 1]
    return rows


def _in_steps(model: Any, ids: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
    cache = DynamicCache(config=model.config)
    outputs = []
    for start, end in STEPS:
        step = model(
            ids[:, start:end],
            attention_mask=None if mask is None else mask[:, :end],
            position_ids=positions[..., start:end],
            past_key_values=cache,
            use_cache=True,
        )
        outputs.append(step.last_hidden_state)
    return torch.cat(outputs, dim=1)


DOCUMENTS = (5, 7)
PLACES_IN_DOCUMENTS = torch.cat([torch.arange(length) for length in DOCUMENTS])
DOCUMENT = torch.repeat_interleave(torch.tensor(DOCUMENTS))
IS_SAME_DOCUMENT = DOCUMENT[:, None] == DOCUMENT


def packing(model: Any, client: Client) -> Tensor:
    """Two documents in one row. The mask separates them; positions start anew in each."""
    places = PLACES_IN_DOCUMENTS[None]
    may_see = IS_SAME_DOCUMENT if client.is_encoder else IS_SAME_DOCUMENT.tril()
    mask = torch.where(may_see, 0.0, torch.finfo(torch.float32).min)[None, None]
    output: Tensor = model(
        ids_of(1), attention_mask=mask, position_ids=positions_of(client, places)
    ).last_hidden_state
    return output[0]


def documents_alone(model: Any, client: Client) -> Tensor:
    outputs = []
    for ids in ids_of(1).split(DOCUMENTS, dim=1):
        positions = positions_of(client, torch.arange(ids.shape[1])[None])
        outputs.append(model(ids, position_ids=positions).last_hidden_state[0])
    return torch.cat(outputs)


CASES = [
    pytest.param(client, situation, id=f"{name}, {situation.__name__}")
    for name, client in CLIENTS.items()
    for situation in (whole_pass, decoding, left_padding, packing)
    if not (client.is_encoder and situation is decoding)
]


@torch.no_grad()
@pytest.mark.parametrize(("client", "situation"), CASES)
def test_outputs_are_the_client_s(
    client: Client,
    situation: Callable[[nn.Module, Client], Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = small_model(client)
    theirs = situation(model, client)
    with monkeypatch.context() as patch:
        use_no_rotation(client, patch)
        assert (situation(model, client) - theirs).abs().max() > ROTATION_MATTERS
    use_our_rotation(model, client, monkeypatch)
    assert (situation(model, client) - theirs).abs().max() < ROUNDING


@torch.no_grad()
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_cache_padding_and_packing_change_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With our rotation: steps equal the whole pass, and packed documents are those alone."""
    model = small_model(client)
    use_our_rotation(model, client, monkeypatch)
    torch.testing.assert_close(
        packing(model, client), documents_alone(model, client), rtol=0, atol=ROUNDING
    )
    if not client.is_encoder:
        whole = whole_pass(model, client).flatten(0, 1)
        torch.testing.assert_close(decoding(model, client), whole, rtol=0, atol=ROUNDING)
        padded = left_padding(model, client)[:LENGTH]  # the row without padding
        torch.testing.assert_close(padded, whole[:LENGTH], rtol=0, atol=ROUNDING)


@torch.no_grad()
@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "Llama 4"])
def test_tables_made_once_serve_all_layers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = CLIENTS[name]
    model: Any = small_model(client)
    theirs = left_padding(model, client)
    model.rotary_emb = OurTables(modules_of(model.config, client))
    monkeypatch.setattr(client.code, "apply_rotary_pos_emb", rotate_by_tables)
    assert (left_padding(model, client) - theirs).abs().max() < ROUNDING


# ---- The rows of the page's table, "what you have, what you write"

PAGE = (Path(__file__).resolve().parents[2] / "book" / "library.md").read_text(encoding="utf-8")


def row_of(what_you_have: str) -> str:
    """What the table says to write."""
    (row,) = re.findall(rf"^\| {re.escape(what_you_have)}.*? \| (.*) \|$", PAGE, re.M)
    assert isinstance(row, str)
    return row


def written(what_you_have: str, names: dict[str, Any]) -> RotaryPositionalEncoding:
    """The module with the arguments of a row, after the assignment before them, if any. The value
    of an argument that the row describes in words is found under its name."""
    code = re.findall(r"`([^`]+)`", row_of(what_you_have))
    if code[0].startswith("scaled = "):
        exec(code.pop(0), names)
    arguments = [part for part in code if re.match(r"\w+=.|\*\*", part)]
    in_words = [part[:-1] for part in code if part.endswith("=") and part[:-1] in names]
    arguments += [f"{name}={name}" for name in in_words]
    module = eval(f"RotaryPositionalEncoding(head_dim, {', '.join(arguments)})", names)
    assert isinstance(module, RotaryPositionalEncoding)
    return module


def rotated_by(code: Any, module: nn.Module, q: Tensor, *kind: str) -> Tensor:
    """What a module of transformers makes of queries of the width that turns."""
    cos, sin = module(q, torch.arange(LENGTH)[None], *kind)
    turned, _ = code.apply_rotary_pos_emb(q, q, cos, sin)
    assert isinstance(turned, Tensor)
    return turned


@pytest.mark.parametrize(
    ("family", "what_you_have", "fields"),
    [
        ("Llama", "a Llama 1 to 3", {}),
        ("GPTNeoX", "GPT-NeoX, Phi", {"partial_rotary_factor": 0.25}),
        ("Phi", "GPT-NeoX, Phi", {"partial_rotary_factor": 0.5}),
    ],
)
def test_a_row_serves_models_without_scaling(
    family: str, what_you_have: str, fields: dict[str, Any]
) -> None:
    """With the base and the part of the head that their configurations name."""
    fields = {"rope_type": "default", "rope_theta": 100.0, **fields}
    config = getattr(transformers, f"{family}Config")(
        hidden_size=64, num_attention_heads=4, rope_parameters=fields
    )
    code = importlib.import_module(type(config).__module__.replace("configuration", "modeling"))
    rotary_dim = int(16 * fields.get("partial_rotary_factor", 1))
    names = {
        "RotaryPositionalEncoding": RotaryPositionalEncoding,
        "head_dim": 16,
        "base": config.rope_parameters["rope_theta"],
        "rotary_dim": rotary_dim,
    }
    q = torch.randn(2, 4, LENGTH, 16)
    theirs = getattr(code, f"{family}RotaryEmbedding")(config)
    found = written(what_you_have, names)(q)
    expected = rotated_by(code, theirs, q[..., :rotary_dim])
    torch.testing.assert_close(found[..., :rotary_dim], expected, rtol=0, atol=ROUNDING)
    assert torch.equal(found[..., rotary_dim:], q[..., rotary_dim:])


OLDER_FILES: dict[str, dict[str, Any]] = {
    "Phi, linear": {
        "rope_scaling": {"type": "linear", "factor": 4.0},
        "rope_theta": 100.0,
        "partial_rotary_factor": 0.5,
        "max_position_embeddings": 64,
    },
    "Llama, dynamic": {
        "rope_scaling": {"type": "dynamic", "factor": 4.0},
        "rope_theta": 100.0,
        "max_position_embeddings": 8,
    },
    "Llama, yarn": {
        "rope_scaling": {
            "type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 64,
        },
        "rope_theta": 100.0,
        "max_position_embeddings": 256,
    },
    "Phi3, longrope": {
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
            "long_factor": [1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
        },
        "rope_theta": 100.0,
        "partial_rotary_factor": 0.75,
        "original_max_position_embeddings": 8,
        "max_position_embeddings": 32,
    },
}


@pytest.mark.parametrize("file", OLDER_FILES.values(), ids=OLDER_FILES)
def test_a_row_serves_older_files(file: dict[str, Any], request: Any) -> None:
    """The row names the fields that are passed although they stand beside rope_scaling."""
    family = request.node.callspec.id.split(",")[0]
    beside = re.findall(r"`(\w+)`", row_of("an older `config.json`").partition("Every type")[0])
    passed = {name: file[name] for name in beside if name in file and name != "rope_scaling"}
    assert set(passed) == set(file) - {"rope_scaling"}
    ours = rotary_frequencies(16, seq_len=LENGTH, **passed, **file["rope_scaling"])
    config = getattr(transformers, f"{family}Config")(
        hidden_size=64, num_attention_heads=4, pad_token_id=0, **copy.deepcopy(file)
    )
    theirs, factor = ROPE_INIT_FUNCTIONS[config.rope_parameters["rope_type"]](
        config, torch.device("cpu"), seq_len=LENGTH
    )
    torch.testing.assert_close(ours.frequencies.float(), theirs, rtol=1e-6, atol=0)
    assert ours.attention_factor == pytest.approx(factor)


@pytest.mark.parametrize(
    "scaling",
    [
        {"type": "yarn", "factor": 4.0},
        {"type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        {"type": "longrope", "factor": 4.0, "short_factor": [1.0] * 8, "long_factor": [2.0] * 8},
    ],
)
def test_a_file_without_its_original_length_means_the_longest_one(scaling: dict[str, Any]) -> None:
    """As the docstring of `rotary_frequencies` says of transformers."""
    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=4,
        max_position_embeddings=96,
        rope_theta=100.0,
        rope_scaling=dict(scaling),
    )
    assert config.rope_parameters["original_max_position_embeddings"] == 96


@pytest.mark.parametrize("kind", ["full_attention", "sliding_attention"])
def test_a_row_serves_the_two_kinds_of_layers_of_gemma_3(kind: str) -> None:
    """From a file of either age, and from the module of transformers."""
    row = row_of("Gemma 3")
    config = Gemma3TextConfig(
        head_dim=16,
        rope_theta=1000.0,
        rope_local_base_freq=100.0,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    )
    expression = f'config.rope_parameters["{kind}"]'
    assert f"`{expression}`" in row
    fields = eval(expression)
    if kind == "full_attention":  # "In an older file `rope_theta` and `rope_scaling` are its own"
        older = rotary_frequencies(16, rope_theta=1000.0, rope_type="linear", factor=8.0)
    else:
        assert "`rope_local_base_freq`" in row
        older = rotary_frequencies(16, rope_theta=100.0)
    scaled = rotary_frequencies(16, **fields)
    assert torch.equal(scaled.frequencies, older.frequencies)

    theirs = modeling_gemma3.Gemma3RotaryEmbedding(config)
    assert not hasattr(theirs, "inv_freq")
    assert f"`{kind}_inv_freq`" in row
    from_module = RotaryPositionalEncoding(
        16,
        layout="split",
        frequencies=getattr(theirs, f"{kind}_inv_freq"),
        attention_factor=getattr(theirs, f"{kind}_attention_scaling"),
    )
    from_fields = RotaryPositionalEncoding(16, layout="split", **scaled._asdict())
    q = torch.randn(2, 4, LENGTH, 16)
    expected = rotated_by(modeling_gemma3, theirs, q, kind)
    for module in (from_fields, from_module):
        torch.testing.assert_close(module(q), expected, rtol=0, atol=ROUNDING)


def test_a_row_drops_the_buffers_of_a_checkpoint() -> None:
    """The row has the expression."""
    ours = nn.ModuleDict(
        {
            "embed": nn.Embedding(4, 16),
            "rotary_emb": RotaryPositionalEncoding(16, layout="interleaved"),
        }
    )
    buffers = {"pe": torch.zeros(5, 16), "layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}
    state = ours.state_dict() | buffers | {"encode.pe": torch.zeros(5, 16)}
    (expression,) = re.findall(r"`(\{.*?\})`", row_of("a checkpoint with a buffer"))
    kept = eval(expression, {"state": state})
    assert set(kept) == {"embed.weight"}
    ours.load_state_dict(kept, strict=True)


@pytest.mark.parametrize("what_you_have", ["linear, NTK, YaRN", "a rotary module of transformers"])
@pytest.mark.parametrize("scaling", [{}, {"rope_type": "linear", "factor": 4.0}])
def test_a_row_serves_phi_whose_heads_turn_in_part(
    what_you_have: str, scaling: dict[str, Any]
) -> None:
    fields = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5, **scaling}
    config = PhiConfig(hidden_size=64, num_attention_heads=4, rope_parameters=fields)
    theirs = modeling_phi.PhiRotaryEmbedding(config)
    q = torch.randn(2, 4, LENGTH, 16)
    places = torch.arange(LENGTH)[None]
    expected, _ = modeling_phi.apply_rotary_pos_emb(q[..., :8], q[..., :8], *theirs(q, places))
    names = {
        "RotaryPositionalEncoding": RotaryPositionalEncoding,
        "rotary_frequencies": rotary_frequencies,
        "head_dim": 16,
        "layout": "split",  # Phi's, which the row on scaling leaves to the table of families
        "rope_parameters": config.rope_parameters,
        "module": theirs,
    }
    found = written(what_you_have, names)(q)
    torch.testing.assert_close(found[..., :8], expected, rtol=0, atol=ROUNDING)
    assert torch.equal(found[..., 8:], q[..., 8:])


# ---- Frequencies that depend on the length of the text

GROWING = {
    "dynamic": Client(
        "llama",
        options={
            "max_position_embeddings": 8,
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 4.0},
        },
    ),
    "longrope": Client(
        "phi3",
        options={
            "max_position_embeddings": 32,
            "original_max_position_embeddings": 8,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 100.0,
                "short_factor": [1.0] * 8,
                "long_factor": [1.0, 1.1, 1.4, 2.0, 2.5, 3.0, 3.5, 4.0],
            },
        },
    ),
}


@torch.no_grad()
@pytest.mark.parametrize("client", GROWING.values(), ids=GROWING)
def test_frequencies_that_change_under_a_filled_cache_are_wrong(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole pass of 12 tokens is ours and theirs. In steps with a cache, transformers changes
    its frequencies after 8 tokens, when some keys were already stored; ours were decided for 12."""
    model = small_model(client)
    whole = whole_pass(model, client)
    in_steps = decoding(copy.deepcopy(model), client)
    assert (in_steps - whole.flatten(0, 1)).abs().max() > ROTATION_MATTERS
    use_our_rotation(model, client, monkeypatch)
    torch.testing.assert_close(whole_pass(model, client), whole, rtol=0, atol=ROUNDING)
    torch.testing.assert_close(decoding(model, client), whole.flatten(0, 1), rtol=0, atol=ROUNDING)


# ---- Timesteps of diffusion models


def timestep_embedding(
    t: Tensor, width: int, flip: bool, shift: float, scale: float, base: float
) -> Tensor:
    """The formula of `get_timestep_embedding` in diffusers 0.42: ``flip_sin_to_cos``,
    ``downscale_freq_shift``, ``scale`` and ``max_period``."""
    half = width // 2
    exponent = -math.log(base) * torch.arange(half, dtype=torch.float32) / (half - shift)
    angles = scale * t[:, None].float() * torch.exp(exponent)
    sin, cos = angles.sin(), angles.cos()
    return torch.cat((cos, sin) if flip else (sin, cos), dim=-1)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(("shift", "spacing"), [(0, "paper"), (1, "tensor2tensor")])
@pytest.mark.parametrize(("scale", "base"), [(1, 10_000), (1000, 10_000), (1000, 256)])
def test_timestep_embedding_is_that_of_diffusers(
    flip: bool, shift: int, spacing: Any, scale: int, base: int
) -> None:
    """Timesteps between 0 and 1 are scaled by 1,000; those that count to 1,000 are not."""
    t = torch.linspace(0, 1000 / scale, 37)
    theirs = timestep_embedding(t, 64, flip, shift, scale, base)
    ours = sinusoidal_encoding(scale * t, 64, base=base, layout="split", spacing=spacing)
    if flip:
        ours = torch.cat(ours.chunk(2, dim=-1)[::-1], dim=-1)
    # An angle of 1,000 in float32, after a power and two products, is off by some 2⁻¹⁴.
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-4)
