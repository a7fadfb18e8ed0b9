"""The table of RoPE by model family, made by running the doctor over the installed transformers.

``python tests/lib/make_rope_families.py`` writes ``pe_lib/rope/families.json``; with ``--check`` it
compares instead, and with names of families it looks at these alone and prints what it read.

Each family is built small, with random weights, from its own default configuration, and reads a few
tokens while its rotation is watched: which layers call it and with what. The doctor then turns
vectors of its own by the very function, with the cosines that the model's own module gives for the
positions that the doctor asks for. Nothing is downloaded, and no name or comment of the model's
code is believed.
"""

import argparse
import contextlib
import copy
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import logging
import os
import re
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoModel
from transformers.models.auto.configuration_auto import (
    CONFIG_MAPPING,
    CONFIG_MAPPING_NAMES,
    model_type_to_module_name,
)
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from pe_lib import doctor
from pe_lib.doctor.comparison import compare
from pe_lib.doctor.words import base_of
from pe_lib.rope import LayerRotation, rotary_settings

TABLE = Path(__file__).parents[2] / "pe_lib" / "rope" / "families.json"
MODELS = Path(transformers.__file__).parent / "models"
LAYERS, LENGTH = 12, 7
LARGEST = 40_000_000  # parameters of a model that is still built

# Sizes only: everything else is the default of the family.
SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "n_routed_experts": 4,
    "num_experts": 4,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "first_k_dense_replace": LAYERS,
    "n_group": 1,
    "topk_group": 1,
    "rotary_dim": 8,
    "vocab_size_per_layer_input": 64,
    "hidden_size_per_layer_input": 8,
    "num_layers": LAYERS,
    "expert_ffn_hidden_size": 16,
    "ffn_hidden_size": 32,
    "zero_expert_num": 2,
    "text_vocab_size": 64,
    "codebook_size": 64,
    "linear_num_value_heads": 2,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "mamba_chunk_size": 8,
    "mamba_d_state": 8,
    "chunk_size": 8,
}
LATENT = {
    "num_key_value_heads": 4,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 24,
    "v_head_dim": 24,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
}
# Tried one after the other until a model reads its tokens: what to set besides, what to leave.
VARIANTS: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    ({}, ()),
    (LATENT, ()),
    (LATENT, ("head_dim",)),
    ({"head_dim": 64, "hidden_size": 256}, ()),
    ({"head_dim": 128, "hidden_size": 512}, ()),
    ({"hidden_size": 512}, ("head_dim",)),
    ({"num_key_value_heads": 4}, ()),
    ({"num_key_value_heads": 4}, ("head_dim",)),
    ({}, ("head_dim",)),
    ({}, ("head_dim", "num_hidden_layers")),
    ({}, ("head_dim", "num_key_value_heads", "num_attention_heads", "hidden_size")),
    (
        {},
        (
            "head_dim",
            "num_key_value_heads",
            "num_attention_heads",
            "hidden_size",
            "vocab_size",
            "pad_token_id",
            "bos_token_id",
            "eos_token_id",
        ),
    ),
    ({}, ("head_dim", "num_hidden_layers", "num_key_value_heads", "num_attention_heads")),
    (
        {},
        (
            "head_dim",
            "num_hidden_layers",
            "num_key_value_heads",
            "num_attention_heads",
            "hidden_size",
        ),
    ),
)
ROTATES = re.compile(r"^_?(vision_)?apply\w*(rot|rope)\w*$")
# Norms of what attention multiplies; an indexer has queries and keys of its own.
NORMS = re.compile(r"^(?!.*indexer\.)(.*\.)?(q|k|query|key|qk)_?(layer)?_?norm$")
NORMS_FIELD = re.compile(r"^(use_)?qk_(layer)?norm$")  # a field that switches them on


class NotRead(Exception):
    """A family that this file cannot look at. The message says why."""


class NothingTurned(NotRead):
    """A model that was built and read its tokens, and turned nothing."""


class Call(NamedTuple):
    """One call of a rotation: in which layer, of which function, with what."""

    layer: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    embeddings: tuple["Embedding", ...]
    norms_before: bool


class Embedding(NamedTuple):
    """One call of the module that makes cosines and sines."""

    module: nn.Module
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    output: Any


class Watched(NamedTuple):
    """A family that has read a few tokens."""

    config: Any
    model: nn.Module
    calls: list[Call]
    norms: dict[int, set[str]]  # the norms of queries and keys that ran, by layer


def families() -> list[str]:
    """The model types whose code has a rotation, of text or of parts of larger models."""
    pattern = re.compile(r"[Rr]otary|rotate_half|rotate_every|freqs_cis")
    found = []
    for model_type in CONFIG_MAPPING_NAMES:
        name = model_type_to_module_name(model_type)
        files = (MODELS / name).glob("modeling_*.py")
        if any(pattern.search(file.read_text(encoding="utf-8")) for file in files):
            found.append(model_type)
    return sorted(found)


# ---- A small model that reads a few tokens


def small_config(model_type: str, extra: dict[str, Any], left: tuple[str, ...]) -> Any:
    kind = CONFIG_MAPPING[model_type]
    default = kind()
    names = set(default.to_dict()) | set(kind.attribute_map)
    sizes = SMALL | extra
    if "kv_lora_rank" in names:
        sizes = SMALL | LATENT | extra
    if "mrope_section" in code_of(model_type):  # the sections belong to the width of the default
        width = default.to_dict().get("head_dim") or 128
        sizes = {**sizes, "head_dim": width, "hidden_size": 4 * width, **extra}
    fields = {n: value for n, value in sizes.items() if n in names and n not in left}
    given = default.to_dict().get("layer_types")
    if isinstance(given, list) and fields.get("num_hidden_layers") == LAYERS:
        with contextlib.suppress(Exception):
            return kind(**fields)
        fields["layer_types"] = given[:LAYERS]
    return kind(**fields)


