"""The page "What does this model's RoPE do?": its JavaScript says what Python says.

Settings, printed lines and sentences are compared, over every default configuration of the
installed transformers and over files that are damaged.
"""

import copy
import functools
import json
import math
import random
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from pe_lib.__main__ import describe
from pe_lib.rope import families, rotary_settings
from pe_lib.rope.configuration import _parsed
from website.extensions.data_pages import JINJA
from website.extensions.inspector import engine, in_a_page, inspector, table
from website.page_measures import BOOK

RELATIVE = 1e-12  # of a frequency: a power of JavaScript's beside one of 45 digits
SAID = """
const textOf = (fields) => ropeSettings.repr(Object.fromEntries(fields));
const said = (text, length, layout) => {
  try {
    const settings = ropeSettings.read(text, { length, layout });
    const kinds = settings.kinds.map((kind) => ({
      ...kind,
      rope_parameters: textOf(kind.rope_parameters),
    }));
    return JSON.stringify({ ...settings, kinds, lines: ropeSettings.describe(settings) });
  } catch (error) {
    if (!(error instanceof ropeSettings.CannotSay)) throw error;
    return JSON.stringify({ error: error.message });
  }
};
const linesToCopy = (text, length) => {
  const { settings } = inspector.view(text, length);
  const { moduleLines, testLines } = inspector;
  return JSON.stringify([moduleLines(settings, length), testLines(settings, length)]);
};0"""
EXAMPLES = json.loads(inspector()["examples"])


@cache
def racer() -> Any:
    js = engine()
    js.eval(SAID)
    return js


def of_javascript(text: str, length: int | None = None, layout: str | None = None) -> Any:
    return json.loads(str(racer().call("said", text, length, layout)))


def of_python(text: str, length: int | None = None, layout: str | None = None) -> dict[str, Any]:
    family = None if layout is None else {"layout": layout}
    try:
        settings = rotary_settings(_parsed(text, "the text"), length, family=family)
        return settings.to_dict() | {"lines": describe(settings)}
    except ValueError as error:  # any other error is no sentence
        return {"error": str(error)}


def check_same(text: str, length: int | None = None, layout: str | None = None) -> dict[str, Any]:
    """Compare the two, and return Python's."""
    expected, found = (each(text, length, layout) for each in (of_python, of_javascript))
    assert ("error" in found) == ("error" in expected), (text[:300], expected, found)
    if "error" in expected:
        assert found == expected
        return expected
    for name in expected.keys() - {"kinds"}:
        assert found[name] == expected[name], (name, text[:300])
    assert len(found["kinds"]) == len(expected["kinds"])
    for ours, theirs in zip(found["kinds"], expected["kinds"], strict=True):
        for name in ("frequencies", "attention_factor"):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=RELATIVE, atol=0)
        assert ours["rope_parameters"] == repr(theirs["rope_parameters"])
        for name in theirs.keys() - {"frequencies", "attention_factor", "rope_parameters"}:
            assert ours[name] == theirs[name], (name, text[:300])
    return expected


# ---- Whole files


def test_the_default_of_every_family_in_the_table() -> None:
    read = [
        check_same(json.dumps({"model_type": name}), n)
        for name in families()
        for n in (None, 10**6)
    ]
    assert sum("error" not in each for each in read) > 380


@pytest.mark.parametrize("base", [1e120, 1e300])
def test_a_base_beyond_all_bases_is_said_in_words(base: float) -> None:
    config = {"model_type": "qwen3", "head_dim": 128, "num_hidden_layers": 2, "rope_theta": base}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    said = check_same(json.dumps(config | {"rope_scaling": yarn}))["lines"]
    assert "no single base: from 1 down to" in said


def test_every_default_configuration_of_transformers() -> None:
    """Also those of models without a rotary embedding: each is read, or refused with a sentence."""
    read = refused = 0
    for kind in CONFIG_MAPPING.values():
        try:
            text = json.dumps(kind().to_dict(), default=str)
        except Exception:  # needs arguments, or a package that is not here
            continue
        if "error" in check_same(text):
            refused += 1
        else:
            read += 1
    assert read > 150
    assert refused > 100


