"""The product of x with cosines and sines, cut into parts or not."""

from typing import Any

import pytest
import torch
from backends import both_layouts
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pe_lib.torch import RotaryPositionalEncoding, rotate
from pe_lib.torch._rotation import PART


class Allocated(TorchDispatchMode):
    """Counts the entries of all tensors that operators make."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        if not op.is_view:
            made = (leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor))
            self.entries += sum(tensor.numel() for tensor in made)
        return result


def rotated_by_hand(x: Tensor, positions: Tensor) -> Tensor:
    """The obvious code of the split layout, in float64."""
    omega = 10_000.0 ** (-torch.arange(x.shape[-1] // 2, dtype=torch.float64) * 2 / x.shape[-1])
    angle = positions[:, None] * omega
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_of_a_large_x_is_its_own_rotation_backwards(
    layout: Any, dtype: torch.dtype
) -> None:
    """x is cut into many parts: all of them must hand their gradients back."""
    rotary = RotaryPositionalEncoding(64, layout=layout)
    x = torch.randn(2, 8, 1500, 64).to(dtype).requires_grad_()
    assert x.numel() > 4 * PART
    direction = torch.randn(x.shape).to(dtype)
    (found,) = torch.autograd.grad(rotary(x), x, direction)
    backwards = rotary(direction, positions=-torch.arange(1500))
    tolerance = {torch.float32: 1e-6, torch.bfloat16: 2**-7}[dtype]
    torch.testing.assert_close(found, backwards, rtol=tolerance, atol=tolerance)


def test_a_large_x_is_the_obvious_code_forward_and_backward() -> None:
    rotary = RotaryPositionalEncoding(64, layout="split")
    x = torch.randn(2, 8, 1500, 64, dtype=torch.float64, requires_grad=True)
    direction = torch.randn_like(x)
    expected = rotated_by_hand(x, torch.arange(1500))
    (theirs,) = torch.autograd.grad(expected, x, direction)
    (ours,) = torch.autograd.grad(rotary(x), x, direction)
    torch.testing.assert_close(rotary(x), expected, rtol=0, atol=1e-11)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_backward_allocates_in_proportion_to_x(dtype: torch.dtype) -> None:
    """Four times the length takes four times the entries; gradients of slices would take more than
    ten times, since each is as large as x."""
    rotary = RotaryPositionalEncoding(64, layout="split")
    made = []
    for length in (2048, 8192):
        x = torch.randn(1, 8, length, 64).to(dtype).requires_grad_()
        total = rotary(x).sum()
        with Allocated() as allocated:
            total.backward()
        made.append(allocated.entries / x.numel())
    assert made[1] <= 1.1 * made[0]
    assert made[1] <= 12


@both_layouts
def test_rotate_cuts_a_large_x_as_its_shift_broadcasts(layout: Any) -> None:
    """A shift for each row of the batch has one entry along the axis that is cut, a shift for each
    position has all."""
    x = torch.randn(2, 8, 1500, 64)
    rows, places = torch.tensor([5, -70])[:, None, None], torch.arange(1500)
    by_rows, by_places = rotate(x, rows, layout=layout), rotate(x, places, layout=layout)
    both = rotate(x, rows + places, layout=layout)
    for n, start in enumerate((5, -70)):
        torch.testing.assert_close(by_rows[n, 3], rotate(x[n, 3], start, layout=layout))
        torch.testing.assert_close(both[n, 3], rotate(by_places[n, 3], start, layout=layout))
    torch.testing.assert_close(
        by_places[1, 2, 800:803], rotate(x[1, 2, 800:803], places[800:803], layout=layout)
    )


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rotate_of_a_long_vector(layout: Any, dtype: torch.dtype) -> None:
    """It has no axis along which it could be cut."""
    width = 2 * PART
    x = torch.randn(width).to(dtype)
    shape = (width // 2, 2) if layout == "interleaved" else (2, width // 2)
    omega = 10_000.0 ** (-torch.arange(width // 2, dtype=torch.float64) * 2 / width)
    a, b = x.double().view(shape).unbind(-1 if layout == "interleaved" else 0)
    cos, sin = (7 * omega).cos(), (7 * omega).sin()
    turned = (a * cos + b * sin, b * cos - a * sin)  # T(7) turns clockwise
    expected = torch.stack(turned, -1 if layout == "interleaved" else 0).flatten()
    found = rotate(x, by=7, layout=layout)
    tolerance = {torch.float64: 1e-14, torch.bfloat16: 2**-7}[dtype]
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
