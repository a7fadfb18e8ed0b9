"""What a table costs beside itself, and what is kept of it."""

import tracemalloc
from typing import Any

import pytest
from backends import NUMPY, Backend, both


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
            table = NUMPY.pe.sinusoidal_table(200, 2048, base=base)
        return table

    _, _, few = held(lambda: build(range(200, 220)))
    _, _, more = held(lambda: build(range(300, 340)))
    assert more <= 1.1 * few + 100_000
