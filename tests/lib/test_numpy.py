"""What the mathematics says of the encoding, on every implementation."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from backends import NUMPY, TORCH, Backend, both, both_layouts
from hypothesis import given, settings
from hypothesis import strategies as st

from pe_lib import _angles
from pe_lib._checks import frequency_config
from pe_lib.rope import rotary_settings

ATOL = 2.0**-46  # some sums of a few products, each within 2⁻⁵⁰

widths = st.integers(1, 24).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.just(10_000.0), st.floats(1, 1e6))
layouts = st.sampled_from(["interleaved", "split"])
integers = st.integers(-(2**20), 2**20)
shifts = st.one_of(integers, st.floats(-1000, 1000).map(lambda x: round(x * 256) / 256))
spacings = st.sampled_from(["paper", "tensor2tensor"])
given_clocks = st.fixed_dictionaries({"base": bases, "spacing": spacings})
clocks: st.SearchStrategy[dict[str, Any]] = st.just({}) | given_clocks
forms = st.sampled_from([None, list, tuple, np.array, torch.tensor])
quick = settings(max_examples=20, deadline=None, derandomize=True)
check_close = partial(np.testing.assert_allclose, rtol=0, atol=ATOL)


@both
@quick
@given(x=integers, shift=shifts, d_model=widths, clocks=clocks, form=forms, layout=layouts)
def test_a_shift_is_a_rotation(
    backend: Backend, x: int, shift: float, d_model: int, clocks: Any, form: Any, layout: str
) -> None:
    """PE(x + Δx) = PE(x)·T(Δx), `rotate` is that product, T(−Δx) = T(Δx)ᵀ = T(Δx)⁻¹, det T = 1, and
    PE(x)·PE(x + Δx) = K(Δx) = (d/2)·similarity, whatever x, and in whatever form frequencies come.
    """
    if form:
        clocks = {"frequencies": form(NUMPY.pe.frequencies(d_model, **clocks).tolist())}
    options = clocks | {"layout": layout}
    row = backend.encoding(x, d_model, **options)
    shifted = backend.encoding(x + shift, d_model, **options)
    t = backend.matrix(shift, d_model, **options)
    check_close(row @ t, shifted)
    turned = backend.numpy(backend.pe.rotate(backend.array(row), shift, **options))
    check_close(turned, shifted)
    assert np.array_equal(backend.matrix(-shift, d_model, **options), t.T)
    check_close(t @ t.T, np.eye(d_model))
    assert np.linalg.det(t) == pytest.approx(1)
    similarity = float(backend.pe.similarity(shift, d_model, **clocks))
    assert row @ shifted == pytest.approx(similarity * d_model / 2, abs=d_model * ATOL)


@both
@both_layouts
@pytest.mark.parametrize("shape", [(), (3,), (1,), (1, 2, 1), (5, 1, 3), (5, 2, 3)])
def test_rotate_broadcasts_its_shift(backend: Backend, shape: tuple[int, ...], layout: str) -> None:
    rng = np.random.default_rng(2)
    x, offset = rng.normal(size=(5, 2, 3, 8)), rng.integers(-99, 99, shape)
    turned = backend.pe.rotate(backend.array(x), backend.array(offset), layout=layout)
    for index in np.ndindex(5, 2, 3):
        t = backend.matrix(int(np.broadcast_to(offset, (5, 2, 3))[index]), 8, layout=layout)
        check_close(backend.numpy(turned)[index], x[index] @ t, atol=1e-13)


@quick
@given(
    seq_len=st.integers(0, 300),
    more=st.integers(0, 4500),
    start=integers,
    d_model=widths,
    clocks=clocks,
    layout=layouts,
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_a_table_is_the_same_in_every_way(
    seq_len: int, more: int, start: int, d_model: int, clocks: Any, layout: str, dtype: str
) -> None:
    """Both implementations have the same bits, and a longer table starts with them; the encodings
    of its positions are the same to a unit in the last place of float64; so are both layouts, but
    for their order."""
    options = clocks | {"layout": layout, "dtype": dtype}
    table = NUMPY.table(seq_len, d_model, start=start, **options)
    assert table.shape == (seq_len, d_model)
    assert table.dtype == dtype
    atol = max(2.0**-49, float(np.finfo(dtype).eps) / 2)
    order = np.arange(d_model)
    if layout == "split":
        order = np.r_[0:d_model:2, 1:d_model:2]
    plain = NUMPY.table(seq_len, d_model, start=start, **(options | {"layout": "interleaved"}))
    check_close(table, plain[:, order], atol=atol)
    for backend in (NUMPY, TORCH):
        longer = backend.table(seq_len + more, d_model, start=start, **options)
        assert longer.dtype == dtype
        assert np.array_equal(longer[:seq_len], table)
        rows = backend.encoding(range(start, start + seq_len), d_model, **options)
        check_close(rows, table, atol=atol)


@both
def test_defaults_and_new_arrays(backend: Backend) -> None:
    pe = backend.pe
    for result, dtype in (
        (pe.sinusoidal_table(3, 4), "float32"),
        (pe.sinusoidal_encoding([0, 1], 4), "float32"),
        (pe.rotation_matrix(1, 4), "float64"),
        (pe.similarity([1, 2], 4), "float64"),
    ):
        assert result.dtype == backend.dtype(dtype)
    for make in (pe.frequencies, lambda d: pe.sinusoidal_table(3, d)):
        make(4)[...] = 7  # must not reach a cache
        assert not (backend.numpy(make(4)) == 7).any()


@both
def test_positions_of_any_dtype_and_shape(backend: Backend) -> None:
    for dtype in ("int8", "int32", "int64", "uint8", "uint64", "float32"):
        rows = backend.encoding(backend.array([[0, 1], [2, 100]], dtype), 8)
        assert np.array_equal(rows, backend.encoding([[0, 1], [2, 100]], 8))
    for shape in ((), (0,), (1,), (3, 0, 2), (2, 3, 4)):
        positions = np.arange(int(np.prod(shape))).reshape(shape)
        assert backend.encoding(positions, 6).shape == (*shape, 6)
        assert backend.pe.similarity(positions, 6).shape == shape
    far = np.array([2**53 + 1])
    assert np.array_equal(backend.encoding(far.astype("uint64"), 8), backend.encoding(far, 8))
    largest = np.array([2**63 - 1, 2**62 + 1])
    unsigned = backend.encoding(backend.array(largest.astype("uint64")), 8)
    assert np.array_equal(unsigned, backend.encoding(backend.array(largest), 8))
    one_fraction = np.arange(500.0)
    one_fraction[77] += 0.25
    assert np.array_equal(backend.encoding(one_fraction, 8)[77], backend.encoding(77.25, 8))


def test_numbers_in_the_other_byte_order_are_the_same_numbers() -> None:
    native = np.random.default_rng(4).normal(size=(6, 8)).astype("<f4")
    turned = NUMPY.pe.rotate(native.astype(">f4"), 3)
    assert turned.dtype == ">f4"
    check_close(turned, NUMPY.pe.rotate(native, 3), atol=1e-6)


EXTREMES: dict[str, Callable[[], np.ndarray]] = {
    "half table": lambda: NUMPY.pe.sinusoidal_table(300, 64, dtype=np.float16),
    "wide table": lambda: NUMPY.pe.sinusoidal_table(300, 600, base=1e300),
    "encoding": lambda: NUMPY.pe.sinusoidal_encoding([1e-310, 3], 64, base=1e300),
    "far positions": lambda: NUMPY.pe.sinusoidal_encoding([9e18, -1e18, 2.0**62], 64),
    "matrix": lambda: NUMPY.pe.rotation_matrix(0.5, 64, base=1e300, dtype=np.float32),
    "half matrix": lambda: NUMPY.pe.rotation_matrix(1, 64, base=1e9, dtype=np.float16),
    "rotate": lambda: NUMPY.pe.rotate(np.full(64, 1e-30, "f"), 1, base=1e300, layout="split"),
    "similarity": lambda: NUMPY.pe.similarity(1e-310, 64, base=1e300),
}


@pytest.mark.parametrize("call", EXTREMES.values(), ids=EXTREMES.keys())
def test_nothing_underflows_aloud_and_numpys_settings_stay(call: Callable[[], np.ndarray]) -> None:
    with np.errstate(all="raise"):
        before = np.getbufsize(), np.geterr()
        assert np.isfinite(call()).all()
        assert (np.getbufsize(), np.geterr()) == before


@both
@both_layouts
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rotate_takes_any_array(backend: Backend, layout: str, dtype: str) -> None:
    whole = backend.array(np.random.default_rng(4).normal(size=(6, 5, 8)), dtype)
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
        assert turned.dtype == backend.dtype(dtype), name
        straight = backend.pe.rotate(backend.array(before), 3, layout=layout)
        assert np.array_equal(backend.numpy(turned), backend.numpy(straight)), name
        assert np.array_equal(backend.numpy(view), before), name


@both
@both_layouts
def test_rotate_computes_float16_in_float32(backend: Backend, layout: str) -> None:
    x = np.random.default_rng(5).normal(size=(200, 64))
    half, single = backend.array(x, "float16"), backend.array(x.astype("float16"), "float32")
    turned = backend.numpy(backend.pe.rotate(half, 1000, layout=layout))
    expected = backend.numpy(backend.pe.rotate(single, 1000, layout=layout))
    assert turned.dtype == "float16"
    error = np.abs(turned.astype("float64") - expected)
    assert (error <= 2.0**-11 * 1.001 * np.abs(expected) + 2.0**-24).all()  # one rounding


@both
def test_a_layer_of_a_configuration_is_no_argument(backend: Backend) -> None:
    """Its layout, its part, its direction and its axes would be dropped. What the error says to
    write in its place turns as the model does."""
    config = {"model_type": "llama", "head_dim": 8, "num_hidden_layers": 1, "rope_theta": 100.0}
    layer = rotary_settings(config).layers[0]
    assert layer is not None
    module = TORCH.pe.RotaryPositionalEncoding.from_config(config)
    x, positions = np.random.default_rng(7).normal(size=(3, 8)), np.arange(3)
    words = r"^frequencies must be .*, got (LayerRotation|RotaryPositionalEncoding); of a layer"
    for wrong in (layer, module):
        with pytest.raises(TypeError, match=words):
            TORCH.pe.RotaryPositionalEncoding(8, layout="split", frequencies=wrong)
        with pytest.raises(TypeError, match=words) as caught:
            backend.pe.rotate(
                backend.array(x), positions=positions, frequencies=wrong, layout="split"
            )
    written = re.findall(r"\w+=layer\.\w+", str(caught.value))
    assert len(written) == 4
    options = eval(f"dict({', '.join(written)})", {"layer": layer})
    ours = backend.numpy(
        backend.pe.rotate(backend.array(x), positions=backend.array(positions), **options)
    )
    check_close(ours, module(torch.from_numpy(x)), atol=1e-15)


@both
def test_a_number_is_the_position_of_a_single_row(backend: Backend) -> None:
    """Beside several rows it could be that of each, or of the first."""
    x = np.random.default_rng(8).normal(size=(5, 8))
    one = backend.numpy(backend.pe.rotate(backend.array(x[2]), positions=7, layout="split"))
    sevens = backend.array([7] * 5)
    rows = backend.numpy(backend.pe.rotate(backend.array(x), positions=sevens, layout="split"))
    check_close(one, rows[2], atol=1e-15)
    words = re.escape("of shape (seq,) = (5,); got one number: p + arange(5) counts on from p")
    with pytest.raises(ValueError, match=f"^positions must be {words}$"):
        backend.pe.rotate(backend.array(x), positions=7, layout="split")


@both
def test_positions_want_a_layout_and_a_shift_does_not(backend: Backend) -> None:
    """A checkpoint may have either, and the wrong one is wrong silently."""
    x = backend.array(np.random.default_rng(9).normal(size=(5, 8)))
    with pytest.raises(TypeError, match=r"^layout must be given beside positions: 'i"):
        backend.pe.rotate(x, positions=np.arange(5))
    shifted, same = (backend.pe.rotate(x, by=3, **how) for how in ({}, {"layout": "interleaved"}))
    np.testing.assert_array_equal(backend.numpy(shifted), backend.numpy(same))
    for names in ({"by": 3}, {"positions": np.arange(5)}):
        with pytest.raises(ValueError, match=r"^layout must be one of 'interleaved', 'split'"):
            backend.pe.rotate(x, **names, layout="half")


def test_what_a_thread_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    config = frequency_config(8, 10_000.0, "paper")

    def fail(*arguments: Any) -> None:
        raise MemoryError("of a thread")

    monkeypatch.setattr("pe_lib._angles._fill", fail)
    with pytest.raises(MemoryError, match="of a thread"):
        _angles.table(10_000, 0, config, "split", "float32", threads=2)


@both
@pytest.mark.parametrize("deep", range(4))
def test_attention_terms_are_the_products_of_the_parts(backend: Backend, deep: int) -> None:
    """Each has the shape of the score, whichever of x, y, e and f has an axis more."""
    rng = np.random.default_rng(6)
    shapes: list[tuple[int, ...]] = [(3, 8), (4, 8), (3, 8), (4, 8), (8, 5), (8, 5)]
    shapes[deep] = (2, *shapes[deep])
    x, y, e, f, w_q, w_k = arrays = [rng.normal(size=shape) for shape in shapes]
    terms = backend.pe.attention_terms(*map(backend.array, arrays))
    for name, query, key in (
        ("content_content", x, y),
        ("content_position", x, f),
        ("position_content", e, y),
        ("position_position", e, f),
    ):
        found, expected = getattr(terms, name), (query @ w_q) @ (key @ w_k).swapaxes(-1, -2)
        assert found.shape == (2, 3, 4)
        check_close(found, np.broadcast_to(expected, found.shape), atol=1e-12)


def test_both_implementations_have_one_signature() -> None:
    """But for the device."""
    for name in NUMPY.pe.__all__:
        ours = inspect.signature(getattr(NUMPY.pe, name)).parameters
        theirs = inspect.signature(getattr(TORCH.pe, name)).parameters
        assert list(ours) == [p for p in theirs if p != "device"], name
        for p in ours:
            assert ours[p].kind == theirs[p].kind, (name, p)
            assert p == "dtype" or ours[p].default == theirs[p].default, (name, p)
