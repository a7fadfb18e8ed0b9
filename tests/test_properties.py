"""What the mathematics says of the encoding, on every implementation."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import NUMPY, TORCH, Backend, both
from hypothesis import given, settings
from hypothesis import strategies as st

ATOL = 2.0**-46  # some sums of a few products, each within 2⁻⁵⁰

widths = st.integers(1, 24).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.just(10_000.0), st.floats(1, 1e6))
spacings = st.sampled_from(["paper", "tensor2tensor"])
layouts = st.sampled_from(["interleaved", "split"])
integers = st.integers(-(2**20), 2**20)
shifts = st.one_of(integers, st.floats(-1000, 1000).map(lambda x: round(x * 256) / 256))
options = st.fixed_dictionaries({"base": bases, "spacing": spacings})
quick = settings(max_examples=20, deadline=None)


def encode(backend: Backend, positions: Any, d_model: int, **options: Any) -> np.ndarray:
    options.setdefault("dtype", backend.dtype("float64"))
    return backend.numpy(backend.pe.sinusoidal_encoding(positions, d_model, **options))


def matrix(backend: Backend, offset: float, d_model: int, **options: Any) -> np.ndarray:
    return backend.numpy(backend.pe.rotation_matrix(offset, d_model, **options))


@both
@quick
@given(x=integers, shift=shifts, d_model=widths, options=options, layout=layouts)
def test_a_shift_is_a_rotation(
    backend: Backend, x: int, shift: float, d_model: int, options: Any, layout: str
) -> None:
    """PE(x + Δx) = PE(x)·T(Δx), and `rotate` is that product."""
    options["layout"] = layout
    row = encode(backend, x, d_model, **options)
    shifted = encode(backend, x + shift, d_model, **options)
    np.testing.assert_allclose(row @ matrix(backend, shift, d_model, **options), shifted, atol=ATOL)
    turned = backend.numpy(backend.pe.rotate(backend.array(row), shift, **options))
    np.testing.assert_allclose(turned, shifted, atol=ATOL)


@both
@quick
@given(a=shifts, b=shifts, d_model=widths, options=options, layout=layouts)
def test_rotations_are_a_group(
    backend: Backend, a: float, b: float, d_model: int, options: Any, layout: str
) -> None:
    """T(a)T(b) = T(a + b), T(−a) = T(a)ᵀ = T(a)⁻¹, det T = 1, T(0) = I."""
    options["layout"] = layout
    t_a, t_b = (matrix(backend, shift, d_model, **options) for shift in (a, b))
    np.testing.assert_allclose(t_a @ t_b, matrix(backend, a + b, d_model, **options), atol=ATOL)
    assert np.array_equal(matrix(backend, -a, d_model, **options), t_a.T)
    np.testing.assert_allclose(t_a @ t_a.T, np.eye(d_model), atol=ATOL)
    assert np.linalg.det(t_a) == pytest.approx(1)
    assert np.array_equal(matrix(backend, 0, d_model, **options), np.eye(d_model))


@both
@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (5, 2, 3)])
def test_rotate_broadcasts_its_offset(
    backend: Backend, shape: tuple[int, ...], layout: str
) -> None:
    rng = np.random.default_rng(2)
    x, offset = rng.normal(size=(5, 2, 3, 8)), rng.integers(-99, 99, shape)
    turned = backend.numpy(
        backend.pe.rotate(backend.array(x), backend.array(offset), layout=layout)
    )
    for index in np.ndindex(5, 2, 3):
        t = matrix(backend, int(np.broadcast_to(offset, (5, 2, 3))[index]), 8, layout=layout)
        np.testing.assert_allclose(turned[index], x[index] @ t, atol=1e-13)


@both
@quick
@given(x=integers, y=integers, d_model=widths, options=options)
def test_inner_product_depends_on_the_distance_alone(
    backend: Backend, x: int, y: int, d_model: int, options: Any
) -> None:
    """PE(x)·PE(y) = K(x − y) = (d/2)·similarity, even, and ‖PE(x)‖² = d/2."""
    e, f = (encode(backend, position, d_model, **options) for position in (x, y))
    similarity = float(backend.pe.similarity(x - y, d_model, **options))
    assert e @ f == pytest.approx(similarity * d_model / 2, abs=d_model * ATOL)
    assert similarity == float(backend.pe.similarity(y - x, d_model, **options))
    assert e @ e == pytest.approx(d_model / 2, rel=1e-14)
    assert float(backend.pe.similarity(0, d_model, **options)) == 1


@both
@quick
@given(
    short=st.integers(0, 300),
    more=st.integers(0, 4500),
    start=integers,
    layout=layouts,
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_a_longer_table_starts_with_the_shorter(
    backend: Backend, short: int, more: int, start: int, layout: str, dtype: str
) -> None:
    options = {"start": start, "layout": layout, "dtype": backend.dtype(dtype)}
    long = backend.numpy(backend.pe.sinusoidal_table(short + more, 6, **options))
    assert np.array_equal(
        long[:short], backend.numpy(backend.pe.sinusoidal_table(short, 6, **options))
    )


@both
@quick
@given(seq_len=st.integers(0, 200), start=integers, d_model=widths, options=options, layout=layouts)
def test_a_table_is_the_encoding_of_its_positions(
    backend: Backend, seq_len: int, start: int, d_model: int, options: Any, layout: str
) -> None:
    options |= {"layout": layout, "dtype": backend.dtype("float64")}
    table = backend.numpy(backend.pe.sinusoidal_table(seq_len, d_model, start=start, **options))
    assert table.shape == (seq_len, d_model)
    positions = np.arange(start, start + seq_len)
    np.testing.assert_allclose(table, encode(backend, positions, d_model, **options), atol=2.0**-49)


@both
@quick
@given(x=shifts, d_model=widths, options=options)
def test_layouts_are_one_permutation_apart(
    backend: Backend, x: float, d_model: int, options: Any
) -> None:
    interleaved = encode(backend, x, d_model, **options)
    split = encode(backend, x, d_model, layout="split", **options)
    assert np.array_equal(split, np.concatenate([interleaved[0::2], interleaved[1::2]]))
    order = np.r_[0:d_model:2, 1:d_model:2]
    t = matrix(backend, x, d_model, **options)
    assert np.array_equal(
        matrix(backend, x, d_model, layout="split", **options), t[order][:, order]
    )


@quick
@given(
    start=integers,
    seq_len=st.integers(0, 200),
    d_model=widths,
    options=options,
    layout=layouts,
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_implementations_agree(
    start: int, seq_len: int, d_model: int, options: Any, layout: str, dtype: str
) -> None:
    """Tables bit for bit; direct encodings to a unit in the last place of float64."""

    def two_ways(backend: Backend) -> tuple[np.ndarray, np.ndarray]:
        ours = options | {"layout": layout, "dtype": backend.dtype(dtype)}
        table = backend.pe.sinusoidal_table(seq_len, d_model, start=start, **ours)
        return backend.numpy(table), encode(backend, range(start, start + 5), d_model, **ours)

    (table, rows), (torch_table, torch_rows) = two_ways(NUMPY), two_ways(TORCH)
    assert table.dtype == torch_table.dtype == np.dtype(dtype)
    assert np.array_equal(table, torch_table)
    atol = max(2.0**-51, float(np.finfo(dtype).eps) / 2)
    np.testing.assert_allclose(rows, torch_rows, rtol=0, atol=atol)


@both
def test_defaults_and_new_arrays(backend: Backend) -> None:
    pe = backend.pe
    assert str(pe.sinusoidal_table(3, 4).dtype).endswith("float32")
    assert str(pe.sinusoidal_encoding([0, 1], 4).dtype).endswith("float32")
    assert str(pe.rotation_matrix(1, 4).dtype).endswith("float64")
    assert str(pe.similarity([1, 2], 4).dtype).endswith("float64")
    for make in (pe.frequencies, lambda d: pe.sinusoidal_table(3, d)):
        first = make(4)
        first[...] = 7  # must not reach a cache
        assert not (backend.numpy(make(4)) == 7).any()


@both
def test_positions_of_any_dtype_and_shape(backend: Backend) -> None:
    for dtype in ("int8", "int32", "int64", "uint8", "uint64", "float16", "float32"):
        positions = backend.array([[0, 1], [2, 100]], dtype)
        assert np.array_equal(encode(backend, positions, 8), encode(backend, [[0, 1], [2, 100]], 8))
    for shape in ((), (0,), (1,), (3, 0, 2), (2, 3, 4)):
        positions = np.arange(int(np.prod(shape))).reshape(shape)
        assert encode(backend, positions, 6).shape == (*shape, 6)
        assert backend.pe.similarity(positions, 6).shape == shape


@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8"])
def test_numbers_in_the_other_byte_order_are_the_same_numbers(layout: Any, dtype: str) -> None:
    x = np.random.default_rng(4).normal(size=(6, 8)).astype(dtype)
    turned = NUMPY.pe.rotate(x, x[:, 0], layout=layout)
    assert turned.dtype == x.dtype
    native = x.astype(x.dtype.newbyteorder("="))
    expected = NUMPY.pe.rotate(native, native[:, 0], layout=layout)
    np.testing.assert_allclose(turned, expected, rtol=0, atol=2e-3 if dtype == ">f2" else 1e-6)


ONES = np.ones((3, 64), np.float32)
EXTREMES: dict[str, Callable[[], np.ndarray]] = {
    "half table": lambda: NUMPY.pe.sinusoidal_table(300, 64, dtype=np.float16),
    "table": lambda: NUMPY.pe.sinusoidal_table(300, 64, base=1e300),
    "encoding": lambda: NUMPY.pe.sinusoidal_encoding([1e-310, 3], 64, base=1e300),
    "far positions": lambda: NUMPY.pe.sinusoidal_encoding([9e18, -1e18, 2.0**62], 64),
    "matrix": lambda: NUMPY.pe.rotation_matrix(1, 64, base=1e300, dtype=np.float32),
    "rotate": lambda: NUMPY.pe.rotate(ONES, 1, base=1e300),
    "similarity": lambda: NUMPY.pe.similarity(1e-310, 64, base=1e300),
}


@pytest.mark.parametrize("call", EXTREMES.values(), ids=EXTREMES.keys())
def test_nothing_underflows_or_overflows_aloud(call: Callable[[], np.ndarray]) -> None:
    with np.errstate(all="raise"):
        assert np.isfinite(call()).all()


def test_numpys_settings_are_left_as_they_were() -> None:
    before = np.getbufsize(), np.geterr()
    NUMPY.pe.sinusoidal_table(100, 600)
    NUMPY.pe.rotate(np.ones((3, 600)), 1)
    assert (np.getbufsize(), np.geterr()) == before


@both
@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rotate_takes_any_array(backend: Backend, layout: str, dtype: str) -> None:
    base = np.random.default_rng(4).normal(size=(6, 5, 8)).astype(dtype)
    whole = backend.array(base)
    views = {
        "transposed": whole.swapaxes(0, 1),
        "reversed or strided": whole[1::2],
        "narrow": whole[..., 1:7],
        "strided in the last axis": whole[..., ::2],
        "one row": whole[0, 0],
        "empty": whole[:0],
    }
    for name, view in views.items():
        before = backend.numpy(view).copy()
        turned = backend.pe.rotate(view, 3, layout=layout)
        assert str(turned.dtype).endswith(dtype), name
        straight = backend.pe.rotate(backend.array(before), 3, layout=layout)
        assert np.array_equal(backend.numpy(turned), backend.numpy(straight)), name
        assert np.array_equal(backend.numpy(view), before), name


@both
def test_attention_terms_add_up_to_the_score(backend: Backend) -> None:
    rng = np.random.default_rng(6)
    shapes = [(2, 3, 8), (2, 4, 8), (3, 8), (4, 8), (8, 5), (8, 5)]
    x, y, e, f, w_q, w_k = (rng.normal(size=shape) for shape in shapes)
    terms = backend.pe.attention_terms(*map(backend.array, (x, y, e, f, w_q, w_k)))
    assert terms._fields == (
        "content_content",
        "content_position",
        "position_content",
        "position_position",
    )
    arrays = [backend.numpy(term) for term in terms]
    assert {array.shape for array in arrays} == {(2, 3, 4)}
    score = ((x + e) @ w_q) @ ((y + f) @ w_k).swapaxes(-1, -2)
    np.testing.assert_allclose(sum(arrays), score, atol=1e-12)
    np.testing.assert_allclose(arrays[1], (x @ w_q) @ (f @ w_k).T, atol=1e-12)
    np.testing.assert_allclose(arrays[2], (e @ w_q) @ (y @ w_k).swapaxes(-1, -2), atol=1e-12)


@both
def test_all_attention_terms_have_one_shape(backend: Backend) -> None:
    """Whichever of x, y, e and f has an axis more."""
    for deep in range(4):
        shapes: list[tuple[int, ...]] = [(3, 8), (4, 8), (3, 8), (4, 8), (8, 5), (8, 5)]
        shapes[deep] = (2, *shapes[deep])
        terms = backend.pe.attention_terms(*(backend.array(np.ones(shape)) for shape in shapes))
        assert [tuple(term.shape) for term in terms] == 4 * [(2, 3, 4)]


def test_both_implementations_have_one_signature() -> None:
    """But for the device, and the threads, which PyTorch counts for the whole process."""
    for name in NUMPY.pe.__all__:
        ours = inspect.signature(getattr(NUMPY.pe, name)).parameters
        theirs = inspect.signature(getattr(TORCH.pe, name)).parameters
        shared = [p for p in ours if p != "workers"]
        assert shared == [p for p in theirs if p != "device"], name
        for p in shared:
            assert ours[p].kind == theirs[p].kind, (name, p)
            assert p == "dtype" or ours[p].default == theirs[p].default, (name, p)
