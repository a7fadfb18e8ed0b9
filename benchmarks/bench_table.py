"""Time to build a float32 table, against the time to write its bytes."""

from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.peers import OURS, SLOW, TABLES
from pe_lib import _angles
from pe_lib._angles import block_of_rotations

SHAPES = [(512, 512), (4096, 1024), (32768, 1024)]
LENGTHS, WIDTHS = [2**k for k in range(9, 17)], [2**k for k in range(5, 13)]


def label(benchmark: Any, group: str, name: str, seq_len: int, d_model: int) -> None:
    benchmark.group = f"{group} {seq_len}x{d_model}"
    benchmark.extra_info.update(kind=group, maker=name, seq_len=seq_len, d_model=d_model)


@pytest.mark.parametrize(("seq_len", "d_model"), SHAPES)
@pytest.mark.parametrize("name", ["write", "copy", "torch write", "torch copy"])
def test_limit(benchmark: Any, name: str, seq_len: int, d_model: int) -> None:
    """Writing the bytes of the table to warm memory, and copying them."""
    label(benchmark, "limit", name, seq_len, d_model)
    warm = np.ones((seq_len, d_model), np.float32)
    tensor, target = torch.from_numpy(warm), np.zeros_like(warm)
    benchmark(
        {
            "write": lambda: warm.fill(0.5),
            "copy": lambda: np.copyto(target, warm),
            "torch write": lambda: tensor.fill_(0.5),
            "torch copy": lambda: torch.from_numpy(target).copy_(tensor),
        }[name]
    )


@pytest.mark.parametrize(("seq_len", "d_model"), SHAPES)
@pytest.mark.parametrize("name", TABLES)
def test_table(benchmark: Any, name: str, seq_len: int, d_model: int) -> None:
    """Each call starts at another position, so no finished table can be reused."""
    if name in SLOW and seq_len > 4096:
        pytest.skip("minutes")
    label(benchmark, "table", name, seq_len, d_model)
    starts = count(1000, 997)
    if name in SLOW:
        benchmark.pedantic(lambda: TABLES[name](next(starts), seq_len, d_model), rounds=2)
    else:
        benchmark(lambda: TABLES[name](next(starts), seq_len, d_model))


@pytest.mark.parametrize(("seq_len", "d_model"), SHAPES)
def test_first_table(benchmark: Any, seq_len: int, d_model: int) -> None:
    """The first table of a width in a process, which makes the constants that the others keep."""
    label(benchmark, "first", "pe_lib.numpy", seq_len, d_model)
    caches = (_angles.exact_frequencies, block_of_rotations)

    def forget() -> None:
        for cache in caches:
            cache.cache_clear()

    starts = count(1000, 997)
    build = TABLES["pe_lib.numpy"]
    benchmark.pedantic(lambda: build(next(starts), seq_len, d_model), setup=forget, rounds=20)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("seq_len", "d_model"), [(n, 512) for n in LENGTHS] + [(4096, d) for d in WIDTHS]
)
def test_growth(benchmark: Any, name: str, seq_len: int, d_model: int) -> None:
    """Cost against length and against width."""
    label(benchmark, "growth", name, seq_len, d_model)
    starts = count(1000, 997)
    benchmark(lambda: TABLES[name](next(starts), seq_len, d_model))
