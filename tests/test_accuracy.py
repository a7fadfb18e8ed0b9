"""The error bound that the library states, against two oracles and at the points hardest for it."""

from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from backends import NUMPY, Backend, both
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import (
    frequency,
    largest_excess,
    near_zeros,
    sine_and_cosine,
    sine_and_cosine_by_phase,
)

import pe_lib.torch as pet
from pe_lib._checks import spec as check_spec

BOUND, LIMIT = 2.0**-50, 2**53
Clocks = dict[str, Any]
CLOCKS: list[Clocks] = [
    {"d_model": 512},
    {"d_model": 1024, "spacing": "tensor2tensor"},
    {"d_model": 64, "base": 500_000.0},
    {"d_model": 34, "base": 1.0},
    {"d_model": 34, "base": 1.0000001, "spacing": "tensor2tensor"},
    {"d_model": 16, "base": 1e300},
    {"d_model": 2},
    {"d_model": 12, "frequencies": (1.0, 0.1, 2.0**-40, 0.0, -0.7, 3.0)},
    {"d_model": 64, "frequencies": tuple((1e4 ** (-np.arange(32) / 32) / 8).tolist())},
]
SPREAD = pytest.mark.parametrize("clocks", CLOCKS, ids=lambda c: str(c)[1:40])
some_clocks = st.sampled_from(CLOCKS)


def omega(clocks: Clocks, i: int) -> Any:
    """ω_i, as mpmath has it."""
    if "frequencies" in clocks:
        return mpmath.mpf(clocks["frequencies"][i])
    return frequency(
        i, clocks["d_model"], clocks.get("base", 10_000.0), clocks.get("spacing", "paper")
    )


def excess(row: np.ndarray, clocks: Clocks, x: float, seed: int = 0, ulps: float = 0) -> float:
    """How far the worst of some entries of the row, in the interleaved layout, is off."""
    last = clocks["d_model"] // 2 - 1
    pairs = {0, last, *np.random.default_rng(seed).integers(0, last + 1, 4).tolist()}
    exact: list[Any] = []
    for i in pairs:
        by_phase = isinstance(x, int) and seed % 2 == 1
        exact += (sine_and_cosine_by_phase if by_phase else sine_and_cosine)(omega(clocks, i), x)  # type: ignore[arg-type]
    return largest_excess(np.array([row[2 * i + k] for i in pairs for k in (0, 1)]), exact, ulps)[0]


@SPREAD
@pytest.mark.parametrize("start", [0, LIMIT - 4500, -LIMIT, 741_704 - 3, -(2**31) - 7])
def test_a_table_keeps_the_bound_in_windows_over_the_whole_range(
    clocks: Clocks, start: int
) -> None:
    double = NUMPY.pe.sinusoidal_table(4501, start=start, dtype="float64", **clocks)
    single = NUMPY.pe.sinusoidal_table(4501, start=start, **clocks)
    assert np.array_equal(single, double.astype(np.float32))
    for row in (0, 63, 64, 4095, 4096, 4500, abs(start) % 4501):
        assert excess(double[row], clocks, start + row, seed=row) <= BOUND
        assert excess(single[row], clocks, start + row, seed=row, ulps=0.5) <= BOUND


@both
@settings(max_examples=100, deadline=None)
@given(x=st.integers(-LIMIT, LIMIT), clocks=some_clocks, seed=st.integers(0, 99))
def test_one_integer_is_almost_correctly_rounded(
    backend: Backend, x: int, clocks: Clocks, seed: int
) -> None:
    """What the proof counts on: 0.55u for a T that is no product, u being half an ulp below 1."""
    row = backend.pe.sinusoidal_encoding([x], dtype=backend.dtype("float64"), **clocks)
    assert excess(backend.numpy(row)[0], clocks, x, seed) <= 0.55 * 2.0**-53
    single = backend.pe.sinusoidal_encoding([x], **clocks)
    assert excess(backend.numpy(single)[0], clocks, x, seed, ulps=0.5) <= BOUND


@both
@settings(max_examples=100, deadline=None)
@given(x=st.floats(-LIMIT, LIMIT), clocks=some_clocks, seed=st.integers(0, 99))
def test_one_float_is_within_the_bound(
    backend: Backend, x: float, clocks: Clocks, seed: int
) -> None:
    row = backend.pe.sinusoidal_encoding([x], dtype=backend.dtype("float64"), **clocks)
    assert excess(backend.numpy(row)[0], clocks, x, seed) <= BOUND


