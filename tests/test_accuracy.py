"""The error bound that the library states, against two oracles and at the points hardest for it."""

from decimal import localcontext
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from backends import DEVICE, NUMPY, TORCH, Backend, every, on_device
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import (
    frequency,
    largest_excess,
    near_zeros,
    sine_and_cosine,
    sine_and_cosine_by_phase,
)

from pe_lib import _exact
from pe_lib._checks import Clocks



BOUND, LIMIT = 2.0**-50, 2**32
CLOCKS = [
    Clocks(512, 10_000.0, "paper"),
    Clocks(1024, 10_000.0, "tensor2tensor"),
    Clocks(64, 500_000.0, "paper"),
    Clocks(34, 1.0, "paper"),
    Clocks(34, 1.0000001, "tensor2tensor"),
    Clocks(16, 1e300, "paper"),
    Clocks(2, 10_000.0, "paper"),
]
SPREAD = pytest.mark.parametrize(
    "clocks", CLOCKS, ids=lambda c: f"{c.d_model}-{c.base:g}-{c.spacing}"
)


def exact_row(clocks: Clocks, x: float, pairs: list[int], *, by_phase: bool = False) -> list[Any]:
    """The exact entries sin, cos of the given pairs."""
    row: list[Any] = []
    for i in pairs:
        omega = frequency(i, *clocks)
        row += sine_and_cosine_by_phase(omega, int(x)) if by_phase else sine_and_cosine(omega, x)
    return row


def entries(row: np.ndarray, pairs: list[int]) -> np.ndarray:
    return np.array([row[k] for i in pairs for k in (2 * i, 2 * i + 1)])


def some_pairs(clocks: Clocks, rng: np.random.Generator) -> list[int]:
    last = clocks.d_model // 2 - 1
    return sorted({0, last, *rng.integers(0, last + 1, 5).tolist()})


def keywords(clocks: Clocks, backend: Backend, dtype: str) -> dict[str, Any]:
    return {"base": clocks.base, "spacing": clocks.spacing, "dtype": backend.dtype(dtype)}


@SPREAD
@pytest.mark.parametrize("start", [0, LIMIT - 4500, -LIMIT, 741_704 - 3, -(2**31) - 7])
def test_table_keeps_its_bound_in_windows_over_the_whole_range(clocks: Clocks, start: int) -> None:
    rng = np.random.default_rng(abs(start) + clocks.d_model)
    double = NUMPY.pe.sinusoidal_table(
        4501, clocks.d_model, start=start, **keywords(clocks, NUMPY, "float64")
    )
    single = NUMPY.pe.sinusoidal_table(
        4501, clocks.d_model, start=start, **keywords(clocks, NUMPY, "float32")
    )
    assert np.array_equal(single, double.astype(np.float32))
    for row in [0, 63, 64, 4095, 4096, 4500, *rng.integers(0, 4501, 4).tolist()]:
        pairs = some_pairs(clocks, rng)
        exact = exact_row(clocks, start + row, pairs, by_phase=bool(row % 2))
        assert largest_excess(entries(double[row], pairs), exact, ulps=0)[0] <= BOUND
        assert largest_excess(entries(single[row], pairs), exact, ulps=0.5)[0] <= BOUND


@every
@settings(max_examples=60, deadline=None)
@given(x=st.integers(-LIMIT, LIMIT), which=st.sampled_from(CLOCKS), seed=st.integers(0, 99))
def test_encoding_of_an_integer_is_within_the_bound(
    backend: Backend, x: int, which: Clocks, seed: int
) -> None:
    pairs = some_pairs(which, np.random.default_rng(seed))
    exact = exact_row(which, x, pairs)
    for dtype, ulps in (("float64", 0.0), ("float32", 0.5)):
        row = backend.pe.sinusoidal_encoding([x], which.d_model, **keywords(which, backend, dtype))
        assert largest_excess(entries(backend.numpy(row)[0], pairs), exact, ulps)[0] <= BOUND


@every
@SPREAD
@pytest.mark.parametrize("start", [0, LIMIT - 2299, -LIMIT, 727_927_316 - 90, -1001])
def test_integers_close_together_are_within_the_bound(
    backend: Backend, clocks: Clocks, start: int
) -> None:
    """In any order, some twice: many share a block of 64, and many blocks one of 64²."""
    rng = np.random.default_rng(abs(start) + clocks.d_model)
    positions = start + rng.permutation(np.r_[:2300, :100])
    rows = backend.numpy(
        backend.pe.sinusoidal_encoding(
            positions, clocks.d_model, **keywords(clocks, backend, "float64")
        )
    )
    first, last, *others = positions.argmin(), positions.argmax(), *rng.integers(0, 2400, 5)
    for row in (first, last, *others):
        pairs = some_pairs(clocks, rng)
        exact = exact_row(clocks, int(positions[row]), pairs, by_phase=bool(row % 2))
        assert largest_excess(entries(rows[row], pairs), exact, ulps=0)[0] <= BOUND


