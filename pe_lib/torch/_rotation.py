"""What the modules cache, and the rotation of pairs: x times cosines and sines that are ready."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from pe_lib._checks import Layout
from pe_lib.torch._device import HALF_DTYPES

PART = 2**18  # entries rotated at a time on a CPU, so that temporary tensors stay in its cache


class Encodings(NamedTuple):
    """Rows PE(x)."""

    rows: Tensor


class SplitFactors(NamedTuple):
    """Factors of a rotation in the split layout: the cosine of each pair, and for each entry the
    sine, with its sign, that its partner is multiplied by before it is added."""

    cos: Tensor
    sin: Tensor


class ComplexFactors(NamedTuple):
    """Factors of a rotation in the interleaved layout, for each pair: cos + i sin."""

    turns: Tensor


class PairFactors(NamedTuple):
    """The same as two real numbers, for compiled graphs."""

    cos: Tensor
    sin: Tensor


Factors = SplitFactors | ComplexFactors | PairFactors
Rows = TypeVar("Rows", bound=tuple[Tensor, ...])  # one of these types


def map_rows(change: Callable[..., Tensor], *rows: Rows) -> Rows:
    """Rows of the same type: ``change`` of their tensors, or of the tensors of several rows."""
    kind: Any = type(rows[0])
    changed: Rows = kind(*map(change, *rows))
    return changed


def as_factors(cos: Tensor, sin: Tensor, layout: Layout) -> Factors:
    """What `rotate_pairs` multiplies by, from one cosine and one sine for each pair."""
    if layout == "split":
        return SplitFactors(cos.contiguous(), torch.cat((-sin, sin), dim=-1))
    if torch.compiler.is_compiling():
        return PairFactors(cos, sin)
    return ComplexFactors(torch.complex(cos, sin))


def rotate_pairs(x: Tensor, factors: Factors, axis: int = -2) -> Tensor:
    """Each pair [a, b] of the first entries of x becomes [a cos − b sin, a sin + b cos]; entries
    beyond the pairs that have factors stay."""
    width = 2 * factors[0].shape[-1]
    if width == x.shape[-1]:
        return _rotate_in_parts(x, factors, axis)
    turned = _rotate_in_parts(x[..., :width], factors, axis)
    return torch.cat((turned, x[..., width:]), dim=-1)


def _rotate_in_parts(x: Tensor, factors: Factors, axis: int) -> Tensor:
    """On a CPU, a large x whose rotation takes several passes over memory is rotated in parts along
    ``axis``. They come from one split, whose gradient is one concatenation: gradients of slices
    would each be as large as x."""
    if torch.compiler.is_compiling():
        return _rotate_at_once(x, _without_complex_numbers(factors))
    if x.numel() <= PART or not _takes_passes(x, factors):
        return _rotate_at_once(x, factors)
    size = max(1, PART * x.shape[axis] // x.numel())
    parts = x.split(size, dim=axis)
    kind: Any = type(factors)
    factors_of_parts = map(kind, *[_split(each, size, axis, len(parts)) for each in factors])
    turned = [_rotate_at_once(*pair) for pair in zip(parts, factors_of_parts, strict=True)]
    return torch.cat(turned, dim=axis)


def _takes_passes(x: Tensor, factors: Factors) -> bool:
    """Whether the rotation of a tensor on the CPU reads and writes it several times."""
    if x.device.type != "cpu" or x.ndim == 1:
        return False
    return isinstance(factors, SplitFactors) or x.dtype in HALF_DTYPES


def _split(values: Tensor, size: int, axis: int, count: int) -> Sequence[Tensor]:
    """Parts of an axis, or the whole for each of them where the axis broadcasts."""
    if values.ndim < -axis or values.shape[axis] == 1:
        return (values,) * count
    parts: Sequence[Tensor] = values.split(size, dim=axis)
    return parts


def _rotate_at_once(x: Tensor, factors: Factors) -> Tensor:
    """Half types are computed in float32. (For one token, bfloat16() is faster than to(dtype).)"""
    if x.dtype == torch.bfloat16:
        return _rotate_in_layout(x.float(), factors).bfloat16()
    if x.dtype == torch.float16:
        return _rotate_in_layout(x.float(), factors).half()
    return _rotate_in_layout(x, factors)


def _rotate_in_layout(x: Tensor, factors: Factors) -> Tensor:
    if isinstance(factors, SplitFactors):
        return _rotate_split(x, factors)
    if isinstance(factors, ComplexFactors):
        return _rotate_complex(x, factors)
    return _rotate_reals(x, factors)


def _rotate_split(x: Tensor, factors: SplitFactors) -> Tensor:
    partners = x.roll(x.shape[-1] // 2, -1)
    own = x.unflatten(-1, (2, -1)) * factors.cos.unsqueeze(-2)
    return torch.addcmul(own.flatten(-2), partners, factors.sin)


def _rotate_complex(x: Tensor, factors: ComplexFactors) -> Tensor:
    pairs = x.unflatten(-1, (-1, 2))
    try:
        pairs = torch.view_as_complex(pairs)
    except RuntimeError:  # a complex number cannot start between two real ones
        pairs = torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))
    return torch.view_as_real(pairs * factors.turns).flatten(-2)


def _rotate_reals(x: Tensor, factors: PairFactors) -> Tensor:
    a, b = x[..., 0::2], x[..., 1::2]
    new_a = a * factors.cos - b * factors.sin
    new_b = b * factors.cos + a * factors.sin
    return torch.stack((new_a, new_b), dim=-1).flatten(-2)


def _without_complex_numbers(factors: Factors) -> Factors:
    """For a graph: compilers do not fuse complex numbers."""
    if isinstance(factors, ComplexFactors):
        return PairFactors(*torch.view_as_real(factors.turns).unbind(-1))
    return factors
