"""`rotary_frequencies` beside transformers' own functions, and beside the papers' formulas.

Transformers computes in float32, which hides small faults. So each formula also stands here as its
authors wrote it, in 50 digits.
"""

import copy
import inspect
import math
import re
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from backends import Backend, both
from configurations import LLAMA_3_1
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, LlamaConfig, Phi3Config, Qwen2VLTextConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale
from transformers.models.phi.modeling_phi import PhiRotaryEmbedding
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    Qwen3VLTextConfig,
    Qwen3VLTextRotaryEmbedding,
)

from pe_lib import numpy as pe
from pe_lib import torch as pet
from pe_lib.rope import fields as fields_of_rope
from pe_lib.rope import scalings

DOUBLE = 2.0**-47  # relative: 32 units in the last place of a float64
SINGLE = 4e-6  # relative: a power and a few products in float32


def divisors(pairs: int, last: float) -> list[float]:
    """Made up, and shaped like the lists of Phi-3: near 1 for fast pairs, large for slow ones."""
    return [round(float(each), 4) for each in np.geomspace(1.01, last, pairs)]


PLAIN = {"rope_theta": 10_000.0}
LLAMA_4_SCOUT = {**LLAMA_3_1, "factor": 16.0, "high_freq_factor": 1.0}
GPT_OSS = {
    "rope_type": "yarn",
    "rope_theta": 150_000.0,
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
DEEPSEEK_V2 = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 40.0,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 0.707,
    "mscale_all_dim": 0.5,
    "original_max_position_embeddings": 4096,
}
QWEN_YARN = {
    "rope_type": "yarn",
    "rope_theta": 1_000_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32_768,
}
YARN_LONG = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 131_072,
}
PHI_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": divisors(48, 2.5),
    "long_factor": divisors(48, 64.0),
    "original_max_position_embeddings": 4096,
}
PHI_4_LONGROPE = {
    **PHI_LONGROPE,
    "partial_rotary_factor": 0.75,
    "short_factor": divisors(48, 1.0),
    "long_factor": divisors(48, 50.0),
}
PROPORTIONAL = {"rope_type": "proportional", "rope_theta": 1_000_000.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 4.0}

