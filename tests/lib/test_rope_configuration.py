"""Settings read from a configuration, beside what transformers makes of the same fields."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from pe_lib.rope import (
    RotarySettings,
    UnknownFamily,
    families,
    rotary_frequencies,
    rotary_settings,
)
from pe_lib.rope.configuration import ConfigurationError
from pe_lib.torch import RotaryPositionalEncoding, rotary_modules

# Fields as in the files of released models, new and old.
LLAMA_2 = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "max_position_embeddings": 4096,
}
LLAMA_3_1 = LLAMA_2 | {
    "rope_theta": 500000.0,
    "max_position_embeddings": 131072,
    "rope_scaling": {
        "factor": 8.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
}
QWEN_3 = {
    "model_type": "qwen3",
    "head_dim": 128,
    "hidden_size": 2560,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "max_position_embeddings": 40960,
    "rope_theta": 1000000,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32768,
    },
}
GEMMA_3 = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "num_hidden_layers": 34,
    "sliding_window_pattern": 6,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "query_pre_attn_scalar": 256,
    "max_position_embeddings": 131072,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_hidden_layers": 61,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "max_position_embeddings": 163840,
    "rope_theta": 10000,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 40,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
        "type": "yarn",
    },
}
PHI_3_5 = {
    "model_type": "phi3",
    "hidden_size": 3072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "rope_scaling": {
        "type": "su",
        "short_factor": np.linspace(1, 2, 48).round(3).tolist(),
        "long_factor": np.linspace(1, 64, 48).round(3).tolist(),
    },
}
QWEN_2_VL = {  # a flat file: the fields of the text model stand beside vision_config
    "model_type": "qwen2_vl",
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "max_position_embeddings": 32768,
    "rope_theta": 1000000.0,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {"model_type": "qwen2_vl", "hidden_size": 3584},
}
GPT_NEOX = {
    "model_type": "gpt_neox",
    "hidden_size": 6144,
    "num_attention_heads": 64,
    "num_hidden_layers": 44,
    "rotary_pct": 0.25,
    "rotary_emb_base": 10000,
    "max_position_embeddings": 2048,
}
MODERNBERT = {
    "model_type": "modernbert",
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_hidden_layers": 22,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0,
    "max_position_embeddings": 8192,
}
SMOLLM_3 = {
    "model_type": "smollm3",
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_hidden_layers": 36,
    "no_rope_layers": [1, 1, 1, 0] * 9,
    "rope_theta": 5000000.0,
    "max_position_embeddings": 65536,
}
FILES = {
    "llama 2": LLAMA_2,
    "llama 3.1": LLAMA_3_1,
    "qwen 3": QWEN_3,
    "gemma 3": GEMMA_3,
    "deepseek v3": DEEPSEEK_V3,
    "phi 3.5": PHI_3_5,
    "qwen 2 vl": QWEN_2_VL,
    "gpt neox": GPT_NEOX,
    "modernbert": MODERNBERT,
    "smollm 3": SMOLLM_3,
}
SINGLE = 4e-6  # relative: a power and a few products in float32


def of_transformers(file: dict[str, Any]) -> dict[str | None, tuple[Any, float]]:
    """Frequencies and factor that a family's own module has, for each kind of layer."""
    import importlib

    from transformers.models.auto.configuration_auto import model_type_to_module_name

    fields = copy.deepcopy(file)
    model_type = fields.pop("model_type")
    fields.pop("vision_config", None)
    if fields.get("rope_scaling", {}).get("type") == "su":  # transformers wants it in both places
        fields["rope_scaling"]["original_max_position_embeddings"] = 4096
    if model_type == "qwen2_vl":
        model_type = "qwen2_vl_text"
    config = AutoConfig.for_model(model_type, **fields)
    name = model_type_to_module_name(model_type)
    code = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    (kind,) = (
        value
        for key, value in vars(code).items()
        if key.endswith("RotaryEmbedding")
        and "Vision" not in key
        and value.__module__ == code.__name__
    )
    module = kind(config)
    kinds = getattr(module, "layer_types", None)
    if not kinds:
        return {None: (module.inv_freq, module.attention_scaling)}
    return {
        each: (getattr(module, f"{each}_inv_freq"), getattr(module, f"{each}_attention_scaling"))
        for each in set(kinds)
    }


@pytest.mark.parametrize("name", FILES)
def test_old_files_mean_what_transformers_makes_of_them(name: str) -> None:
    settings = rotary_settings(FILES[name])
    theirs = of_transformers(FILES[name])
    assert len(settings.kinds) == len(theirs)
    for frequencies, factor in theirs.values():
        assert any(
            len(kind.frequencies) == len(frequencies)
            and np.allclose(kind.frequencies, frequencies.numpy(), rtol=SINGLE, atol=0)
            and kind.attention_factor == pytest.approx(factor)
            for kind in settings.kinds
        )


def kinds_of(settings: RotarySettings) -> list[float | None]:
    return [None if each is None else each.base for each in settings.layers]


def test_which_layers_turn_and_by_what() -> None:
    assert kinds_of(rotary_settings(LLAMA_2)) == [10_000.0] * 32
    assert kinds_of(rotary_settings(SMOLLM_3)) == [5e6, 5e6, 5e6, None] * 9
    assert kinds_of(rotary_settings(GEMMA_3)) == ([1e4] * 5 + [1e6]) * 5 + [1e4] * 4
    assert kinds_of(rotary_settings(MODERNBERT)) == ([160_000.0, 1e4, 1e4] * 8)[:22]
    gemma = rotary_settings(GEMMA_3)
    sliding, full = gemma.kinds
    assert (sliding.rope_type, full.rope_type) == ("default", "linear")
    assert gemma.layers[0] is gemma.layers[1]  # shared


