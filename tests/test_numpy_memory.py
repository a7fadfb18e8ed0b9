"""What a table costs beside itself, and what is kept of it."""

import tracemalloc
from typing import Any

import pytest
from backends import NUMPY, Backend, both

from pe_lib import _exact
from pe_lib.numpy import _powers


def peak(build: Any) -> tuple[int, int]:
    """Bytes of the result, and the most that was held beside it."""
    build()  # frequencies and seeds are kept from the first call
    tracemalloc.start()
    result = build()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result.nbytes, most - result.nbytes


@both
@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize(("seq_len", "d_model"), [(4096, 1024), (32768, 1024), (1024, 4096)])
def test_temporaries_are_a_few_per_cent(
    backend: Backend, seq_len: int, d_model: int, layout: Any
) -> None:
    result, beside = peak(lambda: backend.pe.sinusoidal_table(seq_len, d_model, layout=layout))
    assert beside <= 0.05 * result


@both
def test_encoding_of_given_positions_works_in_chunks(backend: Backend) -> None:
    positions = backend.array(range(4096), "float64")
    result, beside = peak(lambda: backend.pe.sinusoidal_encoding(positions, 1024))
    assert beside <= 0.05 * result


def test_constants_of_many_frequencies_are_not_all_kept() -> None:
    for base in range(200, 240):
        NUMPY.pe.sinusoidal_table(2, 4, base=base)
        NUMPY.pe.frequencies(4, base=base)
    for constants in (_exact.frequencies, _exact.turns, _powers):
        assert 0 < constants.cache_info().currsize <= 16
