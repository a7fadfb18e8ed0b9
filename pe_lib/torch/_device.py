"""What a device has, which dtypes tensors may have, and what may be done while PyTorch traces or
transforms a program: which values can be looked at, and which tensors may be kept."""

from collections.abc import Callable

import torch
from torch import Tensor

FLOATS = "float16, bfloat16, float32 or float64"
HALF_DTYPES = (torch.float16, torch.bfloat16)
FLOAT_DTYPES = (*HALF_DTYPES, torch.float32, torch.float64)
OFFSET_DTYPES = (  # those whose every number fits int64
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
)
COMPUTE_DTYPE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}
COMPLEX_DTYPE = {torch.float32: torch.complex64, torch.float64: torch.complex128}
DEVICES_WITHOUT_FLOAT64 = ("mps",)


def real_dtype(device: torch.device) -> torch.dtype:
    """float64 where the device has it."""
    return torch.float32 if device.type in DEVICES_WITHOUT_FLOAT64 else torch.float64


def smallest_and_largest(positions: Tensor) -> tuple[int, int] | None:
    """Of integers on the CPU, else None: a GPU would make the host wait, tracers have no values."""
    if torch.compiler.is_compiling():
        return None
    if positions.is_floating_point() or not positions.is_cpu or positions.numel() == 0:
        return None
    try:
        first, last = positions.aminmax()
        return int(first), int(last)
    except RuntimeError:  # vmap and FakeTensor have no values
        return None


def is_ordinary(rows: Tensor) -> bool:
    """Whether this tensor has memory and may be cached. The wrappers of torch.func and of tracers
    are invalid once the transform has ended."""
    if type(rows) is not Tensor:
        return False
    try:
        return rows.data_ptr() != 0
    except RuntimeError:
        return False


def is_exporting() -> bool:
    """Before torch 2.7 this cannot be known, and every graph counts as exported."""
    known: Callable[[], bool] | None = getattr(torch.compiler, "is_exporting", None)
    return known is None or known()


def is_capturing(device: torch.device) -> bool:
    """Whether a CUDA graph is being captured, whose kernels run at the replay."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()
