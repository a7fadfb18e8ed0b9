"""The cheat sheet: each number computed, each call made.

The page is read as a reader gets it, so what is not computed here cannot stand there.
"""

import contextlib
import functools
import inspect
import math
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import page_text
import pytest
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

import pe_lib.torch
from experiments.beyond_length import results as beyond
from experiments.beyond_length.run import rope_parameters
from pe_lib import numpy as pe
from pe_lib.rope.families import families

SHEET = (Path(__file__).resolve().parent.parent.parent / "book" / "cheat_sheet.md").read_text(
    encoding="utf-8"
)
D = 512
VERSION = ".".join(transformers.__version__.split(".")[:2])


def rows_of(heading: str) -> dict[str, str]:
    """The table under a heading: its first column against its second."""
    lines = re.findall(r"^\| (.+?) \| (.+?) \|$", page_text.section(SHEET, heading), re.M)
    return {first.strip("`"): second.strip("`") for first, second in lines[1:]}


# ---- Numbers


def computed() -> dict[str, str]:
    """What stands in the table of numbers."""
    omega, rows = pe.frequencies(D), pe.sinusoidal_table(D, D, dtype=np.float64)
    longest = 2 * np.pi / omega[-1]
    longest_t2t = 2 * np.pi / pe.frequencies(D, spacing="tensor2tensor")[-1]
    norm = np.linalg.norm(rows, axis=1).mean()
    similarity = pe.similarity(np.arange(1001), D)
    mean_cosine = ((rows @ rows.T).sum() / norm**2 - D) / (D * D - D)
    energy = np.linalg.svd(rows, compute_uv=False) ** 2
    return {
        "longest wavelength, paper": f"{longest:,.0f}",
        "longest wavelength, tensor2tensor": f"{longest_t2t:,.0f}",
        "ratio of neighbouring frequencies": f"{omega[1]:.4f}",
        "norm of every row": f"{norm:.0f}",
        "distance of neighbouring rows": f"{np.linalg.norm(rows[1] - rows[0]):.3f}",
        r"similarity at $\Delta=1$, 10, 100, 1000": (
            ", ".join(f"{value:.3f}" for value in similarity[[1, 10, 100, 1000]])
        ),
        r"offset $\Delta$ of the first minimum of the similarity": (
            str(np.flatnonzero(np.diff(similarity) > 0)[0])
        ),
        "mean cosine of two of 512 rows": f"{mean_cosine:.2f}",
        "perpendicular directions that hold 99 % of the squared norms of 512 rows": (
            str(1 + np.searchsorted(energy.cumsum(), 0.99 * energy.sum()))
        ),
        "standard deviation of the cosine of two random directions": f"{1 / math.sqrt(D):.4f}",
        "norm of a word with entries of variance $1/d$, divided by the norm of a row": (
            f"{-20 * math.log10(norm):+.1f} dB"
        ),
        r"the same, if the word is multiplied by $\sqrt d$": (
            f"{20 * math.log10(math.sqrt(D) / norm):+.1f} dB"
        ),
        "integers exact in bfloat16 up to": f"{2 / torch.finfo(torch.bfloat16).eps:.0f}",
        "in float16 up to": f"{2 / torch.finfo(torch.float16).eps:.0f}",
        "in float32 up to": f"{2 / torch.finfo(torch.float32).eps:,.0f}",
    }


def test_numbers_are_those_computed() -> None:
    shown = {name: value.replace("−", "-") for name, value in rows_of("The numbers").items()}
    assert shown == computed()


def test_no_other_number_stands_there() -> None:
    rows = rows_of("The numbers")  # which the test above compares, names and values
    counted = [VERSION, *map(str, causal_families()), f"{growth_of_the_factor_of_yarn():.1f}"]
    counted += [value for _, *values in losses_above_the_cut_text() for value in values]
    counted.append(str(beyond.LENGTH))
    counted += {str(run["tokens"]) for run in beyond.where(beyond.load(), what="short")}
    shown = " | ".join([*rows, *rows.values(), *counted, "512"])
    assert len(list(page_text.stated_in(SHEET))) > 8
    assert page_text.unshown(SHEET, shown) == []


# ---- A context s times as long