@functools.cache
def code_of(model_type: str) -> str:
    """The code of a family's models."""
    files = (MODELS / model_type_to_module_name(model_type)).glob("modeling_*.py")
    return "".join(file.read_text(encoding="utf-8") for file in sorted(files))


def watch(model_type: str, also: dict[str, Any] | None = None) -> Watched:
    """The family built small, with some fields set, and what its rotation was called with."""
    if model_type not in MODEL_MAPPING_NAMES:
        raise NotRead("no AutoModel of its own: it is a part of another family")
    reasons = []
    for extra, left in VARIANTS:
        try:
            config = small_config(model_type, extra | (also or {}), left)
            with torch.device("meta"):
                model = AutoModel.from_config(config)
        except Exception as error:  # anybody's code
            reasons.append(f"{type(error).__name__}: {error}".splitlines()[0][:150])
            continue
        if "input_ids" not in inspect.signature(model.forward).parameters:
            raise NotRead("it reads no tokens")
        size = sum(p.numel() for p in model.parameters())
        if size > LARGEST:
            reasons.append(f"{size:,} parameters are too many to build")
            continue
        try:
            torch.manual_seed(0)
            return run(model_type, config, AutoModel.from_config(config).eval())
        except NothingTurned:
            raise
        except Exception as error:  # anybody's code
            reasons.append(f"{type(error).__name__}: {error}".splitlines()[0][:150])
    raise NotRead(reasons[0])


def run(model_type: str, config: Any, model: nn.Module) -> Watched:
    calls: list[Call] = []
    with watching(model_type, model, calls) as norms, torch.no_grad():
        tokens = torch.randint(3, min(60, getattr(config, "vocab_size", 60)), (1, LENGTH))
        model(tokens, use_cache=False)
    if not calls:
        raise NothingTurned("no function of its code that rotates was called")
    return Watched(config, model, calls, norms)


@contextlib.contextmanager
def watching(model_type: str, model: nn.Module, calls: list[Call]) -> Iterator[dict[int, set[str]]]:
    """Note every call of a rotation, of a module that makes cosines, and of norms of q and k."""
    now = {"layer": -1}
    embeddings: list[Embedding] = []
    norms: dict[int, set[str]] = defaultdict(set)
    handles = list(_hooks(model, now, embeddings, norms))
    code = sys.modules[type(model).__module__]
    patched = {
        name: value
        for name, value in vars(code).items()
        if inspect.isfunction(value) and ROTATES.match(name)
    }

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            given = {id(tensor) for tensor in _flat([arguments, options])}
            used = tuple(each for each in embeddings if {id(t) for t in _flat(each.output)} & given)
            before = bool(norms[now["layer"]])
            calls.append(Call(now["layer"], original, arguments, options, used, before))
            return original(*arguments, **options)

        return call

    for name, value in patched.items():
        setattr(code, name, watched(value))
    try:
        yield norms
    finally:
        for name, value in patched.items():
            setattr(code, name, value)
        for handle in handles:
            handle.remove()


def _hooks(
    model: nn.Module,
    now: dict[str, int],
    embeddings: list[Embedding],
    norms: dict[int, set[str]],
) -> Iterator[Any]:
    """Hooks that keep the number of the layer, the cosines that were made, the norms that ran."""
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) > 1 and ".0." not in f"{name}.":
            for index, layer in enumerate(module):
                yield layer.register_forward_pre_hook(_set(now, index))
        if re.search("rot|rope", type(module).__name__.lower()):
            yield module.register_forward_hook(_remember(embeddings), with_kwargs=True)
        if NORMS.search(name):
            yield module.register_forward_hook(_norm(norms, now, name.split(".")[-1]))


def _set(now: dict[str, int], index: int) -> Callable[..., None]:
    def hook(*_: Any) -> None:
        now["layer"] = index

    return hook


def _remember(embeddings: list[Embedding]) -> Callable[..., None]:
    def hook(module: nn.Module, arguments: Any, options: Any, output: Any) -> None:
        embeddings.append(Embedding(module, arguments, options, output))

    return hook


def _norm(norms: dict[int, set[str]], now: dict[str, int], name: str) -> Callable[..., None]:
    def hook(*_: Any) -> None:
        norms[now["layer"]].add(name)

    return hook


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for each in value for tensor in _flat(each)]
    return []


# ---- The rotation of one call, as a function of vectors and positions


def position_axes(call: Call) -> int:
    """Of how many axes the positions are that the model gives its module of cosines."""
    for embedding in call.embeddings:
        for tensor in _flat([embedding.arguments, embedding.options]):
            if not tensor.is_floating_point() and tensor.ndim == 3:
                return int(tensor.shape[0])
    return 1


def vectors(call: Call) -> Tensor:
    """The first argument that is turned: queries, with a position axis of LENGTH."""
    bound = [*call.arguments, *call.options.values()]
    for value in bound:
        if isinstance(value, Tensor) and value.ndim >= 3 and LENGTH in value.shape[1:-1]:
            return value
    raise NotRead("its rotation takes no vectors with an axis of positions")


