"""On a GPU: the same bound, on the device, without a word to the host. What is temporary there is
counted in test_memory, without one."""

from typing import Any

import pytest
import torch
from backends import both_layouts

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


@both_layouts
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
    """Compiled too: fused multiply-adds must not undo the exact products."""

    def encode(positions: torch.Tensor) -> torch.Tensor:
        return sinusoidal_encoding(positions, 512, dtype=torch.float64)

    positions, x = torch.arange(FAR, FAR + 300), torch.randn(300, 64)
    for way in (encode, torch.compile(encode, fullgraph=True)):
        assert (way(positions.cuda()).cpu() - encode(positions)).abs().max() <= BOUND
    turned = rotate(x.cuda(), positions.cuda()).cpu()
    assert torch.allclose(turned, rotate(x, positions), atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_forward_never_waits_for_the_device(dtype: torch.dtype) -> None:
    module = SinusoidalPositionalEncoding(64, 128, scale_input=True).to("cuda", dtype)
    rotary = RotaryPositionalEncoding(64)
    x = torch.randn(2, 96, 64, device="cuda", dtype=dtype)
    positions = torch.rand(96, device="cuda") * 1000
    for warm in (True, False):  # constants travel once
        torch.cuda.set_sync_debug_mode("default" if warm else "error")
        try:
            for offset in (0, 20, -3, 100):  # at last past the end of the table
                module(x, offset=offset)
            module(x, positions=positions)
            rotary(x)
            rotary(x, positions=positions)
            rotate(x, positions)
            rotate(x, 7)
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