# A name, head_dim, max_position_embeddings, the fields, and lengths of texts.
CASES: list[tuple[str, int, int, dict[str, Any], list[int]]] = [
    ("default", 128, 4096, {"rope_type": "default", "rope_theta": 500_000.0}, [1]),
    ("default, part of a head", 80, 2048, {**PLAIN, "partial_rotary_factor": 0.4}, [1]),
    ("default, rounded down", 192, 4096, {**PLAIN, "partial_rotary_factor": 0.334}, [1]),
    ("linear", 64, 4096, {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}, [1]),
    ("dynamic", 128, 2048, DYNAMIC, [1, 2047, 2048, 2049, 3000, 100_000]),
    ("dynamic, part of a head", 64, 2048, {**DYNAMIC, "partial_rotary_factor": 0.5}, [5000]),
    ("dynamic, factor 1", 64, 2048, {**DYNAMIC, "factor": 1.0}, [8192]),
    ("yarn, Qwen 2.5", 128, 32_768, QWEN_YARN, [1]),
    ("yarn, Qwen 3", 128, 40_960, QWEN_YARN, [1]),
    ("yarn, factor from the lengths", 128, 131_072, {**QWEN_YARN, "factor": None}, [1]),
    ("yarn, gpt_oss", 64, 131_072, GPT_OSS, [1]),
    ("yarn, DeepSeek V2", 64, 163_840, DEEPSEEK_V2, [1]),
    ("yarn, one mscale alone", 64, 163_840, {**DEEPSEEK_V2, "mscale_all_dim": 0.0}, [1]),
    ("yarn, its factor given", 64, 163_840, {**DEEPSEEK_V2, "attention_factor": 0.8}, [1]),
    ("yarn, part of a head", 128, 4096, {**GPT_OSS, "partial_rotary_factor": 0.5}, [1]),
    ("yarn, trained on long texts", 64, 524_288, YARN_LONG, [1]),
    ("yarn, a ramp of no length", 64, 131_072, {**GPT_OSS, "beta_fast": 4, "beta_slow": 4}, [1]),
    ("yarn, short", 64, 64, {**GPT_OSS, "original_max_position_embeddings": 64}, [1]),
    ("longrope, Phi 3", 96, 131_072, PHI_LONGROPE, [1, 4095, 4096, 4097, 100_000]),
    ("longrope, Phi 4", 128, 131_072, PHI_4_LONGROPE, [4096, 4097]),
    ("longrope, not extended", 96, 4096, PHI_LONGROPE, [1, 5000]),
    ("longrope, factor given", 96, 4096, {**PHI_LONGROPE, "factor": 32.0}, [1]),
    ("longrope, its factor given", 96, 4096, {**PHI_LONGROPE, "attention_factor": 1.2}, [1]),
    ("llama3, 3.1", 128, 131_072, LLAMA_3_1, [1]),
    ("llama3, 3.2", 64, 131_072, {**LLAMA_3_1, "factor": 32.0}, [1]),
    ("llama3, one sharp step", 64, 131_072, {**LLAMA_3_1, "high_freq_factor": 1.001}, [1]),
    ("llama3, 4 Scout", 128, 10_485_760, LLAMA_4_SCOUT, [1]),
    ("llama3, tuned on shorter texts", 128, 4096, LLAMA_3_1, [1]),
    ("llama3, part of a head", 64, 16_384, {**LLAMA_3_1, "partial_rotary_factor": 0.5}, [1]),
    ("proportional", 64, 4096, {**PROPORTIONAL, "partial_rotary_factor": 0.25}, [1]),
    ("proportional, rounded down", 72, 4096, {**PROPORTIONAL, "partial_rotary_factor": 0.35}, [1]),
    ("proportional, Gemma 4", 512, 4096, {**PROPORTIONAL, "factor": 8.0}, [1]),
]
ALL_CASES = pytest.mark.parametrize(
    ("head_dim", "longest", "fields", "seq_len"),
    [
        pytest.param(head_dim, longest, fields, seq_len, id=f"{name}, at {seq_len}")
        for name, head_dim, longest, fields, lengths in CASES
        for seq_len in lengths
    ],
)


def ours(head_dim: int, longest: int, fields: dict[str, Any], seq_len: int) -> Any:
    return pe.rotary_frequencies(
        head_dim, seq_len=seq_len, max_position_embeddings=longest, **copy.deepcopy(fields)
    )


# ---- Beside transformers


def test_every_type_that_transformers_knows_is_known_here_and_tried_below() -> None:
    """A new type in a new version of transformers makes this test fail."""
    of_transformers = {"default", *ROPE_INIT_FUNCTIONS}
    assert set(scalings.SCALINGS) == of_transformers | {"ntk", "mrope"}
    assert {fields.get("rope_type", "default") for *_, fields, _ in CASES} == of_transformers


@ALL_CASES
def test_frequencies_and_attention_factor_are_those_of_transformers(
    head_dim: int, longest: int, fields: dict[str, Any], seq_len: int
) -> None:
    config = LlamaConfig(
        hidden_size=2 * head_dim,
        num_attention_heads=2,
        head_dim=head_dim,
        max_position_embeddings=longest,
        rope_parameters=copy.deepcopy(fields),
    )
    rope_type = fields.get("rope_type", "default")
    if rope_type == "default":  # Phi's, because Llama's would turn whole heads only
        theirs, their_factor = PhiRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        theirs, their_factor = ROPE_INIT_FUNCTIONS[rope_type](config, seq_len=seq_len)
    found = ours(head_dim, longest, fields, seq_len)
    assert found.frequencies.dtype == np.float64
    assert found.frequencies.shape == tuple(theirs.shape)
    np.testing.assert_allclose(found.frequencies, theirs.numpy(), rtol=SINGLE)
    assert found.attention_factor == pytest.approx(their_factor, rel=DOUBLE)