def turn_of(call: Call) -> Callable[[Any, Any], Any]:
    """The rotation as the doctor wants it."""
    if not call.embeddings:
        raise NotRead("its cosines come from no module of their own")
    example = vectors(call)
    heads_first = example.ndim == 4 and example.shape[2] == LENGTH

    def turn(x: Any, positions: Any) -> Any:
        new: dict[int, Tensor] = {}
        where = torch.from_numpy(positions)
        for embedding in call.embeddings:
            with torch.no_grad():
                given = [_moved(each, where) for each in embedding.arguments]
                options = {name: _moved(each, where) for name, each in embedding.options.items()}
                output = embedding.module(*given, **options)
            pairs = zip(_flat(embedding.output), _flat(output), strict=True)
            new |= {id(old): fresh for old, fresh in pairs}
        rows = torch.from_numpy(x)
        shaped = rows[None, None] if heads_first else rows[None, :, None]
        if example.ndim == 3:
            shaped = rows[None]

        def swapped(value: Any) -> Any:
            if isinstance(value, tuple | list):
                return type(value)(swapped(each) for each in value)
            if not isinstance(value, Tensor):
                return value
            if id(value) in new:
                return new[id(value)]
            return shaped if value.ndim == example.ndim and LENGTH in value.shape[1:-1] else value

        options = {name: swapped(value) for name, value in call.options.items()}
        with torch.no_grad():
            turned = call.function(*[swapped(value) for value in call.arguments], **options)
        first = turned[0] if isinstance(turned, tuple | list) else turned
        return first.float().reshape(x.shape).numpy()

    return turn


def _moved(value: Any, positions: Tensor) -> Any:
    """A tensor of positions replaced, in its own shape."""
    if not isinstance(value, Tensor) or value.is_floating_point() or LENGTH not in value.shape:
        return value
    if value.ndim == 3:
        return positions[:, None] if positions.ndim == 2 else positions.expand(3, 1, -1)
    return positions.reshape(*[1] * (value.ndim - 1), -1)


# ---- The same where no small model runs: the module of cosines and the function, by themselves


def default_config(model_type: str) -> Any:
    """The family's default, with a width of heads where its own sizes give no whole one."""
    kind = CONFIG_MAPPING[model_type]
    config = kind()
    width, heads = (
        getattr(config, "hidden_size", None),
        getattr(config, "num_attention_heads", None),
    )
    if width and heads and width % heads and getattr(config, "head_dim", None) is None:
        return kind(head_dim=128)
    return config


def functions_alone(model_type: str) -> dict[str | None, doctor.Report]:
    """For each kind of layer the doctor's report on a family's own module and function."""
    config = default_config(model_type)
    name = model_type_to_module_name(model_type)
    code = None
    for file in sorted((MODELS / name).glob("modeling_*.py")):
        code = importlib.import_module(f"transformers.models.{name}.{file.stem}")
        kinds = [
            value
            for key, value in vars(code).items()
            if inspect.isclass(value)
            and value.__module__ == code.__name__
            and re.search(r"Rotary(Positional)?Embedding$", key)
            and not re.search("Vision|Audio|DiT", key)
        ]
        if kinds:
            break
    apply = getattr(code, "apply_rotary_pos_emb", None) or getattr(
        code, "apply_rotary_pos_emb_interleave", None
    )
    if not kinds or apply is None:
        raise NotRead("its code has no module of cosines, or no function that turns by them")
    rotary: Any = kinds[0]
    module = rotary(config).eval()
    layer_kinds: list[str | None] = [None]
    if "layer_type" in inspect.signature(module.forward).parameters:
        layer_kinds = list(dict.fromkeys(config.layer_types))
    reports = {}
    for kind in layer_kinds:
        axes = 3 if "mrope_section" in code_of(model_type) else 1
        turn, width = _turn_alone(module, apply, kind, axes, config)
        reports[kind] = doctor.examine(turn, width, axes="seq", position_axes=axes)
    return reports


def _turn_alone(
    module: nn.Module, apply: Callable[..., Any], kind: str | None, axes: int, config: Any
) -> tuple[Callable[[Any, Any], Any], int]:
    def factors(x: Tensor, positions: Tensor) -> Any:
        where = positions[:, None] if axes > 1 else positions[None]
        with torch.no_grad():
            return module(x, where) if kind is None else module(x, where, kind)

    like = torch.zeros(1, LENGTH, 8)
    example = factors(
        like, torch.arange(LENGTH).expand(axes, -1) if axes > 1 else torch.arange(LENGTH)
    )
    if not isinstance(example, tuple) or not isinstance(example[0], Tensor):
        raise NotRead("its module gives no cosines and sines")
    width = int(example[0].shape[-1])

    def turn(x: Any, positions: Any) -> Any:
        rows = torch.from_numpy(x)[None, None]
        cos, sin = factors(like, torch.from_numpy(positions))
        with torch.no_grad():
            return apply(rows, rows, cos, sin)[0].float().reshape(x.shape).numpy()

    try:
        turn(np.zeros((3, width), np.float32), np.zeros((axes, 3) if axes > 1 else 3, np.int64))
    except Exception:
        width *= 2  # cosines of half the width, as interleaved code may have
    return turn, width


# ---- The record of a family

KEPT = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "head_dim",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "global_head_dim",
    "rotary_dim",
    "max_position_embeddings",
    "query_pre_attn_scalar",
    "attention_multiplier",
    "partial_rotary_factor",
    "attn_temperature_tuning",
    "attn_scale",
    "floor_scale",
    "no_rope_layer_interval",
    "attn_logit_softcapping",
)


def defaults_of(model_type: str) -> dict[str, Any]:
    """The fields that a file may leave out, and the names that this family gives them."""
    names = {a: b for a, b in CONFIG_MAPPING[model_type].attribute_map.items() if a in KEPT}
    result: dict[str, Any] = {"defaults": sizes_of(model_type)} | kinds_of_layers(model_type)
    result |= flat_fields(model_type)
    older = older_names(model_type)
    if older:
        result["older_names"] = older
    if ignores_head_dim(model_type):
        result["width"] = "hidden_size"
    part = older_rotary_dim(model_type)
    if part is not None:
        result["older_rotary_dim"] = part
    return result | ({"names": names} if names else {})