OLDER_FILES: list[dict[str, Any]] = [
    {"rope_theta": 12_345.0},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"rope_theta": 12_345.0, "rope_scaling": {"type": "yarn", "factor": 4.0}},
    {"rope_local_base_freq": 777.0},
    {"global_rope_theta": 777.0, "local_rope_theta": 555.0},
    {"rope_theta": 12_345.0, "swa_rope_theta": 555.0},
    {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}}},
    {"rope_theta": 12_345.0, "compress_rope_theta": 777.0, "qk_rope_head_dim": 32},
    {"num_hidden_layers": 3, "compress_ratios": [0, 4, 128, 0]},
    {"num_hidden_layers": 3, "compress_ratios": [0, 4, True]},
    {"num_hidden_layers": 3, "layer_types": None, "layer_rope_theta": [1e4, 0, 5e5]},
    {"num_hidden_layers": 3, "layer_rope_theta": [1e4, None, 5e5]},
    {"num_hidden_layers": 3, "layer_rope_theta": []},
    {"rope_scaling_layers": [0, 2], "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling_layers": "all"},
    {"attn_logit_softcapping": 30.0},
    {"attn_logit_softcapping": "x"},
    {"use_mem_rope": True},
]


@pytest.mark.parametrize("fields", OLDER_FILES, ids=lambda fields: " ".join(fields))
def test_older_files_of_every_family(fields: dict[str, Any]) -> None:
    """One base or scaling, or two, beside the parameters: which kinds of layers take them."""
    read = [check_same(json.dumps({"model_type": name} | fields)) for name in families()]
    assert sum("error" not in each for each in read) > 20


@pytest.mark.parametrize("value", [True, False, None, 0, 1, "rope", "x", [], {}, {"rope_theta": 2}])
@pytest.mark.parametrize("field", ["alibi", "rope_interleave", "use_alibi", "attn_config"])
@pytest.mark.parametrize("name", ["falcon", "deepseek_v3", "llama"])
def test_fields_that_switch_and_fields_that_nothing_reads(
    name: str, field: str, value: Any
) -> None:
    check_same(json.dumps({"model_type": name, field: value}))