def test_layout_part_and_axes() -> None:
    (deepseek,) = rotary_settings(DEEPSEEK_V3).kinds
    assert (deepseek.layout, deepseek.layout_out) == ("interleaved", "split")
    assert (deepseek.head_dim, deepseek.rotary_dim) == (64, 64)
    (neox,) = rotary_settings(GPT_NEOX).kinds
    assert (neox.layout, neox.head_dim, neox.rotary_dim) == ("split", 96, 24)
    (vision,) = rotary_settings(QWEN_2_VL).kinds
    assert vision.pair_axes == (0,) * 16 + (1,) * 24 + (2,) * 24
    (gptj,) = rotary_settings({"model_type": "gptj"}).kinds
    assert (gptj.layout, gptj.head_dim, gptj.rotary_dim) == ("interleaved", 256, 64)
    (nanochat,) = rotary_settings({"model_type": "nanochat"}).kinds
    assert nanochat.direction == -1


def test_a_text_model_within_a_larger_one() -> None:
    inner = QWEN_3 | {"model_type": "qwen3"}
    for file in (
        {"model_type": "some_larger_model", "text_config": inner},
        {"model_type": "gemma3", "text_config": dict(GEMMA_3)},
        {"model_type": "gemma3", "text_config": GEMMA_3 | {"model_type": None}},
        {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": inner}},
    ):
        fields = json.loads(json.dumps(file))
        settings = rotary_settings(fields)
        assert len(settings.layers) in (34, 36)


def test_fields_in_new_files_nested_by_kind_of_layer() -> None:
    file = {
        "model_type": "gemma3_text",
        "head_dim": 256,
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
        },
    }
    assert kinds_of(rotary_settings(file)) == [1e4, 1e6, 1e4]
    file["rope_parameters"]["full_attention"] = None  # type: ignore[index]
    assert kinds_of(rotary_settings(file)) == [1e4, None, 1e4]


def test_a_released_file_of_minimax_says_rotary_dim() -> None:
    file = {"model_type": "minimax_m2", "head_dim": 128, "rotary_dim": 64, "rope_theta": 5e6}
    theirs = AutoConfig.for_model("minimax_m2", head_dim=128, rotary_dim=64, rope_theta=5e6)
    assert theirs.rope_parameters["partial_rotary_factor"] == 0.5
    assert rotary_settings(file).kinds[0].rotary_dim == 64
    own = {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.25}
    theirs = AutoConfig.for_model("minimax_m2", head_dim=128, rotary_dim=64, rope_parameters=own)
    assert theirs.rope_parameters["partial_rotary_factor"] == 0.25
    assert rotary_settings(file | {"rope_parameters": own}).kinds[0].rotary_dim == 32


def test_a_part_that_the_code_ignores_is_named_and_not_used() -> None:
    """The code of MiniMax-M3 turns the whole head, and its default configuration has the field."""
    theirs = AutoConfig.for_model("minimax_m3_vl_text")
    assert theirs.rotary_dim == 64
    assert theirs.rope_parameters.get("partial_rotary_factor") is None
    settings = rotary_settings(theirs)
    assert {kind.rotary_dim for kind in settings.kinds} == {128}
    assert settings.ignored == ("rotary_dim",)


@pytest.mark.parametrize("value", [{"a": [1, {"b": 2}]}, [[1, 2], 3], "half"])
def test_what_is_not_used_may_have_any_value(value: Any) -> None:
    """DeepSeek-V3 turns the whole of a part of its own, whatever share of the head a file has."""
    file = {"model_type": "deepseek_v3", "num_hidden_layers": 2, "qk_rope_head_dim": 64}
    file["rope_theta"] = 1e4
    (expected,) = rotary_settings(file).kinds
    (found,) = rotary_settings(file | {"rotary_pct": value}).kinds
    assert found == expected
    assert found.rotary_dim == 64


def test_a_family_of_the_caller_may_say_rotary_dim() -> None:
    file = {"model_type": "own", "num_hidden_layers": 1, "head_dim": 128, "rotary_dim": 64}
    file |= {"rope_theta": 1e4}
    settings = rotary_settings(file, family={"layout": "split"})
    assert (settings.kinds[0].rotary_dim, settings.ignored) == (64, ())


def test_exaone_turns_everywhere_where_it_has_no_window() -> None:
    file = {"model_type": "exaone4", "num_hidden_layers": 8, "layer_types": ["full_attention"] * 8}
    assert kinds_of(rotary_settings(file | {"sliding_window": 4096})) == [None] * 8
    assert None not in rotary_settings(file | {"sliding_window": None}).layers


def test_gemma_4_has_wider_heads_in_full_attention() -> None:
    """In files of both forms: `global_head_dim`, and fields of single layers."""
    base = CONFIG_MAPPING["gemma4_text"]().to_dict()
    widths = {each.head_dim for each in rotary_settings(base).kinds}
    assert widths == {256, 512}
    older = {k: v for k, v in base.items() if k != "per_layer_config"} | {"global_head_dim": 512}
    assert rotary_settings(older).layers == rotary_settings(base).layers
    full = next(each for each in rotary_settings(base).kinds if each.head_dim == 512)
    assert full.frequencies.count(0.0) == 192


