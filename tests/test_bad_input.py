"""One table of bad inputs for both implementations: each error names argument, value and rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from backends import NUMPY, Backend, both

import pe_lib.torch as pe_torch

NAN, INF = float("nan"), float("inf")
Call = Callable[[Backend], Any]


@dataclass(frozen=True)
class Bad:
    """A call that must fail, and what its message must hold."""

    call: Call
    error: type[Exception]
    argument: str
    value: str
    allowed: str


def table(*args: Any, **options: Any) -> Call:
    return lambda backend: backend.pe.sinusoidal_table(*(args or (4, 8)), **options)


def encoding(*args: Any, **options: Any) -> Call:
    return lambda backend: backend.pe.sinusoidal_encoding(*args, **options)


def rotation(x: Any, offset: Any, dtype: str = "float32", **options: Any) -> Call:
    return lambda backend: backend.pe.rotate(backend.array(x, dtype), offset, **options)


def matrix(offset: Any, **options: Any) -> Call:
    return lambda backend: backend.pe.rotation_matrix(offset, 8, **options)


def terms(**changed: tuple[int, ...]) -> Call:
    shapes = {"x": (3, 8), "y": (4, 8), "e": (3, 8), "f": (4, 8), "w_q": (8, 5), "w_k": (8, 5)}
    return lambda backend: backend.pe.attention_terms(
        *(backend.array(np.ones(shape)) for shape in (shapes | changed).values())
    )


class Unknown:
    """A number without a value, like a symbol of computer algebra."""

    def __float__(self) -> float:
        raise TypeError("cannot convert")


EVEN, BASE = "positive even integer", "finite number of at least 1"
NUMBERS = "real numbers"
CASES = {
    "odd d_model": Bad(table(4, 7), ValueError, "d_model", "7", EVEN),
    "zero d_model": Bad(table(4, 0), ValueError, "d_model", "0", EVEN),
    "negative d_model": Bad(encoding([1], -8), ValueError, "d_model", "-8", EVEN),
    "float d_model": Bad(table(4, 8.0), TypeError, "d_model", "8.0", "integer"),
    "text d_model": Bad(table(4, "8"), TypeError, "d_model", "'8'", "integer"),
    "bool d_model": Bad(table(4, True), TypeError, "d_model", "True", "integer"),
    "negative seq_len": Bad(table(-1, 8), ValueError, "seq_len", "-1", "at least 0"),
    "float seq_len": Bad(table(4.0, 8), TypeError, "seq_len", "4.0", "integer"),
    "array seq_len": Bad(table([4], 8), TypeError, "seq_len", "[4]", "integer"),
    "float start": Bad(table(start=0.5), TypeError, "start", "0.5", "integer"),
    "start past 64 bits": Bad(table(start=2**63), ValueError, "start", str(2**63), "2**63 - 4"),
    "start before 64 bits": Bad(
        table(start=-(2**63) - 1), ValueError, "start", "-9223372036854775809", "-2**63"
    ),
    "base below 1": Bad(table(base=0.5), ValueError, "base", "0.5", "at least 1"),
    "zero base": Bad(table(base=0), ValueError, "base", "0.0", BASE),
    "negative base": Bad(encoding([1], 8, base=-1), ValueError, "base", "-1.0", BASE),
    "infinite base": Bad(table(base=INF), ValueError, "base", "inf", "finite"),
    "NaN base": Bad(table(base=NAN), ValueError, "base", "nan", "finite"),
    "text base": Bad(table(base="1"), TypeError, "base", "'1'", "real number"),
    "complex base": Bad(table(base=1j), TypeError, "base", "1j", "real number"),
    "NumPy's complex as base": Bad(
        table(base=np.complex128(3)), TypeError, "base", "3+0j", "real number"
    ),
    "base past float64": Bad(table(base=10**400), TypeError, "base", "1000", "finite real number"),
    "base without a value": Bad(table(base=Unknown()), TypeError, "base", "Unknown", "real number"),
    "NumPy's bool as base": Bad(table(base=np.True_), TypeError, "base", "True", "real number"),
    "PyTorch's bool as base": Bad(
        table(base=torch.tensor(True)), TypeError, "base", "tensor(True)", "real number"
    ),
    "text in an array as base": Bad(
        table(base=np.array("9")), TypeError, "base", "array('9'", "real number"
    ),
    "bool tensor as seq_len": Bad(
        table(torch.tensor(True), 8), TypeError, "seq_len", "tensor(True)", "integer"
    ),
    "tensor of one axis as seq_len": Bad(
        table(torch.tensor([3]), 8), TypeError, "seq_len", "tensor([3])", "integer"
    ),
    "float tensor as d_model": Bad(
        table(4, torch.tensor(8.0)), TypeError, "d_model", "tensor(8.)", "integer"
    ),
    "bool base": Bad(table(base=True), TypeError, "base", "True", "real number"),
    "layout": Bad(table(layout="mixed"), ValueError, "layout", "'mixed'", "'split'"),
    "no layout": Bad(encoding([1], 8, layout=None), ValueError, "layout", "None", "'interleaved'"),
    "layout of a matrix": Bad(
        matrix(1, layout="mixed"), ValueError, "layout", "'mixed'", "'split'"
    ),
    "layout of a rotation": Bad(
        rotation([[1, 2]], 1, layout="mixed"), ValueError, "layout", "'mixed'", "'split'"
    ),
    "frequencies of another width": Bad(
        table(frequencies=[1.0]), ValueError, "frequencies", "1", "4 finite numbers"
    ),
    "frequency that is not finite": Bad(
        table(frequencies=[1.0, 0.1, NAN, 0.0]), TypeError, "frequencies", "nan", "4 finite"
    ),
    "frequency past 2**20": Bad(
        table(frequencies=[1.0, 0.1, 2.0**21, 0.0]), ValueError, "frequencies", "2097152", "2**20"
    ),
    "frequencies that are no numbers": Bad(
        encoding([1], 8, frequencies="fast"), TypeError, "frequencies", "'fast'", "4 finite"
    ),
    "frequencies without values": Bad(
        table(frequencies=torch.ones(4, device="meta")), TypeError, "frequencies", "meta", "finite"
    ),
    "frequencies and a base": Bad(
        table(base=100, frequencies=np.ones(4)), ValueError, "frequencies", "100", "left out"
    ),
    "spacing": Bad(table(spacing="log"), ValueError, "spacing", "'log'", "'tensor2tensor'"),
    "unhashable spacing": Bad(table(spacing=[]), ValueError, "spacing", "[]", "'paper'"),
    "integer dtype": Bad(
        lambda b: b.pe.sinusoidal_table(4, 8, dtype=b.dtype("int32")),
        TypeError, "dtype", "int32", "float64",
    ),
    "complex dtype": Bad(
        lambda b: b.pe.sinusoidal_encoding([1], 8, dtype=b.dtype("complex64")),
        TypeError, "dtype", "complex64", "float16",
    ),
    "integer dtype of a matrix": Bad(
        lambda b: b.pe.rotation_matrix(1, 8, dtype=b.dtype("int64")),
        TypeError, "dtype", "int64", "float32",
    ),
    "text that is no dtype": Bad(table(dtype="2(f4"), TypeError, "dtype", "'2(f4'", "float32"),
    "open bracket as dtype": Bad(table(dtype="(2,"), TypeError, "dtype", "'(2,'", "float32"),
    "no dtype": Bad(table(dtype=None), TypeError, "dtype", "None", "float32"),
    "NaN position": Bad(encoding([0.0, NAN], 8), ValueError, "positions", "nan", "finite"),
    "infinite position": Bad(encoding(-INF, 8), ValueError, "positions", "-inf", "finite"),
    "text position": Bad(encoding(["a"], 8), TypeError, "positions", "a", NUMBERS),
    "complex position": Bad(encoding([1j], 8), TypeError, "positions", "1j", NUMBERS),
    "bool position": Bad(encoding([True], 8), TypeError, "positions", "True", NUMBERS),
    "ragged positions": Bad(
        encoding([[1, 2], [3]], 8), ValueError, "positions", "[[1, 2], [3]]", "one length"
    ),
    "position past float64": Bad(
        encoding(np.array([np.longdouble("1e4000")]), 8), ValueError, "positions", "inf", "finite"
    ),
    "no complex position": Bad(
        encoding(np.zeros(0, complex), 8), TypeError, "positions", "complex", NUMBERS
    ),
    "integer past 64 bits": Bad(encoding([2**70], 8), TypeError, "positions", "1180", NUMBERS),
    "float past 64 bits": Bad(encoding([1, 2.0**63], 8), ValueError, "positions", "9.2", "64 bits"),
    "unsigned past 64 bits": Bad(
        encoding(np.array([2**63], np.uint64), 8), ValueError, "positions", "9.2", "64 bits"
    ),
    "NaN in an array": Bad(
        lambda b: b.pe.sinusoidal_encoding(b.array([1.0, NAN]), 8),
        ValueError, "positions", "nan", "finite",
    ),
    "NaN similarity": Bad(
        lambda b: b.pe.similarity(NAN, 8), ValueError, "offset", "nan", "finite"
    ),
    "NaN matrix": Bad(matrix(NAN), ValueError, "offset", "nan", "finite"),
    "matrix of many offsets": Bad(matrix([1, 2]), TypeError, "offset", "[1, 2]", "real number"),
    "rotate integers": Bad(rotation([[1, 2]], 1, "int64"), TypeError, "x", "int64", "float32"),
    "rotate a number": Bad(rotation(1.0, 1), ValueError, "x", "()", "(…, d_model)"),
    "rotate odd width": Bad(rotation([[1, 2, 3]], 1), ValueError, "axis of x", "3", EVEN),
    "rotate empty width": Bad(rotation([[]], 1), ValueError, "axis of x", "0", EVEN),
    "rotate by NaN": Bad(rotation([[1, 2]], NAN), ValueError, "offset", "nan", "finite"),
    "rotate by too many": Bad(
        rotation([[1, 2]], [1, 2]), ValueError, "offset", "(2,)", "broadcast to x.shape[:-1] = (1,)"
    ),
    "rotate by a larger shape": Bad(
        rotation([1, 2], [[1]]), ValueError, "offset", "(1, 1)", "broadcast"
    ),
    "one-row e": Bad(terms(e=(1, 8)), ValueError, "e", "1", "x's 3 rows"),
    "one-row f": Bad(terms(f=(1, 8)), ValueError, "f", "1", "y's 4 rows"),
    "narrow x": Bad(terms(x=(3, 1)), ValueError, "last axis of x", "1", "d_model = 8"),
    "flat y": Bad(terms(y=(8,)), ValueError, "y", "(8,)", "(…, rows, d_model)"),
    "leading axes of e": Bad(
        terms(x=(2, 3, 8), e=(5, 3, 8)), ValueError, "x, e, y, f", "(5, 3, 8)", "must broadcast"
    ),
    "leading axes of keys": Bad(
        terms(x=(2, 3, 8), y=(3, 4, 8)), ValueError, "x, e, y, f", "(3, 4, 8)", "must broadcast"
    ),
    "leading axes from the right": Bad(
        terms(x=(5, 2, 3, 8), y=(5, 4, 8)), ValueError, "x, e, y, f", "(5, 4, 8)", "must broadcast"
    ),
    "stacked projections": Bad(
        terms(w_q=(2, 8, 5), w_k=(2, 8, 5)),
        ValueError, "w_q and w_k", "(2, 8, 5)", "(d_model, d_k)",
    ),
    "unequal projections": Bad(
        terms(w_k=(8, 4)), ValueError, "w_q and w_k", "(8, 4)", "(d_model, d_k)"
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_is_refused_with_argument_value_and_rule(backend: Backend, case: Bad) -> None:
    with pytest.raises(case.error) as caught:
        case.call(backend)
    for part in (case.argument, case.value, case.allowed):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("workers", "error"), [(0, ValueError), (-2, ValueError), (2.0, TypeError)]
)
def test_workers_are_counted(workers: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"workers must be an integer.*{workers}"):
        NUMPY.pe.sinusoidal_table(4, 8, workers=workers)


@pytest.mark.skipif(np.longdouble().itemsize == 8, reason="a long double is a float64 here")
def test_long_doubles_are_not_rotated() -> None:
    with pytest.raises(TypeError, match="x must be of float16, float32 or float64, got"):
        NUMPY.pe.rotate(np.ones((2, 4), np.longdouble), 1)


def test_a_position_past_float64_is_refused_in_silence() -> None:
    position = np.array([np.longdouble("1e4000")])
    with np.errstate(all="raise"), pytest.raises(ValueError, match="positions must be finite"):
        NUMPY.pe.sinusoidal_encoding(position, 8)


X = torch.zeros(2, 3, 8)


def module(**options: Any) -> pe_torch.SinusoidalPositionalEncoding:
    return pe_torch.SinusoidalPositionalEncoding(8, **options)


def rotary(**options: Any) -> pe_torch.RotaryPositionalEncoding:
    return pe_torch.RotaryPositionalEncoding(8, **options)


MODULE_CASES: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "odd d_model": (
        lambda: pe_torch.SinusoidalPositionalEncoding(7), ValueError, ["d_model", "7", EVEN],
    ),
    "odd head_dim": (
        lambda: pe_torch.RotaryPositionalEncoding(7), ValueError, ["head_dim", "7", EVEN],
    ),
    "negative max_len": (lambda: module(max_len=-1), ValueError, ["max_len", "-1", "at least 0"]),
    "dropout above 1": (lambda: module(dropout=1.5), ValueError, ["dropout", "1.5", "from 0 to 1"]),
    "dropout below 0": (
        lambda: module(dropout=-0.5), ValueError, ["dropout", "-0.5", "from 0 to 1"],
    ),
    "dropout NaN": (lambda: module(dropout=NAN), ValueError, ["dropout", "nan"]),
    "layout": (lambda: module(layout="x"), ValueError, ["layout", "'x'", "'split'"]),
    "flat x": (lambda: module()(X[0, 0]), ValueError, ["x", "(8,)", "(…, rows, d_model)"]),
    "integer x": (lambda: module()(X.long()), TypeError, ["x", "int64", "float32"]),
    "NumPy x": (lambda: module()(X.numpy()), TypeError, ["x", "tensor"]),
    "narrow x": (lambda: module()(X[..., :1]), ValueError, ["x", "1", "d_model = 8"]),
    "float offset": (lambda: module()(X, offset=0.5), TypeError, ["offset", "0.5", "integer"]),
    "offset and positions": (
        lambda: module()(X, positions=torch.arange(3), offset=2), ValueError, ["offset", "2", "0"],
    ),
    "too many positions": (
        lambda: module()(X, positions=torch.arange(4)),
        ValueError, ["positions", "(4,)", "broadcast to x.shape[:-1] = (2, 3)"],
    ),
    "NaN positions": (
        lambda: module()(X, positions=torch.tensor([0, NAN, 1])),
        ValueError, ["positions", "nan", "finite"],
    ),
    "bool positions": (
        lambda: module()(X, positions=torch.tensor([True, False, True])),
        TypeError, ["positions", "bool", NUMBERS],
    ),
    "complex positions": (
        lambda: module()(X, positions=torch.zeros(3, dtype=torch.complex64)),
        TypeError, ["positions", "complex64", NUMBERS],
    ),
    "positions elsewhere": (
        lambda: module()(X, positions=torch.arange(3, device="meta")),
        ValueError, ["positions", "x", "meta", "cpu"],
    ),
    "rotary: layout": (lambda: rotary(layout="x"), ValueError, ["layout", "'x'", "'split'"]),
    "rotary: integer x": (lambda: rotary()(X.long()), TypeError, ["x", "int64", "float32"]),
    "rotary: narrow x": (lambda: rotary()(X[..., :4]), ValueError, ["x", "4", "head_dim = 8"]),
    "rotary: float offset": (lambda: rotary()(X, offset=1.5), TypeError, ["offset", "1.5"]),
    "rotary: positions elsewhere": (
        lambda: rotary()(X, positions=torch.arange(3, device="meta")),
        ValueError, ["positions", "x", "meta", "cpu"],
    ),
    "rotary_dim past head_dim": (
        lambda: rotary(rotary_dim=10), ValueError, ["rotary_dim", "10", "head_dim = 8"],
    ),
    "rotary: tables and an offset": (
        lambda: rotary()(X, offset=1, tables=rotary().tables(torch.arange(3))),
        ValueError, ["offset", "tables"],
    ),
    "rotate: offset elsewhere": (
        lambda: pe_torch.rotate(X, torch.arange(3, device="meta")),
        ValueError, ["offset", "x", "meta", "cpu"],
    ),
    "terms: w_k elsewhere": (
        lambda: pe_torch.attention_terms(X, X, X, X, torch.eye(8), torch.eye(8, device="meta")),
        ValueError, ["w_k", "x", "meta", "cpu"],
    ),
    "terms: another dtype": (
        lambda: pe_torch.attention_terms(X, X, X.double(), X, torch.eye(8), torch.eye(8)),
        TypeError, ["e", "float64", "x's dtype torch.float32"],
    ),
    "matrix of a tensor of offsets": (
        lambda: pe_torch.rotation_matrix(torch.arange(3), 4),
        TypeError, ["offset", "(3,)", "real number"],
    ),
    "bfloat16 is no NumPy dtype": (
        lambda: pe_torch.sinusoidal_table(1, 2, dtype=np.float32),  # type: ignore[arg-type]
        TypeError, ["dtype", "numpy.float32", "bfloat16"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULE_CASES)
def test_modules_refuse_bad_input(name: str) -> None:
    call, error, parts = MODULE_CASES[name]
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@both
def test_what_is_unusual_but_good_works(backend: Backend) -> None:
    pe = backend.pe
    assert pe.sinusoidal_table(np.int64(3), np.int32(4), start=np.int8(-2)).shape == (3, 4)
    assert pe.sinusoidal_table(2, 4, base=np.float32(100)).shape == (2, 4)
    assert pe.sinusoidal_table(0, 4).shape == (0, 4)
    assert pe.sinusoidal_table(3, 4, start=2**63 - 5).shape == (3, 4)
    assert pe.sinusoidal_table(3, 4, start=-(2**63)).shape == (3, 4)
    assert module()(X, positions=torch.arange(3), offset=np.int64(0)).shape == X.shape
    assert pe.rotation_matrix(np.float32(0.5), 4).shape == (4, 4)
    assert pe.rotate(backend.array(np.zeros((0, 3, 4))), 2).shape == (0, 3, 4)
