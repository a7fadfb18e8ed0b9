"""The cheat sheet: each number computed, each formula checked, each call made.

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
from scipy.linalg import expm

import pe_lib.torch
from pe_lib import numpy as pe

SHEET = (Path(__file__).resolve().parent.parent / "book" / "cheat_sheet.md").read_text()
D, B = 512, 10_000.0
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
    if n < 10_000:
        assert torch.arange(n + 1).to(dtype).unique().numel() == n + 1
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


# ---- Formulas: each is checked for small d, real positions and matrices at random

RNG = np.random.default_rng(0)
d, x, y, delta = 8, 3.7, -1.2, 2.5
OMEGA = B ** (-2 * np.arange(d // 2) / d)


def row(position: float) -> Array:
    """PE(x) as the sheet writes it."""
    return np.stack([np.sin(OMEGA * position), np.cos(OMEGA * position)], axis=1).ravel()


def turn(offset: float) -> Array:
    """T(Δ) made of the sheet's blocks."""
    matrix = np.zeros((d, d))
    for i, angle in enumerate(OMEGA * offset):
        c, s = np.cos(angle), np.sin(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
    return matrix


def kernel(offset: float) -> float:
    return float(np.cos(OMEGA * offset).sum())


def close(left: Any, right: Any) -> bool:
    return np.allclose(left, right, rtol=0, atol=1e-12)


def attention_is_equivariant() -> bool:
    tokens, weights = RNG.normal(size=(5, d)), RNG.normal(size=(3, d, d))
    order = RNG.permutation(5)

    def attend(tokens: Array) -> Array:
        q, k, v = tokens @ weights
        scores = np.exp(q @ k.T / d)
        return np.asarray(scores / scores.sum(axis=1, keepdims=True) @ v)

    return close(attend(tokens[order]), attend(tokens)[order])


def shifts_by_another_matrix() -> int:
    """How many dimensions of matrices agree with T on the rows of all positions."""
    rows = np.stack([row(position) for position in range(0, 500 * d, 100)])
    return d * (d - int(np.linalg.matrix_rank(rows)))


def relative_scores() -> int:
    """Dimension of the W with WT(1) = T(1)W."""
    identity, one = np.eye(d), turn(1)
    commutator = np.kron(identity, one.T) - np.kron(one, identity)
    return d * d - int(np.linalg.matrix_rank(commutator, tol=1e-9))


def logarithm() -> bool:
    offset = np.arange(10, 20)
    law = 1 - (np.log(offset) + np.euler_gamma) / np.log(B)
    return float(np.abs(pe.similarity(offset, 512) - law).max()) < 0.013


def two_jobs() -> bool:
    u, v, a, b = (RNG.normal(size=shape) for shape in ((3, d), (4, d), (d, d), (d, d)))
    w = np.linalg.lstsq(np.vstack([u, v]), np.vstack([u @ a, v @ b]))[0]
    return close((u[0] + v[0]) @ w, u[0] @ a + v[0] @ b)


def random_directions() -> bool:
    cosines = RNG.normal(size=(100_000, d))
    cosines /= np.linalg.norm(cosines, axis=1, keepdims=True)
    first = cosines[:, 0]
    return bool(abs(first.mean()) < 0.01 and abs(first.var() * d - 1) < 0.03)


def generator() -> bool:
    g = np.kron(np.diag(OMEGA), [[0.0, -1.0], [1.0, 0.0]])
    return close(expm(delta * g), turn(delta)) and close(g.T, -g)


def rotary() -> bool:
    q, k = RNG.normal(size=(2, d))
    scores_match = close(q @ turn(5) @ (k @ turn(3)).T, q @ turn(5 - 3) @ k)
    module = pe_lib.torch.RotaryPositionalEncoding(d, layout="interleaved").double()
    turned = module(torch.tensor(q)[None], positions=torch.tensor([5]))
    return scores_match and close(turned[0].numpy(), pe.rotate(q, -5))


def ntk_aware() -> bool:
    omega = pe.frequencies(d, base=B * 4 ** (d / (d - 2)))
    return close(omega[0], OMEGA[0]) and close(omega[-1], OMEGA[-1] / 4)


W1, W2, P, Q = RNG.normal(size=(4, d, d))
FORMULAS: dict[str, Callable[[], bool]] = {
    "Frequencies": lambda: close(pe.frequencies(d), OMEGA) and len(OMEGA) == d / 2,
    "Rows": lambda: close(pe.sinusoidal_encoding(x, d, dtype=np.float64), row(x)),
    "Wavelengths": (
        lambda: (
            close(row(x)[:2], row(x + 2 * np.pi)[:2])
            and close(row(x)[-2:], row(x + 2 * np.pi * B ** ((d - 2) / d))[-2:])
        )
    ),
    "tensor2tensor": (
        lambda: close(
            pe.frequencies(d, spacing="tensor2tensor"),
            B ** (-np.arange(d // 2) / (d / 2 - 1)),
        )
    ),
    "No repetition": lambda: len(np.unique(np.sin(np.arange(2000)).round(8))) == 2000,
    "Why at all": attention_is_equivariant,
    "Rotation": lambda: close(row(x + delta), row(x) @ turn(delta)),
    "Block": (
        lambda: (
            close(turn(delta), pe.rotation_matrix(delta, d))
            and close(turn(delta).T @ row(x)[:, None], row(x + delta)[:, None])
        )
    ),
    "Group": (
        lambda: (
            close(turn(x) @ turn(y), turn(x + y))
            and close(turn(-x), turn(x).T)
            and close(np.linalg.det(turn(x)), 1)
        )
    ),
    "Generator": generator,
    "Only one": lambda: shifts_by_another_matrix() == 0,
    "Nothing else": (
        lambda: close(np.linalg.norm(row(x) - row(y)), np.linalg.norm(row(x + 9) - row(y + 9)))
    ),
    "Kernel": lambda: (
        close(row(x) @ row(x + delta), kernel(delta)) and kernel(-delta) == kernel(delta)
    ),
    "Norm": lambda: close(np.linalg.norm(row(x)), np.sqrt(d / 2)),
    "Distance": lambda: close(np.sum((row(x) - row(y)) ** 2), d - 2 * kernel(x - y)),
    "Logarithm": logarithm,
    "Relative scores": lambda: relative_scores() == d,
    "Four terms": (
        lambda: close(
            (P + Q) @ W1 @ (W2 + Q).T,
            P @ W1 @ W2.T + P @ W1 @ Q.T + Q @ W1 @ W2.T + Q @ W1 @ Q.T,
        )
    ),
    "Concatenation": lambda: close(np.hstack([P, Q]) @ np.vstack([W1, W2]), P @ W1 + Q @ W2),
    "Two jobs": two_jobs,
    "Random directions": random_directions,
    "RoPE": rotary,
    "Interpolation": lambda: close(np.sin(OMEGA / 4 * x), row(x / 4)[0::2]),
    "NTK-aware": ntk_aware,
}


def test_every_formula_of_the_sheet_is_checked() -> None:
    assert re.findall(r"^- \*\*(.+?)\*\*", SHEET, re.M) == list(FORMULAS)


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str) -> None:
    assert FORMULAS[name]()


# ---- Calls

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
