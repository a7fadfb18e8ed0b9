"""The two modules in the life of a model: training, moving, casting, saving, growing, decoding."""

import copy
import inspect
import io
import pickle
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from backends import NUMPY, both_layouts
from safetensors.torch import load_model, save_model
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from pe_lib import _angles
from pe_lib._checks import brief, frequency_config
from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    rotation_matrix,
    similarity,
    sinusoidal_encoding,
    sinusoidal_table,
)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_forward_adds_the_table_in_the_dtype_of_x(dtype: torch.dtype) -> None:
    x = torch.randn(2, 7, 16, dtype=dtype)
    for options in (
        {},
        {"layout": "split"},
        {"spacing": "tensor2tensor", "base": 500.0},
        {"frequencies": (1.0, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0.0)},
    ):
        module = SinusoidalPositionalEncoding(16, **options)
        module(x.float())  # and what it holds for other dtypes does not matter
        table = sinusoidal_table(200, 16, start=-2, dtype=dtype, **options)
        for offset in (0, 30, 60, 61, 0, -2, 150):  # within what is held, past it, and far off
            assert torch.equal(module(x, offset=offset), x + table[offset + 2 : offset + 9])
        assert torch.equal(module(x[0]), x[0] + table[2:9])
        starts = torch.tensor([[5], [9]]) + torch.arange(7)
        shifted = torch.stack([table[n + 2 : n + 9] for n in (5, 9)])
        atol = torch.finfo(dtype).eps * 8
        torch.testing.assert_close(module(x, positions=starts), x + shifted, rtol=0, atol=atol)
        far = torch.tensor([0, 10**6, -5, 3, 3, 64, 1], dtype=torch.int32)  # encoded, not looked up
        expected = x + sinusoidal_encoding(far, 16, dtype=dtype, **options)
        for positions in (far, far.float()):
            assert torch.equal(module(x, positions=positions), expected)


def test_dropout_comes_after_the_sum() -> None:
    module = SinusoidalPositionalEncoding(16, dropout=0.5)
    x = torch.randn(2, 7, 16)
    expected, dropped = module.eval()(x), module.train()(x)
    kept = dropped != 0
    assert 0.2 < kept.float().mean() < 0.8
    assert torch.allclose(dropped[kept], 2 * expected[kept])


def test_any_module_may_take_the_place_of_dropout() -> None:
    module, x = SinusoidalPositionalEncoding(16, dropout=0.5), torch.randn(2, 7, 16)
    expected = module.eval()(x)
    module.dropout = nn.Identity()
    assert torch.equal(module.train()(x), expected)


@pytest.mark.parametrize("kind", [SinusoidalPositionalEncoding, RotaryPositionalEncoding])
def test_a_compiled_module_is_copied_and_pickled(kind: Any) -> None:
    """As any module of PyTorch: the copy is not compiled, and follows its own mode."""
    is_sinusoidal = kind is SinusoidalPositionalEncoding
    if not is_sinusoidal:
        kind = partial(kind, layout="split")
    module, x = kind(16), torch.randn(2, 7, 16)
    if is_sinusoidal:
        module = kind(16, dropout=0.9)
    module.compile(backend="eager")
    copied = copy.deepcopy(module).eval()
    assert torch.equal(copied(x), kind(16)(x))
    assert torch.equal(pickle.loads(pickle.dumps(module)).eval()(x), kind(16)(x))


def test_no_call_reaches_what_a_module_holds() -> None:
    """Results are no views; far rows hold nothing; inference mode leaves a module that trains."""
    module, rotary = (
        SinusoidalPositionalEncoding(8),
        RotaryPositionalEncoding(8, layout="interleaved"),
    )
    with torch.inference_mode():
        for length in (1, 2, 3, 9):
            module(torch.zeros(1, length, 8)).fill_(7)
            rotary(torch.zeros(1, length, 8)).fill_(7)
        far = module(torch.zeros(1, 2, 8), offset=2**40)
    assert torch.equal(far[0], sinusoidal_table(2, 8, start=2**40))
    assert torch.equal(module(torch.zeros(1, 9, 8))[0], sinusoidal_table(9, 8))
    x = torch.randn(1, 9, 8, requires_grad=True)
    (module(x) ** 2).sum().backward()
    (rotary(x) ** 2).sum().backward()
    assert x.grad is not None