CONTEXT: dict[str, Any] = {
    "rope_theta": 5e5,
    "factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def growth_of_the_factor_of_yarn() -> float:
    """By how much the factor on q and k grows with ln s."""
    found = pe.rotary_frequencies(128, rope_type="yarn", **CONTEXT)
    return (found.attention_factor - 1) / math.log(CONTEXT["factor"])


def formulas() -> dict[str, tuple[Any, float, dict[str, Any]]]:
    """Of each row of the table: frequencies, factor, and the fields beside those above."""
    base, s, trained = CONTEXT.values()
    d, longer = 128, 3 * trained
    i = np.arange(d // 2)
    omega = base ** (-2 * i / d)
    turns = omega * trained / (2 * np.pi)

    def where(n: int) -> float:
        return d * math.log(trained / (2 * np.pi * n)) / (2 * math.log(base))

    start, end = math.floor(where(32)), math.ceil(where(1))
    g = np.clip((i - start) / (end - start), 0, 1)
    h = np.clip((turns - 1) / (4 - 1), 0, 1)
    by_length = base * (s * longer / trained - (s - 1)) ** (d / (d - 2))
    divisors = np.linspace(1, s, d // 2)
    lists = {"short_factor": np.ones(d // 2), "long_factor": divisors}
    return {
        "linear": (omega / s, 1, {}),
        "ntk": ((base * s ** (d / (d - 2))) ** (-2 * i / d), 1, {}),
        "dynamic": (by_length ** (-2 * i / d), 1, {"seq_len": longer}),
        "yarn": (omega * (1 - g + g / s), 0.1 * math.log(s) + 1, {}),
        "llama3": (
            omega * (h + (1 - h) / s),
            1,
            {"low_freq_factor": 1.0, "high_freq_factor": 4.0},
        ),
        "longrope": (
            omega / divisors,
            math.sqrt(1 + math.log(s) / math.log(trained)),
            lists | {"seq_len": longer},
        ),
    }


@pytest.mark.parametrize("rope_type", formulas())
def test_formulas_are_what_the_library_computes(rope_type: str) -> None:
    frequencies, factor, more = formulas()[rope_type]
    fields = {"rope_theta": 5e5, "factor": 4.0} | more
    if rope_type not in ("linear", "ntk", "dynamic"):
        fields = CONTEXT | more
    if rope_type == "dynamic":
        fields["max_position_embeddings"] = CONTEXT["original_max_position_embeddings"]
    found = pe.rotary_frequencies(128, rope_type=rope_type, **fields)
    np.testing.assert_allclose(found.frequencies, frequencies, rtol=1e-12)
    assert abs(found.attention_factor - factor) < 1e-12
    shown = "NTK-aware" if rope_type == "ntk" else f"`{rope_type}`"
    assert f"\n| {shown} | " in SHEET


# ---- Calls

RNG = np.random.default_rng(0)
NAMES: dict[str, Any] = {
    "pe": pe,
    "np": np,
    "d": 8,
    "L": 5,
    "t": np.arange(6.0),
    "rows": RNG.normal(size=(6, 8)),
    "w": RNG.normal(size=(8, 4)),
    "w_q": RNG.normal(size=(8, 4)),
    "w_k": RNG.normal(size=(8, 4)),
    "batch": torch.zeros(2, 5, 8),
    "x": RNG.normal(size=(3, 8)),
    "p": RNG.normal(size=(3, 8)),
    "y": RNG.normal(size=(5, 8)),
    "p2": RNG.normal(size=(5, 8)),
    "config": {"model_type": "llama", "num_hidden_layers": 1, "head_dim": 8},
}
CALLS = rows_of("The library")
IN_TORCH = set(pe_lib.torch.__all__) - set(pe.__all__)


@pytest.mark.parametrize("call", CALLS)
def test_call_gives_the_shape(call: str) -> None:
    backend = pe_lib.torch if any(f"pe.{name}" in call for name in IN_TORCH) else pe
    names = NAMES | {"pe": backend}
    assert tuple(eval(call, names).shape) == tuple(eval(CALLS[call], names))


def test_every_public_name_is_on_the_sheet() -> None:
    missing = [name for name in pe_lib.torch.__all__ if f"pe.{name}(" not in SHEET]
    assert missing == [
        "AttentionTerms",
        "RotaryFrequencies",
        "RotaryTables",
    ]  # which functions return


def test_options_are_those_of_the_function() -> None:
    parameters = inspect.signature(pe.sinusoidal_table).parameters
    section = page_text.section(SHEET, "The library")
    options = section.partition("share these options:")[2].partition("\n\n")[0]
    named = dict(re.findall(r"`(\w+)(?:=([^`]+))?`", options))
    assert set(named) == set(parameters) - {"seq_len", "d_model", "start"}
    for name, default in named.items():
        assert not default or eval(default) == parameters[name].default


def test_examples_run() -> None:
    call, theorem = re.findall(r"```python\n(.*?)```", SHEET, re.S)
    names: dict[str, Any] = {}
    exec(call, names)
    assert names["rotary"](torch.zeros(5, 128)).shape == (5, 128)
    assert names["rotary"].layout == "split"
    assert "assert" in theorem
    exec(theorem, {})


# ---- What lengthening costs without further training

ORDER_OF_METHODS = ("none", "linear", "ntk", "dynamic", "yarn", "yarn without factor")


def losses_above_the_cut_text() -> list[tuple[str, ...]]:
    """The rows of the table: a method's dictionary, median and range by length, short texts."""
    section = page_text.section(SHEET, "RoPE")
    found: list[tuple[str, ...]] = re.findall(
        r"^\| `(\{.+\})` \| ([\d.]+ \(.+\)) \| ([\d.]+ \(.+\)) \| ([\d., ]+) \|$", section, re.M
    )
    return found


def price_on_short_texts(runs: list[beyond.Run], method: str) -> str:
    """The rise of the loss on texts of 1,024 tokens, with s = 2 and 4.

    Dynamic scaling leaves the frequencies of such texts as they are, so no run was made.
    """
    if method in ("none", "dynamic"):
        plain = pe.rotary_frequencies(64, rope_theta=1e5)
        for s in (2.0, 4.0):
            fields = rope_parameters(method, s, 1e5, beyond.LENGTH, 64)
            if method == "dynamic":
                fields |= {"max_position_embeddings": beyond.LENGTH, "seq_len": 1024}
            found = pe.rotary_frequencies(64, **fields)
            assert np.array_equal(found.frequencies, plain.frequencies)
        return "0, 0"
    prices = [statistics.median(beyond.changes(runs, method, s, "short").values()) for s in (2, 4)]
    return ", ".join(f"{price:.2f}" for price in prices)


def test_losses_above_the_cut_text_are_those_measured() -> None:
    rows, runs = losses_above_the_cut_text(), beyond.load()
    width, trained, base = 64, beyond.LENGTH, 1e5
    names = {"B": base, "L": trained, "d": width}
    for (fields, *shown, price), method in zip(rows, ORDER_OF_METHODS, strict=True):
        assert price == price_on_short_texts(runs, method)
        for s, value in zip((2, 4), shown, strict=True):
            wanted = rope_parameters(method, float(s), base, trained, width)
            assert eval(fields, names | {"s": float(s)}) == wanted
            above = beyond.changes(runs, method, s, "against cutting")
            assert len(above) == 4
            low, high = min(above.values()), max(above.values())
            median = statistics.median(above.values())
            assert value == f"{median:.2f} ({low:.2f} to {high:.2f})"
    (growing,) = re.findall(r"a text that grows over a cache.*?\((\w+) texts\)", SHEET)
    read = [run for run in runs if run["method"] == "dynamic in parts"]
    assert growing == {2: "two"}[len({run["text"] for run in read})]


# ---- Families


@functools.cache
def causal_families() -> tuple[int, int]:
    """How many build from their defaults, and how many of them are in the library's table."""
    built, turning = 0, 0
    for model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        with contextlib.suppress(Exception):  # some defaults contradict themselves
            config = CONFIG_MAPPING[model_type]().get_text_config()
            built += 1
            turning += not {model_type, config.model_type}.isdisjoint(families())
    return built, turning


def test_how_many_causal_families_have_a_rotation() -> None:
    built, turning = causal_families()
    assert f"of the {built} families" in SHEET
    assert f", at least {turning} have it" in SHEET
    assert f"transformers {VERSION}" in SHEET
