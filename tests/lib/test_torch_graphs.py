"""`torch.compile` and `torch.export`: whole graphs, symbolic lengths, the same numbers."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._inductor import config

from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    attention_terms,
    frequencies,
    rotate,
    rotation_matrix,
    similarity,
    sinusoidal_encoding,
    sinusoidal_table,
)

# PyTorch's generated code needs a compiler, and a folder without a space in its name.
COMPILES = (shutil.which("c++") or shutil.which("g++")) and " " not in torch.__file__


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# Traced whole. What code is generated from the graph matters to one test alone.
compiled = partial(torch.compile, fullgraph=True, backend="aot_eager")


@pytest.mark.parametrize(
    ("layout", "dynamic", "warm"),
    [("interleaved", None, True), ("split", True, True), ("interleaved", True, False)],
)
def test_modules_compile_whole(layout: Any, dynamic: bool | None, warm: bool) -> None:
    """With rows that are held by then, and without; within them, and past them."""
    module = SinusoidalPositionalEncoding(16, layout=layout, scale_input=True)
    rotary = RotaryPositionalEncoding(16, layout=layout, rotary_dim=8)
    if warm:
        module(torch.zeros(1, 8, 16))
        rotary(torch.zeros(1, 8, 16))
    graph, turn = compiled(module, dynamic=dynamic), compiled(rotary, dynamic=dynamic)
    for length in (3, 8, 20):
        x = torch.randn(2, length, 16)
        assert torch.allclose(graph(x), 4 * x + sinusoidal_table(length, 16, layout=layout))
        assert torch.allclose(turn(x, offset=2**31), rotary(x, offset=2**31), rtol=0, atol=2e-6)
    positions, x = torch.tensor([5.5, -1.0, 10.0**9]), torch.randn(1, 3, 16)
    expected = sinusoidal_encoding(positions, 16, layout=layout)
    assert torch.allclose(graph(0 * x, positions=positions)[0], expected, rtol=0, atol=2e-7)
    for given in ({"positions": positions}, {"tables": rotary.tables(positions)}):
        assert torch.allclose(turn(x, **given), rotary(x, **given), rtol=0, atol=2e-6)


def test_functions_compile_whole_with_symbolic_sizes() -> None:
    """In one graph for all sizes, of tensors, numbers and lists."""

    def everything(x: Tensor, positions: Tensor, start: int) -> list[Tensor]:
        return [
            sinusoidal_table(x.shape[0], 16, start=start, layout="split"),
            sinusoidal_encoding(positions, 16, base=77, dtype=torch.float64),
            sinusoidal_encoding(positions, 16, dtype=torch.bfloat16),
            rotate(x, positions),
            similarity(positions, 16, spacing="tensor2tensor"),
            similarity(positions, 4, frequencies=(0.5, 0.25)),
            frequencies(8, base=78),
            sinusoidal_encoding([0, 1, 2], 8, base=78),
            rotation_matrix(0.5, 8, base=78),
            rotate(x, 1, base=78),
            similarity([0, 1, 2], 8, base=78),
        ]

    graph = compiled(everything, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for length, start in ((4, 7), (9, 2**32 - 9)):
            x, positions = torch.randn(length, 16), torch.randint(-(2**53), 2**53, (length,))
            results = graph(x, positions, start), everything(x, positions, start)
            for found, expected in zip(*results, strict=True):
                assert found.dtype == expected.dtype
                eps = torch.finfo(found.dtype).eps
                assert torch.allclose(found, expected, rtol=0, atol=8 * eps)


def test_host_integers_keep_their_digits_in_a_graph() -> None:
    """Above 2⁵³ too, where a float64 has no odd numbers; numbers, lists and arrays."""
    far, x = 2**53 + 1, torch.randn(3, 8)
    from_outside = np.array([-far, far, 2**62 + 1])

    def call(x: Tensor, from_outside: np.ndarray) -> list[Tensor]:
        return [
            sinusoidal_encoding([far, -far, 2**62 + 1], 8),
            sinusoidal_encoding(np.array([far, -far, 2**62 + 1]), 8),
            sinusoidal_encoding(np.array([0.5, 3]), 8),
            rotate(x, from_outside),
            similarity(np.array([far, 1]), 8),
            similarity(from_outside, 8),
            sinusoidal_encoding([0.5, 3], 8),
            rotate(x, far),
            rotation_matrix(far, 8),
            similarity([far, 1], 8),
        ]

    for found, expected in zip(compiled(call)(x, from_outside), call(x, from_outside), strict=True):
        assert torch.allclose(found, expected, rtol=0, atol=1e-6)


def test_numbers_of_the_host_are_checked_in_a_graph_as_far_as_they_can_be() -> None:
    """−2⁶³, the last number of a float64 that fits, is right, and a bool is refused."""
    last = compiled(lambda: sinusoidal_encoding([-(2.0**63)], 8))()
    assert torch.equal(last, sinusoidal_encoding([-(2**63)], 8))
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda x: x + sinusoidal_encoding([True], 8),
        lambda x: x + sinusoidal_encoding(x > 1, 8)[0],
    ]
    for call in calls:
        with pytest.raises(TypeError, match="positions must be real numbers"):
            torch.compile(call, backend="eager")(torch.ones(8))


def test_attention_terms_compile_whole() -> None:
    arrays = torch.randn(2, 3, 8), torch.randn(4, 8), torch.randn(3, 8), torch.randn(4, 8)
    weights = torch.randn(8, 5), torch.randn(8, 5)
    graph = compiled(attention_terms, dynamic=True)
    expected = attention_terms(*arrays, *weights)
    for found, term in zip(graph(*arrays, *weights), expected, strict=True):
        assert torch.allclose(found, term, atol=1e-4)


@pytest.mark.skipif(not COMPILES, reason="PyTorch finds no compiler for the code it generates")
def test_generated_code_of_a_model() -> None:
    """Two widths in one graph, forward and backward, through x and positions. A compiler that fuses
    or reorders could lose the digits of a far position that cancel: it does not."""
    sinusoidal, rotary = (
        SinusoidalPositionalEncoding(16),
        RotaryPositionalEncoding(8, layout="interleaved"),
    )

    def model(x: Tensor, p: Tensor, far: Tensor) -> tuple[Tensor, Tensor]:
        heads: Tensor = sinusoidal(x, positions=p).unflatten(-1, (2, 8)).transpose(1, 2)
        return torch.sum(rotary(heads) ** 3), sinusoidal_encoding(far, 64, dtype=torch.float64)

    x, p = torch.randn(2, 9, 16, requires_grad=True), torch.rand(9, requires_grad=True)
    far = torch.randint(-(2**53), 2**53, (200,))
    expected, exact = model(x, p, far)
    eager = torch.autograd.grad(expected, (x, p))
    with config.patch({"cpp.vec_isa_ok": True}):  # not found out by compiling
        found, table = compiled(model, backend="inductor")(x, p, far)
        slopes = torch.autograd.grad(found, (x, p))
    assert (table - exact).abs().max() <= 2.0**-54
    for a, b in zip(slopes, eager, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)


def test_no_value_check_breaks_a_graph() -> None:
    row = compiled(lambda p: sinusoidal_encoding(p, 4))(torch.tensor([1.0, torch.nan, torch.inf]))
    assert row[0].isfinite().all()
    assert row[1:].isnan().all()
    rotary, x = RotaryPositionalEncoding(8, layout="split"), torch.randn(2, 3, 8)
    starts = torch.tensor([-4, 6])  # refused in eager mode
    found = compiled(rotary)(x, offset=starts)
    expected = rotary(x, positions=starts[:, None] + torch.arange(3))
    assert torch.allclose(found, expected, rtol=0, atol=2e-6)


class Table(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + sinusoidal_table(x.shape[1], 16)


@pytest.mark.parametrize("strict", [False, True])
def test_export_with_a_dynamic_length(strict: bool) -> None:
    module = SinusoidalPositionalEncoding(16, scale_input=True).eval()
    rotary = RotaryPositionalEncoding(16, layout="split")
    shapes = ({1: torch.export.Dim("seq", min=1, max=100_000)},)
    for layer in (module, rotary, Table()):
        layer(torch.zeros(1, 3, 16))
        example = (torch.randn(2, 6, 16),)
        exported = torch.export.export(layer, example, dynamic_shapes=shapes, strict=strict)
        for length in (2, 8, 100):
            x = torch.randn(2, length, 16)
            assert torch.allclose(exported.module()(x), layer(x), rtol=0, atol=1e-6)


class RotatedAtPositions(nn.Module):
    def __init__(self, layout: Any = "interleaved") -> None:
        super().__init__()
        self.rotary = RotaryPositionalEncoding(16, layout=layout)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        turned: Tensor = self.rotary(x, positions=positions)
        return turned


class RotatedByTables(RotatedAtPositions):
    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        turned: Tensor = self.rotary(x, tables=self.rotary.tables(positions))
        return turned


class RotatedFromOffsets(RotatedAtPositions):
    """The first of its positions is the offset of each row."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        turned: Tensor = self.rotary(x, offset=positions[:, 0])
        return turned


class EncodedAtPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = SinusoidalPositionalEncoding(16)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        encoded: Tensor = self.encode(x, positions=positions)
        return encoded


class AddedEncodings(nn.Module):
    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + sinusoidal_encoding(positions, 16)


ROUTES = [
    RotatedAtPositions,
    RotatedByTables,
    RotatedFromOffsets,
    EncodedAtPositions,
    AddedEncodings,
    partial(RotatedAtPositions, "split"),
]


def at_positions(length: int) -> tuple[Tensor, Tensor]:
    """What the modules above take: two rows, the second of which starts at 7."""
    return torch.randn(2, length, 16), torch.arange(length) + torch.tensor([[0], [7]])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("build", ROUTES)
def test_rows_for_positions_are_exported_with_a_dynamic_length(
    build: Callable[[], nn.Module], strict: bool
) -> None:
    """The length is declared, or found by the exporter, from an example with few positions or with
    many: eager mode takes another way from 64 positions on."""
    layer = build()
    export = partial(torch.export.export, layer, strict=strict)
    seq, found = torch.export.Dim("seq"), torch.export.Dim.AUTO
    for example, dim in ((10, seq), (100, seq), (64, found)):
        program = export(at_positions(example), dynamic_shapes=({1: dim}, {1: dim})).module()
        for length in (2, 8, 500):
            given = at_positions(length)
            torch.testing.assert_close(program(*given), layer(*given), rtol=0, atol=1e-6)


