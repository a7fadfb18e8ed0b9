"""Derivatives, maps and traces: PyTorch sees all that it must, and nothing outlives it."""

import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from backends import both_layouts
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize, grad, jacfwd, jacrev, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    rotation_matrix,
    sinusoidal_encoding,
    sinusoidal_table,
)

P = torch.tensor([0.3, 1.7, -2.2], dtype=torch.float64)


def encode(p: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    return sinusoidal_encoding(p, 6, dtype=dtype)


@pytest.mark.parametrize("positions", [P, torch.arange(100), 2**46 * torch.arange(-99, 99)])
def test_maps_and_traces_see_positions_and_bake_none_of_them_in(positions: Tensor) -> None:
    later = positions.flip(0) + 7
    traced = make_fx(lambda p: encode(p))(positions)
    for way in (vmap(encode), functionalize(encode), traced):
        assert torch.allclose(way(later), encode(later), rtol=0, atol=2.0**-51)
    both = vmap(vmap(encode))(later.expand(2, -1))
    assert torch.allclose(both[1], encode(later), rtol=0, atol=2.0**-51)


def test_every_derivative_is_the_pair_turned_by_a_quarter() -> None:
    """dⁿ/dxⁿ sin ωx = ωⁿ sin(ωx + nπ/2); a truncated series would be found out at the fourth."""
    x = torch.tensor(3.25, dtype=torch.float64, requires_grad=True)
    for entry, omega in ((0, 1.0), (2, 0.1)):
        value = sinusoidal_encoding(x, 4, base=100, dtype=torch.float64)[entry]
        for order in range(1, 9):
            (value,) = torch.autograd.grad(value, x, create_graph=True)
            turned = omega**order * np.sin(3.25 * omega + order * np.pi / 2)
            assert value.item() == pytest.approx(turned, abs=1e-15)


def test_rounding_to_a_half_type_keeps_the_derivative() -> None:
    slope, half = jacrev(encode)(P), partial(encode, dtype=torch.bfloat16)
    for way in (jacfwd(half), jacrev(half), jacfwd(vmap(half)), jacrev(vmap(half))):
        assert torch.allclose(way(P).double(), slope, rtol=0, atol=0.01)


def check_ordinary(module: Any) -> None:
    """`torch.equal` accepts wrappers; a list of values, a file and a graph do not."""
    (rows,) = module._cache.rows.values()
    for part in rows:
        assert type(part) is Tensor
        assert len(part.tolist()) >= 100
        torch.save(part, io.BytesIO())
    x = torch.zeros(1, 100, 8)
    graph: Callable[[Tensor], Tensor] = torch.compile(module, fullgraph=True, backend="eager")
    assert torch.equal(graph(x), module(x))


def test_what_transforms_wrap_does_not_stay_in_a_module() -> None:
    x, expected = torch.zeros(1, 100, 8), sinusoidal_table(100, 8)
    ways: list[Callable[[SinusoidalPositionalEncoding], Tensor]] = [
        lambda module: grad(lambda x: module(x).square().sum() / 2)(x),  # what is squared
        lambda module: functionalize(module)(x),
        lambda module: vmap(module)(x.unsqueeze(0)),
        lambda module: make_fx(module, tracing_mode="fake")(x)(x),
    ]
    for way in ways:
        module = SinusoidalPositionalEncoding(8)
        assert torch.equal(way(module).reshape(100, 8), expected)
        assert torch.equal(module(x)[0], expected)
        check_ordinary(module)
    modules = SinusoidalPositionalEncoding(8), RotaryPositionalEncoding(8, layout="interleaved")
    with FakeTensorMode(allow_non_fake_inputs=True):  # a real x, and a first call
        for cold in modules:
            assert cold(x).shape == x.shape
    for cold in modules:
        assert type(cold(x)) is Tensor
        check_ordinary(cold)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert module(mode.from_tensor(x)).shape == x.shape
        assert sinusoidal_encoding(torch.arange(3), 38).shape == (3, 38)
        assert RotaryPositionalEncoding(8, layout="interleaved")(torch.zeros(1, 9, 8)).shape == (
            1,
            9,
            8,
        )
    with FakeTensorMode() as strict:  # and real rows that are cached, which it cannot combine with
        assert module(strict.from_tensor(x)).shape == x.shape
    assert type(module(x)) is Tensor
    assert torch.isfinite(sinusoidal_encoding(torch.arange(3), 38)).all()


@both_layouts
def test_rotate_is_mapped_over_both_arguments_at_once(layout: Any) -> None:
    x, offset = torch.randn(4, 8), torch.arange(3.0)
    turn = partial(rotate, layout=layout)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also of a slow way
        mapped = vmap(vmap(turn, (None, 0)), (0, None))(x, offset)
    expected = turn(x.unsqueeze(1).expand(4, 3, 8), offset)
    assert torch.allclose(mapped, expected, rtol=0, atol=1e-6)


@both_layouts
def test_rotation_matrix_has_a_device_and_a_derivative(layout: Any) -> None:
    matrix: Callable[[Any], Tensor] = partial(rotation_matrix, d_model=6, layout=layout)
    with torch.device("meta"):
        assert matrix(1).device.type == "meta"
    assert not torch.signbit(matrix(0.7)[matrix(0.7) == 0]).any()  # or they print as -0
    slope = jacrev(matrix)(torch.tensor(0.7, dtype=torch.float64))
    step = 1e-6
    expected = (matrix(0.7 + step) - matrix(0.7 - step)) / (2 * step)
    assert torch.allclose(slope, expected, rtol=0, atol=1e-8)
