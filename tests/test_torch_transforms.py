"""Derivatives, maps, traces and graphs: PyTorch sees all that it must, and nothing outlives it."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

import pe_lib.torch
from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    frequencies,
    rotate,
    rotation_matrix,
    similarity,
    sinusoidal_encoding,
    sinusoidal_table,
)

HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "split"])
P = torch.tensor([0.3, 1.7, -2.2], dtype=torch.float64)


def whole(f: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(f, fullgraph=True, backend="aot_eager")


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No constants yet, so that the first call makes them."""
    for constants in (pe_lib.torch._turns, pe_lib.torch._marks):
        monkeypatch.setattr(constants, "kept", {})


def test_vmap_and_functional_gradients() -> None:
    positions = torch.rand(4, 3, dtype=torch.float64)
    mapped = vmap(lambda p: sinusoidal_encoding(p, 8))(positions)
    assert torch.equal(mapped, sinusoidal_encoding(positions, 8))
    slope = grad(lambda p: sinusoidal_encoding(p, 2, dtype=torch.float64)[0])(
        torch.tensor(2.0, dtype=torch.float64)
    )
    assert slope == pytest.approx(torch.cos(torch.tensor(2.0, dtype=torch.float64)).item())


def test_nothing_is_hidden_from_a_derivative_or_a_tracer() -> None:
    """On the CPU NumPy does the arithmetic, but not where PyTorch has to see it done."""

    def encode(p: Tensor) -> Tensor:
        return sinusoidal_encoding(p, 8, dtype=torch.float64)

    few, others = torch.tensor([0.5, 3.0]).double(), torch.tensor([7.0, 1.25]).double()
    slopes = vmap(jacrev(encode))(few)
    with dual_level():
        tangent = unpack_dual(encode(make_dual(few, torch.ones_like(few)))).tangent
    assert torch.allclose(tangent, slopes)
    for positions, later in ((few, others), (torch.arange(2), torch.tensor([9, 70_000]))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer's, of values that were looked at
            traced = torch.jit.trace(encode, (positions,))
        assert torch.allclose(traced(later), encode(later), rtol=0, atol=1e-15)
        assert torch.allclose(make_fx(encode)(positions)(later), encode(later), rtol=0, atol=1e-15)
        assert torch.allclose(vmap(encode)(later), encode(later), rtol=0, atol=1e-15)
    few.requires_grad_()
    with torch.no_grad():
        assert not encode(few).requires_grad
    assert encode(few).requires_grad


@pytest.mark.usefixtures("nothing_kept")
def test_what_a_derivative_wraps_does_not_reach_the_caches() -> None:
    def encode(p: Tensor) -> Tensor:
        return sinusoidal_encoding(p, 8, dtype=torch.float64)

    few = torch.tensor([0.5, 3.0], dtype=torch.float64)
    slopes = vmap(jacrev(encode))(few)
    compiled = torch.compile(encode, backend="aot_eager")
    for way in (make_fx(encode)(few), compiled):
        assert torch.allclose(way(few), encode(few), rtol=0, atol=1e-15)
    assert torch.equal(vmap(jacrev(encode))(few), slopes)


@pytest.mark.usefixtures("nothing_kept")
def test_constants_made_in_inference_mode_are_ordinary_tensors() -> None:
    with torch.inference_mode():
        sinusoidal_encoding(P.clone().requires_grad_(), 6)
    for constants in (pe_lib.torch._turns, pe_lib.torch._marks):
        assert [kept.is_inference() for kept in constants.kept.values()] == [False]


def test_stand_ins_for_tensors_do_not_reach_the_caches() -> None:
    with FakeTensorMode():
        assert sinusoidal_encoding(torch.arange(3), 38).shape == (3, 38)
        assert SinusoidalPositionalEncoding(38, 4)(torch.zeros(1, 9, 38)).shape == (1, 9, 38)
    assert torch.isfinite(sinusoidal_encoding(torch.arange(3), 38)).all()


@pytest.mark.parametrize("order", range(1, 9))
def test_every_derivative_is_the_pair_turned_by_a_quarter(order: int) -> None:
    """dⁿ/dxⁿ sin ωx = ωⁿ sin(ωx + nπ/2); a truncated series would be found out at the fourth."""
    x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    for entry, omega in ((0, 1.0), (2, 0.1)):
        value = sinusoidal_encoding(x, 4, base=100, dtype=torch.float64)[entry]
        for _ in range(order):
            (value,) = torch.autograd.grad(value, x, create_graph=True)
        assert value.item() == pytest.approx(
            omega**order * np.sin(3 * omega + order * np.pi / 2), abs=1e-15
        )


@HALVES
def test_half_types_have_every_kind_of_derivative(dtype: torch.dtype) -> None:
    def encode(p: Tensor, dtype: torch.dtype = dtype) -> Tensor:
        return sinusoidal_encoding(p, 6, dtype=dtype)

    slope = jacrev(lambda p: encode(p, torch.float64))(P)
    mapped = vmap(encode)
    with dual_level():
        tangent = unpack_dual(encode(make_dual(P, torch.ones_like(P)))).tangent
    close = partial(torch.allclose, rtol=0, atol=0.01)
    assert close(tangent.double(), slope.sum(-1))
    assert close(jvp(encode, (P,), (torch.ones_like(P),))[1], tangent)
    for way in (jacfwd(encode), jacrev(encode), jacrev(mapped), jacfwd(mapped)):
        assert close(way(P).double(), slope)
    assert close(whole(jacfwd(encode))(P).double(), slope)
    followed = P.clone().requires_grad_()
    mapped(followed).float().sum().backward()
    assert followed.grad is not None
    assert torch.allclose(followed.grad, slope.sum((0, 1)), rtol=0, atol=0.03)
    twice = hessian(lambda p: encode(p, torch.float64).sum())(P)
    assert close(hessian(lambda p: encode(p).double().sum())(P), twice)


@pytest.mark.usefixtures("nothing_kept")
def test_functionalize_sees_the_values_and_leaves_nothing_behind() -> None:
    def encode(p: Tensor) -> Tensor:
        return sinusoidal_encoding(p, 4, dtype=torch.float64)

    x = torch.randn(3, 4)
    assert torch.allclose(functionalize(encode)(P), encode(P), rtol=0, atol=1e-15)
    assert torch.allclose(functionalize(rotate)(x, P), rotate(x, P), rtol=0, atol=1e-6)
    traced = make_fx(functionalize(vmap(encode)))(P)
    assert torch.allclose(traced(P + 1), encode(P + 1), rtol=0, atol=1e-15)
    followed = P.clone().requires_grad_()
    encode(followed).sum().backward()
    assert type(followed.grad) is Tensor
    assert not torch._is_functional_tensor(followed.grad)
    torch.optim.SGD([followed], lr=0.1).step()


def test_growth_under_a_transform_leaves_the_module_as_it_was() -> None:
    x = torch.zeros(1, 100, 8)
    expected = sinusoidal_table(100, 8)
    ways: list[Callable[[SinusoidalPositionalEncoding], Tensor]] = [
        lambda module: grad(lambda x: module(x).sum())(x) * 0 + expected,
        lambda module: functionalize(module)(x),
        lambda module: vmap(module)(x.unsqueeze(0)),
        lambda module: make_fx(module, tracing_mode="fake")(x)(x),
    ]
    for way in ways:
        module = SinusoidalPositionalEncoding(8, 4)
        assert torch.equal(way(module).reshape(100, 8), expected)
        assert torch.equal(pickle.loads(pickle.dumps(module)).table, expected[:4])
        assert module.longer is None
    module = SinusoidalPositionalEncoding(8, 4)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert module(mode.from_tensor(x)).shape == x.shape
    assert type(module(x)) is Tensor


def test_growth_in_one_thread_leaves_the_rows_of_another() -> None:
    class Contended(SinusoidalPositionalEncoding):
        """Whatever table is set, another thread sets a shorter one at once."""

        def __setattr__(self, name: str, value: Any) -> None:
            shorter = name == "longer" and value is not None
            super().__setattr__(name, value[:9] if shorter else value)

    assert torch.equal(Contended(8, 4)(torch.zeros(1, 60, 8))[0], sinusoidal_table(60, 8))


def test_one_row_far_off_does_not_make_the_table_reach_it() -> None:
    module = SinusoidalPositionalEncoding(8, 16)
    far = module(torch.zeros(1, 2, 8), offset=2**40)
    assert torch.equal(far[0], sinusoidal_table(2, 8, start=2**40))
    assert module.longer is None
    module(torch.zeros(1, 1, 8), offset=16)  # the next one, as a decoder asks for it
    assert module.longer is not None
    assert len(module.longer) == 32


def test_to_empty_on_the_same_device_fills_the_table() -> None:
    module = SinusoidalPositionalEncoding(8, 16)
    module.table.fill_(7)
    module.to_empty(device="cpu")
    assert torch.equal(module.table, sinusoidal_table(16, 8))


@LAYOUTS
def test_rotate_is_mapped_over_both_arguments_at_once(layout: Any) -> None:
    x, offset = torch.randn(4, 8), torch.arange(3.0)

    def turn(x: Tensor, offset: Tensor) -> Tensor:
        return rotate(x, offset, layout=layout)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also of a slow way
        mapped = vmap(vmap(turn, (None, 0)), (0, None))(x, offset)
    expected = torch.stack([turn(row.expand(3, 8), offset) for row in x])
    assert torch.allclose(mapped, expected, rtol=0, atol=1e-6)


@LAYOUTS
def test_rotation_matrix_has_a_device_and_a_derivative(layout: Any) -> None:
    with torch.device("meta"):
        assert rotation_matrix(1, 4, layout=layout).device.type == "meta"
    matrix = rotation_matrix(0.7, 6, layout=layout)
    assert not torch.signbit(matrix[matrix == 0]).any()  # or they print as -0
    offset = torch.tensor(0.7, dtype=torch.float64)
    slope = jacrev(lambda offset: rotation_matrix(offset, 6, layout=layout))(offset)
    step = 1e-6
    ahead, behind = (rotation_matrix(0.7 + s, 6, layout=layout) for s in (step, -step))
    assert torch.allclose(slope, (ahead - behind) / (2 * step), rtol=0, atol=1e-8)


def test_numbers_and_lists_compile_whole() -> None:
    x = torch.randn(3, 8)
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "frequencies": lambda x: x * frequencies(8, base=77).repeat(2),
        "rotate": lambda x: rotate(x, 1, base=77),
        "list": lambda x: x + sinusoidal_encoding([0, 1, 2], 8, base=77),
        "matrix": lambda x: x @ rotation_matrix(0.5, 8, base=77, dtype=torch.float32),
        "similarity": lambda x: x * similarity([0, 1, 2], 8, base=77).unsqueeze(-1),
    }
    for name, call in calls.items():
        assert torch.allclose(whole(call)(x), call(x), rtol=0, atol=1e-6), name
        assert torch.allclose(torch.compile(call, backend="eager")(x), call(x), atol=1e-6), name


