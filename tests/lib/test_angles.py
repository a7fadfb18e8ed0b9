"""The error bound that the library states, against an oracle and at the points hardest for it."""

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import oracle
import pytest
import torch
from backends import NUMPY, Backend, both, both_layouts
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pe_lib.torch as pet
from pe_lib._checks import frequency_config
from pe_lib.torch import _angles, _arguments, _device

BOUND, LIMIT = 2.0**-50, 2**53
CLOCKS: list[dict[str, Any]] = [
    {"d_model": 512},
    {"d_model": 1024, "spacing": "tensor2tensor"},
    {"d_model": 64, "base": 500_000.0},
    {"d_model": 34, "base": 1.0},
    {"d_model": 34, "base": 1.0000001, "spacing": "tensor2tensor"},
    {"d_model": 16, "base": 1e300},
    {"d_model": 2, "spacing": "tensor2tensor"},
    {"d_model": 12, "frequencies": (1.0, 0.1, 2.0**-40, 0.0, -0.7, 3.0)},
    {"d_model": 64, "frequencies": tuple((1e4 ** (-np.arange(32) / 32) / 8).tolist())},
]
WIDEST: dict[str, Any] = {"d_model": 16_384, "spacing": "tensor2tensor"}
SPREAD = pytest.mark.parametrize("clocks", CLOCKS, ids=lambda c: str(c)[1:40])


@both
@SPREAD
@pytest.mark.parametrize("start", [0, LIMIT - 4500, -LIMIT, 741_704 - 3, -(2**31) - 7])
def test_a_table_keeps_the_bound_in_windows_over_the_whole_range(
    backend: Backend, clocks: dict[str, Any], start: int
) -> None:
    """And so do integers that lie close together, in any order, some twice."""
    table = backend.table(4501, start=start, **clocks)
    for row in (0, 63, 64, 4095, 4096, 4500, abs(start) % 4501):
        assert oracle.error(table[row], clocks, start + row) <= BOUND
    single = backend.table(4501, start=start, dtype="float32", **clocks)
    assert np.array_equal(single, table.astype(np.float32))
    places = np.random.default_rng(0).permutation(np.r_[:2300, :100])
    assert np.array_equal(backend.encoding(start + places, **clocks), table[places])


@both
@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    x=st.integers(-LIMIT, LIMIT) | st.floats(-LIMIT, LIMIT),
    clocks=st.sampled_from([*CLOCKS, WIDEST]),
)
def test_one_position_is_within_the_bound(
    backend: Backend, x: float, clocks: dict[str, Any]
) -> None:
    """An integer is almost correctly rounded, as the proof counts on: 0.56u for a T that is no
    product, u being half an ulp below 1."""
    (row,) = backend.encoding([x], **clocks)
    assert oracle.error(row, clocks, x) <= (0.56 * 2.0**-53 if isinstance(x, int) else BOUND)
    (single,) = backend.encoding([x], dtype="float32", **clocks)
    assert np.array_equal(single, row.astype(np.float32))


@both
@pytest.mark.parametrize("i", [0, 1, 25, 98, 189, 255])
def test_bound_holds_where_sine_or_cosine_nearly_vanishes(backend: Backend, i: int) -> None:
    """Among them 741704 at i = 189, 727927316 at 98 and 3431024232 at 25, where a float64 angle
    loses the entry."""
    hard = list(oracle.near_zeros(oracle.frequency(i, 512), LIMIT))
    assert len(hard) > 5
    for x in [*hard, *(-x for x in hard[-3:])]:
        start = max(x - 3000, -LIMIT)
        for rows in (
            backend.table(1, 512, start=x),
            backend.table(x - start + 1, 512, start=start),
            backend.encoding([x], 512),
        ):
            assert oracle.error(rows[-1], CLOCKS[0], x, [i]) <= BOUND


@both
@SPREAD
@pytest.mark.parametrize("x", [2**53 + 1, 2**62 + 12_345, 2**63 - 1, -(2**63), -(2**60) + 3])
def test_beyond_the_range_the_error_grows_as_stated(
    backend: Backend, clocks: dict[str, Any], x: int
) -> None:
    moved = backend.encoding([0], **clocks) @ backend.matrix(x, **clocks)
    for rows in (backend.encoding([x], **clocks), backend.table(1, start=x, **clocks), moved):
        assert oracle.error(rows[0], clocks, x) <= BOUND + abs(x) * 2.0**-113