def test_lengths_decide_where_they_should() -> None:
    short, long = (rotary_settings(PHI_3_5, n).kinds[0] for n in (4096, 4097))
    assert short.frequencies != long.frequencies
    assert rotary_settings(PHI_3_5).kinds[0] == short
    assert short.attention_factor == long.attention_factor == pytest.approx(1.19024, abs=1e-4)
    dynamic = LLAMA_2 | {"rope_scaling": {"type": "dynamic", "factor": 2.0}}
    plain, grown = (rotary_settings(dynamic, n).kinds[0] for n in (4096, 8192))
    expected = rotary_frequencies(
        128,
        rope_theta=1e4,
        rope_type="dynamic",
        factor=2,
        max_position_embeddings=4096,
        seq_len=8192,
    )
    assert grown.frequencies == tuple(expected.frequencies.tolist())
    assert plain.frequencies != grown.frequencies


def test_a_null_for_truncate_is_read_as_transformers_reads_it() -> None:
    """It is False there, which leaves the ends of YaRN's ramp unrounded."""
    fields: dict[str, Any] = dict(QWEN_3["rope_scaling"])  # type: ignore[call-overload]
    for value in (True, False, None):
        file = QWEN_3 | {"rope_scaling": fields | {"truncate": value}}
        (frequencies, _), *_ = of_transformers(file).values()
        np.testing.assert_allclose(
            rotary_settings(file).kinds[0].frequencies, frequencies.numpy(), rtol=SINGLE
        )
    null = rotary_frequencies(128, rope_theta=1e6, **fields, truncate=None)
    false = rotary_frequencies(128, rope_theta=1e6, **fields, truncate=False)
    assert np.array_equal(null.frequencies, false.frequencies)


def test_hunyuan_and_phi_moe_have_fields_of_their_own() -> None:
    hunyuan = {
        "model_type": "hunyuan_v1_dense",
        "head_dim": 128,
        "num_hidden_layers": 1,
        "rope_theta": 10000.0,
        "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0},
    }
    (kind,) = rotary_settings(hunyuan).kinds
    expected = rotary_frequencies(128, rope_theta=1e4, rope_type="ntk", factor=1000.0)
    assert kind.frequencies == tuple(expected.frequencies.tolist())
    moe = PHI_3_5 | {"model_type": "phimoe", "head_dim": 96}
    scaling = dict(PHI_3_5["rope_scaling"]) | {"short_mscale": 1.2, "long_mscale": 1.3}  # type: ignore[call-overload]
    moe |= {"rope_scaling": scaling}
    assert [rotary_settings(moe, n).kinds[0].attention_factor for n in (1, 5000)] == [1.2, 1.3]


# ---- What is not rotation


def test_what_is_not_rotation_is_listed() -> None:
    said = "; ".join(rotary_settings(QWEN_3).not_rotation)
    assert "q_norm" in said
    assert "k_norm" in said
    assert "before it" in said
    assert "1/√128" in said
    assert "1/√256 (query_pre_attn_scalar)" in "; ".join(rotary_settings(GEMMA_3).not_rotation)


def test_deepseek_multiplies_its_softmax_scale() -> None:
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import yarn_apply_mscale

    said = "; ".join(rotary_settings(DEEPSEEK_V3).not_rotation)
    m = 0.1 * math.log(40) + 1
    assert yarn_apply_mscale(DEEPSEEK_V3["rope_scaling"] | {"rope_type": "yarn"}, 1.0) == (  # type: ignore[operator]
        pytest.approx(m * m)
    )
    assert f"1/√192 (of both parts, 128 + 64) times m² = {m * m:.4f}" in said


def test_temperatures_of_queries() -> None:
    scout = {"model_type": "llama4_text", "num_hidden_layers": 4}
    said = "; ".join(rotary_settings(scout).not_rotation)
    assert "1 + 0.1·ln(1 + ⌊(p+1)/8192⌋), in the layers that do not turn" in said
    said = "; ".join(rotary_settings({"model_type": "ministral3"}).not_rotation)
    assert "query temperature 1 + 0.1·ln(1 + ⌊p/16384⌋)" in said