def sizes_of(model_type: str) -> dict[str, Any]:
    """The fields of a family's default configuration, without those computed from others."""
    config = CONFIG_MAPPING[model_type]()
    fields: dict[str, Any] = {}
    for name in KEPT:
        with contextlib.suppress(Exception):  # some families refuse a field that layers differ in
            value = getattr(config, name)
            if isinstance(value, int | float | str):
                fields[name] = value
    own_name = type(config).attribute_map.get("head_dim", "head_dim")
    if not isinstance(getattr(type(config), own_name, None), int):
        fields.pop("head_dim", None)
    for name in ("query_pre_attn_scalar", "attention_multiplier"):
        if name in fields and follows_the_width(model_type, name):
            del fields[name]  # and where a file has none, the scale is the usual one
    if isinstance(getattr(config, "rope_parameters", None), dict):
        fields["rope_parameters"] = config.rope_parameters
    widths = config.to_dict().get("per_layer_config") or {}
    for own in widths.values():
        if "head_dim" in own:
            fields["global_head_dim"] = own["head_dim"]
    if "per_layer_config" in config.to_dict():
        fields["head_dim"] = config.to_dict().get("head_dim")
    return fields


# Numbers that no model has, and with them the fields of older files, which lie beside each other.
BASE, PART = MARKS = (54_321.0, 0.54321)
OLDER_FIELDS: dict[str, Any] = {
    "rope_theta": BASE,
    "rope_local_base_freq": BASE,
    "global_rope_theta": BASE,
    "local_rope_theta": BASE,
    "compress_rope_theta": BASE,
    "partial_rotary_factor": PART,
    "rope_scaling": {"rope_type": "linear", "factor": BASE},
}


def flat_fields(model_type: str) -> dict[str, Any]:
    """For a family with parameters for each kind of layer: which kinds take an older field.

    For another one: whether a base beside the parameters is not read, as by a class whose own
    default parameters have one. Found by giving the class a field with a number that no model has.
    """
    found = {}
    unread = []
    for name, number in (("rope_theta", BASE), ("partial_rotary_factor", PART)):
        with contextlib.suppress(Exception):
            parameters = CONFIG_MAPPING[model_type].from_dict({name: number}).rope_parameters
            if parameters.get(name) not in (None, number):
                unread.append(name)
    if unread:
        return {"unread": unread}
    for name, value in OLDER_FIELDS.items():
        with contextlib.suppress(Exception):  # families with strict fields refuse an unknown one
            config = CONFIG_MAPPING[model_type].from_dict({name: copy.deepcopy(value)})
            parameters = config.rope_parameters
            taken = [
                kind
                for kind, own in parameters.items()
                if isinstance(own, dict) and any(own.get(field) in MARKS for field in own)
            ]
            if taken:
                found[name] = sorted(taken)
    if "rope_scaling" in found:
        older = {"type": "linear", "factor": BASE}
        config = CONFIG_MAPPING[model_type].from_dict({"rope_scaling": older})
        kinds = found["rope_scaling"]
        if all(config.rope_parameters[kind]["rope_type"] == "linear" for kind in kinds):
            found["type"] = kinds  # the older name of rope_type
        trained = {"original_max_position_embeddings": 1024}
        yarn = {"rope_scaling": {"rope_type": "yarn", "factor": 4.0} | trained}
        with contextlib.suppress(Exception):
            config = CONFIG_MAPPING[model_type].from_dict(yarn)
            factors = {config.rope_parameters[kind].get("attention_factor") for kind in kinds}
            if factors == {1.0}:
                return {"flat": found, "plain_yarn": True}
    return {"flat": found} if found else {}


def ignores_head_dim(model_type: str) -> bool:
    """Whether a class computes the width of a head, whatever the file says."""
    kind = CONFIG_MAPPING[model_type]
    with contextlib.suppress(Exception):
        computed = kind().hidden_size // kind().num_attention_heads
        given = kind.from_dict({"head_dim": 2 * computed})
        return bool(given.head_dim == computed)
    return False


def older_rotary_dim(model_type: str) -> str | None:
    """The field that a file may have in place of the part of a head that turns, as released ones
    of MiniMax-M2 and DeepSeek-V4 do. Other families keep such a field, and their code ignores it.
    """

    def parts(**fields: int) -> set[Any]:
        parameters = CONFIG_MAPPING[model_type](**fields).rope_parameters
        kinds = [each for each in parameters.values() if isinstance(each, dict)] or [parameters]
        return {each.get("partial_rotary_factor") for each in kinds}

    for name in ("rotary_dim", "qk_rope_head_dim"):
        with contextlib.suppress(Exception):  # families with strict fields refuse an unknown one
            if parts(**{name: 36}) not in (parts(), {None}):
                return name
    return None


def older_names(model_type: str) -> list[str]:
    """Which older names of a base and of a part a class reads."""
    found = []
    for name, number in (
        ("rotary_pct", 0.25),
        ("rotary_emb_base", BASE),
        ("rotary_base", BASE),
    ):
        for value in (number, number / 2):  # one of them is no default
            with contextlib.suppress(Exception):
                parameters = CONFIG_MAPPING[model_type].from_dict({name: value}).rope_parameters
                if value in parameters.values():
                    found.append(name)
    return [name for name in dict.fromkeys(found) if found.count(name) == 2]


def follows_the_width(model_type: str, name: str) -> bool:
    """Whether a scale is computed from the width of a head."""
    kind = CONFIG_MAPPING[model_type]
    with contextlib.suppress(Exception):
        return bool(getattr(kind(), name) != getattr(kind(head_dim=2 * kind().head_dim), name))
    return False


# ---- Which kind of layer stands where

COUNTS = (13, 20, 24, 31, 48, 61)  # of layers, to find a rule for any number


