"""What a table costs beside itself, on the host and on a device, and what is kept of it."""

import tracemalloc
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backends import NUMPY, TORCH, Backend, both
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def held(build: Any) -> tuple[int, int, int]:
    """Bytes of the result, the most that was held beside it, and what stays when it is gone."""
    tracemalloc.start()
    result = build()
    _, most = tracemalloc.get_traced_memory()
    size = result.nbytes
    del result
    stays, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size, most - size, stays


@both
@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_temporaries_of_a_table_are_a_few_per_cent(backend: Backend, layout: Any) -> None:
    for seq_len, d_model in ((32768, 1024), (1024, 4096)):
        backend.pe.sinusoidal_table(200, d_model)  # constants are kept from the first call
        size, beside, _ = held(lambda n=seq_len, d=d_model: backend.pe.sinusoidal_table(n, d))
        assert beside <= 0.08 * size


@both
@pytest.mark.parametrize("positions", [range(4096), [n + 0.5 for n in range(4096)]])
def test_encoding_of_given_positions_works_in_chunks(backend: Backend, positions: Any) -> None:
    """Integers that lie close together are looked up in a table no larger than the result."""
    values = backend.array(positions)
    backend.pe.sinusoidal_encoding(values[:64], 1024)
    size, beside, _ = held(lambda: backend.pe.sinusoidal_encoding(values, 1024))
    assert beside <= 1.1 * size


def test_constants_of_many_frequencies_are_not_all_kept() -> None:
    def build(bases: range) -> Any:
        for base in bases:
            table = NUMPY.pe.sinusoidal_table(200, 512, base=base)
        return table

    _, _, few = held(lambda: build(range(200, 220)))
    _, _, more = held(lambda: build(range(300, 340)))
    assert more <= 1.1 * few + 100_000


class Peak(TorchDispatchMode):
    """The most bytes that tensors held at once, as a device's allocator would count them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.views: Counter[int] = Counter()
        self.now = self.most = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.count(storage._cdata, storage.nbytes(), 1)
                weakref.finalize(tensor, self.count, storage._cdata, storage.nbytes(), -1)
        self.most = max(self.most, self.now)
        return result

    def count(self, storage: int, size: int, views: int) -> None:
        before = self.views[storage] > 0
        self.views[storage] += views
        self.now += size * ((self.views[storage] > 0) - before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_what_is_temporary_on_a_device_is_no_more_than_the_result(dtype: torch.dtype) -> None:
    """Long tables and many positions are made in parts. Meta tensors take the path of a GPU."""
    positions = torch.empty(2**17, dtype=torch.int64, device="meta")
    makers: list[Callable[[], torch.Tensor]] = [
        lambda: TORCH.pe.sinusoidal_table(2**17, 1024, device="meta", dtype=dtype),
        lambda: TORCH.pe.sinusoidal_encoding(positions, 1024, dtype=dtype),
    ]
    for make in makers:
        with Peak() as peak:
            result = make()
        assert result.nbytes < peak.most <= 2 * result.nbytes + 2**22
