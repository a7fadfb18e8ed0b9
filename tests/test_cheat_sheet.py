"""The cheat sheet: each number computed, each call made, each formula with its theorem.

The page is read as a reader gets it, so what is not computed here cannot stand there.
"""

import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import prose
import pytest
import torch
from numpy.typing import NDArray

import pe_lib.torch
from pe_lib import numpy as pe

SHEET = (Path(__file__).resolve().parent.parent / "book" / "cheat_sheet.md").read_text()
D = 512
Array = NDArray[np.floating]


def rows_of(heading: str) -> dict[str, str]:
    """The table under a heading: its first column against its second."""
    lines = re.findall(r"^\| (.+?) \| (.+?) \|$", prose.section(SHEET, heading), re.M)
    return {first.strip("`"): second.strip("`") for first, second in lines[1:]}


# ---- Numbers


def encodings(seq_len: int = D) -> Array:
    return pe.sinusoidal_table(seq_len, D, dtype=np.float64)


def similarities() -> str:
    return ", ".join(f"{value:.3f}" for value in pe.similarity([1, 10, 100, 1000], D))


def mean_cosine() -> str:
    table = encodings()
    products = table @ table.T / (D / 2)
    return f"{(products.sum() - D) / (D * D - D):.2f}"


def effective_dimensions() -> str:
    energy = np.linalg.svd(encodings(), compute_uv=False) ** 2
    return str(1 + int((energy.cumsum() < 0.99 * energy.sum()).sum()))


def level_of_words(scale: float) -> str:
    """Words of D entries of variance 1/D, times the scale, against the rows, in decibels."""
    against_rows = scale / np.linalg.norm(encodings()[0])
    return f"{20 * math.log10(against_rows):+.1f} dB".replace("-", "−")


def whole_numbers(dtype: torch.dtype) -> str:
    """The largest n such that 0 … n all differ in this type."""
    n = round(2 / torch.finfo(dtype).eps)
    near = torch.tensor([n - 1, n, n + 1], dtype=torch.int64).to(dtype)
    assert near[0] < near[1] == near[2]
    return f"{n:,}" if n >= 10_000 else str(n)


NUMBERS: dict[str, Callable[[], str]] = {
    "longest wavelength, paper": lambda: f"{2 * np.pi / pe.frequencies(D)[-1]:,.0f}",
    "longest wavelength, tensor2tensor": (
        lambda: f"{2 * np.pi / pe.frequencies(D, spacing='tensor2tensor')[-1]:,.0f}"
    ),
    "ratio of neighbouring frequencies": lambda: f"{pe.frequencies(D)[1]:.4f}",
    "norm of every row": lambda: f"{np.linalg.norm(encodings(), axis=1).mean():.0f}",
    "distance of neighbouring rows": lambda: f"{np.linalg.norm(np.diff(encodings(2), axis=0)):.3f}",
    r"similarity at $\Delta=1$, 10, 100, 1000": similarities,
    r"similarity first rises after $\Delta$": (
        lambda: str(np.flatnonzero(np.diff(pe.similarity(np.arange(100), D)) > 0)[0])
    ),
    "mean cosine of two of 512 rows": mean_cosine,
    "dimensions with 99 % of 512 rows": effective_dimensions,
    "sd of a random cosine": lambda: f"{1 / math.sqrt(D):.4f}",
    r"words $\mathcal N(0,1/d)$ against rows": lambda: level_of_words(1),
    r"the same, times $\sqrt d$": lambda: level_of_words(math.sqrt(D)),
    "integers exact in bfloat16 up to": lambda: whole_numbers(torch.bfloat16),
    "in float16 up to": lambda: whole_numbers(torch.float16),
    "in float32 up to": lambda: whole_numbers(torch.float32),
}


def test_numbers_are_those_computed() -> None:
    assert rows_of("The numbers") == {name: compute() for name, compute in NUMBERS.items()}


def test_no_other_number_stands_there() -> None:
    shown = {
        number for text in (*rows_of("The numbers").values(), "512") for number in numbers(text)
    }
    stated = list(prose.precise_numbers_in(SHEET))
    assert len(stated) > 8
    assert [number.text for number in stated if not number.is_shown_by(shown)] == []


def numbers(text: str) -> list[prose.Number]:
    return list(prose.numbers_in(text))


# ---- Formulas: the build stops at a theorem that there is not; the chapters prove and try them

PLAIN = {
    *("Frequencies", "Rows", "Wavelengths", "tensor2tensor", "Block"),
    *("Norm", "Distance", "Four terms", "Interpolation"),
}


def test_every_formula_leads_to_its_theorem_but_for_definitions_and_plain_algebra() -> None:
    formulas = re.findall(r"^- \*\*(.+?)\*\*((?:.*\n)+?)(?=^-|^$)", SHEET, re.M)
    assert len(formulas) == 24
    assert {name for name, text in formulas if "{prf:ref}`thm-" not in text} == PLAIN


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
    "batch": torch.zeros(2, 5, 8),
} | {name: RNG.normal(size=(length, 8)) for name, length in zip("xpyq", (3, 3, 5, 5), strict=True)}
CALLS = rows_of("The library")


@pytest.mark.parametrize("call", CALLS)
def test_call_gives_the_shape(call: str) -> None:
    backend = pe_lib.torch if "Positional" in call else pe
    names = NAMES | {"pe": backend}
    assert tuple(eval(call, names).shape) == tuple(eval(CALLS[call], names))


def test_every_public_name_is_on_the_sheet() -> None:
    missing = [name for name in pe_lib.torch.__all__ if f"pe.{name}(" not in SHEET]
    assert missing == ["AttentionTerms"]


def test_options_are_those_of_the_functions() -> None:
    parameters = inspect.signature(pe.sinusoidal_table).parameters
    options = prose.section(SHEET, "The library").partition("Options:")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)(?:=([^`]+))?`", options)
    for name, default in named:
        assert name in parameters
        assert not default or eval(default) == parameters[name].default
    assert {name for name, _ in named} == set(parameters) - {"seq_len", "d_model", "start"}
    for call in re.findall(r'`"(\w+)"`', options):
        assert pe.sinusoidal_table(
            1, 4, **{"spacing" if call == "tensor2tensor" else "layout": call}
        ).size


def test_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", SHEET, re.S)
    assert "assert" in example
    exec(example, dict(NAMES))
