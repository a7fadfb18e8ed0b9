"""What a result costs beside itself, on the host and on a device, and what is kept of it."""

import tracemalloc
from functools import partial
from typing import Any
from weakref import WeakSet

import pytest
import torch
from backends import NUMPY, TORCH, Backend, both, both_layouts
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pe_lib._angles as angles
from pe_lib._checks import frequency_config
from pe_lib.torch import _angles


def held(build: Any) -> tuple[int, int, int]:
    """Bytes of the result, the most that NumPy held beside it, and what stays when it is gone."""
    tracemalloc.start()
    result = build()
    _, most = tracemalloc.get_traced_memory()
    size = result.nbytes
    del result
    stays, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size, most - size, stays


@both
@both_layouts
def test_temporaries_of_a_table_are_a_few_per_cent(backend: Backend, layout: Any) -> None:
    """And in the split layout 64 rows of complex numbers. PyTorch's tables are NumPy's here."""
    for seq_len, d_model in ((32768, 1024), (1024, 4096)):
        build = partial(backend.pe.sinusoidal_table, d_model=d_model, layout=layout)
        build(200)  # constants are kept from the first call
        size, beside, _ = held(partial(build, seq_len))
        assert beside <= 0.08 * size + (layout == "split") * 64 * d_model // 2 * 16


@pytest.mark.parametrize(("step", "fraction"), [(1, 0), (1, 0.5), (60, 0)])
def test_encoding_of_given_positions_works_in_chunks(step: int, fraction: float) -> None:
    """Integers that lie close together are looked up in a table no larger than the result; those
    that lie far apart are not."""
    positions = [n * step + fraction for n in range(4096)]
    NUMPY.pe.sinusoidal_encoding(positions[:64], 1024)
    size, beside, _ = held(lambda: NUMPY.pe.sinusoidal_encoding(positions, 1024))
    assert beside <= 1.1 * size


def test_constants_of_many_frequencies_are_not_all_kept() -> None:
    def build(bases: range) -> Any:
        for base in bases:
            table = NUMPY.pe.sinusoidal_table(200, 512, base=base)
        return table

    _, _, few = held(lambda: build(range(200, 220)))
    _, _, more = held(lambda: build(range(300, 340)))
    assert more <= 1.1 * few + 100_000
    names = [angles.exact_frequencies, angles.block_of_rotations]
    assert all(0 < (cache.cache_info().maxsize or 0) <= 16 for cache in names)


def test_all_frequencies_share_one_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the host, where the tensors are NumPy's memory, and on a device, played by the CPU."""
    for name in ("_frequencies_of_devices", "_grids_of_devices"):
        monkeypatch.setattr(_angles, name, {})
    for constants_of in (_angles._eager_constants, _angles._device_constants):
        configs = [frequency_config(8, base, "paper") for base in (100, 100, 200)]
        grids = [constants_of(config, torch.device("cpu")).grid for config in configs]
        assert len({grid.data_ptr() for grid in grids}) == 1


class Peak(TorchDispatchMode):
    """The most bytes that tensors held at once, as a device's allocator would count them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive: WeakSet[torch.UntypedStorage] = WeakSet()
        self.most = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        tensors = (leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        self.alive.update(tensor.untyped_storage() for tensor in tensors)
        self.most = max(self.most, sum(storage.nbytes() for storage in self.alive))
        return result


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("device", "count"), [("meta", 2**17), ("cpu", 2**13)])
def test_what_tensors_hold_is_no_more_than_twice_the_result(
    device: str, count: int, dtype: torch.dtype
) -> None:
    """Many positions are made in parts, and long tables too. Meta tensors take a GPU's path."""
    positions = 2 * torch.arange(count, device=device)
    options: dict[str, Any] = {"device": device, "dtype": dtype}
    for make in (
        partial(TORCH.pe.sinusoidal_encoding, positions, 1024, **options),
        partial(TORCH.pe.sinusoidal_table, count, 1024, **options),
    ):
        with Peak() as peak:
            result = make()
        # NumPy makes the table of a CPU, and what it holds on the way is not seen.
        assert peak.most >= result.nbytes if device == "cpu" else peak.most > result.nbytes
        assert peak.most <= 2 * result.nbytes + 2**22


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_table_of_a_half_type_is_rounded_some_rows_at_a_time(dtype: torch.dtype) -> None:
    """NumPy holds 4096 rows of float32, and not the whole table."""
    build = partial(TORCH.pe.sinusoidal_table, d_model=512, dtype=dtype)
    build(200)
    tracemalloc.start()
    build(32_768)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 4096 * 512 * 4 <= most <= 1.5 * 4096 * 512 * 4


@both_layouts
def test_a_long_rotation_of_a_half_type_is_computed_in_parts(layout: Any) -> None:
    """Two results in float32 would be held at once otherwise, four times the result."""
    rotary = TORCH.pe.RotaryPositionalEncoding(64, layout=layout)
    rotary(torch.zeros(4096, 64))
    with Peak() as peak:
        x = torch.randn(8, 4096, 64, dtype=torch.bfloat16)
        result = rotary(x)
    assert result.nbytes < peak.most - x.nbytes <= 2.6 * result.nbytes + 3 * 4096 * 32 * 4


@both_layouts
@pytest.mark.parametrize("far", [0, 10**9])
def test_tables_of_several_axes_are_made_in_parts(layout: Any, far: int) -> None:
    """From cached rows, and computed."""
    axes = [0] * 16 + [1] * 24 + [2] * 24
    rotary = TORCH.pe.RotaryPositionalEncoding(128, layout=layout, pair_axes=axes)
    rotary(torch.zeros(16_384, 128))
    positions = torch.stack([torch.arange(16_384)] * 3) + far
    with Peak() as peak:
        tables = rotary.tables(positions)
    size = sum(part.untyped_storage().nbytes() for part in tables.factors)
    cached = sum(part.nbytes for part in next(iter(rotary._cache.rows.values())))
    assert peak.most - (cached if far == 0 else 0) <= 2.7 * size + 2**22


def test_a_long_rotation_holds_no_more_than_twice_its_result() -> None:
    """It is made in parts, and three times as much would be held at once otherwise. What is counted
    includes x and the cached cosines and sines, an eighth of x each."""
    rotary = TORCH.pe.RotaryPositionalEncoding(64, layout="split")
    rotary(torch.zeros(4096, 64))
    with Peak() as peak:
        x = torch.randn(8, 4096, 64)
        result = rotary(x)
    beside = peak.most - x.nbytes - 1.5 * 4096 * 64 * 4
    assert result.nbytes < beside <= 2.1 * result.nbytes
