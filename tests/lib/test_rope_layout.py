"""`convert_layout` is an exact permutation, and makes weights right for the other layout's code."""

import copy
import importlib
import re
from typing import Any

import numpy as np
import pytest
import torch
from backends import Backend, both
from transformers import AutoConfig, AutoModelForCausalLM

from pe_lib import numpy as pe
from pe_lib import torch as pet

SHAPES = [
    ((12,), 12, None, 0),  # a bias of one head, or the weight of a norm
    ((36, 5), 12, None, 0),  # nn.Linear, three heads
    ((36, 5), 12, 8, 0),  # of which a part turns
    ((5, 24), 12, 4, -1),  # for rows that multiply from the left
    ((2, 24, 3), 8, None, 1),
    ((4, 3), 2, None, 0),  # heads of a single pair, where both layouts are the same
]
both_ways = pytest.mark.parametrize("to", ["split", "interleaved"])


def convert(backend: Backend, values: Any, *arguments: Any, **options: Any) -> np.ndarray:
    converted = backend.pe.convert_layout(backend.array(values), *arguments, **options)
    return backend.numpy(converted)


@both
@both_ways
@pytest.mark.parametrize(("shape", "head_dim", "rotary_dim", "axis"), SHAPES)
def test_each_entry_goes_where_the_definition_says(
    backend: Backend, to: str, shape: tuple[int, ...], head_dim: int, rotary_dim: Any, axis: int
) -> None:
    """Entry 2i + j of the interleaved layout is entry i + j·r/2 of the split one."""
    weights = np.random.default_rng(0).normal(size=shape)
    r = rotary_dim or head_dim
    places = np.arange(shape[axis])
    head, entry = np.divmod(places, head_dim)
    i, j = np.divmod(entry, 2)
    in_split = np.where(entry < r, i + j * (r // 2), entry) + head * head_dim
    expected = np.empty_like(weights)
    source, target = (places, in_split) if to == "split" else (in_split, places)
    np.moveaxis(expected, axis, 0)[target] = np.moveaxis(weights, axis, 0)[source]
    options = {"to": to, "rotary_dim": rotary_dim, "axis": axis}
    assert np.array_equal(convert(backend, weights, head_dim, **options), expected)


@both
@both_ways
@pytest.mark.parametrize(("shape", "head_dim", "rotary_dim", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8"])
def test_there_and_back_is_the_original_bit_for_bit(
    backend: Backend,
    to: str,
    shape: tuple[int, ...],
    head_dim: int,
    rotary_dim: Any,
    axis: int,
    dtype: str,
) -> None:
    weights = np.random.default_rng(0).integers(0, 256, (*shape, 8), np.uint8).view(dtype)[..., 0]
    kept = weights.copy()
    options = {"rotary_dim": rotary_dim, "axis": axis}
    there = convert(backend, weights, head_dim, to=to, **options)
    back = convert(
        backend, there, head_dim, to="split" if to == "interleaved" else "interleaved", **options
    )
    assert there.dtype == back.dtype == weights.dtype
    assert back.tobytes() == kept.tobytes() == weights.tobytes()
    there[...] = 0  # the result belongs to the caller
    assert weights.tobytes() == kept.tobytes()


@pytest.mark.parametrize("rotary_dim", [12, 8])
def test_scores_stay_as_they_were(rotary_dim: int) -> None:
    """Interleaved weights with interleaved rotation, and converted weights with split rotation."""
    rng = np.random.default_rng(0)
    x, positions = rng.normal(size=(7, 5)), np.arange(7)
    w_q, w_k = rng.normal(size=(2, 12, 5))

    def scores(layout: Any, w_q: np.ndarray, w_k: np.ndarray) -> np.ndarray:
        rows = []
        for w in (w_q, w_k):
            row = x @ w.T
            row[:, :rotary_dim] = pe.rotate(row[:, :rotary_dim], -positions, layout=layout)
            rows.append(row)
        product: np.ndarray = rows[0] @ rows[1].T
        return product

    converted = [pe.convert_layout(w, 12, to="split", rotary_dim=rotary_dim) for w in (w_q, w_k)]
    before = scores("interleaved", w_q, w_k)
    np.testing.assert_allclose(scores("split", *converted), before, atol=1e-13)
    assert np.abs(scores("split", w_q, w_k) - before).max() > 0.1


def test_a_lora_update_is_converted_by_its_factor_b() -> None:
    """(W + BA) converted is W converted plus B converted times A. Small integers keep it exact."""
    rng = np.random.default_rng(0)
    w, b, a = (rng.integers(-9, 9, shape) for shape in ((24, 16), (24, 4), (4, 16)))
    w_split, b_split = (pe.convert_layout(each, 8, to="split") for each in (w, b))
    merged = pe.convert_layout(w + b @ a, 8, to="split")
    assert np.array_equal(w_split + b_split @ a, merged)


SMALL = {
    "vocab_size": 64,
    "hidden_size": 48,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,  # grouped queries: half as many heads of keys
    "head_dim": 16,
    "pad_token_id": None,
}
# A family, options, the layout of its code, and a family whose code has the other layout.
CONVERTED = re.compile(r"\.(q|k|query|key)_(proj|norm|layernorm)\.")
FAMILIES = [
    ("llama", {}, "split", "glm4"),
    ("qwen2", {}, "split", "glm4"),  # biases
    ("qwen3", {}, "split", "glm4"),  # norms of each query and key, before the rotation
    ("hunyuan_v1_dense", {}, "split", "glm4"),  # after it: they read entries in the same order
    ("glm4", {"attention_bias": True}, "interleaved", "glm4_moe"),  # half of each head turns
]


@torch.no_grad()
@pytest.mark.parametrize(("family", "options", "layout", "other"), FAMILIES)
def test_a_model_of_transformers_gives_the_same_logits_in_the_other_layout(
    family: str, options: dict, layout: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights converted, and the rotation of its code replaced by the other family's."""
    config = AutoConfig.for_model(family, **SMALL, **options)
    model = AutoModelForCausalLM.from_config(config).double().eval()
    for parameter in model.parameters():  # biases start as zeros, norms as ones
        parameter.normal_()
    share = config.rope_parameters.get("partial_rotary_factor", 1)
    before = copy.deepcopy(model.state_dict())

    def converted(weights: dict[str, torch.Tensor], to: Any) -> dict[str, torch.Tensor]:
        return {
            name: pet.convert_layout(weight, 16, to=to, rotary_dim=int(16 * share))
            if CONVERTED.search(name)
            else weight
            for name, weight in weights.items()
        }

    ids = torch.randint(64, (2, 11))
    expected = model(ids).logits

    module, other_module = (
        importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        for name in (family, other)
    )
    monkeypatch.setattr(module, "apply_rotary_pos_emb", other_module.apply_rotary_pos_emb)
    assert (model(ids).logits - expected).abs().max() > 0.1  # a wrong layout is no error

    there = converted(before, "interleaved" if layout == "split" else "split")
    assert {name for name in before if not torch.equal(before[name], there[name])} == {
        name for name in before if CONVERTED.search(name)
    }
    model.load_state_dict(there)
    # The heads' entries are summed in another order, and norms of transformers work in float32.
    torch.testing.assert_close(model(ids).logits, expected, rtol=1e-4, atol=1e-4)

    monkeypatch.undo()
    back = converted(there, layout)
    assert all(torch.equal(back[name], before[name]) for name in before)
    model.load_state_dict(back)
    assert torch.equal(model(ids).logits, expected)


def test_parameters_keep_their_gradient_dtype_and_device() -> None:
    layer = torch.nn.Linear(6, 16, dtype=torch.bfloat16)
    split = pet.convert_layout(layer.weight, 8, to="split")
    assert split.dtype == torch.bfloat16
    split.sum().backward()
    assert layer.weight.grad is not None
    assert torch.equal(layer.weight.grad, torch.ones(16, 6, dtype=torch.bfloat16))
    on_meta = pet.convert_layout(layer.weight.to("meta"), 8, to="split")
    assert on_meta.device.type == "meta"
    with torch.device("meta"):
        split = pet.convert_layout(layer.weight, 8, to="split")
    assert split.device.type == "cpu"


REFUSED: list[tuple[tuple, dict[str, Any], str]] = [
    ((8,), {"to": "neox"}, "ValueError: to must be one of 'interleaved', 'split', got 'neox'"),
    ((8,), {"head_dim": 7}, "ValueError: head_dim must be a positive even integer, got 7"),
    ((8,), {"rotary_dim": 10}, "ValueError: rotary_dim must be at most head_dim = 8, got 10"),
    ((8,), {"rotary_dim": 3}, "ValueError: rotary_dim must be a positive even integer, got 3"),
    (
        (12, 8),
        {},
        "ValueError: axis 0 of weights must be a multiple of head_dim = 8, got shape (12, 8)",
    ),
    (
        (8,),
        {"axis": 1},
        "ValueError: axis must be an axis of weights, whose shape is (8,), got 1",
    ),
    ((), {}, "ValueError: axis must be an axis of weights, whose shape is (), got 0"),
    ((8,), {"axis": 0.0}, "TypeError: axis must be an integer, got 0.0"),
]


@both
@pytest.mark.parametrize(("shape", "options", "words"), REFUSED)
def test_what_cannot_be_converted_is_refused(
    backend: Backend, shape: tuple[int, ...], options: dict[str, Any], words: str
) -> None:
    arguments = {"head_dim": 8, "to": "split"} | options
    with pytest.raises((TypeError, ValueError)) as caught:
        convert(backend, np.ones(shape), **arguments)
    assert f"{caught.type.__name__}: {caught.value}" == words


def test_the_torch_half_takes_tensors_only() -> None:
    with pytest.raises(TypeError, match=r"weights must be a tensor, got \[1, 2\]"):
        pet.convert_layout([1, 2], 2, to="split")  # type: ignore[arg-type]