FAMILIES = ["llama", "gpt_oss", "ministral3", "apertus", "phi", "qwen3_next", "qwen2_vl_text"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fields_of_an_installed_configuration_go_in_as_they_are(family: str) -> None:
    """And so do those of an old file, which says ``type`` and holds a null."""
    config = AutoConfig.for_model(family)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    found = pe.rotary_frequencies(head_dim, **config.rope_parameters)
    rope_type = config.rope_parameters["rope_type"]
    if rope_type == "default":
        turned = int(head_dim * config.rope_parameters.get("partial_rotary_factor", 1))
        expected = pe.frequencies(turned, base=config.rope_parameters["rope_theta"])
        assert np.array_equal(found.frequencies, expected)  # bit for bit
        assert found.attention_factor == 1
    else:
        theirs, their_factor = ROPE_INIT_FUNCTIONS[rope_type](config)
        np.testing.assert_allclose(found.frequencies, theirs.numpy(), rtol=SINGLE)
        assert found.attention_factor == pytest.approx(their_factor, rel=DOUBLE)


def test_other_spellings_of_the_same_fields() -> None:
    plain = pe.rotary_frequencies(16, rope_theta=1e4, rope_type="linear", factor=4.0)
    older = pe.rotary_frequencies(16, rope_theta=1e4, type="linear", factor=np.float64(4))
    nulls = pe.rotary_frequencies(
        16, rope_theta=1e4, rope_type="linear", factor=4, attention_factor=None, truncate=None
    )
    newer = pe.rotary_frequencies(16, rope_theta=1e4, rope_type="linear", type="linear", factor=4)
    for other in (older, nulls, newer):
        assert np.array_equal(other.frequencies, plain.frequencies)
    sections = pe.rotary_frequencies(16, rope_theta=1e4, type="mrope", mrope_section=[2, 3, 3])
    assert np.array_equal(sections.frequencies, pe.frequencies(16))


@pytest.mark.parametrize("older", ["su", "yarn", "longrope"])
def test_both_names_of_the_type_as_transformers_keeps_them_of_an_old_phi_3(older: str) -> None:
    lists = {name: PHI_LONGROPE[name] for name in ("short_factor", "long_factor")}
    old = {"type": older, "factor": 32.0, "original_max_position_embeddings": 4096, **lists}
    in_the_file: dict[str, Any] = {**PLAIN, **old}
    kept = Phi3Config(rope_scaling=old, original_max_position_embeddings=4096).rope_parameters
    assert (kept["rope_type"], kept["type"]) == ("longrope", older)
    found = pe.rotary_frequencies(96, seq_len=1, **kept)
    expected = pe.rotary_frequencies(96, **LONGROPE)
    assert np.array_equal(found.frequencies, expected.frequencies)
    if older == "su":  # which the file alone means too
        of_file = pe.rotary_frequencies(96, seq_len=1, **in_the_file)
        assert np.array_equal(of_file.frequencies, expected.frequencies)


def test_whole_floats_are_lengths_as_files_have_them() -> None:
    fields = {**QWEN_YARN, "original_max_position_embeddings": 32768.0}
    found = pe.rotary_frequencies(128, max_position_embeddings=40960.0, **fields)
    expected = pe.rotary_frequencies(128, max_position_embeddings=40960, **QWEN_YARN)
    assert np.array_equal(found.frequencies, expected.frequencies)
    with pytest.raises(TypeError, match=r"seq_len must be an integer.*2\.0"):
        pe.rotary_frequencies(128, seq_len=2.0, **QWEN_YARN)  # type: ignore[arg-type]


def test_both_names_of_the_type_as_transformers_keeps_them_of_an_old_qwen2_vl() -> None:
    old = {"type": "mrope", "mrope_section": [16, 24, 24]}
    kept = Qwen2VLTextConfig(rope_scaling=old, rope_theta=1e6).rope_parameters
    assert (kept["rope_type"], kept["type"]) == ("default", "mrope")
    found = pe.rotary_frequencies(128, **kept)
    assert np.array_equal(found.frequencies, pe.frequencies(128, base=1e6))


def test_what_the_docstring_says_of_fields_that_are_no_frequencies() -> None:
    """Transformers has the same formulas. `test_rotary_clients` has such models."""
    points = str(inspect.getdoc(pe.rotary_frequencies)).splitlines()
    for name in fields_of_rope.NOT_FREQUENCIES:
        assert any(point.startswith(f"- ``{name}``") for point in points)
    beta, length, positions = 0.1, 16, torch.arange(100)[None]
    theirs = get_llama_4_attn_scale(positions, beta, length).flatten()
    formula = [1 + beta * math.log(1 + position // length) for position in range(100)]
    np.testing.assert_allclose(formula, theirs, rtol=1e-6)
    section = (24, 20, 20)
    of_pairs = [i % 3 if i < 3 * section[i % 3] else 0 for i in range(64)]
    config = Qwen3VLTextConfig(head_dim=128, rope_parameters={"mrope_section": list(section)})
    axes = torch.arange(3)[:, None].repeat(1, 64)  # in place of cosines
    chosen = Qwen3VLTextRotaryEmbedding(config).recomposition_frequencies(axes)
    assert chosen.tolist() == of_pairs * 2


# ---- Beside the formulas, in 50 digits


def exact(
    head_dim: int, longest: int, fields: dict[str, Any], seq_len: int
) -> tuple[list[Any], Any]:
    """Frequencies and attention factor by the definitions of the papers and of their code."""
    given = {name: value for name, value in fields.items() if value is not None}
    kind = given.get("rope_type", "default")
    theta = mpmath.mpf(given["rope_theta"])
    share = given.get("partial_rotary_factor", 1.0)
    trained = given.get("original_max_position_embeddings", longest)
    factor = mpmath.mpf(given.get("factor", mpmath.mpf(longest) / trained))
    width = head_dim if kind == "proportional" else int(head_dim * share)
    if kind == "dynamic":  # emozilla's: a larger base
        stretch = factor * max(seq_len, longest) / longest - (factor - 1)
        theta *= stretch ** (mpmath.mpf(width) / (width - 2))
    omega = [theta ** (-mpmath.mpf(2 * i) / width) for i in range(width // 2)]
    temperature = mpmath.mpf(1)

    if kind == "linear":
        omega = [w / factor for w in omega]
    if kind == "proportional":
        scale, turning = given.get("factor", 1), math.floor(share * len(omega))
        omega = [w / scale if i < turning else 0 * w for i, w in enumerate(omega)]
    if kind == "llama3":
        omega = [llama3(w, factor, given) for w in omega]
    if kind == "longrope":
        chosen = given["long_factor" if seq_len > trained else "short_factor"]
        omega = [w / mpmath.mpf(each) for w, each in zip(omega, chosen, strict=True)]
        temperature = mpmath.sqrt(1 + mpmath.log(factor) / mpmath.log(trained))
    if kind == "yarn":
        kept = yarn_mask(width, theta, trained, given)
        omega = [w * m + w / factor * (1 - m) for w, m in zip(omega, kept, strict=True)]
        scales = [1, 0]
        if given.get("mscale") and given.get("mscale_all_dim"):
            scales = [given["mscale"], given["mscale_all_dim"]]
        above, below = (mpmath.log(factor) * scale / 10 + 1 for scale in scales)
        temperature = above / below
    return omega, mpmath.mpf(given.get("attention_factor", temperature))


def llama3(omega: Any, factor: Any, given: dict[str, Any]) -> Any:
    """As in Meta's code, by wavelengths."""
    length = given["original_max_position_embeddings"]
    low, high = given["low_freq_factor"], given["high_freq_factor"]
    wavelength = 2 * mpmath.pi / omega
    if wavelength < length / mpmath.mpf(high):
        return omega
    if wavelength > length / mpmath.mpf(low):
        return omega / factor
    smooth = (length / wavelength - low) / (mpmath.mpf(high) - low)
    return (1 - smooth) * omega / factor + smooth * omega


def yarn_mask(width: int, theta: Any, length: int, given: dict[str, Any]) -> list[Any]:
    """As in the code of YaRN's authors: 1 for a pair that keeps its frequency."""

    def dimension(turns: float) -> Any:
        return width * mpmath.log(length / (turns * 2 * mpmath.pi)) / (2 * mpmath.log(theta))

    low, high = dimension(given.get("beta_fast", 32)), dimension(given.get("beta_slow", 1))
    if given.get("truncate", True):
        low, high = mpmath.floor(low), mpmath.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    if low == high:
        high += mpmath.mpf("0.001")
    return [1 - min(max((i - low) / (high - low), 0), 1) for i in range(width // 2)]


@ALL_CASES
def test_frequencies_are_within_some_ulp_of_the_exact_formula(
    head_dim: int, longest: int, fields: dict[str, Any], seq_len: int
) -> None:
    found = ours(head_dim, longest, fields, seq_len)
    with mpmath.workdps(50):
        omega, temperature = exact(head_dim, longest, fields, seq_len)
    np.testing.assert_allclose(found.frequencies, [float(w) for w in omega], rtol=DOUBLE, atol=0)
    assert found.attention_factor == pytest.approx(float(temperature), rel=DOUBLE)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    rope_theta=st.floats(1.01, 1e8),
    trained=st.integers(2, 2**40),
    pairs=st.integers(1, 64),
    beta_slow=st.floats(0.1, 4),
    more=st.floats(1, 64),
    truncate=st.booleans(),
)
def test_pairs_that_yarn_keeps_and_divides_are_told_by_their_turns(
    rope_theta: float, trained: int, pairs: int, beta_slow: float, more: float, truncate: bool
) -> None:
    """No ramp is computed here, unlike in `yarn_mask`: turns are counted. Whoever is not refused
    gets what the docstring says."""
    beta_fast = beta_slow * more
    plain = pe.rotary_frequencies(2 * pairs, rope_theta=rope_theta).frequencies
    turns = plain * trained / (2 * np.pi)
    fields: dict[str, Any] = {
        "rope_type": "yarn",
        "rope_theta": rope_theta,
        "factor": 4.0,
        "original_max_position_embeddings": trained,
        "beta_fast": beta_fast,
        "beta_slow": beta_slow,
        "truncate": truncate,
    }
    if turns[0] < beta_slow or turns[-1] > beta_fast:  # one of the ends may be refused
        try:
            found = pe.rotary_frequencies(2 * pairs, **fields)
        except ValueError:
            return
    else:
        found = pe.rotary_frequencies(2 * pairs, **fields)
    scale = found.frequencies / plain
    assert scale[0] == 1
    assert (np.diff(scale) <= 1e-15).all()
    assert (scale[turns > beta_fast * (1 + 1e-9)] == 1).all()
    np.testing.assert_allclose(scale[1:][turns[1:] < beta_slow * (1 - 1e-9)], 1 / 4, rtol=DOUBLE)


def test_where_yarn_is_refused_transformers_divides_the_wrong_pairs() -> None:
    """And one position to the other side of each limit ours is theirs."""
    for rope_theta, good, bad, theirs_is in ((2.0, 804, 805, 1 / 4), (1e4, 5, 4, 1.0)):
        fields: dict[str, Any] = {"rope_type": "yarn", "rope_theta": rope_theta, "factor": 4.0}
        scales = []
        for trained in (good, bad):
            fields["original_max_position_embeddings"] = trained
            config = LlamaConfig(
                head_dim=64, max_position_embeddings=4 * trained, rope_parameters=fields.copy()
            )
            theirs, _ = ROPE_INIT_FUNCTIONS["yarn"](config)
            scales.append(theirs.numpy() / pe.frequencies(64, base=rope_theta))
        np.testing.assert_allclose(scales[1], theirs_is, rtol=SINGLE)  # every pair
        fields["original_max_position_embeddings"] = good
        ours = pe.rotary_frequencies(64, **fields).frequencies / pe.frequencies(64, base=rope_theta)
        np.testing.assert_allclose(ours, scales[0], rtol=SINGLE)
        with pytest.raises(ValueError, match=f"got {bad}"):
            pe.rotary_frequencies(64, **{**fields, "original_max_position_embeddings": bad})


@pytest.mark.parametrize("head_dim", [2, 4, 128])
def test_ntk_is_a_larger_base_and_dynamic_with_factor_1(head_dim: int) -> None:
    found = pe.rotary_frequencies(head_dim, rope_theta=5e5, rope_type="ntk", factor=4.0)
    larger = 5e5 * 4 ** (head_dim / (head_dim - 2)) if head_dim > 2 else 5e5
    np.testing.assert_allclose(found.frequencies, pe.frequencies(head_dim, base=larger), rtol=1e-13)
    dynamic: dict[str, Any] = {"rope_theta": 5e5, "rope_type": "dynamic", "factor": 1.0}
    grown = pe.rotary_frequencies(head_dim, seq_len=32_768, max_position_embeddings=8192, **dynamic)
    np.testing.assert_allclose(grown.frequencies, found.frequencies, rtol=DOUBLE)


def test_ends_of_each_scaling_do_what_their_authors_say() -> None:
    """Base 500,000, head 128, from 8k to 32k: the first pair stays, the last is divided by 4."""
    plain = pe.frequencies(128, base=5e5)
    lengths = {"original_max_position_embeddings": 8192, "max_position_embeddings": 32_768}
    llama3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scalings: list[dict[str, Any]] = [
        {"rope_type": "ntk", "factor": 4.0},
        {"rope_type": "dynamic", "factor": 1.0, "max_position_embeddings": 8192, "seq_len": 32_768},
        {"rope_type": "yarn", **lengths},
        {"rope_type": "llama3", "factor": 4.0, **llama3, **lengths},
    ]
    for fields in scalings:
        scale = pe.rotary_frequencies(128, rope_theta=5e5, **fields).frequencies / plain
        assert scale[0] == 1
        assert scale[-1] == pytest.approx(1 / 4)
        assert (np.diff(scale) <= 1e-15).all()


# ---- Two implementations


@ALL_CASES
def test_the_torch_half_returns_the_same_numbers(
    head_dim: int, longest: int, fields: dict[str, Any], seq_len: int
) -> None:
    reference = ours(head_dim, longest, fields, seq_len)
    with torch.device("meta"):  # as inside from_pretrained
        found = pet.rotary_frequencies(
            head_dim, seq_len=seq_len, max_position_embeddings=longest, **fields
        )
    assert found.frequencies.device.type == "cpu"
    assert np.array_equal(found.frequencies.numpy(), reference.frequencies)
    assert found.attention_factor == reference.attention_factor
    assert type(found.attention_factor) is float


def test_what_is_returned_and_what_was_passed_belong_to_the_caller() -> None:
    fields = copy.deepcopy(PHI_LONGROPE)
    for _ in range(2):
        found = ours(96, 131_072, fields, 1)
        found.frequencies[:] = 0
        plain = pe.rotary_frequencies(96, rope_theta=1e4).frequencies
        assert plain[0] == 1
        plain[:] = 0
    assert fields == PHI_LONGROPE


# ---- What is refused

LINEAR = {**PLAIN, "rope_type": "linear"}
YARN = {**PLAIN, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
LONGROPE: dict[str, Any] = {**PHI_LONGROPE, "seq_len": 1, "factor": 2.0}
A_DIVISOR_EACH = "a list of positive numbers, one for each pair that turns"
NO_BASE = "ValueError: rope_theta must be given for rope_type {!r}: a number greater than 1...None"
REFUSED: list[tuple[dict[str, Any], str]] = [
    *[
        ({**fields, "rope_theta": None}, NO_BASE.format(rope_type))
        for fields, rope_type in (
            (LINEAR, "linear"),
            (YARN, "yarn"),
            (LLAMA_3_1, "llama3"),
            (LONGROPE, "longrope"),
            (PROPORTIONAL, "proportional"),
            ({"type": "mrope", "mrope_section": [16, 16, 16]}, "mrope"),
            ({"partial_rotary_factor": 0.5}, "default"),
        )
    ],
    ({}, NO_BASE.format("default")),
    ({"rope_type": "su"}, "ValueError: rope_type must be one of 'default', ..., got 'su'"),
    ({"rope_type": 3}, "ValueError: rope_type must be one of 'default', ..., got 3"),
    ({"type": "axial"}, "ValueError: type must be one of 'default', ..., got 'axial'"),
    *[
        (
            {**LINEAR, "factor": 2.0, **names},
            "ValueError: rope_type and type, its older name, must say the same or one of them be "
            "left out, got rope_type {rope_type!r} and type {type!r}".format(**names),
        )
        for names in (
            {"rope_type": "linear", "type": "yarn"},
            {"rope_type": "linear", "type": "su"},
            {"rope_type": "default", "type": "linear"},
            {"rope_type": "yarn", "type": "longrope"},
            {"rope_type": "longrope", "type": "linear"},
        )
    ],
    ({"facter": 4}, "TypeError: 'facter' is no field of rope_parameters: allowed are seq_len,..."),
    (
        {"full_attention": {"factor": 4}},
        "TypeError: ...rope_parameters['full_attention']...",
    ),
    (
        {"sliding_attention": None, "full_attention": {"factor": 4}},
        "TypeError: ...rope_parameters['full_attention']...",
    ),
    (
        {"rope_scaling": {"factor": 4}},
        "TypeError: the fields themselves must be given, as in **rope_scaling, got a dict named "
        "'rope_scaling'",
    ),
    *[
        (
            {**fields, name: None},
            f"ValueError: {name} must be given for rope_type {fields['rope_type']!r}: {allowed}; "
            "got None",
        )
        for name, allowed, fields in (
            ("factor", "a number of at least 1", LINEAR),
            ("factor", "a number of at least 1", {**PLAIN, "rope_type": "ntk"}),
            ("factor", "a number of at least 1", DYNAMIC),
            ("factor", "a number of at least 1", LLAMA_3_1),
            ("max_position_embeddings", "an integer of at least 1", {**DYNAMIC, "seq_len": 2048}),
            ("seq_len", "an integer of at least 1", {**DYNAMIC, "max_position_embeddings": 2048}),
            ("seq_len", "an integer of at least 1", PHI_LONGROPE),
            ("original_max_position_embeddings", "an integer of at least 2", YARN),
            (
                "original_max_position_embeddings",
                "an integer of at least 2",
                {**YARN, "max_position_embeddings": 4096},
            ),
            ("original_max_position_embeddings", "an integer of at least 2", LONGROPE),
            ("original_max_position_embeddings", "an integer of at least 2", LLAMA_3_1),
            ("low_freq_factor", "a number greater than 0", LLAMA_3_1),
            ("high_freq_factor", "a number greater than 0", LLAMA_3_1),
            ("short_factor", A_DIVISOR_EACH, LONGROPE),
            ("long_factor", A_DIVISOR_EACH, LONGROPE),
        )
    ],
    ({**LINEAR, "factor": 0.25}, "ValueError: factor must be at least 1, got 0.25"),
    ({**LINEAR, "factor": math.nan}, "ValueError: factor must be a finite real number, got nan"),
    ({**LINEAR, "factor": "4"}, "TypeError: factor must be a finite real number, got '4'"),
    (
        {**PLAIN, "rope_type": "default", "factor": 4},
        "ValueError: factor must be left out for rope_type 'default',... got 4.0",
    ),
    (
        {**LLAMA_3_1, "rope_type": None},
        "ValueError: rope_type must be given beside factor, ...: one of 'default', ...; got None",
    ),
    (
        {**YARN, "low_freq_factor": 1},
        "ValueError: low_freq_factor must be left out ...'yarn'... 1.0",
    ),
    (
        {**YARN, "short_factor": [1]},
        "ValueError: short_factor must be left out ...array([1.])",
    ),
    ({"rope_theta": 1}, "ValueError: rope_theta must be greater than 1, got 1"),
    ({"rope_theta": math.inf}, "ValueError: rope_theta must be a finite real number, got inf"),
    (
        {**PLAIN, "partial_rotary_factor": 1.5},
        "ValueError: partial_rotary... must be at most 1, got 1.5",
    ),
    (
        {**PLAIN, "partial_rotary_factor": 0},
        "ValueError: partial_rotary... must be greater than 0, got 0",
    ),
    (
        {**PLAIN, "partial_rotary_factor": 0.1},
        "ValueError: partial_rotary_factor must leave a positive even number of entries that turn, "
        "got 0.1 of head_dim = 96, which are 9",
    ),
    (
        {**PLAIN, "rope_type": "yarn", "original_max_position_embeddings": 4096},
        "ValueError: factor must be given, or max_position_embeddings, ...: a number of at least 1"
        "; got neither",
    ),
    (
        {**YARN, "factor": None, "max_position_embeddings": 2048},
        "ValueError: original_max_position_embeddings must be at most max_position_embeddings = "
        "2048 where factor is left out, got 4096",
    ),
    ({**YARN, "original_max_position_embeddings": 1}, "ValueError: original... at least 2, got 1"),
    (
        {**YARN, "original_max_position_embeddings": 4},
        "ValueError: original_max_position_embeddings must be greater than 5.18617 for "
        "beta_slow = 1.0, or every pair makes too few turns within it, got 4",
    ),
    (
        {**YARN, "rope_theta": 2, "original_max_position_embeddings": 2000},
        "ValueError: original_max_position_embeddings must be less than 804.248 for "
        "beta_fast = 32.0 and rope_theta = 2.0, or every pair makes too many turns within it, "
        "got 2000",
    ),
    (
        {**YARN, "original_max_position_embeddings": 4096.5},
        "TypeError: original... 4096.5",
    ),
    ({**YARN, "beta_fast": 0.5}, "ValueError: beta_slow must be at most beta_fast = 0.5, got 1.0"),
    ({**YARN, "beta_fast": 0}, "ValueError: beta_fast must be greater than 0, got 0"),
    (
        {**YARN, "attention_factor": -1},
        "ValueError: attention_factor must be greater than 0...-1",
    ),
    ({**YARN, "mscale": -1}, "ValueError: mscale must be at least 0, got -1"),
    ({**YARN, "truncate": "no"}, "TypeError: truncate must be True or False, got 'no'"),
    ({**LONGROPE, "seq_len": 0}, "ValueError: seq_len must be an integer of at least 1, got 0"),
    (
        {**LONGROPE, "short_factor": [1.0, 2.0]},
        "ValueError: short_factor must have one number for each of the 48 pairs ..., got 2...",
    ),
    (
        {**LONGROPE, "long_factor": [1.0] * 47 + [0.0]},
        "ValueError: each number in long_factor must be greater than 0, got 0.0",
    ),
    ({**LONGROPE, "long_factor": 2.0}, "TypeError: long_factor must be a list ..., got 2.0"),
    (
        {**LLAMA_3_1, "low_freq_factor": 4.5},
        "ValueError: low_freq_factor must be at most high_freq_factor = 4.0, got 4.5",
    ),
]


@both
@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=lambda part: str(part)[:60])
def test_a_field_is_refused_with_its_name_its_value_and_what_is_allowed(
    backend: Backend, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        backend.pe.rotary_frequencies(96, **fields)
    pattern = ".*".join(map(re.escape, words.split("...")))
    assert re.fullmatch(pattern, f"{caught.type.__name__}: {caught.value}", re.S)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="head_dim must be a positive even integer, got 7"):
        pe.rotary_frequencies(7)
    with pytest.raises(ValueError, match=r"got 0\.5 of head_dim = 42, which are 21"):
        pe.rotary_frequencies(42, rope_theta=1e4, partial_rotary_factor=0.5)
