"""The rows that modules keep: which, when they grow, who shares them, and what they take."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from backends import both_layouts
from torch import nn

from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    _cache,
    rotate,
    sinusoidal_encoding,
)

exactly = partial(torch.testing.assert_close, rtol=0, atol=0)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def rotary_of(**options: Any) -> RotaryPositionalEncoding:
    """A module that shares its rows with none of another test."""
    return RotaryPositionalEncoding(8, **{"layout": "split"} | options)


def rows_cached(module: Any) -> int:
    lengths = [len(rows[0]) for rows in module._cache.rows.values()]
    assert len(lengths) <= 1
    return sum(lengths)


# When it grows


def test_a_first_token_caches_a_few_rows_and_a_sequence_what_it_needs() -> None:
    rotary = rotary_of()
    rotary(torch.zeros(1, 8))
    assert rows_cached(rotary) == 2048
    rotary(torch.zeros(3000, 8))
    assert rows_cached(rotary) == 3000
    rotary(torch.zeros(1, 8), offset=3000)  # a quarter more, so that it grows rarely
    assert rows_cached(rotary) == 3750


@pytest.mark.parametrize("far", [1_048_575, 2**40])
def test_one_far_token_allocates_nothing(far: int) -> None:
    """And a hundred of them do not either, by offset or by positions."""
    rotary, x = rotary_of(), torch.randn(1, 8)
    rotary(x)
    for _ in range(100):
        found = rotary(x, offset=far)
        exactly(rotary(x, positions=torch.tensor([far])), found)
    torch.testing.assert_close(found, rotate(x, positions=[far], layout="split"))
    assert rows_cached(rotary) == 2048


def test_far_calls_that_go_on_are_worth_a_cache() -> None:
    """As after a prompt whose keys were loaded: each call costs as much as 256 rows, so rows up to
    20,000 are cached after 79 of them at the latest, and none after 60."""
    rotary, x = rotary_of(), torch.zeros(1, 8)
    cached = [rows_cached(rotary) for n in range(80) if rotary(x, offset=20_000 + n) is not None]
    assert cached[60] == 0
    assert cached[79] > 20_000


@pytest.mark.parametrize("build", [rotary_of, partial(SinusoidalPositionalEncoding, 8, base=300.0)])
def test_a_padded_batch_fills_the_cache(build: Any) -> None:
    """By positions as by an offset, however long it is; later steps then look rows up."""
    module = build()
    places = (torch.arange(5000) - torch.tensor([[0], [700]])).clamp(min=0)
    module(torch.zeros(2, 5000, 8), positions=places)
    assert rows_cached(module) == 5000


def test_ragged_decoding_fills_the_cache_as_it_runs_on() -> None:
    rotary, x = rotary_of(), torch.zeros(2, 1, 8)
    rotary(torch.zeros(2, 4096, 8))
    for n in range(4096, 5000):
        rotary(x, positions=torch.tensor([[n], [n - 1000]]))
        rotary(x, offset=torch.tensor([n, n - 1000]))
    assert 5000 <= rows_cached(rotary) <= 5000 * 5 // 4


def test_a_long_text_holds_at_most_a_quarter_more_than_it_needs() -> None:
    """Of 1½ numbers an entry, in the split layout: half of what cosines and sines of each entry,
    with doubling, would take."""
    rotary = RotaryPositionalEncoding(128, layout="split")
    rotary(torch.zeros(130_000, 128))
    for n in range(130_000, 140_000, 1000):
        rotary(torch.zeros(1000, 128), offset=n)
    (rows,) = rotary._cache.rows.values()
    size = sum(part.untyped_storage().nbytes() for part in rows)
    assert size <= 1.25 * 140_000 * 1.5 * 128 * 4
    assert size <= 256 * 2**20 / 2


def test_growing_computes_the_new_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rotary, asked = rotary_of(), []
    compute = rotary._compute_range

    def count(seq_len: int, start: int, *rest: Any) -> Any:
        asked.append((start, seq_len))
        return compute(seq_len, start, *rest)

    rotary(torch.zeros(40_960, 8))
    monkeypatch.setattr(rotary, "_compute_range", count)
    rotary(torch.zeros(1, 8), offset=40_960)
    assert asked == [(40_960, 10_240)]


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_have_the_same_bits_however_they_grew(layout: Any, dtype: torch.dtype) -> None:
    """One keeps growing from rows that are no whole task of a table."""
    at_once = RotaryPositionalEncoding(64, layout=layout)
    x = torch.randn(20_000, 64, dtype=dtype)
    expected = at_once(x)
    del at_once  # the cache goes with it
    step_by_step = RotaryPositionalEncoding(64, layout=layout)
    assert rows_cached(step_by_step) == 0
    parts = [step_by_step(part, offset=777 * n) for n, part in enumerate(x.split(777))]
    exactly(torch.cat(parts), expected)
    exactly(step_by_step(x), expected)


# Who shares it


def test_equal_modules_share_their_rows_and_others_do_not() -> None:
    layers = [rotary_of(base=500.0) for _ in range(4)]
    layers[0](torch.zeros(3, 8))
    assert {id(layer._cache) for layer in layers} == {id(layers[0]._cache)}
    assert rows_cached(layers[3]) == 2048
    for options in ({}, {"base": 400.0}, {"attention_factor": 2.0}, {"layout": "interleaved"}):
        assert rows_cached(rotary_of(**{"base": 500.0} | options if options else {})) == 0
    table = SinusoidalPositionalEncoding(8, base=500.0, layout="split")
    assert id(table._cache) != id(layers[0]._cache)


def test_the_rows_go_with_the_last_module() -> None:
    before = len(_cache._caches)
    layers = [rotary_of(base=512.0), rotary_of(base=512.0)]
    layers[0](torch.zeros(3, 8))
    assert len(_cache._caches) == before + 1
    del layers
    assert len(_cache._caches) == before


def test_a_subclass_with_rows_of_its_own_shares_none() -> None:
    class Still(RotaryPositionalEncoding):
        def _compute_range(self, seq_len: int, start: int, *rest: Any) -> Any:
            return super()._compute_range(seq_len, 0 * start, *rest)

    assert Still(8, layout="split")._cache is not rotary_of()._cache


# CUDA graphs: what they read stays, and what they would compute is not kept


def test_rows_that_a_captured_graph_reads_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    rotary, x = rotary_of(), torch.zeros(1, 8)
    rotary(x)
    (rows,) = rotary._cache.rows.values()
    monkeypatch.setattr(_cache, "is_capturing", lambda device: True)
    rotary(x, offset=5)
    rotary(x, offset=2048)  # beyond: computed in the graph, and not cached
    assert rows_cached(rotary) == 2048
    monkeypatch.setattr(_cache, "is_capturing", lambda device: False)
    rotary(torch.zeros(3000, 8))
    rotary(torch.zeros(5000, 8))
    assert rotary._cache.replaced == [rows]


def test_replaced_rows_that_no_graph_reads_are_freed() -> None:
    rotary = rotary_of()
    for length in (1, 3000, 5000):
        rotary(torch.zeros(length, 8))
    assert rotary._cache.replaced == []


# What reads it


def test_a_parameter_uses_cached_rows() -> None:
    module, x = rotary_of(), nn.Parameter(torch.randn(2, 3, 8))
    module(x)
    assert rows_cached(module) == 2048


@both_layouts
def test_a_compiled_graph_computes_rows_unless_one_offset_or_tables_give_them(
    layout: Any,
) -> None:
    """As the page of the library says. Angles are computed as integers, with shifts of bits."""
    x, ids = torch.randn(2, 3, 5, 8), torch.randint(0, 64, (2, 5))
    rotary = RotaryPositionalEncoding(8, layout=layout)
    rotary(x)
    read: list[dict[str, Any]] = [{"offset": 7}, {"tables": rotary.tables(ids)}]
    computed: list[dict[str, Any]] = [{"offset": torch.tensor([3, 40])}, {"positions": ids}]
    expected = [rotary(x, **call) for call in read + computed]
    computes_rows = []

    def record(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        operations = {getattr(node.target, "__name__", None) for node in graph.graph.nodes}
        computes_rows.append("rshift" in operations)
        return graph.forward

    graph = torch.compile(rotary, fullgraph=True, backend=record)
    for call, wanted in zip(read + computed, expected, strict=True):
        torch.testing.assert_close(graph(x, **call), wanted)
    # Before 2.7 each graph is taken for an exported one, which computes its rows.
    takes_cached_rows = hasattr(torch.compiler, "is_exporting")
    assert computes_rows == [not takes_cached_rows, False, True, True]


def test_a_compiled_graph_reads_the_cache_to_its_last_row() -> None:
    """As the page of the library advises: the longest sequence first, and then compile."""
    rotary, x = rotary_of(base=300.0), torch.randn(2, 3, 5, 8)
    longest = torch.randn(1, 3000, 8)
    rotary(longest)
    computes_rows = []

    def record(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        operations = {getattr(node.target, "__name__", None) for node in graph.graph.nodes}
        computes_rows.append("rshift" in operations)
        return graph.forward

    for call, offset in ((longest, 0), (x, 2995), (x, 2996)):
        torch._dynamo.reset()
        graph = torch.compile(rotary, fullgraph=True, backend=record)
        torch.testing.assert_close(
            graph(call, offset=offset), rotary_of(base=300.0)(call, offset=offset)
        )
    if hasattr(torch.compiler, "is_exporting"):
        assert computes_rows == [False, False, True]


@both_layouts
def test_integer_positions_in_range_are_looked_up(layout: Any, monkeypatch: Any) -> None:
    """And others are computed, without growing the cache without bound."""
    rotary = RotaryPositionalEncoding(8, layout=layout)
    axes = RotaryPositionalEncoding(8, layout=layout, pair_axes=[0, 1, 1, 0])
    table = SinusoidalPositionalEncoding(8, layout=layout)
    x = torch.randn(2, 3, 8)
    for module in (rotary, table, axes):
        module(x)
    far = torch.tensor([0, 10**9, -5])
    expected = x + sinusoidal_encoding(far, 8, layout=layout)
    exactly(table(x, positions=far), expected)
    torch.testing.assert_close(rotary(x, positions=far), rotate(x, positions=far, layout=layout))
    assert rows_cached(rotary) == rows_cached(table) == 2048
    for name in ("encode", "encode_axes", "contiguous_table"):
        for file in ("rotary", "sinusoidal"):
            monkeypatch.setattr(f"pe_lib.torch.{file}.{name}", None, raising=False)
    positions = torch.tensor([[0, 63, 7], [1, 1, 1]])
    for module in (rotary, table):
        module(x, positions=positions)
    rotary(x, offset=torch.tensor([0, 61]))
    rotary(x, tables=rotary.tables(positions))
    axes(x, positions=torch.stack((positions, positions + 5)))
    axes(x, tables=axes.tables(torch.stack((positions, positions + 5))))