@both
@pytest.mark.parametrize("omega", [3.0, 100.0, -(2.0**20)])
@pytest.mark.parametrize("x", [0.5, 7.3, -1000.123, 2.0**40 + 0.25])
def test_fractions_with_a_frequency_above_pi_err_as_stated(
    backend: Backend, omega: float, x: float
) -> None:
    clocks: dict[str, Any] = {"d_model": 2, "frequencies": (omega,)}
    (row,) = backend.encoding([x], **clocks)
    bound = BOUND + (abs(omega) * 2.0**-53 if abs(omega) > np.pi else 0)
    assert oracle.error(row, clocks, x) <= bound
    with mpmath.workprec(300):
        exact = mpmath.cos(mpmath.mpf(omega) * mpmath.mpf(x))
    assert abs(float(backend.pe.similarity(x, **clocks)) - exact) <= bound


ROTATIONS = st.fixed_dictionaries(
    {
        "x": st.integers(-LIMIT, LIMIT) | st.floats(-LIMIT, LIMIT) | st.floats(-1e4, 1e4),
        "omega": st.floats(-4, 4) | st.floats(-(2.0**20), 2.0**20),
        "angle": st.floats(0, 6.28),
        "dtype": st.sampled_from(["float32", "float64"]),
        "layout": st.sampled_from(["interleaved", "split"]),
    }
)


@both
@settings(max_examples=400, deadline=None, derandomize=True)
@given(case=ROTATIONS, turned_by=st.sampled_from(["by", "positions"]))
def test_a_rotated_pair_keeps_the_bound(
    backend: Backend, case: dict[str, Any], turned_by: str
) -> None:
    """(7 + |ω|)u for fractions and 4u for integers in float64, 3u of float32, times the norm."""
    x, omega, dtype = case["x"], case["omega"], case["dtype"]
    pair = np.array([np.cos(case["angle"]), np.sin(case["angle"])], dtype)
    options = {turned_by: x, "frequencies": (omega,), "layout": case["layout"]}
    ours = backend.numpy(backend.pe.rotate(backend.array(pair), **options))
    with mpmath.workprec(320):
        turn = mpmath.mpf(omega) * mpmath.mpf(x)
        cos, sin = mpmath.cos(turn), mpmath.sin(turn) * (1 if turned_by == "by" else -1)
        a, b = (mpmath.mpf(float(entry)) for entry in pair)
        exact = (a * cos + b * sin, b * cos - a * sin)  # a row times T
        errors = (abs(mpmath.mpf(float(o)) - e) for o, e in zip(ours, exact, strict=True))
        error = mpmath.sqrt(sum(each**2 for each in errors)) / mpmath.sqrt(a * a + b * b)
    units = 3 * 2.0**-24 if dtype == "float32" else 4 * 2.0**-53
    if dtype == "float64" and x != int(x):
        units = (7 + abs(omega)) * 2.0**-53
    assert error <= units


def test_a_pair_rotated_by_a_table_keeps_its_bound() -> None:
    """PyTorch looks close integers up in a table, whose rows are products of three rotations."""
    start, omega = 2**52 - 77, pet.frequencies(64)[7].item()
    offsets = torch.arange(start, start + 4096)
    x = torch.randn(4096, 64, dtype=torch.float64)
    found = pet.rotate(x, offsets).numpy()[:, 14:16]
    for row in (0, 63, 64, 1000, 4095):
        with mpmath.workprec(320):
            turn = oracle.frequency(7, 64) * int(offsets[row])
            a, b = (mpmath.mpf(entry) for entry in x[row, 14:16].tolist())
            exact = (
                a * mpmath.cos(turn) + b * mpmath.sin(turn),
                b * mpmath.cos(turn) - a * mpmath.sin(turn),
            )
            gaps = [mpmath.mpf(float(o)) - e for o, e in zip(found[row], exact, strict=True)]
            assert mpmath.hypot(*gaps) <= 10 * 2.0**-53 * mpmath.hypot(a, b)
    assert omega == pytest.approx(float(oracle.frequency(7, 64)))