def test_a_layout_alone_does_not_answer_for_every_file() -> None:
    for fields in ({"model_type": "llama"}, {"model_type": "kimi_k2", "qk_rope_head_dim": 64}):
        said = check_same(json.dumps(fields), layout="split")
        assert "family must be" in said["error"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples(name: str) -> None:
    said = check_same(EXAMPLES[name]["config"], EXAMPLES[name]["length"])
    assert ("high_freq_factor must be given" in said.get("error", "")) == (name == "A damaged file")


@pytest.mark.parametrize("name", ["minimax_m2", "minimax_m3_vl_text", "gptj", "a_new_family"])
@pytest.mark.parametrize("own", [{}, {"partial_rotary_factor": 0.25}])
def test_a_field_that_some_families_alone_read(name: str, own: dict[str, float]) -> None:
    """``rotary_dim``, with a factor beside it, in the rope parameters, or without one."""
    file = {"model_type": name, "num_hidden_layers": 1, "head_dim": 128, "rotary_dim": 64}
    rope = {"rope_type": "default", "rope_theta": 1e4}
    layout = "split" if name == "a_new_family" else None
    for given in (file | own | {"rope_parameters": rope}, file | {"rope_parameters": rope | own}):
        kind = check_same(json.dumps(given), layout=layout)["kinds"][0]
        reads = {"gptj"} if own else {"minimax_m2", "gptj", "a_new_family"}
        whole = 32 if own else kind["head_dim"]
        assert kind["rotary_dim"] == (64 if name in reads else whole)


@pytest.mark.parametrize("value", [True, False, None, 0, 1, "x", [], {}])
def test_norms_that_a_field_switches_on(value: Any) -> None:
    for name in ("cohere", "llama4_text"):
        said = check_same(json.dumps({"model_type": name, "use_qk_norm": value}))
        switched = value if value is not None else name == "llama4_text"
        assert ("norm" in said["lines"].split("not rotation")[1]) == bool(switched)


# ---- Damaged files

VALUES: list[Any] = [None, True, False, "x", "4", 'it\'s "a"\n é😀' * 9, -1, 0, 1, 3, 1.5, 2.0, 64]
VALUES += [1e-9, 10**9, math.nan, math.inf, [], [1], [0.5] * 8, ["a"] * 36, {}, {"a": 1}]
FIELDS = [
    "rope_type",
    "type",
    "factor",
    "alpha",
    "beta_fast",
    "beta_slow",
    "attention_factor",
    "mscale",
    "mscale_all_dim",
    "truncate",
    "low_freq_factor",
    "high_freq_factor",
    "mrope_section",
    "partial_rotary_factor",
    "short_factor",
    "long_factor",
    "short_mscale",
    "llama_4_scaling_beta",
    "unknown",
    "max_position_embeddings",
]
BESIDE = [
    "rope_parameters",
    "layer_types",
    "layers_block_type",
    "per_layer_config",
    "head_dim",
    "rotary_dim",
    "text_config",
    "rotary_pct",
    "attention_multiplier",
    "no_rope_layers",
    "no_rope_layer_interval",
    "use_qk_norm",
]
TYPES = ("yarn", "longrope", "llama3", "dynamic", "linear", "proportional", "ntk", "axial", "su")
OTHERS = (
    "ernie4_5_vl_moe_text",
    "llama4_text",
    "ministral3",
    "gemma4_text",
    "deepseek_v4",
    "phimoe",
    "nanochat",
    "cohere",
)
FILES = [json.loads(each["config"]) for each in EXAMPLES.values()]
FILES += [{"model_type": name} for name in OTHERS]


def damaged(file: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One field left out, of another type or out of range, or one that contradicts the others."""
    scaling = file.get("rope_scaling", {})
    for name in file:
        yield {k: v for k, v in file.items() if k != name}
    for name in (*file, *BESIDE):
        yield from (file | {name: value} for value in VALUES)
    for name in scaling:
        yield file | {"rope_scaling": {k: v for k, v in scaling.items() if k != name}}
    for name in dict.fromkeys((*scaling, *FIELDS)):  # in one order, so that a sample is the same
        yield from (file | {"rope_scaling": scaling | {name: value}} for value in VALUES)
    for kind in TYPES:
        for fields in (
            {},
            {"factor": 4.0},
            {"factor": 8, "original_max_position_embeddings": 8192},
        ):
            yield file | {"rope_scaling": {"rope_type": kind} | fields}
            yield file | {"rope_scaling": scaling | {"type": kind} | fields}


def test_a_last_pair_that_is_slower_is_said_with_the_same_digits() -> None:
    """Of the ramp of YaRN the last pair may be the only one that is not on it."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    config = {"model_type": "qwen3", "head_dim": 128, "num_hidden_layers": 1, "rope_theta": 1e6}
    said = check_same(json.dumps(config | {"rope_scaling": yarn | {"beta_slow": 1e-9}}))
    assert "and the last is 1.4054 times slower than that" in "".join(said["lines"])


@pytest.mark.parametrize(
    "given", [{"rotary_pct": {"a": [1]}}, {"rope_scaling": {"type": "default", "own": [[1, 2], 3]}}]
)
def test_what_is_not_used_may_have_any_value(given: dict[str, Any]) -> None:
    config = {"model_type": "deepseek_v3", "qk_rope_head_dim": 64, "num_hidden_layers": 2}
    assert "error" not in check_same(json.dumps(config | {"rope_theta": 1e4} | given))


def test_damaged_files() -> None:
    """A sample of some thousands: each has the same answer or the same sentence."""
    cases = [copy.deepcopy(each) for file in FILES for each in damaged(file)]
    sample = random.Random(0).sample(cases, 1500)
    refused = [check_same(json.dumps(each)).get("error") for each in sample]
    assert 300 < sum(map(bool, refused)) < 1200
    assert max(len(each) for each in refused if each) < 600


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "{not JSON",
        "{'a': 1}",
        '{"a": 1',
        '{"a" 1}',
        '{"a": 01}',
        '{"a": tru}',
        '{"a": "b',
        '{"a": "\n"}',
        '{"é😀": "\\u12"}',
        "{} x",
        '{\n "a": 1\n "b": 2}',
        "[1, 2",
        "[1]",
        "3",
        '"x"',
        "null",
        "-",
        "{" * 1_000_000,
        '{"model_type": "llama", "head_dim": 1e400}',
        '{"model_type": "constructor"}',
        '{"model_type": "__proto__", "__proto__": {}}',
        '{"model_type": ["llama"]}',
        "{}",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_configuration(text: str) -> None:
    assert "error" in check_same(text)


def test_what_python_itself_reads_no_further() -> None:
    assert "nested too deeply" in of_javascript("[" * 1_000_000)["error"]
    assert "at most 4300 digits" in of_javascript('{"a": ' + "1" * 5000 + "}")["error"]


def test_a_megabyte() -> None:
    rubbish = {f"field_{i}": [i] * 20 for i in range(10_000)}
    said = check_same(json.dumps(FILES[0] | rubbish))
    assert len(said["layers"]) == 36
    said = check_same(json.dumps(FILES[0] | {"rope_scaling": "x" * 1_000_000}))
    assert len(said["error"]) < 500


def test_an_unknown_family_is_called_unknown() -> None:
    text = json.dumps(FILES[0] | {"model_type": "a_new_family"})
    assert "not known, and not guessed" in check_same(text)["error"]
    assert check_same(text, layout="interleaved")["kinds"][0]["layout"] == "interleaved"


# ---- What the page shows


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "A damaged file"])
def test_the_lines_to_copy_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module turns, and each test passes for a right function and fails for another."""
    import torch

    config, length = EXAMPLES[name]["config"], EXAMPLES[name]["length"]
    (tmp_path / "config.json").write_text(config)
    monkeypatch.chdir(tmp_path)
    module, test = json.loads(str(racer().call("linesToCopy", config, length)))
    settings = rotary_settings(json.loads(config), length)
    kinds, layers = settings.kinds, settings.layers
    x = torch.randn(1, 2, 5, kinds[0].head_dim)
    scope: dict[str, Any] = {"q": x, "k": x}
    exec(module, scope)
    assert scope["q"].shape == x.shape
    assert not torch.equal(scope["q"], x)

    def turn_of(number: int) -> Any:
        return functools.partial(turned, layers[number]) if layers[number] else None

    functions = {"turn_of": turn_of, "turn": turn_of(0)}
    monkeypatch.setitem(sys.modules, "my_model", types.SimpleNamespace(**functions))
    exec(test, scope)
    of_kinds = [value for key, value in scope.items() if key.startswith("test_layer_")]
    assert len(of_kinds) == len(kinds)
    for passes in of_kinds:
        passes()
    if None in layers:
        scope["test_which_layers_are_not_rotated"]()
        monkeypatch.setitem(scope, "turn_of", lambda number: turn_of(0))
        with pytest.raises(AssertionError):
            scope["test_which_layers_are_not_rotated"]()
    if len(kinds) > 1:  # one rotation for all layers is right for the first kind alone
        monkeypatch.setitem(scope, "turn_of", lambda number: turn_of(0))
        with pytest.raises(AssertionError, match="differs"):
            of_kinds[1]()

    def wrong(x: Any, positions: Any) -> Any:
        return 1.1 * turn_of(0)(x, positions + 1)

    monkeypatch.setitem(scope, "turn", wrong)
    monkeypatch.setitem(scope, "turn_of", lambda number: wrong)
    with pytest.raises(AssertionError, match="differs"):
        of_kinds[0]()


def turned(kind: Any, x: Any, positions: Any) -> Any:
    """The rotation of a kind of layer."""
    angles = np.multiply.outer(positions.astype(float), np.array(kind.frequencies))
    cos, sin = (each * kind.attention_factor for each in (np.cos(angles), np.sin(angles)))
    half = kind.rotary_dim // 2
    a, b = (
        (x[..., 0::2], x[..., 1::2])
        if kind.layout == "interleaved"
        else (x[..., :half], x[..., half:])
    )
    pairs = a * cos - b * sin, a * sin + b * cos
    if kind.layout_out == "interleaved":
        return np.stack(pairs, -1).reshape(x.shape)
    return np.concatenate(pairs, -1)


def test_the_strip_says_which_pairs_meet_new_angles() -> None:
    """Of Qwen3 4B at four times its length: those that made less than one turn, but for YaRN's."""
    config = EXAMPLES["Qwen3 4B with YaRN"]["config"]
    answer = str(racer().call("answer", config, 131_072))
    (kind,) = rotary_settings(json.loads(config)).kinds
    plain = 1e6 ** (-np.arange(64) / 64)
    slow = np.flatnonzero(plain * 32768 < 2 * np.pi)
    assert f"pairs {slow[0]}–63 do not come round once" in answer
    assert (
        f"Within 131,072, unscaled: pairs {slow[0]}–63 meet angles beyond those of training"
        in answer
    )
    beyond = slow[np.array(kind.frequencies)[slow] * 131_072 > plain[slow] * 32768 * (1 + 1e-9)]
    assert len(beyond) == 0
    assert "Within 131,072, yarn: no pair meets angles beyond those of training" in answer
    assert "says nothing about what the scaling costs" in answer
    assert answer.count('class="pair-new"') == len(slow) + 1  # and its key


def test_what_the_strip_does_not_know_it_does_not_say() -> None:
    """A window ends what a layer sees; beside "linear" no length before the scaling is named."""
    answer = str(racer().call("answer", EXAMPLES["Gemma 3 4B"]["config"], 131_072))
    assert "look back over 1,024 positions and no farther" in answer
    assert "does not say for which length the model was trained before it was scaled" in answer
    assert "pair-new" not in answer


def test_the_page_carries_the_table_and_the_first_answer() -> None:
    page = JINJA.from_string((BOOK / "inspector.md").read_text("utf-8")).render(inspector())
    assert in_a_page(table()) in page
    assert json.loads(table())["families"] == families()
    assert "qwen3</strong> · 36 layers" in page
    body = page.partition("<form")[2].partition("## How")[0].strip()
    assert "\n\n" not in body, "a blank line would end the block of HTML"


def test_text_of_a_file_is_no_html() -> None:
    answer = str(racer().call("answer", '{"model_type": "<img src=x onerror=alert(1)>"}', 5))
    assert "<img" not in answer