# ---- Bad input: an answer or a sentence


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("nowhere/config.json", "no file nowhere/config.json"),
        ("{not JSON", "is not JSON"),
        ("{}", "got None: its layout is not known"),
        ("[1]", "no file"),
        (
            {"model_type": "a_new_family"},
            "'a_new_family': its layout is not known, and not guessed",
        ),
        ({"model_type": ["llama"]}, "its layout is not known"),
        (LLAMA_2 | {"rope_scaling": "yarn"}, "rope_parameters must be an object"),
        (LLAMA_2 | {"rope_scaling": {"type": "linear"}}, "factor must be given"),
        (LLAMA_2 | {"rope_scaling": {"type": "linear", "factor": "4"}}, "factor"),
        (LLAMA_2 | {"rope_scaling": {"type": "spiral"}}, "rope_type must be"),
        (LLAMA_2 | {"rope_scaling": {"type": "linear", "rope_type": "yarn"}}, "must say the same"),
        (LLAMA_2 | {"hidden_size": 100}, "head_dim must be given, or hidden_size"),
        (LLAMA_2 | {"head_dim": 7}, "head_dim"),
        (LLAMA_2 | {"num_hidden_layers": -1}, "num_hidden_layers"),
        (LLAMA_2 | {"num_hidden_layers": 10**9}, "at most 100,000"),
        (GEMMA_3 | {"layer_types": ["full_attention"]}, "one name for each"),
        (GEMMA_3 | {"layer_types": [1] * 34}, "list of names"),
        (SMOLLM_3 | {"no_rope_layers": [1, 0]}, "one number for each"),
        (QWEN_2_VL | {"rope_scaling": {"type": "mrope", "mrope_section": [1, 2, 3]}}, "add up to"),
        (LLAMA_2 | {"rope_theta": 0}, "rope_theta"),
        (LLAMA_2 | {"rope_theta": "10000"}, "rope_theta"),
        (LLAMA_2 | {"rope_theta": float("nan")}, "rope_theta"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_a_sentence(config: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rotary_settings(config)


@pytest.mark.parametrize("config", [None, 3, [1], b"{}"])
def test_other_things_are_refused(config: Any) -> None:
    with pytest.raises(TypeError, match="config must be the path"):
        rotary_settings(config)


def test_an_unknown_family_says_how_to_find_out() -> None:
    file = LLAMA_2 | {"model_type": "a_new_family", "rope_theta": 10_000.0}
    with pytest.raises(UnknownFamily, match=r"pe_lib\.doctor\.examine"):
        rotary_settings(file)
    (kind,) = rotary_settings(file, family={"layout": "interleaved"}).kinds
    assert kind.layout == "interleaved"


def test_a_megabyte_is_read_or_refused_quickly() -> None:
    rubbish = {f"field_{i}": [i] * 20 for i in range(10_000)}
    assert len(rotary_settings(json.dumps(LLAMA_2 | rubbish)).layers) == 32
    with pytest.raises(ConfigurationError):
        rotary_settings("{" * 1_000_000)
    with pytest.raises(ConfigurationError) as caught:
        rotary_settings(LLAMA_2 | {"rope_scaling": "x" * 1_000_000})
    assert len(str(caught.value)) < 500


def test_whole_floats_are_lengths(tmp_path: Path) -> None:
    """As in the default of MusicFlamingo's file."""
    file = json.loads(json.dumps(QWEN_3))
    file["max_position_embeddings"] = 40960.0
    file["rope_scaling"]["original_max_position_embeddings"] = 32768.0
    path = tmp_path / "config.json"
    path.write_text(json.dumps(file))
    assert rotary_settings(path).layers == rotary_settings(QWEN_3).layers
    file["rope_scaling"]["original_max_position_embeddings"] = 32768.5
    with pytest.raises(ConfigurationError, match=r"32768\.5"):
        rotary_settings(file)


def test_unused_fields_are_named_and_left_out() -> None:
    file = LLAMA_2 | {"rope_scaling": {"type": "linear", "factor": 2.0, "beta_fast": 32}}
    settings = rotary_settings(file)
    assert settings.ignored == ("beta_fast",)
    assert settings.kinds[0].rope_type == "linear"


def test_the_callers_dictionary_is_its_own() -> None:
    for file in FILES.values():
        before = copy.deepcopy(file)
        rotary_settings(file)
        assert file == before


def test_settings_as_plain_json() -> None:
    plain = json.loads(json.dumps(rotary_settings(GEMMA_3).to_dict()))
    assert plain["model_type"] == "gemma3_text"
    assert plain["layers"][:7] == [0, 0, 0, 0, 0, 1, 0]
    assert len(plain["kinds"]) == 2
    assert plain["kinds"][1]["rope_parameters"]["factor"] == 8.0


# ---- All families

# Families whose own default sizes give no even width of heads, or sections of another width. Their
# released files have head_dim, or partial_rotary_factor.
NO_DEFAULT = {
    "glm4_moe",
    "glm4v",
    "glm4v_moe",
    "glm4v_moe_text",
    "glm4v_text",
    "glm_image",
    "glm_image_text",
    "qwen3_omni_moe_text",
    "qwen3_omni_moe_thinker",
}


@pytest.mark.parametrize("model_type", sorted(families()))
def test_the_default_of_every_family_is_read(model_type: str) -> None:
    """Which frequencies are right is tested with models: see test_rope_families."""
    if model_type in NO_DEFAULT:  # nor does transformers build a model of it
        with pytest.raises(ConfigurationError, match=r"head_dim must be given|add up to"):
            rotary_settings({"model_type": model_type})
        return
    settings = rotary_settings({"model_type": model_type})
    assert settings.layers
    for kind in settings.kinds:
        assert kind.layout in ("split", "interleaved")
        assert 0 < kind.rotary_dim <= kind.head_dim


# ---- The module


@pytest.mark.parametrize("name", FILES)
def test_modules_turn_as_the_settings_say(name: str) -> None:
    settings = rotary_settings(FILES[name])
    modules = rotary_modules(FILES[name])
    assert [module is None for module in modules] == [each is None for each in settings.layers]
    assert len({id(module) for module in modules if module is not None}) == len(settings.kinds)
    for module, layer in zip(modules, settings.layers, strict=True):
        if module is None or layer is None:
            continue
        assert module.frequencies.tolist() == list(layer.frequencies)
        assert (module.layout, module.head_dim) == (layer.layout, layer.head_dim)
        assert module.rotary_dim == layer.rotary_dim
        assert module.attention_factor == layer.attention_factor


def test_one_layer_of_a_configuration() -> None:
    module = RotaryPositionalEncoding.from_config(QWEN_3)
    assert module.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    base = RotaryPositionalEncoding.from_config(SMOLLM_3, layer=0)
    x = torch.randn(1, 2, 5, 128)
    plain = RotaryPositionalEncoding(128, base=5e6, layout="split")
    assert torch.equal(base(x), plain(x))
    with pytest.raises(ValueError, match="layer must be given"):
        RotaryPositionalEncoding.from_config(SMOLLM_3)
    with pytest.raises(ValueError, match="one that turns, got 3"):
        RotaryPositionalEncoding.from_config(SMOLLM_3, layer=3)
    with pytest.raises(ValueError, match="below 36, got 36"):
        RotaryPositionalEncoding.from_config(SMOLLM_3, layer=36)
    with pytest.raises(NotImplementedError, match="the last 64 of 512 entries turn"):
        RotaryPositionalEncoding.from_config({"model_type": "deepseek_v4"}, layer=0)


def test_a_module_for_a_model_that_turns_the_other_way() -> None:
    module = RotaryPositionalEncoding.from_config({"model_type": "nanochat"})
    x = torch.randn(1, 1, 5, module.head_dim)
    forward = RotaryPositionalEncoding(module.head_dim, layout="split")
    expected = forward(x, positions=-torch.arange(5))
    torch.testing.assert_close(module(x), expected)


ODD = [None, "", "x", -1, 0, 1, 1.5, float("inf"), float("nan"), True, [], [None], {}, {"x": None}]


@pytest.mark.parametrize("name", FILES)
def test_any_value_of_any_field_gives_an_answer_or_a_sentence(name: str) -> None:
    """Each field of a file, and each of its scaling, replaced by values of every sort."""
    file = FILES[name]
    scaling: Any = file.get("rope_scaling", {})
    changed = [file | {field: value} for field in file for value in ODD]
    changed += [
        file | {"rope_scaling": scaling | {field: value}} for field in scaling for value in ODD
    ]
    changed += [file | {"layer_types": value} for value in ODD]
    changed += [file | {"rope_parameters": {"full_attention": value}} for value in ODD]
    changed += [file | {"per_layer_config": {"0": value}} for value in ODD]
    for each in changed:
        sentence, settings = "an answer instead", None
        try:
            settings = rotary_settings(each)
        except ValueError as error:
            sentence = str(error)
        assert 10 < len(sentence) < 1000
        if settings is not None:
            json.dumps(settings.to_dict())
            assert all(np.isfinite(kind.frequencies).all() for kind in settings.kinds)


# ---- Sentences for what once ended otherwise


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LLAMA_2 | {"head_dim": 10**9}, r"head_dim must be at most 65,536, got 1,000,000,000"),
        (SMOLLM_3 | {"no_rope_layers": None, "no_rope_layer_interval": "4"}, "layer_interval"),
        (QWEN_2_VL | {"rope_scaling": {"mrope_section": 3}}, "must be a list of integers, got 3"),
        (LLAMA_2 | {"rope_scaling": {"short_mscale": 1.0}}, "original_max_pos"),
        ({"model_type": "ministral3", "rope_parameters": {"llama_4_scaling_beta": "b"}}, "got 'b'"),
        (
            PHI_3_5 | {"rope_scaling": {"type": "su", "short_factor": [1], "long_factor": [1]}},
            r"48 pairs that turn, got 1: \[1.0\]",
        ),
    ],
    ids=str,
)
def test_no_key_error_and_no_endless_call(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        rotary_settings(config)


def test_a_yarn_without_factor_has_the_ratio_of_lengths_in_its_softmax_scale() -> None:
    fields: dict[str, Any] = dict(DEEPSEEK_V3["rope_scaling"])  # type: ignore[call-overload]
    without = DEEPSEEK_V3 | {"rope_scaling": {k: v for k, v in fields.items() if k != "factor"}}
    assert rotary_settings(without).not_rotation == rotary_settings(DEEPSEEK_V3).not_rotation


def test_layers_that_are_not_known_are_not_called_known() -> None:
    watched = [name for name, each in families().items() if each.get("read") == "function"]
    assert watched
    for name in watched:
        try:
            sources = dict(rotary_settings({"model_type": name}).sources)
        except ConfigurationError:  # its defaults fit no model: see NO_DEFAULT
            continue
        assert sources["layers"].startswith("not known")


# ---- Older files, with one base or scaling for several kinds of layers

SCALING = {"rope_type": "linear", "factor": 2.0}
OF_KINDS = sorted(
    name
    for name, family in families().items()
    if not {"rope_theta", "rope_scaling"}.isdisjoint(family.get("flat", {}))
)
OLDER_FILES = [
    {"rope_theta": 12_345.0},
    {"rope_theta": 12_345.0, "rope_scaling": SCALING},
    {"rope_scaling": SCALING},
    {"rope_local_base_freq": 777.0},
    {"global_rope_theta": 777.0, "local_rope_theta": 555.0},
    {"rope_theta": 12_345.0, "rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_theta": 12_345.0, "compress_rope_theta": 777.0, "rope_scaling": SCALING},
]


@pytest.mark.parametrize("fields", OLDER_FILES, ids=lambda fields: " ".join(fields))
@pytest.mark.parametrize("model_type", OF_KINDS)
def test_an_older_file_is_dealt_to_kinds_of_layers_as_transformers_does(
    model_type: str, fields: dict[str, Any]
) -> None:
    """Gemma 3's first files, for example, have one scaling, and mean the layers with full attention
    alone."""
    try:
        config = CONFIG_MAPPING[model_type].from_dict(copy.deepcopy(fields))
    except Exception:  # neomme takes no scaling that is not of a kind
        with pytest.raises(ConfigurationError, match="must have fields for each kind of layer"):
            rotary_settings({"model_type": model_type} | copy.deepcopy(fields))
        return
    settings = rotary_settings({"model_type": model_type} | copy.deepcopy(fields))
    labels = families()[model_type].get("labels", {})
    of_layers = zip(settings.layers, config.layer_types, strict=True)
    kinds = {labels.get(kind, kind): layer for layer, kind in of_layers if layer is not None}
    assert kinds
    for kind, layer in kinds.items():
        own = config.rope_parameters[kind]
        told = layer.base, layer.rope_type, dict(layer.rope_parameters).get("factor")
        assert told == (own["rope_theta"], own["rope_type"], own.get("factor"))


def test_gemma_3_as_it_was_published() -> None:
    """The files of 4B, 12B and 27B have a scaling and no base."""
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34}
    text |= {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
    settings = rotary_settings({"model_type": "gemma3", "text_config": text})
    full, sliding = settings.layers[5], settings.layers[0]
    assert full is not None
    assert sliding is not None
    assert (full.base, full.rope_type) == (1e6, "linear")
    assert (sliding.base, sliding.rope_type) == (1e4, "default")
    assert dict(settings.sources)["base"] == "the default of gemma3_text"


def test_a_flat_scaling_of_a_family_that_takes_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'gemma4_text' must have fields for each kind"):
        rotary_settings({"model_type": "gemma4_text", "rope_scaling": SCALING})
    settings = rotary_settings({"model_type": "gemma4_text", "rope_theta": 12_345.0})
    assert settings.ignored == ("rope_theta",)
    assert {kind.base for kind in settings.kinds} == {1e4, 1e6}


@pytest.mark.parametrize("model_type", ["gpt_oss", "apertus", "ministral3"])
def test_a_scaling_of_the_class_stays_where_a_file_has_a_base_alone(model_type: str) -> None:
    config = CONFIG_MAPPING[model_type].from_dict({"rope_theta": 12_345.0})
    (kind,) = rotary_settings({"model_type": model_type, "rope_theta": 12_345.0}).kinds
    own = config.rope_parameters
    told = kind.base, kind.rope_type, dict(kind.rope_parameters)["factor"]
    assert told == (own["rope_theta"], own["rope_type"], own["factor"])


# The file of DeepSeek-V4-Flash, as it was published. Its last number belongs to a layer that
# predicts a further token.
DEEPSEEK_V4 = {
    "model_type": "deepseek_v4",
    "head_dim": 512,
    "hidden_size": 4096,
    "num_attention_heads": 64,
    "num_hidden_layers": 43,
    "qk_rope_head_dim": 64,
    "max_position_embeddings": 1048576,
    "rope_theta": 10000,
    "compress_rope_theta": 160000,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 16,
        "original_max_position_embeddings": 65536,
        "type": "yarn",
    },
}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"compress_rope_theta": 40_000.0},
        {"head_dim": 256},
        {"rope_scaling": None},
        {"rope_scaling": DEEPSEEK_V4["rope_scaling"] | {"attention_factor": 1.5}},  # type: ignore[operator]
        {"compress_ratios": None},
    ],
)
def test_deepseek_v4_as_it_was_published(changed: dict[str, Any]) -> None:
    """A number for each layer says which base and scaling it has."""
    file = DEEPSEEK_V4 | changed
    config = CONFIG_MAPPING["deepseek_v4"].from_dict(copy.deepcopy(file))
    settings = rotary_settings(file)
    assert not settings.unread
    new = rotary_settings(config.to_dict())  # of the file that transformers would write
    for layer, same, kind in zip(settings.layers, new.layers, config.layer_types, strict=True):
        own = config.rope_parameters["main" if kind == "sliding_attention" else "compress"]
        assert layer is not None
        assert same is not None
        assert layer.frequencies == same.frequencies
        assert (layer.base, layer.rope_type) == (own["rope_theta"], own["rope_type"])
        assert layer.rotary_dim == own["partial_rotary_factor"] * config.head_dim
        assert layer.rotary_start == config.head_dim - layer.rotary_dim
        assert layer.attention_factor == own.get("attention_factor", 1.0)