def kinds_of_layers(model_type: str) -> dict[str, Any]:
    """The rule by which a class deals kinds to its layers, and the fields that change its step."""
    default = getattr(CONFIG_MAPPING[model_type](), "layer_types", None)
    if not isinstance(default, list | tuple) or not default:
        return {}
    seen = {len(default): list(default)}
    for count in COUNTS:
        kinds = layer_types(model_type, num_hidden_layers=count)
        if len(kinds) == count:
            seen[count] = kinds
    rule = next((each for each in rules(seen[max(seen)]) if fits(each, seen)), None)
    if rule is None:  # of the default number of layers alone
        seen = {len(default): list(default)}
        rule = next(each for each in rules(list(default)) if fits(each, seen))
    return {"kinds": rule} | intervals(model_type, rule)


def layer_types(model_type: str, **fields: Any) -> list[str]:
    """The kinds of layers that a class makes of some fields; none if it refuses them."""
    with contextlib.suppress(Exception):
        return list(CONFIG_MAPPING[model_type].from_dict(fields).layer_types)
    return []


def rules(kinds: list[str]) -> Iterator[dict[str, Any]]:
    """Rules that may give these kinds, the shortest first: what is repeated, counted from the
    first layer or back from the last, and what stands before and after it."""
    for length in range(1, len(kinds) + 1):
        for first, last, from_end in itertools.product(range(3), range(2), (False, True)):
            if length - first - last < 1:
                continue
            middle = range(first, len(kinds) - last)
            size = length - first - last
            origin = len(kinds) if from_end else 0
            cycle = {(i - origin) % size: kinds[i] for i in middle}
            if len(cycle) < size:
                continue
            rule: dict[str, Any] = {"cycle": [cycle[i] for i in range(size)]}
            rule |= {"first": kinds[:first]} if first else {}
            rule |= {"last": kinds[-last:]} if last else {}
            yield rule | ({"from_end": True} if from_end else {})


def fits(rule: dict[str, Any], seen: dict[int, list[str]]) -> bool:
    return all(dealt(rule, count) == kinds for count, kinds in seen.items())


def dealt(rule: dict[str, Any], count: int) -> list[str]:
    """The kinds of so many layers by a rule; written here again, since pe_lib is under test."""
    cycle, first, last = rule["cycle"], rule.get("first", []), rule.get("last", [])
    origin = count if rule.get("from_end") else 0
    kinds = [cycle[(i - origin) % len(cycle)] for i in range(count)]
    kinds[: len(first)] = first[:count]
    if last and count:
        kinds[-len(last) :] = last
    return kinds


def intervals(model_type: str, rule: dict[str, Any]) -> dict[str, Any]:
    """The fields that say how often full attention comes: after each stretch of so many layers, or
    at its start."""
    fields = {n for n, v in CONFIG_MAPPING[model_type]().to_dict().items() if type(v) is int}
    # Classes take these out of what they are given.
    fields |= {"sliding_window_pattern", "full_attention_interval", "global_attn_every_n_layers"}
    if len(set(rule["cycle"])) == 1:
        return {}
    found = {}
    for name in sorted(fields - {"num_hidden_layers"}):
        for where in ("end", "start"):
            steps = (2, 3, 5)
            full = rule["cycle"][0 if where == "start" else -1]
            other = next((each for each in rule["cycle"] if each != full), "sliding_attention")
            cycles = [[other] * (step - 1) for step in steps]
            for cycle in cycles:
                cycle.insert(0 if where == "start" else len(cycle), full)
            made = [layer_types(model_type, **{name: step}) for step in steps]
            expected = [
                dealt(rule | {"cycle": c}, len(m)) for c, m in zip(cycles, made, strict=True)
            ]
            if all(made) and made == expected:
                found[name] = where
    return {"intervals": found} if found else {}


def of_code(report: doctor.Report) -> dict[str, Any]:
    """What the code does and no configuration says."""
    if report.layout not in ("split", "interleaved") or report.layout_out == "other":
        raise NotRead(f"pairs are {report.layout}, written {report.layout_out}")
    found: dict[str, Any] = {"layout": report.layout}
    if report.layout_out != report.layout:
        found["layout_out"] = report.layout_out
    if report.direction != 1:
        found["direction"] = report.direction
    if report.rotary_start and report.rotary_start + report.rotary_dim == report.head_dim:
        found["last"] = True
    return found


def complete(family: dict[str, Any], report: doctor.Report) -> None:
    """A base that no field of the family has, as the code of GPT-J fixes it."""
    defaults = family["defaults"]
    if not defaults.get("rope_parameters"):
        base = base_of(report)
        if base is not None:
            defaults["rope_parameters"] = {"rope_theta": base}


def labels(watched: Watched) -> Iterator[dict[str, Any]]:
    """Under which name of the parameters each kind of layer looks, where it is not its own."""
    parameters = getattr(watched.config, "rope_parameters", None) or {}
    names = [name for name, value in parameters.items() if isinstance(value, dict)]
    kinds = sorted(set(getattr(watched.config, "layer_types", None) or []))
    yield {}
    if names and not set(kinds) <= set(names):
        for choice in itertools.product(names, repeat=len(kinds)):
            yield {"labels": dict(zip(kinds, choice, strict=True))}


def unturned_rules(watched: Watched, turned: set[int]) -> Iterator[dict[str, Any]]:
    """Rules that may say which layers do not turn, the plainest first."""
    yield {}
    if getattr(watched.config, "no_rope_layers", None):
        yield {"unturned": {"list": "no_rope_layers"}}
    kinds = getattr(watched.config, "layer_types", None) or []
    still = sorted({kind for i, kind in enumerate(kinds) if i not in turned})
    yield {"unturned": {"types": still}}


WIDTHS = ("qk_rope_head_dim", "head_dim", "hidden_size")
AXES_RULES = (None, "sections", "interleaved", "ernie", "alternate")