@both
@SPREAD
@pytest.mark.parametrize("start", [LIMIT - 2300, -1001])
def test_integers_close_together_are_within_the_bound(
    backend: Backend, clocks: Clocks, start: int
) -> None:
    """In any order, some twice."""
    positions = start + np.random.default_rng(0).permutation(np.r_[:2300, :100])
    rows = backend.numpy(
        backend.pe.sinusoidal_encoding(positions, dtype=backend.dtype("float64"), **clocks)
    )
    for row in (positions.argmin(), positions.argmax(), 5, 1111):
        assert excess(rows[row], clocks, int(positions[row]), seed=int(row)) <= BOUND


@both
def test_one_fraction_among_integers_is_not_lost(backend: Backend) -> None:
    positions = np.arange(500.0)
    positions[77] += 0.25
    rows = backend.pe.sinusoidal_encoding(positions, 512, dtype=backend.dtype("float64"))
    for row in (76, 77, 78):
        assert excess(backend.numpy(rows)[row], CLOCKS[0], float(positions[row])) <= BOUND


@both
@pytest.mark.parametrize("i", [0, 1, 25, 98, 189, 255])
def test_bound_holds_where_sine_or_cosine_nearly_vanishes(backend: Backend, i: int) -> None:
    """Among them 741704 at i = 189, 727927316 at 98 and 3431024232 at 25, where a float64 angle
    loses the entry."""
    hard = list(near_zeros(frequency(i, 512, 10_000.0, "paper"), LIMIT))
    assert len(hard) > 5
    for x in [*hard, *(-x for x in hard[-3:])]:
        exact = list(sine_and_cosine_by_phase(frequency(i, 512, 10_000.0, "paper"), x))
        start, dtype = max(x - 3000, -LIMIT), backend.dtype("float64")
        for rows in (
            backend.pe.sinusoidal_table(1, 512, start=x, dtype=dtype),
            backend.pe.sinusoidal_table(x - start + 1, 512, start=start, dtype=dtype),
            backend.pe.sinusoidal_encoding([x], 512, dtype=dtype),
        ):
            pair = backend.numpy(rows)[-1][2 * i : 2 * i + 2]
            assert largest_excess(pair, exact, ulps=0)[0] <= BOUND


def test_widest_encoding_is_within_the_bound() -> None:
    for spacing in ("paper", "tensor2tensor"):
        clocks = {"d_model": 16_384, "spacing": spacing}
        table = NUMPY.pe.sinusoidal_table(130, start=LIMIT - 129, dtype="float64", **clocks)
        for row in (0, 64, 129):
            assert excess(table[row], clocks, LIMIT - 129 + row, seed=row) <= BOUND


@both
@pytest.mark.parametrize("x", [2**53 + 1, 2**62 + 12_345, 2**63 - 1, -(2**63), -(2**60) + 3])
def test_beyond_the_range_the_error_grows_as_stated(backend: Backend, x: int) -> None:
    for clocks in CLOCKS:
        row = backend.pe.sinusoidal_encoding([x], dtype=backend.dtype("float64"), **clocks)
        table = backend.pe.sinusoidal_table(1, start=x, dtype=backend.dtype("float64"), **clocks)
        for found in (row, table):
            error = excess(backend.numpy(found)[0], clocks, x, seed=1)
            assert error <= BOUND + abs(x) * 2.0**-113


def test_oracles_agree() -> None:
    for x in (1, 7199, 741_704, LIMIT - 1):
        for i in (0, 35, 255):
            omega = frequency(i, 512, 10_000.0, "paper")
            ways = zip(sine_and_cosine(omega, x), sine_and_cosine_by_phase(omega, x), strict=True)
            with mpmath.workprec(400):
                assert all(abs(a - b) < mpmath.mpf(2) ** -190 for a, b in ways)