@both_layouts
def test_gradients_reach_x_and_positions(layout: Any) -> None:
    module = SinusoidalPositionalEncoding(6, layout=layout, scale_input=True)
    rotary = RotaryPositionalEncoding(6, layout=layout)
    x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    positions = torch.tensor([0.25, -3.7, 1000.1], dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradcheck
    assert check(module, (x,))
    assert check(lambda x, p: module(x, positions=p), (x, positions))
    assert check(lambda x, p: rotary(x, positions=p), (x, positions))
    assert check(lambda x, p: rotate(x, p, layout=layout), (x, positions))
    assert torch.autograd.gradgradcheck(lambda x: rotary(x), (x,))


def small_model() -> nn.Sequential:
    return nn.Sequential(
        nn.Embedding(11, 16),
        SinusoidalPositionalEncoding(16, scale_input=True),
        nn.Linear(16, 16),
        RotaryPositionalEncoding(16, layout="split"),
    )


@torch.no_grad()
def test_a_model_is_copied_saved_and_moved(tmp_path: Path) -> None:
    model, ids = small_model(), torch.arange(24).view(2, 12) % 11  # longer than max_len
    expected = model(ids)
    assert not [*model[1].parameters(), *model[3].parameters(), *model.buffers()]
    saved = io.BytesIO()
    torch.save(model, saved)
    saved.seek(0)
    for twin in (copy.deepcopy(model), torch.load(saved, weights_only=False)):
        assert torch.equal(twin(ids), expected)
        assert repr(twin) == repr(model)
    assert len(pickle.dumps(model[3])) < 2000
    save_model(model, str(tmp_path / "model.safetensors"))
    with torch.device("meta"):
        lazy = small_model()
        assert lazy(ids.to("meta")).shape == expected.shape
    load_model(lazy.to_empty(device="cpu"), str(tmp_path / "model.safetensors"))
    assert torch.equal(lazy(ids), expected)


ROTARY_ARGUMENTS = {
    "head_dim": 8,
    "base": 500_000.0,
    "frequencies": (1.0,) * 8,
    "attention_factor": 2.0,
    "rotary_dim": 8,
    "layout": "split",
    "seq_dim": -3,
    "pair_axes": (0,) * 8,
}
SINUSOIDAL_ARGUMENTS = {
    "d_model": 8,
    "base": 500.0,
    "spacing": "tensor2tensor",
    "frequencies": (1.0,) * 8,
    "layout": "split",
    "scale_input": True,
    "seq_dim": 0,
}


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        (RotaryPositionalEncoding, ROTARY_ARGUMENTS),
        (SinusoidalPositionalEncoding, SINUSOIDAL_ARGUMENTS),
    ],
)
def test_settings_are_fixed_when_a_module_is_made(build: Any, arguments: dict[str, Any]) -> None:
    """Rows are cached with them, so a change would reach some rows and not others. It is refused
    before the first call and after it, and in a copy. The one argument that may change is the rate
    of dropout, which torch.nn.Dropout keeps."""
    if build is RotaryPositionalEncoding:
        build = partial(build, layout="interleaved")
    module, x = build(16), torch.randn(1, 2, 3, 16)
    expected = module(x)
    assert set(arguments) == set(inspect.signature(build).parameters) - {"dropout"}
    for changed in (build(16), module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        for name, value in arguments.items():
            words = f"{name} is fixed when a module is made, got {brief(value)}: make a new module"
            with pytest.raises(AttributeError, match=f"^{re.escape(words)}$"):
                setattr(changed, name, value)
        changed.note = "other attributes may be set"
        assert torch.equal(changed.eval().double().train()(x), expected)


def test_a_subclass_may_have_settings_of_its_own() -> None:
    class Scaled(RotaryPositionalEncoding):
        def __init__(self, head_dim: int, scale_of_queries: float) -> None:
            super().__init__(head_dim, layout="split")
            self.scale_of_queries = scale_of_queries

    assert Scaled(8, 0.5).scale_of_queries == 0.5


def test_the_device_is_the_one_asked_for() -> None:
    with torch.device("meta"):
        table = sinusoidal_table(3, 8, dtype=torch.bfloat16, device="cpu")
    assert torch.equal(table, sinusoidal_table(3, 8, dtype=torch.bfloat16))
    x, positions = torch.zeros(3, 8, device="meta"), torch.arange(3, device="meta")
    for result in (
        sinusoidal_encoding(torch.arange(3), 8, device="meta"),
        rotate(x, positions),
        rotate(x, torch.tensor(3)),  # a number, wherever it lies
        rotation_matrix(1, 8, device="meta"),
        similarity(torch.arange(3), 8, device="meta"),
        RotaryPositionalEncoding(8, layout="split")(x, positions=positions),
    ):
        assert result.device.type == "meta"


@both_layouts
@pytest.mark.parametrize("rotary_dim", [8, 4])
def test_rotary_turns_back_by_offset_positions_or_tables(layout: Any, rotary_dim: int) -> None:
    rotary = RotaryPositionalEncoding(8, rotary_dim=rotary_dim, layout=layout)
    q = torch.randn(4, 5, 8, dtype=torch.float64)
    starts = torch.tensor([[7], [0], [10**6], [2]])
    positions = starts + torch.arange(5)  # as in a batch of packed sequences
    turned = rotate(q[..., :rotary_dim], -positions, layout=layout)
    expected = torch.cat((turned, q[..., rotary_dim:]), dim=-1)
    tables = rotary.tables(positions, dtype=torch.float64)
    for found in (
        torch.stack([rotary(q[n], offset=int(positions[n, 0])) for n in range(4)]),
        rotary(q, positions=positions),
        rotary(q, tables=tables),
    ):
        assert torch.allclose(found, expected, rtol=0, atol=1e-14)


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_long_sequences_are_turned_in_parts_without_changing_a_bit(
    dtype: torch.dtype, layout: Any
) -> None:
    """A decoder with a cache, past max_len too, has what the whole sequence has. Half types are
    turned in float32."""
    x = torch.randn(1, 32, 300, 64).to(dtype)
    rotary = RotaryPositionalEncoding(64, layout=layout)
    steps = [rotary(x[:, :, n : n + 1], offset=n) for n in range(300)]
    assert torch.equal(torch.cat(steps, dim=-2), rotary(x))
    assert torch.equal(rotary(x), rotary(x.float()).to(dtype))
    assert torch.equal(rotate(x, 5, layout=layout)[:, 3:4], rotate(x[:, 3:4], 5, layout=layout))


class Kernels(TorchDispatchMode):
    """Counts the operators that run, and apart from them the views, which start no kernel."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = self.views = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not op.is_view
        self.views += op.is_view
        return op(*args, **(kwargs or {}))


@both_layouts
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_decode_step_is_a_few_kernels(layout: Any, dtype: torch.dtype) -> None:
    """A complex product, or three of real numbers; before and after it half types are cast."""
    most = {"interleaved": 1, "split": 3}[layout] + 2 * (dtype == torch.bfloat16)
    rotary, x = RotaryPositionalEncoding(64, layout=layout), torch.randn(1, 32, 1, 64, dtype=dtype)
    rotary(x)
    with Kernels() as by_offset:
        rotary(x, offset=5)
    tables = rotary.tables(torch.arange(5, 6))
    with Kernels() as by_tables:
        rotary(x, tables=tables)
    assert 1 <= by_offset.count <= most
    assert 1 <= by_tables.count <= most + (layout == "interleaved")


@both_layouts
def test_an_offset_for_each_row_costs_a_look_and_a_gather(layout: Any) -> None:
    """Beside a step from ready tables: the smallest and the largest offset are looked at, and each
    table is gathered from once."""
    rotary, x = RotaryPositionalEncoding(64, layout=layout), torch.randn(8, 4, 1, 64)
    starts = torch.arange(8)
    tables = rotary.tables(starts[:, None])
    with Kernels() as by_tables:
        rotary(x, tables=tables)
    with Kernels() as by_offsets:
        rotary(x, offset=starts)
    look = 3  # one operator, and two numbers that come out of it
    assert by_offsets.count <= by_tables.count + look + len(tables.factors)


@pytest.mark.parametrize("seq_len", [1, 64 * 40, 64 * 129 + 5])
def test_threads_share_a_table_without_changing_a_bit(seq_len: int) -> None:
    config = frequency_config(512, 10_000.0, "paper")
    table = partial(_angles.table, seq_len, 123_456, config, "interleaved", "float32")
    expected = torch.from_numpy(NUMPY.pe.sinusoidal_table(seq_len, 512, start=123_456))
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            assert torch.equal(torch.from_numpy(table(threads=threads)), expected)
            assert torch.equal(sinusoidal_table(seq_len, 512, start=123_456), expected)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_scaling_is_the_papers(dtype: torch.dtype) -> None:
    x = torch.randn(64, 50, 6).to(dtype)
    module = SinusoidalPositionalEncoding(6, scale_input=True)
    exact = x.double() * 6**0.5 + sinusoidal_table(50, 6, dtype=dtype).double()
    assert (module(x).double() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()


@both_layouts
def test_rotary_takes_views_and_half_types(layout: Any) -> None:
    flat = torch.randn(1 + 2 * 3 * 8)
    x = flat[1:].view(2, 3, 8)  # starts between two complex numbers
    rotary = RotaryPositionalEncoding(8, layout=layout)
    assert torch.equal(rotary(x), rotary(x.clone()))
    expanded = x[:1].expand(4, 3, 8)
    assert torch.equal(rotary(expanded)[3], rotary(x)[0])
    assert torch.equal(rotary(x.mT.contiguous().mT), rotary(x))
    for dtype in (torch.float16, torch.bfloat16):
        half = rotary(x.to(dtype), offset=100_000)
        assert torch.equal(half, rotary(x.to(dtype).float(), offset=100_000).to(dtype))
    for shape in ((0, 3, 8), (2, 0, 8)):
        assert rotary(torch.zeros(shape)).shape == shape
        assert SinusoidalPositionalEncoding(8)(torch.zeros(shape)).shape == shape