@pytest.mark.parametrize("ratios", [[0] * 42, [5] * 43, "0", [True] * 43])
def test_numbers_of_layers_that_have_no_meaning(ratios: Any) -> None:
    with pytest.raises(ConfigurationError, match="compress_ratios"):
        rotary_settings(DEEPSEEK_V4 | {"compress_ratios": ratios})


# ---- Fields with an entry for each layer


def small(model_type: str, **fields: Any) -> Any:
    """A model of four layers, built by transformers on a device that holds no numbers but those of
    its modules of cosines."""
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    sizes |= {"num_hidden_layers": 4, "vocab_size": 32, "intermediate_size": 32, "pad_token_id": 0}
    sizes |= {"num_local_experts": 2, "num_experts_per_tok": 1}
    return AutoModel.from_config(AutoConfig.for_model(model_type, **(sizes | fields)))


@pytest.mark.parametrize("model_type", ["granite_swa", "granitemoe_swa"])
def test_a_base_for_each_layer(model_type: str) -> None:
    bases = [20_000.0, 0, 500_000.0, 20_000.0]
    model = small(model_type, layer_rope_theta=bases)
    settings = rotary_settings(model.config.to_dict())
    assert not settings.unread
    theirs = dict(zip([20_000.0, 500_000.0], model.rotary_embs, strict=True))
    for layer, base in zip(settings.layers, bases, strict=True):
        if not base:
            assert layer is None
            continue
        assert layer is not None
        np.testing.assert_allclose(layer.frequencies, theirs[base].inv_freq, rtol=SINGLE)
    assert len(settings.kinds) == 2
    file = {name: value for name, value in model.config.to_dict().items() if name != "head_dim"}
    for wrong in (bases[:3], "1e4", [1e4, None, 0, 0], [1e4, 1, 0, 0]):
        with pytest.raises(
            ConfigurationError, match=r"layer_rope_theta|rope_theta must be greater"
        ):
            rotary_settings(file | {"layer_rope_theta": wrong})
    for nothing in (None, list[float]()):
        assert len(rotary_settings(file | {"layer_rope_theta": nothing}).kinds) == 1