@both
def test_frequencies_are_correctly_rounded(backend: Backend) -> None:
    for clocks in CLOCKS[:7]:
        found = backend.numpy(backend.pe.frequencies(**clocks)).tolist()
        assert found == [float(omega(clocks, i)) for i in range(clocks["d_model"] // 2)]


@both
def test_given_frequencies_are_those_of_the_base(backend: Backend) -> None:
    """Any sequence will do, and the same numbers give the same bits."""
    given = NUMPY.pe.frequencies(16)
    for form in (given, given.tolist(), tuple(given), torch.from_numpy(given)):
        named = {"frequencies": form, "dtype": backend.dtype("float64")}
        table = backend.numpy(backend.pe.sinusoidal_table(300, 16, **named))
        plain = backend.pe.sinusoidal_table(300, 16, dtype=backend.dtype("float64"))
        np.testing.assert_allclose(table, backend.numpy(plain), rtol=0, atol=300 * 2.0**-53)
    clocks = {"frequencies": given / 8}
    x = backend.array(np.random.default_rng(1).normal(size=(5, 16)))
    t = backend.numpy(backend.pe.rotation_matrix(24, 16, **clocks))
    np.testing.assert_allclose(t, backend.numpy(backend.pe.rotation_matrix(3, 16)), atol=1e-14)
    turned = backend.numpy(backend.pe.rotate(x, 24, **clocks))
    np.testing.assert_allclose(turned, backend.numpy(x) @ t, atol=1e-14)
    similar = float(backend.pe.similarity(24, 16, **clocks))
    assert similar == pytest.approx(float(backend.pe.similarity(3, 16)))


def test_exported_and_mapped_positions_are_within_the_bound() -> None:
    """Compiled ones are compared with these in test_torch_graphs."""

    class Encode(torch.nn.Module):
        def forward(self, positions: torch.Tensor) -> torch.Tensor:
            return pet.sinusoidal_encoding(positions, 64, dtype=torch.float64)

    length = {0: torch.export.Dim("length", min=2, max=10_000)}
    exported = torch.export.export(Encode(), (torch.arange(7),), dynamic_shapes=(length,)).module()
    positions = torch.from_numpy(np.random.default_rng(3).integers(-LIMIT, LIMIT, 200))
    for way in (exported, torch.func.vmap(Encode())):
        rows = way(positions).numpy()
        for row in (0, 5, 199):
            assert excess(rows[row], {"d_model": 64}, int(positions[row]), row) <= BOUND


@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_rounded_once(dtype: torch.dtype, layout: Any) -> None:
    """From the float64 value, not by way of float32, against neighbours in the half type."""
    table = pet.sinusoidal_table(5000, 64, start=10**6, layout=layout, dtype=dtype)
    exact = pet.sinusoidal_table(5000, 64, start=10**6, layout=layout, dtype=torch.float64)
    infinity = torch.tensor(torch.inf, dtype=dtype)
    error = (table.double() - exact).abs()
    for other in (table.nextafter(infinity), table.nextafter(-infinity)):
        assert (error <= (other.double() - exact).abs()).all()
    few = torch.arange(10**6, 10**6 + 50)
    rows = pet.sinusoidal_encoding(few, 64, layout=layout, dtype=dtype)
    assert torch.equal(rows, table[:50])


@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_the_device_s_table_is_the_host_s(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU runs, run here: the same blocks and products, the longest in several parts."""
    monkeypatch.setattr(pet, "CHUNK", 2**15)
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        for seq_len in (0, 1, 64, 4097):
            spec = check_spec(64, 10_000.0, "paper")
            options: Any = {"start": LIMIT - 9000, "layout": layout, "dtype": dtype}
            host = pet.sinusoidal_table(seq_len, 64, **options)
            ours = pet._blocks(seq_len, LIMIT - 9000, spec, layout, dtype, torch.device("cpu"))
            assert ours.shape == host.shape
            limit = 2 * BOUND if dtype == torch.float64 else torch.finfo(dtype).eps / 2
            assert torch.allclose(ours, host, rtol=0, atol=limit)
            assert dtype == torch.float64 or (ours != host).sum() <= 1


def test_a_device_without_float64_is_right_to_some_ulp_of_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Played by the CPU, with constants and arithmetic in float32."""
    monkeypatch.setattr(pet, "WITHOUT_FLOAT64", ("cpu",))
    monkeypatch.setattr(pet, "_constants", lambda spec, device: pet._device_constants(spec, device))
    pet._device_constants.cache_clear()
    positions = torch.tensor([0, 1, 7199, 10**7, 2**32 + 5, -(2**53), 2**62])
    for values in (positions, torch.tensor([0.5, 1000.25, 2.0**24])):
        rows = pet.sinusoidal_encoding(values, 512)
        for row, x in zip(rows.numpy(), values.tolist(), strict=True):
            assert excess(row, CLOCKS[0], x) <= 3 * 2.0**-24
    pet._device_constants.cache_clear()