def test_a_graph_refuses_what_eager_mode_refuses() -> None:
    module, rotary = SinusoidalPositionalEncoding(4, 8), RotaryPositionalEncoding(4)
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "start": lambda x: x + sinusoidal_table(3, 4, start=0.5),  # type: ignore[arg-type]
        "seq_len": lambda x: x.sum() + sinusoidal_table(2.5, 4),  # type: ignore[arg-type]
        "offset": lambda x: rotary(x, offset=0.5),
        "offset ": lambda x: module(x, offset=-0.5),
        "base": lambda x: x + sinusoidal_table(3, 4, base="10"),  # type: ignore[arg-type]
        "d_model": lambda x: x + sinusoidal_table(3, 4.0),  # type: ignore[arg-type]
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=name.strip() + " must be"):
            torch.compile(call, backend="eager")(torch.ones(1, 3, 4))


def test_constants_of_many_frequencies_are_not_all_kept() -> None:
    for base in range(200, 240):
        sinusoidal_encoding(P.clone().requires_grad_(), 4, base=base)
    assert len(pe_lib.torch._turns.kept) <= 32


def test_what_is_not_dense_is_refused() -> None:
    with pytest.raises(TypeError, match="positions must be a dense tensor, got layout"):
        sinusoidal_encoding(torch.eye(2).to_sparse(), 4)
    with pytest.raises(TypeError, match=r"x must be a dense tensor, got layout torch\.sparse"):
        rotate(torch.eye(4).to_sparse(), 3)
    ragged = torch.nested.nested_tensor([torch.zeros(2, 8), torch.zeros(3, 8)])
    with pytest.raises(TypeError, match="x must be a dense tensor, got layout nested"):
        SinusoidalPositionalEncoding(8)(ragged)


def test_a_table_is_built_while_the_interpreter_shuts_down() -> None:
    script = """
import threading, time
import pe_lib.numpy

def later():
    threading.main_thread().join()
    print(pe_lib.numpy.sinusoidal_table(8192, 512, workers=2).shape)

threading.Thread(target=later).start()
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.stdout.strip() == "(8192, 512)", run.stderr