def softmax_scales(model: Any) -> set[float]:
    """The numbers that layers of attention name as their scaling."""
    scales = {
        getattr(module, "scaling", None)
        for module in model.modules()
        if "attention" in type(module).__name__.lower()
    }
    return {float(each) for each in scales if isinstance(each, int | float)}


def scale_of(watched: Watched) -> dict[str, Any]:
    """A softmax scale that no field says: of 1, or one over the root of half the width."""
    scales = softmax_scales(watched.model)
    if scales == {1.0}:
        return {"scale": 1}
    width = vectors(watched.calls[0]).shape[-1]
    is_of_half = len(scales) == 1 and np.isclose(scales.pop() ** -2, width / 2)
    return {"scale_share": 0.5} if is_of_half else {}


def dealing(rule: str | None, family: dict[str, Any]) -> dict[str, Any]:
    """How axes are dealt to pairs; Ernie names its sections height, width, time."""
    if rule is None:
        return {}
    sections = family["sections"]
    return {
        "axes": rule,
        "sections": np.roll(sections, -1).tolist() if rule == "ernie" else sections,
    }


def record(model_type: str) -> dict[str, Any]:
    """The family as the table has it."""
    config = CONFIG_MAPPING[model_type]()
    text = getattr(config, "text_config", None)
    if text is not None and hasattr(text, "model_type"):
        return {"text": text.model_type}
    numbers = kinds_of_numbers(model_type)
    try:
        watched, switched_on = watch_turning(model_type, config, numbers)
    except NotRead as reason:
        return record_of_function(model_type, str(reason))
    reports = examine(watched)
    first = next(iter(reports.values()))
    family = of_code(first) | defaults_of(model_type) | {"read": "model"}
    if any(of_code(each) != of_code(first) for each in reports.values()):
        raise NotRead("its layers have different layouts")
    complete(family, first)
    family |= norms_of(watched) | further(watched, first)
    switch = next(filter(NORMS_FIELD.match, watched.config.to_dict()), None)
    if switch is not None:
        family |= norms_of(watch(model_type, {switch: True})) | {"norms_field": switch}
        family["defaults"][switch] = getattr(watched.config, switch)
    family |= switches(model_type, watched, family["layout"]) | numbers
    family["defaults"] |= dict.fromkeys(switched_on, False)
    family |= scale_of(watched)
    axes = [each.pair_axes for each in reports.values() if each.pair_axes]
    if axes:
        family["sections"] = np.bincount(axes[0]).tolist()
    family = fitted(family, watched, reports, bool(axes))
    if "types" in family.get("unturned", {}) and turns_without_window(model_type):
        family["unturned"]["unless_null"] = "sliding_window"
    if family.get("older_rotary_dim") == family.get("width"):  # the whole of this width turns
        family.pop("older_rotary_dim", None)
    own = lists_of_layers(model_type)
    if "unturned" in own:
        own["unturned"] = family.get("unturned", {}) | own["unturned"]
    return family | own | soft_cap(model_type)


def watch_turning(
    model_type: str, config: Any, numbers: dict[str, Any]
) -> tuple[Watched, dict[str, bool]]:
    """The family with layers of all kinds that its numbers name, and the fields without which
    nothing turns."""
    (meanings,) = numbers["numbers"].values() if numbers else ({},)
    kinds = dict.fromkeys(meanings.values())
    also = {"layer_types": list(itertools.islice(itertools.cycle(kinds), LAYERS))} if kinds else {}
    try:
        return watch(model_type, also), {}
    except NothingTurned:
        needed = {name: True for name in SWITCHES if getattr(config, name, None) is False}
        if not needed:
            raise
        return watch(model_type, needed), needed