@both
@pytest.mark.parametrize("d_model", [2, 64, 4096])
@pytest.mark.parametrize("x", [1, 12_345, 2**52 + 7, 0.5, -1000.123])
def test_similarity_keeps_its_bound(backend: Backend, d_model: int, x: float) -> None:
    pairs = d_model // 2
    with mpmath.workprec(200):
        cosines = [mpmath.cos(oracle.frequency(i, d_model) * mpmath.mpf(x)) for i in range(pairs)]
        exact = mpmath.fsum(cosines) / pairs
        found = mpmath.mpf(float(backend.pe.similarity(x, d_model)))
        bound = (pairs + 8 + (x != int(x))) * 2.0**-53
        assert abs(found - exact) <= bound
        nearby = backend.pe.similarity(backend.array(np.arange(100) + int(x)), d_model)
    if x == int(x):  # PyTorch takes these from a table
        assert abs(mpmath.mpf(float(nearby[0])) - exact) <= bound


@both
def test_frequencies_are_correctly_rounded(backend: Backend) -> None:
    for clocks in CLOCKS[:7]:
        exact = [oracle.frequency(i, **clocks) for i in range(clocks["d_model"] // 2)]
        assert backend.pe.frequencies(**clocks).tolist() == list(map(float, exact))


@both_layouts
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_rounded_from_float32(dtype: str, layout: Any) -> None:
    """Tables and encodings alike, subnormal entries too, in both implementations."""
    kind = getattr(torch, dtype)
    slow = (1e-5, 3e-5, 6e-5, 1e-7)
    for start, options in ((10**6, {}), (0, {"frequencies": slow}), (-500, {"frequencies": slow})):
        d_model = 8 if options else 64
        shared: dict[str, Any] = {"layout": layout, **options}
        single = pet.sinusoidal_table(5000, d_model, start=start, **shared)
        table = pet.sinusoidal_table(5000, d_model, start=start, dtype=kind, **shared)
        assert torch.equal(table, single.to(kind))
        places = torch.arange(start, start + 5000)
        dense = pet.sinusoidal_encoding(places, d_model, dtype=kind, **shared)
        few = pet.sinusoidal_encoding(places[:60].double(), d_model, dtype=kind, **shared)
        assert torch.equal(dense, table)
        rows = pet.sinusoidal_encoding(places[:60].double(), d_model, **shared)
        assert torch.equal(few, rows.to(kind))
        many = torch.arange(20_000) + start + 0.5  # enough that rounding twice would differ
        rows = pet.sinusoidal_encoding(many.double(), d_model, **shared)
        halves = pet.sinusoidal_encoding(many.double(), d_model, dtype=kind, **shared)
        assert torch.equal(halves, rows.to(kind))
        if dtype == "float16":
            ours = NUMPY.pe.sinusoidal_table(5000, d_model, start=start, dtype=dtype, **shared)
            assert np.array_equal(ours, table.numpy())
            few = NUMPY.pe.sinusoidal_encoding(places[:60], d_model, dtype=dtype, **shared)
            assert np.array_equal(few, ours[:60])


class Casts(TorchDispatchMode):
    """The pairs of dtypes between which numbers are cast."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pairs: set[tuple[torch.dtype, torch.dtype]] = set()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        if op in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default):
            source = args[-1] if op is torch.ops.aten.copy_.default else args[0]
            self.pairs.add((source.dtype, result.dtype))
        return result


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_no_number_is_cast_from_float64_to_a_half_type(layout: Any, dtype: torch.dtype) -> None:
    """What such a cast does differs between devices: some round once, some by way of float32."""
    config = frequency_config(64, 10_000.0, "paper")
    with Casts() as casts:
        pet.sinusoidal_encoding([0.5, 3], 64, layout=layout, dtype=dtype)
        pet.sinusoidal_table(100, 64, layout=layout, dtype=dtype)
        _angles._device_table(100, 0, config, layout, dtype, torch.device("cpu"))
    assert (torch.float32, dtype) in casts.pairs
    assert (torch.float64, dtype) not in casts.pairs


@both_layouts
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_the_device_s_table_is_the_host_s(
    layout: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU runs, run here: the same blocks and products, the longest in several parts."""
    monkeypatch.setattr(_angles, "CHUNK", 2**15)
    config, start = frequency_config(64, 10_000.0, "paper"), LIMIT - 9000
    for seq_len in (0, 1, 64, 4097):
        host = pet.sinusoidal_table(seq_len, 64, start=start, layout=layout, dtype=dtype)
        ours = _angles._device_table(seq_len, start, config, layout, dtype, torch.device("cpu"))
        assert ours.shape == host.shape
        limit = 2 * BOUND if dtype == torch.float64 else torch.finfo(dtype).eps / 2
        assert torch.allclose(ours, host, rtol=0, atol=limit)
        assert dtype == torch.float64 or (ours != host).sum() <= 1


class NoFloat64(TorchDispatchMode):
    """No operation may make a float64 tensor, which MPS refuses to do. An array of NumPy is on the
    host before it travels, and may be one."""

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        made = (leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        on_host = op is torch.ops.aten.lift_fresh.default
        if not on_host and any(tensor.dtype == torch.float64 for tensor in made):
            raise TypeError(f"{op} made a float64 tensor")
        return result


@pytest.fixture
def no_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU plays a device without float64, with constants and arithmetic in float32."""
    monkeypatch.setattr(_device, "DEVICES_WITHOUT_FLOAT64", ("cpu",))
    monkeypatch.setattr(_angles, "_frequencies_of_devices", {})
    monkeypatch.setattr(_angles, "_grids_of_devices", {})
    monkeypatch.setattr(_angles, "_eager_constants", _angles._device_constants)
    for d_model in (8, 512):  # travel from the host, which has float64, once
        config = frequency_config(d_model, 10_000.0, "paper")
        constants = _angles._device_constants(config, torch.device("cpu"))
        assert torch.float64 not in {part.dtype for part in constants}
    with NoFloat64():  # type: ignore[no-untyped-call]
        yield


@pytest.mark.usefixtures("no_float64")
def test_a_device_without_float64_is_right_to_some_ulp_of_float32() -> None:
    positions = torch.tensor([0, 1, 7199, 10**7, 2**32 + 5, -(2**53), 2**62])
    for values in (positions, torch.tensor([0.5, 1000.25, 2.0**24])):
        rows = pet.sinusoidal_encoding(values, 512)
        for row, x in zip(rows.numpy(), values.tolist(), strict=True):
            assert oracle.error(row, CLOCKS[0], x) <= 3 * 2.0**-24


@pytest.mark.usefixtures("no_float64")
def test_what_is_float64_elsewhere_is_float32_on_a_device_without_it() -> None:
    exact = NUMPY.pe.similarity([0, 3, 1000], 512)
    found = pet.similarity([0, 3, 1000], 512)
    assert found.dtype == pet.frequencies(512).dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), exact, rtol=0, atol=3 * 2.0**-24)
    matrix = pet.rotation_matrix(7, 8, dtype=torch.float32).numpy()
    np.testing.assert_allclose(matrix, NUMPY.pe.rotation_matrix(7, 8), rtol=0, atol=3 * 2.0**-24)
    halves = np.array([0.5, 7.25])
    positions = _arguments.as_positions("positions", halves, "cpu")
    assert positions.dtype == torch.float32


def test_positions_in_float64_travel_to_a_device_without_it_as_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_device, "DEVICES_WITHOUT_FLOAT64", ("meta",))
    for values in (torch.tensor([0.5, 7.25], dtype=torch.float64), [0.5, 7.25], np.array(0.5)):
        assert _arguments.as_positions("positions", values, "meta").dtype == torch.float32


@pytest.mark.usefixtures("no_float64")
@pytest.mark.parametrize(
    "ask",
    [
        lambda: pet.rotation_matrix(7, 8),
        lambda: pet.sinusoidal_table(3, 8, dtype=torch.float64),
        lambda: pet.sinusoidal_encoding([3, 70], 8, dtype=torch.float64),
        lambda: pet.RotaryPositionalEncoding(8, layout="interleaved").tables(
            torch.arange(3), dtype=torch.float64
        ),
    ],
)
def test_float64_is_refused_by_name_on_a_device_without_it(ask: Callable[[], Any]) -> None:
    words = r"dtype must be torch.float32 .* on cpu, .*, got torch.float64"
    with pytest.raises(TypeError, match=words):
        ask()