@every
def test_one_fraction_among_integers_is_not_lost(backend: Backend) -> None:
    positions = np.arange(500.0)
    positions[77] += 0.25
    clocks, pairs = CLOCKS[0], [0, 3, 200]
    rows = backend.pe.sinusoidal_encoding(positions, 512, dtype=backend.dtype("float64"))
    for row in (76, 77, 78):
        exact = exact_row(clocks, float(positions[row]), pairs)
        found = entries(backend.numpy(rows)[row], pairs)
        assert largest_excess(found, exact, ulps=0)[0] <= BOUND


@every
@settings(max_examples=60, deadline=None)
@given(x=st.floats(-LIMIT, LIMIT), which=st.sampled_from(CLOCKS), seed=st.integers(0, 99))
def test_encoding_of_a_float_is_within_the_bound(
    backend: Backend, x: float, which: Clocks, seed: int
) -> None:
    pairs = some_pairs(which, np.random.default_rng(seed))
    row = backend.pe.sinusoidal_encoding([x], which.d_model, **keywords(which, backend, "float64"))
    exact = exact_row(which, x, pairs)
    assert largest_excess(entries(backend.numpy(row)[0], pairs), exact, ulps=0)[0] <= BOUND


@every
@pytest.mark.parametrize("i", [0, 1, 25, 98, 189, 255])
def test_bound_holds_where_sine_or_cosine_nearly_vanishes(backend: Backend, i: int) -> None:
    clocks = CLOCKS[0]
    hard = list(near_zeros(frequency(i, *clocks), LIMIT))
    assert len(hard) > 5
    for x in [*hard, *(-x for x in hard[-3:])]:
        exact = exact_row(clocks, x, [i], by_phase=True)
        for start in (x, max(x - 3000, -LIMIT)):  # as the first row of a table, and deep in one
            n, dtype = x - start + 1, backend.dtype("float64")
            for rows in (
                backend.pe.sinusoidal_table(n, 512, start=start, dtype=dtype),
                backend.pe.sinusoidal_encoding(np.arange(start, x + 1)[-300:], 512, dtype=dtype),
            ):
                row = backend.numpy(rows)[-1]
                assert largest_excess(entries(row, [i]), exact, ulps=0)[0] <= BOUND


@pytest.mark.parametrize(("x", "i"), [(741_704, 189), (727_927_316, 98), (3_431_024_232, 25)])
def test_published_hard_points(x: int, i: int) -> None:
    """Where a float64 angle alone loses the entry; the promise there is absolute."""
    clocks = CLOCKS[0]
    exact = exact_row(clocks, x, [i])
    assert min(abs(value) for value in exact) < 1e-6
    row = NUMPY.pe.sinusoidal_table(1, 512, start=x, dtype="float64")[0]
    assert largest_excess(entries(row, [i]), exact, ulps=0)[0] <= BOUND


def test_widest_encoding_is_within_the_bound() -> None:
    for spacing in ("paper", "tensor2tensor"):
        clocks, rng = Clocks(16_384, 10_000.0, spacing), np.random.default_rng(3)
        table = NUMPY.pe.sinusoidal_table(
            130, 16_384, start=LIMIT - 129, **keywords(clocks, NUMPY, "float64")
        )
        for row in (0, 64, 129):
            pairs = some_pairs(clocks, rng)
            exact = exact_row(clocks, LIMIT - 129 + row, pairs)
            assert largest_excess(entries(table[row], pairs), exact, ulps=0)[0] <= BOUND


def test_beyond_the_range_the_error_grows_as_stated() -> None:
    clocks, pairs = CLOCKS[0], [0, 1, 40, 255]
    for x in (2**33 + 1, 2**45 + 12_345, 2**53 - 1, -(2**50) + 3):
        for backend in (NUMPY, TORCH, DEVICE):
            row = backend.pe.sinusoidal_encoding([x], 512, dtype=backend.dtype("float64"))
            excess, _ = largest_excess(
                entries(backend.numpy(row)[0], pairs), exact_row(clocks, x, pairs), ulps=0
            )
            assert excess <= BOUND + abs(x) * 2.0**-52


@every
def test_positions_without_any_accuracy_still_lie_on_the_circle(backend: Backend) -> None:
    huge = np.array([2.0**60, -1e18, 1e100, -1e300, np.finfo(np.float64).max])
    rows = backend.numpy(backend.pe.sinusoidal_encoding(huge, 8, dtype=backend.dtype("float64")))
    np.testing.assert_allclose(np.hypot(rows[:, 0::2], rows[:, 1::2]), 1, rtol=1e-15)


