"""What is refused, and the words for it: each error names argument, value and rule.

Each line is a call and the error it must raise; three dots stand for any text. A long error stands
below its call, in lines that are indented.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from backends import NUMPY, TORCH, Backend, both

from pe_lib.numpy import rotary_frequencies

BY_BOTH = """
table(4, 7) → ValueError: d_model must be a positive even integer, got 7
table(4, -8) → ValueError: d_model must be a positive even integer, got -8
table(4, 0) → ValueError: d_model must be a positive even integer, got 0
table(4, 8.0) → TypeError: d_model must be an integer, got 8.0
table(4, True) → TypeError: d_model must be an integer, got True
table(4, torch.tensor(8.0)) → TypeError: d_model must be an integer, got tensor(8.)
table(2**63 + 5, 8) → ValueError: seq_len must be an integer below 2**63, got 922...813
table(2**63 + 5, 8, start=-9) → ValueError: seq_len must be an integer below 2**63, got 92...813
table(10**5000, 8) → ValueError: seq_len must be ...below 2**63, got <an integer of 16610 bits>
table(-(10**5000), 8) → ValueError: seq_len must be ...at least 0, got <an integer of 16610 bits>
table(-1, 8) → ValueError: seq_len must be an integer of at least 0, got -1
table(torch.tensor([3]), 8) → TypeError: seq_len must be an integer ... got tensor([3])
table(4, 8, start=0.5) → TypeError: start must be an integer, got 0.5
table(4, 8, start=2**63 - 3) → ValueError: start must be ...to 2**63 - 4, got 9223372036854775805
table(4, 8, start=10**5000) → ValueError: start must be ...- 4, got <an integer of 16610 bits>
table(4, -(10**5000)) → ValueError: d_model must be a positive even integer, got <an integer of...
table(4, 8, start=-(2**63) - 1) → ValueError: start must be ... got -9223372036854775809
table(4, 8, base=0.5) → ValueError: base must be a finite number of at least 1, got 0.5
table(4, 8, base=inf) → ValueError: base must be a finite real number, got inf
table(4, 8, base="1") → TypeError: base must be a finite real number, got '1'
table(4, 8, base=np.complex128(3)) → TypeError: base must be ...real number, got np.complex128(3+0j)
table(4, 8, base=10**400) → TypeError: base must be a finite real number, got 1000...
table(4, 8, base=10**5000) → TypeError: base must be ...number, got <an integer of 16610 bits>
table(4, 8, frequencies=[10**5000] * 4) → TypeError: frequencies must be 4 ...<an integer of ...
encoding([10**5000], 8) → TypeError: positions must be ..., got [<an integer of 16610 bits>]
table(4, 8, base=True) → TypeError: base must be a finite real number, got True
table(4, 8, spacing="log") → ValueError: spacing must be one of 'paper', 'tensor2tensor', got 'log'
table(4, 8, frequencies=[1.0]) → ValueError: frequencies must be 4 ...d_model = 8, got 1: (1.0,)
table(4, 8, frequencies=[1.0, 0.1, nan, 0.0]) → TypeError: frequencies must be 4 finite ... nan...
table(4, 8, frequencies=[1.0, 0.1, 2.0**21, 0]) → ValueError: frequencies ... up ...2097152...
table(4, 8, frequencies=torch.ones(4, device="meta")) → TypeError: frequencies must be ...tensor(...
table(4, 8, base=100, frequencies=np.ones(4)) → ValueError: base must be left ...100
table(4, 8, spacing="tensor2tensor", frequencies=np.ones(4)) → ValueError: spacing must ...
table(4, 8, base=-2) → ValueError: base must be a finite number of at least 1, got -2.0
table(4, torch.tensor(8, device="meta")) →
    TypeError: d_model must be an integer, got tensor(..., device='meta'), which has no values
table(4, 8, base=torch.tensor(1.5, device="meta")) →
    TypeError: base must be a finite real number, got tensor(..., device='meta'), which has no ...
table(4, 8, layout="mixed") → ValueError: layout must be one of 'interleaved', 'split', got 'mixed'
encoding([1], 8, layout=None) → ValueError: layout must be one of 'interleaved', 'split', got None
matrix(1, 8, layout="mixed") → ValueError: layout must be one of 'interleaved', 'split', got 'mixed'
rotate(array([[1.0, 2.0]]), 1, layout="mixed") → ValueError: layout must be one of ... got 'mixed'
table(4, 8, dtype=dtype("int32")) → TypeError: dtype must be ...float32 or float64, got ...int32...
table(4, 8, dtype=None) → TypeError: dtype must be float16, ... got None
encoding([0.0, nan], 8) → ValueError: positions must be finite and fit 64 bits, got nan
encoding(array([1.0, nan]), 8) → ValueError: positions must be finite..., got nan
encoding([True], 8) → TypeError: positions must be ...that fit 64 bits, got [True]
encoding([[1, 2], [3]], 8) → ValueError: positions must have rows of one length, got [[1, 2], [3]]
encoding(np.zeros(3, "float16"), 8) → TypeError: positions must be ...float16...above 2048
table(4, 8, frequencies=np.ones(4, "float16")) → TypeError: frequencies must be float32 ...float16
encoding(array([1, 2.0**63]), 8) → ValueError: positions ...fit 64 bits, got 9.223372036854776e+18
encoding(array([True]), 8) → TypeError: positions must be ...numbers ...
rotate(array([1.0, 2]), array([2.0**63])) → ValueError: by must be finite ... got 9.2...
encoding([1, 2.0**63], 8) → ValueError: positions ...fit 64 bits, got 9.223372036854776e+18
encoding(np.array([2**63], np.uint64), 8) → ValueError: ... got 9223372036854775808
matrix(nan, 8) → ValueError: by must be finite and fit 64 bits, got nan
matrix([1, 2], 8) → ValueError: by must be one number, got shape (2,)
rotate(array([[1, 2]]), 1) → TypeError: x must be ... float16, ...float32 or float64, got ...int64
rotate(array(1.0), 1) → ValueError: x must have ndim of at least 1, got shape ()
rotate(array([[1.0, 2, 3]]), 1) → ValueError: the last axis ...be a positive even integer, got 3
rotate(array([[1.0, 2]])) → TypeError: rotate must be given one of by, ...positions, ...got neither
rotate(array([[1.0, 2]]), 1, positions=1) → TypeError: rotate must be given one of ...got both
rotate(array(np.ones((2, 2, 5, 8))), array(np.ones((2, 5)))) →
    ValueError: by must be a number, of shape (seq,), or have the 3 axes of x.shape[:-1] =
    (2, 2, 5), as (batch, 1, seq) has for x of (batch, heads, seq, width); positions= takes
    (batch, seq); got shape (2, 5)
rotate(array(np.ones((2, 3, 5, 8))), positions=array(np.ones((3, 5))), layout="split") →
    ValueError: positions must be of shape (seq,) = (5,), (batch, seq) = (2, 5), or have the axes of
    x.shape[:-1] = (2, 3, 5), each of its size or 1; got (3, 5)
rotate(array([1.0, 2]), positions=[1], layout="split") →
    ValueError: positions must be one number; got (1,)
rotate(array([[1.0, 2]]), -array([3], "uint8")) →
    TypeError: by must be signed integers or floats, because the minus of unsigned ones wraps
    around, got ...uint8; RoPE is rotate(x, positions=…), without a minus
rotate(array([[1.0, 2]]), 1, attention_factor=2) →
    ValueError: attention_factor must be left out beside by, since a shift leaves the factor of what
    is already turned alone, got 2
rotate(array([[1.0, 2]]), positions=1, rotary_dim=4, layout="split") →
    ValueError: rotary_dim must be at most ...
rotate(array([[1.0, 2]]), positions=1, attention_factor=0, layout="split") →
    ValueError: ...positive...
rotate(array([[1.0] * 8]), positions=1, frequencies=pair, attention_factor=2, layout="split") →
    ValueError: attention_factor must be left out beside frequencies that have one, as those of
    rotary_frequencies do, got 2
rotate(array([[1.0, 2]]), [1, 2]) → ValueError: by must broadcast to ... = (1,), got shape (2,)
rotate(array([1.0, 2]), [[1]]) → ValueError: by must broadcast to ... = (), got shape (1, 1)
terms(e=(1, 8)) → ValueError: e must have x's 3 rows, got 1
terms(f=(3, 8)) → ValueError: f must have y's 4 rows, got 3
terms(f=(4, 6)) → ValueError: the last axis of f must be d_model = 8, got 6
terms(x=(3, 1)) → ValueError: the last axis of x must be d_model = 8, got 1
terms(y=(8,)) → ValueError: y must have ndim of at least 2, got shape (8,)
terms(x=(2, 3, 8), e=(5, 3, 8)) → ValueError: the leading axes of x, e, y, f must ...(5, 3, 8)...
terms(x=(5, 2, 3, 8), y=(5, 4, 8)) → ValueError: the leading axes of x, e, y, f must ...(5, 4, 8)...
terms(w_q=(2, 8, 5), w_k=(2, 8, 5)) → ValueError: w_q and w_k must have one shape ...(2, 8, 5)...
terms(w_k=(8, 4)) → ValueError: w_q and w_k ...have one shape (d_model, d_k), got (8, 5) and (8, 4)
"""
BY_NUMPY = """
rotate(np.ones((2, 4), np.longdouble), 1) → TypeError: x must be of float16, float32 or float64, ...
rotate(torch.ones(4).bfloat16(), 1) →
    TypeError: x must be what NumPy can read, got a torch.Tensor, ...float16); use pe_lib.torch