@pytest.mark.parametrize("build", ROUTES)
def test_rows_for_positions_compile_once_for_all_lengths(build: Callable[[], nn.Module]) -> None:
    layer = build()
    graph = compiled(layer, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for length in (10, 31, 32, 63, 64, 65, 500):
            given = at_positions(length)
            torch.testing.assert_close(graph(*given), layer(*given), rtol=0, atol=1e-6)


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_takes_tables(strict: bool) -> None:
    rotary = RotaryPositionalEncoding(16, layout="split")
    x, ids = torch.randn(2, 3, 4, 16), torch.arange(8).view(2, 4)
    example = {"tables": rotary.tables(ids)}
    exported = torch.export.export(rotary, (x,), example, strict=strict)
    tables = rotary.tables(ids + 1)
    assert torch.allclose(exported.module()(x, tables=tables), rotary(x, tables=tables))


def test_an_exported_program_is_loaded_without_the_library(tmp_path: Path) -> None:
    """Its constants are part of it."""
    program = tmp_path / "program.pt2"
    module = RotaryPositionalEncoding(16, layout="split")
    shapes = ({1: torch.export.Dim("seq", min=2, max=1000)},)
    exported = torch.export.export(
        module, (torch.randn(1, 6, 16),), dynamic_shapes=shapes, strict=False
    )
    torch.export.save(exported, program)
    x = torch.randn(1, 9, 16)
    torch.save((x, module(x)), tmp_path / "values.pt")
    code = f"""
import sys, torch
x, expected = torch.load({str(tmp_path / "values.pt")!r})
found = torch.export.load({str(program)!r}).module()(x)
assert torch.allclose(found, expected, rtol=0, atol=1e-6)
assert not [name for name in sys.modules if name.startswith("pe_lib")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_graph_refuses_what_eager_mode_refuses() -> None:
    rotary = RotaryPositionalEncoding(4, layout="interleaved")
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "start": lambda x: x + sinusoidal_table(3, 4, start=0.5),  # type: ignore[arg-type]
        "seq_len": lambda x: x.sum() + sinusoidal_table(2.5, 4),  # type: ignore[arg-type]
        "offset": lambda x: rotary(x, offset=0.5),
        "base": lambda x: x + sinusoidal_table(3, 4, base="10"),  # type: ignore[arg-type]
        "d_model": lambda x: x + sinusoidal_table(3, 4.0),  # type: ignore[arg-type]
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"{name} must be"):
            torch.compile(call, backend="eager")(torch.ones(1, 3, 4))
