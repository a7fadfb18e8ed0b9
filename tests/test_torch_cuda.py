"""On a GPU: the same bound, on the device, without a word to the host."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    sinusoidal_encoding,
    sinusoidal_table,
)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
BOUND = 2.0**-50
FAR = 2**53 - 5000


@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_table_is_the_hosts(dtype: torch.dtype, layout: Any) -> None:
    options: dict[str, Any] = {"start": FAR, "layout": layout, "dtype": dtype}
    ours = sinusoidal_table(5000, 64, device="cuda", **options)
    host = sinusoidal_table(5000, 64, **options)
    assert ours.device.type == "cuda"
    if dtype == torch.float64:
        assert (ours.cpu() - host).abs().max() <= 2 * BOUND
    else:
        assert (ours.cpu() != host).sum() <= 1


def test_encoding_and_rotate_are_the_hosts() -> None:
    positions = torch.arange(FAR, FAR + 300)
    ours = sinusoidal_encoding(positions.cuda(), 64, dtype=torch.float64)
    host = sinusoidal_encoding(positions, 64, dtype=torch.float64)
    assert (ours.cpu() - host).abs().max() <= BOUND
    x = torch.randn(300, 64)
    turned = rotate(x.cuda(), positions.cuda()).cpu()
    assert torch.allclose(turned, rotate(x, positions), atol=2e-6)


def test_compiled_encoding_keeps_the_bound() -> None:
    """Fused multiply-adds must not undo the exact products."""
    positions = torch.arange(FAR, FAR + 300)
    graph = torch.compile(
        lambda p: sinusoidal_encoding(p, 512, dtype=torch.float64), fullgraph=True
    )
    host = sinusoidal_encoding(positions, 512, dtype=torch.float64)
    assert (graph(positions.cuda()).cpu() - host).abs().max() <= BOUND


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_forward_never_waits_for_the_device(dtype: torch.dtype) -> None:
    module = SinusoidalPositionalEncoding(64, 128, scale_input=True).to("cuda", dtype)
    rotary = RotaryPositionalEncoding(64)
    x = torch.randn(2, 96, 64, device="cuda", dtype=dtype)
    positions = torch.rand(96, device="cuda") * 1000
    for warm in (True, False):  # constants travel once
        torch.cuda.set_sync_debug_mode("default" if warm else "error")
        try:
            module(x)
            module(x, offset=20)
            module(x, offset=-3)
            module(x, positions=positions)
            rotary(x)
            rotary(x, positions=positions)
            rotate(x, positions)
            rotate(x, 7)
            module(x, offset=100)  # past the end of the table
            sinusoidal_table(5000, 64, device="cuda", dtype=dtype)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_a_captured_graph_reads_what_stays() -> None:
    """Longer sequences and other frequencies, in eager mode, leave its memory as it was."""
    module, rotary = SinusoidalPositionalEncoding(64, 128).cuda(), RotaryPositionalEncoding(64)
    x = torch.randn(2, 96, 64, device="cuda")

    def run() -> tuple[torch.Tensor, ...]:
        return module(x), module(x, offset=100), rotary(x), rotate(x, 7)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # constants travel once
        expected = [result.clone() for result in run()]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run()
    module(torch.randn(1, 4000, 64, device="cuda"))
    for d_model in range(2, 200, 2):
        sinusoidal_table(100, d_model, device="cuda")
    graph.replay()
    torch.cuda.synchronize()
    for found, result in zip(captured, expected, strict=True):
        assert torch.equal(found, result)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_what_is_temporary_is_small(dtype: torch.dtype) -> None:
    positions = torch.randint(0, 2**53, (2**17,), device="cuda")
    makers: list[Callable[[], torch.Tensor]] = [
        lambda: sinusoidal_table(2**17, 1024, device="cuda", dtype=dtype),
        lambda: sinusoidal_encoding(positions, 1024, dtype=dtype),
    ]
    for make in makers:
        size = make().nbytes  # constants travel once
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = make()
        assert torch.cuda.max_memory_allocated() - before <= 2 * size + 2**22
        del result


def test_positions_that_are_not_finite_give_nan() -> None:
    positions = torch.tensor([1.0, float("nan"), float("inf")], device="cuda")
    row = sinusoidal_encoding(positions, 4)
    assert row[0].isfinite().all()
    assert row[1:].isnan().all()