rotate(torch.ones(4, requires_grad=True), 1) →
    TypeError: x must be what NumPy can read, got a torch.Tensor, ..._grad=True); use pe_lib.torch
rotate(torch.nn.Parameter(torch.ones(4)), 1) → TypeError: x must be ...use pe_lib.torch
rotate(torch.ones(4, device="meta"), 1) → TypeError: x must be ...use pe_lib.torch
encoding(torch.ones(4).bfloat16(), 8) → TypeError: positions must be ...use pe_lib.torch
pe.attention_terms(torch.ones(3, 8).bfloat16(), *[np.ones((3, 8))] * 3, *[np.ones((8, 5))] * 2) →
    TypeError: x must be what NumPy can read, got a torch.Tensor, ...use pe_lib.torch
pe.convert_layout(torch.ones(4).bfloat16(), 4, to="split") →
    TypeError: weights must be what NumPy can read, got a torch.Tensor, ...use pe_lib.torch
pe.convert_layout([[1, 2], [3]], 2, to="split") →
    ValueError: weights must have rows of one length, got [[1, 2], [3]]
"""
BY_TORCH = """
sinusoidal(dropout=-0.1) → ValueError: dropout must be a number from 0 to 1, got -0.1
sinusoidal(dropout=1.5) → ValueError: dropout must be a number from 0 to 1, got 1.5
sinusoidal(dropout=nan) → ValueError: dropout must be a finite real number, got nan
sinusoidal(scale_input="False") → TypeError: scale_input must be True or False, got 'False'
sinusoidal(scale_input=1) → TypeError: scale_input must be True or False, got 1
sinusoidal(scale_input=None) → TypeError: scale_input must be True or False, got None
sinusoidal(layout="x") → ValueError: layout must be one of 'interleaved', 'split', got 'x'
sinusoidal()(x[0, 0]) → ValueError: x must have ndim of at least 2, got shape (8,)
sinusoidal()(x.long()) → TypeError: x must be a tensor ... float32 or float64, got torch.int64
sinusoidal()(x[..., :1]) → ValueError: the last axis of x must be d_model = 8, got 1
pe.RotaryPositionalEncoding(8) →
    TypeError: layout must be given: 'split' where entry i pairs with i + rotary_dim/2 (rotate_half
    in transformers, NEOX, interleaved=False, MLX's traditional=False), or 'interleaved' where 2i
    pairs with 2i + 1 (GPT-J, Meta's own files of Llama, llama.cpp's NORM)
rotary(layout="neox") → ValueError: layout must be 'split' where ...NEOX..., got 'neox'
pe.RotaryPositionalEncoding(8, 500_000, layout="split") → TypeError: ...positional argument...
pe.SinusoidalPositionalEncoding(8, 512) → TypeError: ...positional argument...
rotary()(x, offset=-300) →
    ValueError: offset must be the first position, at least 0, got -300; keys that are turned
    already are moved by shift(k, by=…), and positions= takes positions below 0
rotary().shift(x, by=arange(3)) → ValueError: by must be a number or of shape (batch,) = (2,)...
rotary().shift(x[0], by=arange(3)) → ValueError: by must be a number or of shape (batch,), got ...
rotary().shift(x, by=arange(2).to(torch.uint8)) → TypeError: by must be signed ...
rotary(pair_axes=[0, 0, 1, 1]).shift(heads, by=arange(3)) →
    ValueError: by must be a number or of shape (axes,) or (axes, batch) with 2 axes, got ...(3,)
pe.RotaryPositionalEncoding(16, layout="split", frequencies=pair) →
    ValueError: frequencies must be made for head_dim = 16, got those of rotary_frequencies(8, …)
rotary(frequencies=pair, attention_factor=2) → ValueError: attention_factor must be left out ...
rotary(pair_axes=[0, 0, 1, 1]).cos_sin(arange(3)) → ValueError: ...2 axes, ...got (3,)
rotary().cos_sin(arange(3), dtype=torch.int32) → TypeError: dtype must be ...got torch.int32
sinusoidal()(x, offset=0.5) → TypeError: offset must be an integer, or an integer tensor ...got 0.5
sinusoidal()(x, offset=[1, 2]) → TypeError: offset ...integer tensor ...positions= ...got [1, 2]
rotary()(x, offset=[1, 2]) → TypeError: offset must be ...integer tensor ...positions= ...got [1, 2]
rotary()(x, offset=np.arange(2)) → TypeError: ...integer tensor ...positions= ...array([0, 1])
rotary()(x, offset=np.arange(2), positions=arange(3)) → TypeError: offset ...integer tensor ...
sinusoidal()(x, positions=arange(3), offset=2) → ValueError: offset must be 0 where ... given, got 2
sinusoidal()(x, positions=arange(4)) → ValueError: positions must be of ... = (3,)... got (4,)
sinusoidal()(x, positions=arange(3) > 1) → TypeError: positions must be ...numbers ...torch.bool...
sinusoidal()(x, positions=arange(3) * 1j) → TypeError: positions must be ...numbers ...complex64...
sinusoidal()(x, positions=arange(3).to("meta")) → ValueError: positions and x ...got meta and cpu
encoding(arange(3).bfloat16(), 8) → TypeError: positions must be ...bfloat16...above 256
sinusoidal()(x, positions=arange(3).half()) → TypeError: positions must be ...float16...above 2048
table(4, 8, frequencies=torch.ones(4).bfloat16()) → TypeError: frequencies must be ...bfloat16
encoding(torch.tensor([2**63], dtype=torch.uint64), 8) → ValueError: ... got 9223372036854775808
encoding(torch.ones(1, device="meta").to(torch.uint64), 8) → TypeError: ...int64... got torch.uint64
sinusoidal()(x, positions=arange(3)[:, None]) → ValueError: positions ...= (2, 3); got (3, 1)
sinusoidal()(x, positions=arange(2)[:, None]) → ValueError: positions ...= (2, 3); got (2, 1)
sinusoidal()(x, positions=torch.tensor(2)) → ValueError: positions ...got ()
rotary()(heads, positions=torch.zeros(4, 3)) → ValueError: positions ...= (2, 3)...got (4, 3)
rotary()(heads, tables=rotary().tables(torch.zeros(4, 3))) → ValueError: tables ...(2, 3)...(4, 3)
rotary()(heads, positions=torch.zeros(2, 1)) → ValueError: positions ...= (2, 3)...got (2, 1)
rotary()(heads, positions=torch.zeros(2, 4, 1)) → ValueError: positions ...(2, 4, 3)...(2, 4, 1)
rotary()(heads, offset=arange(1)) → ValueError: offset must ...(batch,) = (2,)...(1,)...
rotary()(heads, offset=arange(4)) → ValueError: offset must ...(batch,) = (2,)...(4,)...
rotary()(x[0], offset=arange(3)) → ValueError: offset must be an integer, ...shape (batch,) ...
rotary()(x, offset=arange(2.0)) → TypeError: offset must be ...integers, got torch.float32
rotary()(x, offset=arange(2).to(torch.uint64)) → TypeError: offset ...got torch.uint64
rotary()(x, offset=arange(2) > 1) → TypeError: offset must be ...integers, got torch.bool
rotary()(x, offset=torch.tensor(3, device="meta")) →
    TypeError: offset must be an integer, ...got tensor(..., device='meta'), which has no values
rotary()(x, offset=torch.tensor([2**63 - 1, 0])) → ValueError: offset must ...- 3, got 922...807
sinusoidal()(x, offset=torch.tensor([5, 2**63 - 2])) → ValueError: offset must ...- 3, got 922...806
rotary()(x, offset=arange(2).to("meta")) → ValueError: offset and x ...got meta and cpu
rotary()(x, positions=arange(3), offset=arange(2)) → ValueError: offset must be 0 where ...
rotary(seq_dim=-1) → ValueError: seq_dim must name another axis than the last, got -1
rotary(seq_dim=2)(x) → ValueError: seq_dim must be ...from -3 to 1 for x of 3 axes, got 2
rotary(seq_dim=-4)(x) → ValueError: seq_dim must be ...from -3 to 1 for x of 3 axes, got -4
rotary(attention_factor=0) → ValueError: attention_factor must be positive, got 0.0
rotary(attention_factor=inf) → ValueError: attention_factor must be a finite real number, got inf
rotary(pair_axes=[0, 1, 1]) → ValueError: pair_axes must be 4 integers, one for each pair, got 3
rotary(pair_axes=[0, 2, 2, 0]) → ValueError: pair_axes must use every axis ...got [0, 2]
rotary(pair_axes=[0, -1, 1, 1]) → ValueError: pair_axes[1] must be an integer of at least 0, got -1
rotary(pair_axes=[0, 0.5, 1, 1]) → TypeError: pair_axes must be 4 integers, ...got [0, 0.5, 1, 1]
rotary(pair_axes=[0, 0, 1, 1])(x, positions=arange(3)) → ValueError: ...2 axes, ...got (3,)
rotary(pair_axes=[0, 0, 1, 1])(x, positions=torch.ones(2, 2)) → ValueError: positions ...got (2, 2)
rotary(pair_axes=[0, 0, 1, 1])(heads, positions=torch.ones(2, 4, 3)) →
    ValueError: positions must be of shape (axes, seq) = (2, 3), (axes, batch, seq) = (2, 2, 3), or
    have the axes of (axes, *x.shape[:-1]) = (2, 2, 4, 3), each after the first of its size or 1;
    got (2, 4, 3)
rotary(pair_axes=[0] * 4, seq_dim=-3)(heads, positions=arange(3)[None]) →
    ValueError: positions must be of shape (axes, seq) = (1, 4), ...got (1, 3)
rotary(pair_axes=[0] * 4)(x, tables=rotary(pair_axes=[0] * 4).tables(arange(4)[None])) →
    ValueError: tables must be of shape (axes, seq) = (1, 3), ...got (1, 4)
encoding(torch.eye(2).to_sparse(), 4) → TypeError: positions must be ...in a dense tensor, ...
rotate(torch.eye(4).to_sparse(), 3) → TypeError: x must be ...tensor, got layout torch.sparse...
sinusoidal()(torch.nested.nested_tensor([x[0]])) → TypeError: x must be a dense tensor, ...nested
pe.RotaryPositionalEncoding(7, layout='split') → ValueError: head_dim must ...even integer, got 7
rotary(frequencies=[1.0]) → ValueError: frequencies must be 4 ...as head_dim = 8, got 1...
rotary(rotary_dim=4, frequencies=[1.0]) → ValueError: ...be 2 ...as rotary_dim = 4, ...
rotary(base=100, frequencies=[1] * 4) →
    ValueError: base must be left out beside frequencies, got 100
rotary(rotary_dim=10) → ValueError: rotary_dim must be at most head_dim = 8, got 10
rotary()(x[..., :4]) → ValueError: the last axis of x must be head_dim = 8, got 4
rotary()(x, positions=arange(3), tables=rotary().tables(arange(3))) → ValueError: ...([0, 1, 2])
rotary()(x, offset=1, tables=rotary().tables(arange(3))) → ValueError: positions and ...got offset 1
pe.attention_terms(x, x, x, x, eye, eye.to("meta")) → ValueError: w_k and x ...got meta and cpu
pe.attention_terms(x, x, x.double(), x, eye, eye) → TypeError: e must have ...got ...float64
matrix(arange(3), 4) → ValueError: by must be one number, got shape (3,)
table(4, 8, frequencies=torch.ones(4).requires_grad_()) → ValueError: ...requires_grad=True
rotary()(x, tables=rotary(layout="split").tables(arange(3))) → ValueError: ...'interleaved'...
rotary()(x, tables=[torch.ones(3, 4)] * 2) → TypeError: tables must be what ... got list
rotary()(x, tables=pe.RotaryPositionalEncoding(16, **LAYOUT).tables(arange(3))) →
    ValueError: ...dim=8, ...16
rotary(base=1e6)(x, tables=rotary().tables(arange(3))) → ValueError: ...base=1000000.0, ...10000.0
rotary(frequencies=[1] * 4)(x, tables=rotary().tables(arange(3))) →
    ValueError: tables must be made by a module with frequencies=(1.0, 1.0, 1.0, 1.0), as this one,
    got None
rotary()(x, tables=rotary(frequencies=[2] * 4).tables(arange(3))) →
    ValueError: tables must be made by a module with frequencies=None, as this one,
    got (2.0, 2.0, 2.0, 2.0)
rotary(frequencies=[3, 2] * 2)(x, tables=rotary(frequencies=[3, 1] * 2).tables(arange(3))) →
    ValueError: tables must be made by a module with frequencies[1]=2.0, as this one, got 1.0
rotary(pair_axes=[0, 0, 0, 1])(x, tables=rotary(pair_axes=[0, 0, 1, 1]).tables(torch.ones(2, 3))) →
    ValueError: tables must be made by a module with pair_axes[2]=0, as this one, got 1
rotary()(x, tables=rotary(attention_factor=2).tables(arange(3))) → ValueError: ...=1.0, ...got 2.0
rotary()(x, tables=rotary(pair_axes=[0] * 4).tables(arange(3)[None])) → ValueError: ...=None, ...
rotary()(x.double(), tables=rotary().tables(arange(3))) → ValueError: tables ...float64, got ...
rotary()(x, tables=rotary().tables(arange(3).to("meta"))) → ValueError: tables and x ...meta ...
rotary().tables(arange(3), dtype=torch.int32) → TypeError: dtype must be ...float64, got torch.int32
rotary().tables(arange(3), dtype=None) → TypeError: dtype must be ... got None
rotary()(x, offset=arange(2), tables=rotary().tables(arange(3))) → ValueError: ...tensor([0, 1])
rotary()(x, offset=2**63 - 2) → ValueError: offset must be ... from -2**63 to 2**63 - 3, got ...
rotary()(x, offset=10**5000) → ValueError: offset must be ...- 3, got <an integer of 16610 bits>
sinusoidal()(x, offset=-(2**63) - 1) → ValueError: offset must be ...- 3, got -9223372036854775809
rotary()(x[:1, :1], tables=rotary().tables(arange(3))) → ValueError: tables ...(1, 1); got (3,)
table(1, 2, dtype=np.float32) → TypeError: dtype must be float16, bfloat16, ...numpy.float32...
"""


LAYOUT = {"layout": "interleaved"}


def names_of(backend: Backend) -> dict[str, Any]:
    """What the names in the calls above stand for."""
    pe = backend.pe

    def terms(**changed: tuple[int, ...]) -> Any:
        shapes = {"x": (3, 8), "y": (4, 8), "e": (3, 8), "f": (4, 8), "w_q": (8, 5), "w_k": (8, 5)}
        arrays = (backend.array(np.ones(shape)) for shape in (shapes | changed).values())
        return pe.attention_terms(*arrays)

    return {
        "pe": pe,
        "table": pe.sinusoidal_table,
        "encoding": pe.sinusoidal_encoding,
        "rotate": pe.rotate,
        "matrix": pe.rotation_matrix,
        "similarity": pe.similarity,
        "terms": terms,
        "array": backend.array,
        "dtype": backend.dtype,
        "np": np,
        "nan": np.nan,
        "inf": np.inf,
        "pair": rotary_frequencies(8, rope_theta=100),
        "LAYOUT": LAYOUT,
        "torch": torch,
        "x": torch.zeros(2, 3, 8),
        "heads": torch.zeros(2, 4, 3, 8),
        "eye": torch.eye(8),
        "arange": torch.arange,
        "sinusoidal": lambda **options: pe.SinusoidalPositionalEncoding(8, **options),
        "rotary": lambda **options: pe.RotaryPositionalEncoding(8, **LAYOUT | options),
    }


CASES = [
    (backend, *line.split(" → "))
    for lines, backends in ((BY_BOTH, (NUMPY, TORCH)), (BY_NUMPY, [NUMPY]), (BY_TORCH, [TORCH]))
    for line in lines.strip().replace("\n    ", " ").splitlines()
    for backend in backends
]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    ("backend", "call", "words"), CASES, ids=lambda part: getattr(part, "name", part)
)
def test_is_refused_with_argument_value_and_rule(backend: Backend, call: str, words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught, np.errstate(all="raise"):
        eval(call, names_of(backend))
    pattern = ".*".join(map(re.escape, words.split("...")))
    assert re.fullmatch(pattern, f"{caught.type.__name__}: {caught.value}", re.S)


@pytest.mark.parametrize("value", [np.zeros((16, 60)), {str(n): n for n in range(1000)}])
def test_a_long_value_is_shortened(value: Any) -> None:
    pe = TORCH.pe
    calls: dict[str, Callable[[], object]] = {
        "x must be a tensor of .*": lambda: pe.RotaryPositionalEncoding(16, layout="interleaved")(
            value
        ),
        "weights must be a tensor": lambda: pe.convert_layout(value, 16, to="split"),
        "scale_input must be .*": lambda: pe.SinusoidalPositionalEncoding(8, scale_input=value),
    }
    for words, call in calls.items():
        with pytest.raises(TypeError, match=rf"(?s){words}, got .{{1,120}}$"):
            call()


@both
def test_what_is_unusual_but_good_works(backend: Backend) -> None:
    pe = backend.pe
    assert pe.sinusoidal_table(np.int64(3), np.int32(4), start=np.int8(-2)).shape == (3, 4)
    assert pe.sinusoidal_table(2, 4, base=np.float32(100)).shape == (2, 4)
    assert pe.sinusoidal_table(3, 4, start=2**63 - 5).shape == (3, 4)
    assert pe.sinusoidal_table(3, 4, start=-(2**63)).shape == (3, 4)
    assert pe.rotation_matrix(np.float32(0.5), 4).shape == (4, 4)
    assert pe.sinusoidal_table(4, 4, start=2**63 - 4).shape == (4, 4)
    assert pe.sinusoidal_table(3, 4, base=1).shape == (3, 4)
    assert pe.sinusoidal_encoding([-(2.0**63)], 4).shape == (1, 4)
    assert pe.sinusoidal_table(3, 4, frequencies=[2.0**20, -(2.0**20)]).shape == (3, 4)
    for rate in (0, 1):
        assert TORCH.pe.SinusoidalPositionalEncoding(8, dropout=rate).dropout.p == rate
    assert (
        TORCH.pe.RotaryPositionalEncoding(8, rotary_dim=8, layout="interleaved").config.d_model == 8
    )
    module, x = TORCH.pe.SinusoidalPositionalEncoding(8), torch.zeros(2, 3, 8)
    assert module(x, positions=torch.arange(3), offset=np.int64(0)).shape == x.shape