@pytest.mark.parametrize("model_type", ["muse_glimmer_text", "muse_spark_text"])
def test_a_base_of_zero_says_that_a_layer_does_not_turn(model_type: str) -> None:
    file = {
        "model_type": model_type,
        "num_hidden_layers": 4,
        "rope_parameters": {"rope_theta": 1e5},
    }
    settings = rotary_settings(file | {"layer_rope_theta": [1e5, 1e5, 0, 1e5]})
    assert kinds_of(settings) == [1e5, 1e5, None, 1e5]
    kinds = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]
    settings = rotary_settings(file | {"layer_types": kinds})
    assert kinds_of(settings) == [None, 1e5, None, 1e5]
    assert not settings.unread


def test_layers_whose_frequencies_are_not_scaled() -> None:
    scaling = {"rope_type": "linear", "factor": 4.0, "rope_theta": 20_000.0}
    model = small("molmo2_text", rope_parameters=scaling, rope_scaling_layers=[1, 3])
    settings = rotary_settings(model.config.to_dict())
    assert not settings.unread
    theirs = [model.rotary_emb_unscaled.inv_freq, model.rotary_emb.inv_freq]
    for layer, expected in zip(settings.layers, 2 * theirs, strict=True):
        assert layer is not None
        np.testing.assert_allclose(layer.frequencies, expected, rtol=SINGLE)
    file = {"model_type": "molmo2_text", "rope_parameters": scaling}
    assert len(rotary_settings(file).kinds) == 1
    for wrong in ("all", [1.5], [-1]):
        with pytest.raises(ConfigurationError, match="rope_scaling_layers"):
            rotary_settings(file | {"rope_scaling_layers": wrong})


