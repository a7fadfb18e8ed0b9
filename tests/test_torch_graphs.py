"""`torch.compile` and `torch.export`: whole graphs, symbolic lengths, the same numbers."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    similarity,
    sinusoidal_encoding,
    sinusoidal_table,
)

GENERATED = "inductor" if shutil.which("c++") or shutil.which("g++") else "aot_eager"
LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "split"])


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Traced whole. What code is generated from the graph matters to a few tests alone."""
    options.setdefault("backend", "aot_eager")
    return torch.compile(function, fullgraph=True, **options)


@LAYOUTS
@pytest.mark.parametrize("dynamic", [None, True])
def test_module_compiles_whole_and_leaves_its_table(layout: Any, dynamic: bool | None) -> None:
    module = SinusoidalPositionalEncoding(16, 8, layout=layout, scale_input=True)
    table, graph = module.table, compiled(module, dynamic=dynamic)
    for length in (3, 8, 20, 33):  # within the table, and past it
        x = torch.randn(2, length, 16)
        found = graph(x)
        assert module.table is table
        whole = sinusoidal_table(length, 16, layout=layout)
        assert torch.allclose(found, 4 * x + whole, atol=1e-6)
    positions = torch.tensor([5.5, -1.0, 10.0**9])
    assert torch.equal(
        graph(torch.zeros(1, 3, 16), positions=positions)[0],
        sinusoidal_encoding(positions, 16, layout=layout),
    )


@LAYOUTS
def test_rotary_compiles_whole(layout: Any) -> None:
    rotary = RotaryPositionalEncoding(16, layout=layout)
    graph = compiled(rotary, dynamic=True)
    for length in (5, 40):
        x = torch.randn(2, 3, length, 16)
        assert torch.allclose(graph(x, offset=2**31), rotary(x, offset=2**31), atol=1e-6)
        positions = torch.randint(0, 10**6, (length,))
        found = graph(x, positions=positions)
        assert torch.allclose(found, rotary(x, positions=positions), atol=1e-6)


def test_functions_compile_whole_with_symbolic_sizes() -> None:
    def everything(x: Tensor, positions: Tensor, start: int) -> list[Tensor]:
        return [
            sinusoidal_table(x.shape[0], 16, start=start, layout="split"),
            sinusoidal_encoding(positions, 16, base=500.0, dtype=torch.float64),
            sinusoidal_encoding(positions, 16, dtype=torch.bfloat16),
            rotate(x, positions),
            similarity(positions, 16, spacing="tensor2tensor"),
        ]

    graph = compiled(everything, dynamic=True)
    for length, start in ((4, 7), (9, 2**32 - 9)):
        x, positions = torch.randn(length, 16), torch.randint(-(2**32), 2**32, (length,))
        for found, expected in zip(
            graph(x, positions, start), everything(x, positions, start), strict=True
        ):
            assert found.dtype == expected.dtype
            eps = torch.finfo(found.dtype).eps
            assert torch.allclose(found, expected, rtol=0, atol=8 * eps)


def test_the_operator_of_a_graph_gives_copies_of_its_constants() -> None:
    def constants() -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = torch.ops.pe_lib.constants(
            8, 10_000.0, "paper", torch.device("cpu")
        )
        return found

    for part in constants():
        part.zero_()
    assert all(part.any() for part in constants())


def test_compiled_angles_keep_the_bound() -> None:
    """A compiler that fuses or reorders could lose the digits that cancel; it must not."""

    def encode(positions: Tensor) -> Tensor:
        return sinusoidal_encoding(positions, 512, dtype=torch.float64)

    graph = compiled(encode, dynamic=True, backend=GENERATED)
    positions = 2**32 - torch.arange(200)
    expected = sinusoidal_table(200, 512, start=2**32 - 199, dtype=torch.float64).flip(0)
    assert (graph(positions) - expected).abs().max() <= 2.0**-49


def test_generated_code_of_a_model() -> None:
    """Two widths in one graph, forward and backward."""
    sinusoidal, rotary = SinusoidalPositionalEncoding(16, 4), RotaryPositionalEncoding(8)

    def model(x: Tensor) -> Tensor:
        heads: Tensor = sinusoidal(x).unflatten(-1, (2, 8)).transpose(1, 2)
        return torch.sum(rotary(heads) ** 2)

    x = torch.randn(2, 9, 16, requires_grad=True)
    graph = compiled(model, backend=GENERATED)
    (eager,), (found,) = torch.autograd.grad(model(x), x), torch.autograd.grad(graph(x), x)
    assert torch.allclose(found, eager, rtol=1e-4, atol=1e-6)


def test_compiled_gradients() -> None:
    module = SinusoidalPositionalEncoding(8, 4, scale_input=True)
    x = torch.randn(1, 3, 8, requires_grad=True)
    p = torch.tensor([0.5, 1.5, 7.25], dtype=torch.float64, requires_grad=True)
    eager = torch.autograd.grad(module(x, positions=p).square().sum(), (x, p))
    found = torch.autograd.grad(compiled(module)(x, positions=p).square().sum(), (x, p))
    for a, b in zip(found, eager, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)


def test_no_value_check_breaks_a_graph() -> None:
    graph = compiled(lambda p: sinusoidal_encoding(p, 4))
    row = graph(torch.tensor([1.0, float("nan"), float("inf")]))
    assert row[0].isfinite().all()
    assert row[1:].isnan().all()


@pytest.mark.parametrize("strict", [False, True])
def test_export_with_a_dynamic_length(strict: bool) -> None:
    lengths = torch.export.Dim("seq", min=1, max=100_000)
    module = SinusoidalPositionalEncoding(16, max_len=8, scale_input=True).eval()
    rotary = RotaryPositionalEncoding(16, layout="split")
    for layer in (module, rotary):
        example = (torch.randn(2, 6, 16),)
        exported = torch.export.export(
            layer, example, dynamic_shapes=({1: lengths},), strict=strict
        ).module()
        for length in (2, 8, 100):
            x = torch.randn(2, length, 16)
            assert torch.allclose(exported(x), layer(x), atol=1e-6)