def test_oracles_agree() -> None:
    for x in (1, 7199, 741_704, LIMIT - 1):
        for i in (0, 35, 255):
            omega = frequency(i, 512, 10_000.0, "paper")
            ways = zip(sine_and_cosine(omega, x), sine_and_cosine_by_phase(omega, x), strict=True)
            with mpmath.workprec(400):
                assert all(abs(a - b) < mpmath.mpf(2) ** -200 for a, b in ways)


def test_marks_are_known_beyond_a_float64() -> None:
    with mpmath.workprec(200):
        for k, (near, lost) in enumerate(zip(*_exact.marks(), strict=True)):
            exact = mpmath.expjpi(-mpmath.mpf(2 * k) / _exact.MARKS)
            assert (near.real, near.imag) == (float(exact.real), float(exact.imag))
            assert abs(mpmath.mpc(near) + mpmath.mpc(lost) - exact) < mpmath.mpf(2) ** -104


@every
@SPREAD
def test_one_turn_is_almost_correctly_rounded(backend: Backend, clocks: Clocks) -> None:
    """What the proof counts on: 0.55u for a T that is no product, u being half an ulp below 1."""
    rng = np.random.default_rng(clocks.d_model)
    positions = [0, 1, LIMIT, -LIMIT, 741_704, *rng.integers(-LIMIT, LIMIT, 40).tolist()]
    rows = backend.numpy(
        backend.pe.sinusoidal_encoding(
            positions, clocks.d_model, **keywords(clocks, backend, "float64")
        )
    )
    for x, row in zip(positions, rows, strict=True):
        pairs = some_pairs(clocks, rng)
        excess, _ = largest_excess(entries(row, pairs), exact_row(clocks, x, pairs), ulps=0)
        assert excess <= 0.55 * 2.0**-53


@SPREAD
def test_frequencies_are_correctly_rounded_and_their_parts_exact(clocks: Clocks) -> None:
    turns = _exact.turns(clocks)
    omega = NUMPY.pe.frequencies(clocks.d_model, base=clocks.base, spacing=clocks.spacing)
    assert (turns.coarse * 2.0**23 % 1 == 0).all()
    assert (turns.medium * 2.0**44 % 1 == 0).all()
    assert (turns.coarse < 0.16).all()
    assert (np.abs(turns.medium) <= 2.0**-24).all()
    assert (np.abs(turns.fine) <= 2.0**-45).all()
    for i in range(clocks.d_model // 2):
        exact = frequency(i, *clocks)
        assert omega[i] == float(exact)
        with mpmath.workprec(320):
            parts = sum(mpmath.mpf(float(part[i])) for part in turns[:3])
            assert abs(parts - exact / (2 * mpmath.pi)) <= 2.0**-98


def test_the_decimal_precision_of_the_caller_does_not_matter() -> None:
    with localcontext(prec=5):
        omega = NUMPY.pe.frequencies(12, base=777.25)
    assert omega.tolist() == [float(frequency(i, 12, 777.25, "paper")) for i in range(6)]


def test_an_encoding_of_integers_close_together_is_two_products_at_most() -> None:
    """What the proof counts on: T(b) and T(64a), however many positions there are."""
    _powers.cache_clear()
    NUMPY.pe.sinusoidal_encoding(np.arange(2**17), 2)
    assert _powers.cache_info().misses == 2


@every
@settings(max_examples=30, deadline=None)
@given(offset=st.one_of(st.integers(-LIMIT, LIMIT), st.floats(-LIMIT, LIMIT)))
def test_rotation_matrix_is_within_the_bound(backend: Backend, offset: float) -> None:
    matrix = backend.numpy(backend.pe.rotation_matrix(offset, 8))
    clocks = Clocks(8, 10_000.0, "paper")
    exact = exact_row(clocks, offset, [0, 1, 2, 3])
    sines, cosines = matrix.diagonal(-1)[0::2], matrix.diagonal()
    assert largest_excess(sines, exact[0::2], ulps=0)[0] <= BOUND
    assert largest_excess(cosines, [c for c in exact[1::2] for _ in "sc"], ulps=0)[0] <= BOUND
    assert np.array_equal(matrix.diagonal(1)[0::2], -sines)


@every
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 3 * 2.0**-24), ("float64", 5 * 2.0**-53)])
def test_rotate_is_within_its_bound(backend: Backend, dtype: str, bound: float) -> None:
    rng = np.random.default_rng(5)
    for offset in (1, -77, LIMIT, 3_431_024_232, 0.3, -12_345.678):
        x = rng.normal(size=(3, 64)).astype(dtype)
        turned = backend.numpy(backend.pe.rotate(backend.array(x), offset))
        for i in (0, 5, 31):
            sin, cos = sine_and_cosine(frequency(i, 64, 10_000.0, "paper"), offset)
            for row, new in zip(x, turned, strict=True):
                s, c = float(row[2 * i]), float(row[2 * i + 1])
                with mpmath.workprec(200):
                    off_s = float(float(new[2 * i]) - (s * cos + c * sin))
                    off_c = float(float(new[2 * i + 1]) - (c * cos - s * sin))
                assert np.hypot(off_s, off_c) <= bound * np.hypot(s, c)