# ---- Files with few fields

FEW_FIELDS: list[dict[str, Any]] = [
    {"num_hidden_layers": 23},
    {"num_hidden_layers": 48},
    {"head_dim": 96},
    {"partial_rotary_factor": 0.5},
    {"rotary_pct": 0.5},
    {"num_attention_heads": 8, "hidden_size": 1024},
    {"num_hidden_layers": 23, "sliding_window_pattern": 4},
    {"global_attn_every_n_layers": 2},
    {"full_attention_interval": 3},
    {"layer_group_size": 8},
]


# Their classes give a field another meaning than its name has.
NOT_AS_THE_CLASS = {
    "longcat_flash",  # twice as many layers as num_layers, its own field
    "glm4_moe_lite",  # head_dim is qk_rope_head_dim
}


def turned(settings: RotarySettings) -> list[Any]:
    """What the layers do, whatever the file called it."""
    return [
        layer
        and (
            *(layer.head_dim, layer.rotary_dim, layer.rotary_start, layer.layout),
            *(layer.frequencies, layer.attention_factor, layer.pair_axes),
        )
        for layer in settings.layers
    ]


@pytest.mark.parametrize("fields", FEW_FIELDS, ids=lambda fields: " ".join(fields))
def test_what_a_file_leaves_out_is_what_the_class_makes_of_it(fields: dict[str, Any]) -> None:
    """The file as it is, beside the one that transformers writes when it has read it."""
    compared = 0
    for model_type, family in families().items():
        if "text" in family or model_type in NOT_AS_THE_CLASS:
            continue
        file = {"model_type": model_type} | copy.deepcopy(fields)
        try:
            written = CONFIG_MAPPING[model_type].from_dict(copy.deepcopy(fields)).to_dict()
        except Exception:  # the class refuses such fields
            continue
        try:
            expected = turned(rotary_settings(written))
        except ConfigurationError:  # it writes what cannot be built, as a part of an odd width
            with pytest.raises(ConfigurationError):
                rotary_settings(file)
            continue
        assert turned(rotary_settings(file)) == expected, model_type
        compared += 1
    assert compared > 120


# ---- Fields that switch the rotation, and fields that are not known