def lists_of_layers(model_type: str) -> dict[str, Any]:
    """What two fields with an entry for each layer do, found by giving them to a model."""
    fields = CONFIG_MAPPING[model_type]().to_dict()
    if "layer_rope_theta" in fields:
        given = [20_000.0, 0.0, 30_000.0, 0.0] * (LAYERS // 4)
        reports = examine(watch(model_type, {"layer_rope_theta": given}))
        if set(reports) != {i for i, base in enumerate(given) if base}:
            raise NotRead("layers with the base 0 turn")
        rule: dict[str, Any] = {"unturned": {"list": "layer_rope_theta"}}
        bases = [base_of(reports[i]) for i in (0, 2)]
        if bases == [20_000.0, 30_000.0]:
            return rule | {"bases": "layer_rope_theta"}
        if len(set(bases)) > 1:
            raise NotRead(f"layers with the bases {given[:3]} have {bases}")
        return rule
    if "rope_scaling_layers" in fields:
        scaling = {"rope_type": "linear", "factor": 4.0, "rope_theta": 20_000.0}
        also = {"rope_scaling_layers": [0, 2], "rope_parameters": scaling}
        reports = examine(watch(model_type, also))
        scales = [reports[i].frequencies[0] / reports[1].frequencies[0] for i in range(4)]
        if not np.allclose(scales, [0.25, 1, 0.25, 1], rtol=1e-4):
            raise NotRead(f"layers that should have the scales 1/4, 1, 1/4, 1 have {scales}")
        return {"scaled": "rope_scaling_layers"}
    return {}


def soft_cap(model_type: str) -> dict[str, Any]:
    """The field that caps scores, if a model's output changes with it."""
    name = "attn_logit_softcapping"
    if name not in CONFIG_MAPPING[model_type]().to_dict():
        return {}
    tokens = torch.arange(3, 3 + LENGTH)[None]
    outputs = []
    for value in (1e-4, 1e4):
        model: Any = watch(model_type, {name: value}).model
        model.set_attn_implementation("eager")  # others may leave the cap out
        torch.manual_seed(0)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        with torch.no_grad():
            outputs.append(model(tokens, use_cache=False).last_hidden_state)
    if torch.equal(*outputs):
        return {}
    return {"soft_cap": name}


def kinds_of_numbers(model_type: str) -> dict[str, Any]:
    """Of older files, a list with a number for each layer, and the kind that a number means."""
    name = "compress_ratios"
    kinds = {}
    for number in range(257):
        with contextlib.suppress(Exception):  # a number that has no meaning, or an unknown field
            given = {"num_hidden_layers": 1, "layer_types": None, name: [number]}
            (kinds[str(number)],) = CONFIG_MAPPING[model_type].from_dict(given).layer_types
    return {"numbers": {name: kinds}} if len(set(kinds.values())) > 1 else {}


# Fields that switch the rotation off, or change its layout, in some families.
SWITCHES = ("alibi", "rope_interleave", "use_mem_rope")


def switches(model_type: str, watched: Watched, layout: str) -> dict[str, Any]:
    """What such a field does to the model, where it is set the other way than in the class."""
    found: dict[str, Any] = {}
    fields = watched.config.to_dict()
    for name in SWITCHES:
        if not isinstance(fields.get(name), bool):
            continue
        other = not fields[name]
        try:
            reports = examine(watch(model_type, {name: other})).values()
            layouts = {of_code(each)["layout"] for each in reports}
        except NotRead:
            layouts = {"none"}
        if layouts != {layout}:
            (found[name],) = ({str(other).lower(): each} for each in layouts)
    return {"switches": found} if found else {}


def norms_of(watched: Watched) -> dict[str, Any]:
    """The norms of queries and keys that ran, where, and whether their entries have weights."""
    ran = set().union(*watched.norms.values())
    if not ran:
        return {}
    family: dict[str, Any] = {
        "norms": sorted(ran, key=lambda name: (not name.startswith("q"), name))
    }
    if not all(call.norms_before for call in watched.calls if watched.norms.get(call.layer)):
        family["norms_after"] = True
    modules = [each for name, each in watched.model.named_modules() if NORMS.search(name)]
    if all(weight.numel() == 1 for norm in modules for weight in norm.parameters()):
        family["norms_plain"] = True
    return family


def turns_without_window(model_type: str) -> bool:
    """Whether full attention turns after all where no layer has a window, as in EXAONE 4."""
    if getattr(CONFIG_MAPPING[model_type](), "sliding_window", None) is None:
        return False
    kinds = ["full_attention"] * LAYERS
    try:
        config = small_config(model_type, {"sliding_window": None, "layer_types": kinds}, ())
        found = run(model_type, config, AutoModel.from_config(config).eval())
    except Exception:  # anybody's code: a window may be needed
        return False
    return len({call.layer for call in found.calls}) == LAYERS


def fitted(
    family: dict[str, Any],
    watched: Watched,
    reports: dict[int, doctor.Report],
    has_axes: bool,
) -> dict[str, Any]:
    """The family with the plainest rules by which the settings of all layers are what was read."""
    for label, rule, width, part, dealt in itertools.product(
        labels(watched),
        unturned_rules(watched, set(reports)),
        WIDTHS,
        ("rotary_dim", None) if getattr(watched.config, "rotary_dim", None) else (None,),
        AXES_RULES if has_axes else (None,),
    ):
        if width == "qk_rope_head_dim" and not hasattr(watched.config, width):
            continue
        tried: dict[str, Any] = family | label | rule | dealing(dealt, family)
        tried |= {"width": width} if width != "head_dim" else {}
        tried |= {"rotary_dim": part} if part else {}
        if not disagreements(watched.config, reports, tried):
            return tried
    return family | {"disagreements": disagreements(watched.config, reports, family)}


def record_of_function(model_type: str, reason: str) -> dict[str, Any]:
    """The same from the function alone; which layers call it is then not known."""
    config = default_config(model_type)
    try:
        reports = functions_alone(model_type)
    except NotRead:
        raise NotRead(reason) from None
    except Exception as error:
        raise NotRead(f"{reason}; {type(error).__name__}: {error}"[:200]) from error
    first = next(iter(reports.values()))
    family = of_code(first) | defaults_of(model_type) | {"read": "function"}
    if first.pair_axes:
        family["sections"] = np.bincount(first.pair_axes).tolist()
    rules = AXES_RULES if first.pair_axes else (None,)
    for width, dealt in itertools.product(WIDTHS, rules):
        if width == "qk_rope_head_dim" and not hasattr(config, width):
            continue
        tried = family | ({"width": width} if width != "head_dim" else {})
        tried |= dealing(dealt, family)
        with contextlib.suppress(ValueError, TypeError):
            settings = rotary_settings(config.to_dict(), family=tried)
            kinds = getattr(config, "layer_types", None) or [None] * len(settings.layers)
            pairs = zip(kinds, settings.layers, strict=True)
            by_kind = {kind: layer for kind, layer in reversed(list(pairs)) if layer is not None}
            expected = [
                by_kind[kind if kind in by_kind else next(iter(by_kind))] for kind in reports
            ]
            if not [
                p for r, e in zip(reports.values(), expected, strict=True) for p in differs(r, e)
            ]:
                return tried
    return family | {"disagreements": ["no rule of widths fits"]}


def differs(report: doctor.Report, layer: LayerRotation | None) -> list[str]:
    """What the doctor says of a report against one layer of the settings."""
    if layer is None:
        return ["turns, and was expected not to"]
    if layer.head_dim != report.head_dim and layer.rotary_dim == report.head_dim:
        layer = dataclasses.replace(layer, head_dim=report.head_dim, rotary_start=0)
    if layer.head_dim != report.head_dim:
        return [f"a width of {report.head_dim}, and {layer.head_dim} was expected"]
    if (layer.pair_axes or None) != (report.pair_axes or None):
        return [f"axes {report.pair_axes}, and {layer.pair_axes} were expected"]
    return [str(fault.difference) for fault in compare(report, layer).faults]


def disagreements(
    config: Any, reports: dict[int, doctor.Report], family: dict[str, Any]
) -> list[str]:
    """Where the settings that are read with this record differ from what layers did."""
    try:
        settings = rotary_settings(config.to_dict(), family=family)
    except (ValueError, TypeError) as error:
        return [str(error)[:200]]
    found = []
    for index, layer in enumerate(settings.layers):
        if index not in reports:
            found += [f"layer {index} does not turn"] if layer is not None else []
        else:
            found += [f"layer {index}: {each}" for each in differs(reports[index], layer)]
    return found[:3]


def examine(watched: Watched) -> dict[int, doctor.Report]:
    """For each layer that turns, the doctor's report; layers with equal calls share one."""
    reports: dict[Any, doctor.Report] = {}
    by_layer: dict[int, doctor.Report] = {}
    for call in watched.calls:
        if call.layer in by_layer:
            continue
        width = vectors(call).shape[-1]
        modules = tuple(id(each.module) for each in call.embeddings)
        kinds = tuple(
            str([v for v in [*e.arguments, *e.options.values()] if isinstance(v, str)])
            for e in call.embeddings
        )
        key = (call.function, width, modules, kinds)
        if key not in reports:
            axes = position_axes(call)
            turn = turn_of(call) if call.embeddings else rerun(watched, call)
            reports[key] = doctor.examine(turn, width, axes="seq", position_axes=axes)
        by_layer[call.layer] = reports[key]
    return by_layer


def further(watched: Watched, first: doctor.Report) -> dict[str, Any]:
    """The layout of another function that turns something else in the same layers, such as the
    queries and keys of an indexer."""
    main = {call.layer: call.function for call in reversed(watched.calls)}
    seen: dict[tuple[Any, int], str] = {}
    for call in watched.calls:
        with contextlib.suppress(Exception):  # its cosines may be made in the layer itself
            key = call.function, vectors(call).shape[-1]
            if call.function is main[call.layer] or key in seen:
                continue
            report = doctor.examine(turn_of(call), key[1], axes="seq")
            seen[key] = of_code(report)["layout"]
    others = sorted(set(seen.values()) - {of_code(first)["layout"]})
    return {"further": others} if others else {}


def rerun(watched: Watched, call: Call) -> Callable[[Any, Any], Any]:
    """A rotation whose cosines no module makes: the model reads tokens at the positions wanted."""
    model_type = watched.config.model_type

    def turn(x: Any, positions: Any) -> Any:
        where = torch.from_numpy(positions)[None]
        again: list[Call] = []
        with watching(model_type, watched.model, again), torch.no_grad():
            watched.model(torch.full_like(where, 5), position_ids=where, use_cache=False)
        found = next(each for each in again if each.layer == call.layer)
        rows = torch.from_numpy(x)[None, :, None]
        arguments = [rows, *found.arguments[1:]]
        with torch.no_grad():
            return call.function(*arguments, **found.options).reshape(x.shape).numpy()

    return turn


# ---- The table


def table(names: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The records of families, and why others have none."""
    found, unread = {}, {}
    for model_type in names:
        start = time.perf_counter()
        try:
            found[model_type] = record(model_type)
        except NotRead as reason:
            unread[model_type] = str(reason)
        except Exception as error:  # anybody's code
            unread[model_type] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        seconds = time.perf_counter() - start
        if seconds > 5:
            print(f"{model_type} took {seconds:.0f} s", file=sys.stderr, flush=True)
    for model_type, family in list(found.items()):
        if "disagreements" in family:
            unread[model_type] = "; ".join(family["disagreements"])
            del found[model_type]
    for model_type, family in list(found.items()):
        if "text" in family and family["text"] not in found:
            unread[model_type] = f"its text model {family['text']} is not in the table"
            del found[model_type]
    return found, unread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", help="look at these alone, and print what was read")
    parser.add_argument("--check", action="store_true", help="compare with the stored table")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start = time.perf_counter()
    found, unread = table(arguments.family or families())
    seconds = time.perf_counter() - start
    if arguments.family:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    for name, reason in unread.items():
        print(f"{name}: {reason}", file=sys.stderr)
    direct = [family for family in found.values() if "layout" in family]
    print(
        f"{len(found)} model types, {len(direct)} with code of their own, in {seconds:.0f} s; "
        f"{len(unread)} not read",
        file=sys.stderr,
    )
    version = transformers.__version__
    text = json_lines(version, found, list(unread))
    if arguments.check:
        # By value: one family has its kinds of layers in an order that changes from run to run.
        stored, read = json.loads(TABLE.read_text(encoding="utf-8")), json.loads(text)
        old, new = stored["families"], read["families"]
        differ = [name for name in old | new if old.get(name) != new.get(name)]
        if stored != read:
            sys.exit(f"the stored table differs ({', '.join(differ)}): run this without --check")
    elif not arguments.family:
        TABLE.write_text(text, encoding="utf-8")


def json_lines(version: str, found: dict[str, Any], unread: list[str]) -> str:
    """One family a line, so that a change of one is one line of a diff; and those not read."""
    rows = [
        f"{json.dumps(name)}: {json.dumps(family, ensure_ascii=False)}"
        for name, family in sorted(found.items())
    ]
    body = ",\n".join(rows)
    rest = json.dumps(sorted(unread))
    head = f'"transformers": {json.dumps(version)}'
    return f'{{{head}, "families": {{\n{body}\n}}, "unread": {rest}}}\n'


if __name__ == "__main__":
    main()