@every
@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_rotate_takes_the_sharpest_rotation_for_every_row(backend: Backend, layout: Any) -> None:
    """[1, 0] turns without rounding and shows T: within 1.5·2⁻⁵³. A table is within 8·2⁻⁵³."""
    offsets = LIMIT - np.arange(320)
    sines = slice(0, None, 2) if layout == "interleaved" else slice(0, 8)
    cosines = slice(1, None, 2) if layout == "interleaved" else slice(8, None)
    x = np.zeros((320, 16))
    x[:, sines] = 1.0
    turned = backend.numpy(backend.pe.rotate(backend.array(x), offsets, layout=layout))
    worst = 0.0
    for row, i in np.ndindex(320, 8):
        sin, cos = sine_and_cosine(frequency(i, 16, 10_000.0, "paper"), int(offsets[row]))
        with mpmath.workprec(200):
            off_cos = float(float(turned[row, sines][i]) - cos)
            off_sin = float(float(turned[row, cosines][i]) + sin)
        worst = max(worst, float(np.hypot(off_cos, off_sin)))
    assert worst <= 1.5 * 2.0**-53


# Half types: one rounding, from float64. PyTorch's own cast goes through float32.


def half_as_float64_rounded(x: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """Correct rounding by search: the nearest of the half numbers around each x, ties to even."""
    near = torch.from_numpy(x).to(dtype)
    candidates = torch.stack(
        [near, torch.nextafter(near, near + 1), torch.nextafter(near, near - 1)]
    )
    distance = np.abs(candidates.double().numpy() - x)
    odd = candidates.view(torch.int16).numpy() & 1
    best: np.ndarray = np.lexsort((odd, distance), axis=0)[0]
    return np.asarray(np.take_along_axis(candidates.double().numpy(), best[None], axis=0)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_rounded_once(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(8)
    middle = torch.from_numpy(rng.uniform(-1, 1, 400)).to(dtype)
    halfway = (middle.double() + torch.nextafter(middle, middle + 1).double()).numpy() / 2
    x = np.concatenate(
        [halfway, halfway * (1 + 2**-40), halfway * (1 - 2**-40), rng.normal(size=400)]
    )
    right = half_as_float64_rounded(x, dtype)
    assert np.array_equal(_round(torch.from_numpy(x), dtype).double().numpy(), right)
    naive = torch.from_numpy(x).to(torch.float32).to(dtype).double().numpy()
    assert (naive != right).sum() > 100  # the inputs do tell one rounding from two


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_half_tables_are_rounded_from_exact_entries(dtype: torch.dtype, layout: Any) -> None:
    table = TORCH.pe.sinusoidal_table(5000, 64, start=10**6, layout=layout, dtype=dtype)
    double = TORCH.pe.sinusoidal_table(5000, 64, start=10**6, layout=layout, dtype=torch.float64)
    difference = np.abs(table.double().numpy() - half_as_float64_rounded(double.numpy(), dtype))
    assert np.count_nonzero(difference) <= 1  # a tie to 2⁻⁵⁰ may fall either way
    if dtype == torch.float16:
        ours = NUMPY.pe.sinusoidal_table(5000, 64, start=10**6, layout=layout, dtype="float16")
        assert np.array_equal(table.numpy(), ours)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_rounding_passes_gradients_through(dtype: torch.dtype) -> None:
    x = torch.tensor([0.1, 0.7, -0.3], dtype=torch.float64, requires_grad=True)
    _round(x, dtype).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("seq_len", [0, 1, 63, 64, 65, 4096, 4097, 8256])
def test_the_device_path_builds_the_same_table(
    seq_len: int, dtype: torch.dtype, layout: Any
) -> None:
    """What a GPU runs, run here: same blocks, same products."""
    clocks = Clocks(16, 10_000.0, "paper")
    start = LIMIT - 9000
    build = on_device(_table_on_device)
    built = build(seq_len, start, clocks, layout, dtype, torch.device("cpu"))
    ours = TORCH.pe.sinusoidal_table(seq_len, 16, start=start, layout=layout, dtype=dtype)
    assert built.shape == ours.shape
    assert built.dtype == ours.dtype
    if dtype == torch.float64:
        assert torch.allclose(built, ours, rtol=0, atol=2 * BOUND)
    else:
        assert (built != ours).sum() <= 1