def test_a_rotation_that_is_off_unless_a_field_asks_for_it() -> None:
    """Zamba 2 gives positions by its state-space layers."""
    settings = rotary_settings({"model_type": "zamba2"})
    assert set(settings.layers) == {None}
    settings = rotary_settings({"model_type": "zamba2", "use_mem_rope": True})
    config = CONFIG_MAPPING["zamba2"]()
    turned = [layer is not None for layer in settings.layers]
    assert turned == [kind == "hybrid" for kind in config.layer_types]
    assert not settings.unread


def test_the_scale_of_zamba_2_is_of_half_the_width() -> None:
    file = {"model_type": "zamba2", "use_mem_rope": True, "attention_head_dim": 160}
    assert rotary_settings(file).not_rotation == ("softmax scale 1/√80",)


def test_a_cap_of_scores_is_named_where_the_code_uses_it() -> None:
    def cap(**file: Any) -> list[str]:
        return [each for each in rotary_settings(file).not_rotation if "capped" in each]

    said = "scores capped, 50·tanh(score/50) (attn_logit_softcapping)"
    assert cap(model_type="gemma2") == [said]
    assert cap(model_type="gemma2", attn_logit_softcapping=30.0) == [said.replace("50", "30")]
    # Gemma 3 has the field, and its code does not look at it.
    assert cap(model_type="gemma3_text", attn_logit_softcapping=30.0) == []


def test_a_field_that_switches_the_rotation_off() -> None:
    settings = rotary_settings({"model_type": "falcon", "alibi": True})
    assert set(settings.layers) == {None}
    assert dict(settings.sources)["layout"] == "alibi"
    assert rotary_settings({"model_type": "falcon", "alibi": False}).kinds


def test_a_field_that_changes_the_layout() -> None:
    (kind,) = rotary_settings(DEEPSEEK_V3 | {"rope_interleave": False}).kinds
    assert (kind.layout, kind.layout_out) == ("split", "split")
    (kind,) = rotary_settings(DEEPSEEK_V3 | {"rope_interleave": True}).kinds
    assert (kind.layout, kind.layout_out) == ("interleaved", "split")


def test_an_interval_of_layers_with_attention() -> None:
    settings = rotary_settings({"model_type": "qwen3_next", "full_attention_interval": 2})
    config = CONFIG_MAPPING["qwen3_next"](full_attention_interval=2)
    turned = [layer is not None for layer in settings.layers]
    assert turned == [kind == "full_attention" for kind in config.layer_types]


@pytest.mark.parametrize(
    ("fields", "unread"),
    [
        ({"rotary_emb_fraction": 0.5}, ("rotary_emb_fraction",)),
        ({"use_alibi": True}, ("use_alibi",)),
        ({"use_alibi": False, "position_embedding_type": "rope"}, ()),
        ({"attn_config": {"rope_theta": 5e5, "clip_qkv": 8}}, ("attn_config.rope_theta",)),
    ],
)
def test_fields_about_positions_that_nothing_reads_are_listed(
    fields: dict[str, Any], unread: tuple[str, ...]
) -> None:
    settings = rotary_settings(LLAMA_2 | fields)
    assert (settings.unread, settings.ignored) == (unread, ())


# ---- What a caller says


def test_settings_are_taken_as_they_are() -> None:
    settings = rotary_settings(LLAMA_3_1)
    assert rotary_settings(settings) is settings
    module = RotaryPositionalEncoding.from_config(settings)
    assert module.config.frequencies == settings.kinds[0].frequencies
    with pytest.raises(ConfigurationError, match="seq_len and family must be left out"):
        rotary_settings(settings, 8192)


def test_the_answer_of_the_command_is_no_configuration() -> None:
    with pytest.raises(ConfigurationError, match="has been read already"):
        rotary_settings(rotary_settings(LLAMA_3_1).to_dict())


def test_a_family_by_the_name_of_another() -> None:
    """The files of Kimi K2 are those of DeepSeek V3 under a name of their own."""
    config = DEEPSEEK_V3 | {"model_type": "kimi_k2"}
    named = rotary_settings(config, family="deepseek_v3")
    assert named.layers == rotary_settings(DEEPSEEK_V3).layers
    module = RotaryPositionalEncoding.from_config(config, family="deepseek_v3")
    assert module.head_dim == 64
    assert len(rotary_modules(config, family="deepseek_v3")) == 61
    without = {k: v for k, v in config.items() if k != "max_position_embeddings"}
    sources = dict(rotary_settings(without, family="deepseek_v3").sources)
    assert sources["max_position_embeddings"] == "the default of deepseek_v3"


@pytest.mark.parametrize(
    ("config", "family", "said"),
    [
        (LLAMA_2, {"layout": "split"}, "the table knows the code of 'llama'"),
        (DEEPSEEK_V3 | {"model_type": "kimi_k2"}, {"layout": "split"}, "has qk_rope_head_dim"),
        (LLAMA_2 | {"model_type": "mine"}, "split", "must be the name of a family of the table"),
        (LLAMA_2 | {"model_type": "mine"}, {"layout": "Split"}, r"family\['layout'\] must be"),
    ],
)
def test_what_a_caller_says_is_checked(config: Any, family: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        rotary_settings(config, family=family)


def test_a_layout_from_the_caller_says_so() -> None:
    settings = rotary_settings(
        LLAMA_2 | {"model_type": "mine", "rope_theta": 1e4}, family={"layout": "split"}
    )
    assert dict(settings.sources)["layout"] == "the caller"
