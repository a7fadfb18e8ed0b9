"""On a GPU: the same bound, on the device, without a word to the host. What is temporary there is
counted in test_memory, without one.

Tests that take a ``device`` run on the CPU as well, so that a machine without a GPU shows whether
what they expect is right.
"""

from typing import Any

import pytest
import torch
from backends import both_layouts
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pe_lib import doctor
from pe_lib import numpy as reference
from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    sinusoidal_encoding,
    sinusoidal_table,
)

ON_GPU = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
CUDA = pytest.param("cuda", marks=ON_GPU)
BOUND = 2.0**-50
FAR = 2**53 - 5000


def on_gpu(test: Any) -> Any:
    for mark in ON_GPU:
        test = mark(test)
    return test


@on_gpu
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


@on_gpu
def test_encoding_and_rotate_are_the_hosts() -> None:
    """Compiled too: fused multiply-adds must not undo the exact products."""

    def encode(positions: torch.Tensor) -> torch.Tensor:
        return sinusoidal_encoding(positions, 512, dtype=torch.float64)

    positions, x = torch.arange(FAR, FAR + 300), torch.randn(300, 64)
    for way in (encode, torch.compile(encode, fullgraph=True)):
        assert (way(positions.cuda()).cpu() - encode(positions)).abs().max() <= BOUND
    turned = rotate(x.cuda(), positions.cuda()).cpu()
    assert torch.allclose(turned, rotate(x, positions), atol=2e-6)


# Each way of saying where a token stands: what `forward` gets, and the positions that it means.

SHAPE = (2, 3, 5, 16)  # (batch, heads, seq, head_dim)
STARTS = torch.tensor([FAR, 7])
IDS = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
FAR_IDS = IDS * 10_000_000
FRACTIONS = IDS / 4
ROWS_AND_COLUMNS = torch.stack((IDS, IDS.flip(-1)))
WAYS: dict[str, tuple[dict[str, Tensor], Tensor]] = {
    "an offset for each row": ({"offset": STARTS}, STARTS[:, None] + torch.arange(5)),
    "integer positions": ({"positions": IDS}, IDS),
    "far positions": ({"positions": FAR_IDS}, FAR_IDS),
    "fractional positions": ({"positions": FRACTIONS}, FRACTIONS),
    "tables": ({"tables": IDS}, IDS),
    "positions of two axes": ({"positions": ROWS_AND_COLUMNS}, ROWS_AND_COLUMNS),
    "tables of two axes": ({"tables": ROWS_AND_COLUMNS}, ROWS_AND_COLUMNS),
}
every_way = pytest.mark.parametrize(("given", "meant"), WAYS.values(), ids=WAYS)


def rotary_for(meant: Tensor, layout: Any = "interleaved") -> RotaryPositionalEncoding:
    """With an attention factor, and with pairs that turn by row or by column if there are both."""
    pair_axes = [0, 1] * 4 if meant.ndim == 3 else None
    return RotaryPositionalEncoding(16, layout=layout, attention_factor=1.25, pair_axes=pair_axes)


def call(rotary: RotaryPositionalEncoding, x: Tensor, given: dict[str, Tensor]) -> Tensor:
    if "tables" in given:
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        return rotary(x, tables=rotary.tables(given["tables"], dtype=dtype))
    return rotary(x, **given)


def expected_of(x: Tensor, meant: Tensor, layout: Any) -> Tensor:
    """By the reference in NumPy: all pairs along each axis of positions, then each by its own."""
    turned = []
    for positions in meant if meant.ndim == 3 else (meant,):
        offset = -positions[:, None].expand(SHAPE[:-1])
        turned.append(torch.from_numpy(reference.rotate(x.numpy(), offset.numpy(), layout=layout)))
    pair = torch.arange(16) % 8 if layout == "split" else torch.arange(16) // 2
    return 1.25 * torch.where(pair % 2 == 0, turned[0], turned[-1])


@every_way
@both_layouts
@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_every_way_of_saying_a_position_is_the_reference_s(
    given: dict[str, Tensor], meant: Tensor, layout: Any, device: str
) -> None:
    given = {name: values.to(device) for name, values in given.items()}
    rotary = rotary_for(meant, layout)
    for dtype, tolerance in ((torch.float64, 1e-14), (torch.float32, 2e-6)):
        x = torch.randn(SHAPE, dtype=dtype)
        found = call(rotary, x.to(device), given)
        assert found.device.type == device
        torch.testing.assert_close(
            found.cpu(), expected_of(x, meant, layout), rtol=0, atol=tolerance
        )


class NoWaiting:
    """The host may not wait for the GPU."""

    def __enter__(self) -> None:
        torch.cuda.set_sync_debug_mode("error")

    def __exit__(self, *error: object) -> None:
        torch.cuda.set_sync_debug_mode("default")


class NoLooking(TorchDispatchMode):
    """No value of a tensor may become a number of Python, which is what a host would wait for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@every_way
@pytest.mark.parametrize("device", ["meta", CUDA])
def test_no_way_of_saying_a_position_looks_at_it(
    given: dict[str, Tensor], meant: Tensor, device: str
) -> None:
    """Without a GPU on the device "meta", whose tensors have no values."""
    given = {name: values.to(device) for name, values in given.items()}
    rotary, x = rotary_for(meant), torch.randn(SHAPE).to(device)
    call(rotary, x, given)  # constants travel once
    guard: Any = NoWaiting if device == "cuda" else NoLooking
    with guard():
        assert call(rotary, x, given).shape == x.shape


@on_gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_forward_never_waits_for_the_device(dtype: torch.dtype) -> None:
    module = SinusoidalPositionalEncoding(64, scale_input=True).to("cuda", dtype)
    rotary = RotaryPositionalEncoding(64, layout="interleaved")
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


@on_gpu
def test_a_captured_graph_reads_what_stays() -> None:
    """Longer sequences and other frequencies, in eager mode, leave its memory as it was."""
    module, rotary = (
        SinusoidalPositionalEncoding(64).cuda(),
        RotaryPositionalEncoding(64, layout="interleaved"),
    )
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


LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "head_dim": 64,
    "num_hidden_layers": 2,
    "rope_theta": 500_000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_doctor_reads_a_module_where_it_runs(device: str, dtype: torch.dtype) -> None:
    rotary = RotaryPositionalEncoding.from_config(LLAMA, layer=0)

    def turn(x: Any, positions: Any) -> Any:
        there = torch.from_numpy(x).to(device, dtype), torch.from_numpy(positions).to(device)
        return rotary(there[0], positions=there[1]).float().cpu().numpy()

    assert not doctor.examine(turn, 64, expect=LLAMA).codes
    others = LLAMA | {"rope_theta": 10_000.0}
    assert doctor.Code.FREQUENCIES in doctor.examine(turn, 64, expect=others).codes
