"""The two modules in the life of a model: training, moving, casting, saving, growing."""

import copy
import io
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import pe_lib.numpy
import pe_lib.torch
from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotate,
    rotation_matrix,
    similarity,
    sinusoidal_encoding,
    sinusoidal_table,
)

LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "split"])


def test_forward_adds_the_table() -> None:
    x = torch.randn(2, 7, 16)
    for options in ({}, {"layout": "split"}, {"spacing": "tensor2tensor", "base": 500.0}):
        module = SinusoidalPositionalEncoding(16, 32, **options)
        table = sinusoidal_table(40, 16, **options)
        assert torch.equal(module(x), x + table[:7])
        assert torch.equal(module(x, offset=30), x + table[30:37])
        assert torch.equal(module(x[0]), x[0] + table[:7])


def test_scaling_and_dropout_are_the_papers() -> None:
    x = torch.randn(2, 7, 16)
    module = SinusoidalPositionalEncoding(16, scale_input=True, dropout=0.5)
    table = sinusoidal_table(7, 16)
    assert torch.allclose(module.eval()(x), 4 * x + table)
    torch.manual_seed(0)
    dropped = module.train()(x)
    kept = dropped != 0
    assert 0.2 < kept.float().mean() < 0.8
    assert torch.allclose(dropped[kept], 2 * (4 * x + table)[kept])


def test_dropout_of_one_leaves_nothing() -> None:
    assert not SinusoidalPositionalEncoding(8, dropout=1)(torch.ones(1, 3, 8)).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scaling_of_half_types_rounds_once(dtype: torch.dtype) -> None:
    x = torch.randn(64, 50, 6).to(dtype)
    module = SinusoidalPositionalEncoding(6, 64, scale_input=True).to(dtype)
    exact = x.double() * 6**0.5 + module.table[:50].double()
    assert (module(x).double() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.float64, torch.bfloat16])
def test_explicit_positions_are_encoded_not_looked_up(dtype: torch.dtype) -> None:
    module, x = SinusoidalPositionalEncoding(8, max_len=4), torch.zeros(2, 3, 8)
    positions = torch.tensor([[0, 10**6, -5], [3, 3, 64]]).to(dtype)
    assert torch.equal(module(x, positions=positions), sinusoidal_encoding(positions, 8))
    assert torch.equal(module(x, positions=positions[0])[1], sinusoidal_encoding(positions[0], 8))
    assert len(module.table) == 4


def test_positions_and_an_offset_round_alike() -> None:
    x, module = torch.randn(4, 64, 32).bfloat16(), SinusoidalPositionalEncoding(32)
    assert torch.equal(module(x, positions=torch.arange(64)), module(x))


def test_negative_and_distant_offsets() -> None:
    module, x = SinusoidalPositionalEncoding(8, max_len=4), torch.zeros(1, 3, 8)
    assert torch.equal(module(x, offset=-2)[0], sinusoidal_table(3, 8, start=-2))
    assert torch.equal(module(x, offset=100)[0], sinusoidal_table(103, 8)[100:])


def test_growth_leaves_the_buffer_and_returns_no_view_of_a_table() -> None:
    module = SinusoidalPositionalEncoding(8, max_len=4)
    result = module(torch.zeros(1, 5, 8))
    result.fill_(7)
    assert torch.equal(module.table, sinusoidal_table(4, 8))
    assert module.longer is not None
    assert torch.equal(module.longer, sinusoidal_table(8, 8))
    kept = module.longer
    assert torch.equal(module(torch.zeros(1, 7, 8))[0], sinusoidal_table(7, 8))
    assert module.longer is kept
    assert module.bfloat16().longer is None
    assert torch.equal(
        module(torch.zeros(1, 9, 8))[0], sinusoidal_table(9, 8, dtype=torch.bfloat16).float()
    )
    empty = SinusoidalPositionalEncoding(8, max_len=0)
    assert torch.equal(empty(torch.zeros(1, 5, 8))[0], sinusoidal_table(5, 8))


def test_models_are_averaged_though_one_of_them_has_read_further() -> None:
    module = SinusoidalPositionalEncoding(8, max_len=4)
    model = nn.Sequential(nn.Linear(8, 8), module)
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    for length in (9, 20):
        model(torch.zeros(1, length, 8))
        average.update_parameters(model)
    (table,) = (one for name, one in average.named_buffers() if name.endswith("table"))
    assert torch.equal(table, sinusoidal_table(4, 8))


def test_nothing_is_kept_past_the_end_on_a_device() -> None:
    module = SinusoidalPositionalEncoding(8, max_len=4).to("meta")
    assert module(torch.zeros(1, 9, 8, device="meta")).shape == (1, 9, 8)
    assert module.longer is None


def test_growth_in_inference_mode_leaves_a_module_that_trains() -> None:
    module, x = SinusoidalPositionalEncoding(8, max_len=2), torch.zeros(1, 9, 8)
    with torch.inference_mode():
        module(x)
        module.double()
        made = SinusoidalPositionalEncoding(8, max_len=2)
    for table in (module.table, made.table, module.longer):
        assert table is None or not table.is_inference()
    module.float()
    with torch.inference_mode():
        module(x)
        assert module.longer is not None
        assert not module.longer.is_inference()
        RotaryPositionalEncoding(8)(x, positions=torch.arange(9))
    leaf = x.clone().requires_grad_()
    (module(leaf) ** 2).sum().backward()
    assert leaf.grad is not None
    positions = torch.arange(9.0, requires_grad=True)
    module(x, positions=positions).sum().backward()
    assert positions.grad is not None


@LAYOUTS
def test_gradients_reach_x_and_positions(layout: Any) -> None:
    module = SinusoidalPositionalEncoding(6, 8, layout=layout, scale_input=True).double()
    rotary = RotaryPositionalEncoding(6, layout=layout)
    x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    positions = torch.tensor([0.25, -3.7, 1000.1], dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradcheck
    assert check(module, (x,))
    assert check(rotary, (x,))
    assert check(lambda x, p: module(x, positions=p), (x, positions))
    assert check(lambda x, p: rotary(x, positions=p), (x, positions))
    assert check(lambda x, p: rotate(x, p, layout=layout), (x, positions))
    assert torch.autograd.gradgradcheck(lambda x: rotary(x), (x,))


def test_gradient_of_an_encoding_is_its_frequency_times_the_turned_pair() -> None:
    p = torch.tensor([3.0, 1e6 + 0.5], dtype=torch.float64, requires_grad=True)
    encoding = sinusoidal_encoding(p, 2, dtype=torch.float64)
    (slope,) = torch.autograd.grad(encoding[:, 0].sum(), p)
    assert torch.allclose(slope, encoding[:, 1], rtol=1e-12)


def test_state_dict_is_empty_and_an_older_one_loads() -> None:
    module = SinusoidalPositionalEncoding(8, max_len=4)
    assert module.state_dict() == {}
    assert RotaryPositionalEncoding(8).state_dict() == {}
    module.load_state_dict({}, strict=True)
    model = nn.Sequential(nn.Linear(8, 8), SinusoidalPositionalEncoding(8, max_len=64))
    shorter = nn.Sequential(nn.Linear(8, 8), SinusoidalPositionalEncoding(8, max_len=4))
    model.load_state_dict(shorter.state_dict(), strict=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_casts_round_the_table_anew(dtype: torch.dtype) -> None:
    """A half model and back keeps every digit, and no cast rounds twice."""
    module = SinusoidalPositionalEncoding(16, max_len=2000)
    original = module.table.clone()
    module.to(dtype)
    assert module.table.dtype == dtype
    assert torch.equal(module.table, sinusoidal_table(2000, 16, dtype=dtype))
    x = torch.randn(1, 3, 16, dtype=dtype)
    assert module(x).dtype == dtype
    assert torch.equal(module.float().table, original)
    module.half().bfloat16()
    assert torch.equal(module.table, sinusoidal_table(2000, 16, dtype=torch.bfloat16))


def test_result_has_the_dtype_of_x() -> None:
    module = SinusoidalPositionalEncoding(8)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.zeros(1, 3, 8, dtype=dtype)
        assert module(x).dtype == dtype
        assert module(x, positions=torch.arange(3)).dtype == dtype
        assert RotaryPositionalEncoding(8)(x).dtype == dtype


def test_default_dtype_is_respected() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert SinusoidalPositionalEncoding(8).table.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_meta_to_empty_and_reset_parameters() -> None:
    with torch.device("meta"):
        module = SinusoidalPositionalEncoding(8, max_len=10)
        shape = module(torch.zeros(2, 12, 8)).shape
    assert module.table.device.type == "meta"
    assert shape == (2, 12, 8)
    module = SinusoidalPositionalEncoding(8, max_len=10).to("meta").to_empty(device="cpu")
    module.reset_parameters()
    assert torch.equal(module.table, sinusoidal_table(10, 8))
    module.table.fill_(0)
    module.reset_parameters()
    assert torch.equal(module.table, sinusoidal_table(10, 8))


def test_meta_tensors_pass_through_every_function() -> None:
    x, positions = torch.zeros(3, 8, device="meta"), torch.arange(3, device="meta")
    for result in (
        sinusoidal_table(3, 8, device="meta"),
        sinusoidal_table(5000, 8, device="meta", layout="split", dtype=torch.bfloat16)[:3],
        sinusoidal_encoding(positions, 8),
        rotate(x, positions),
        RotaryPositionalEncoding(8)(x),
        RotaryPositionalEncoding(8)(x, positions=positions),
    ):
        assert (result.device.type, result.shape) == ("meta", (3, 8))


def test_the_result_lies_on_the_device_that_is_asked_for() -> None:
    for function in (sinusoidal_encoding, similarity):
        assert function(torch.arange(3), 8, device="meta").device.type == "meta"
    with torch.device("meta"):
        table = sinusoidal_table(3, 8, dtype=torch.bfloat16, device="cpu")
    assert torch.equal(table, sinusoidal_table(3, 8, dtype=torch.bfloat16))


def test_positions_that_numpy_cannot_view_are_encoded() -> None:
    lazily_negated = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128).conj().imag
    assert torch.equal(sinusoidal_encoding(lazily_negated, 8), sinusoidal_encoding([-2, 4], 8))


def round_trip(module: nn.Module) -> nn.Module:
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), round_trip]
)
def test_copies_are_equal_and_separate(copied: Any) -> None:
    x = torch.randn(1, 6, 8)
    module = SinusoidalPositionalEncoding(8, max_len=4, base=77, layout="split")
    rotary = RotaryPositionalEncoding(8, base=77, layout="split")
    twin = copied(module)
    assert torch.equal(twin(x), module(x))
    assert torch.equal(copied(rotary)(x), rotary(x))
    assert repr(twin) == repr(module)
    twin.table.zero_()
    assert module.table.any()


def test_repr_shows_the_settings() -> None:
    module = SinusoidalPositionalEncoding(8, max_len=4, layout="split", scale_input=True)
    assert "8, max_len=4, base=10000, spacing='paper', layout='split', scale_input=True" in repr(
        module
    )
    assert "8, base=10000, layout='interleaved'" in repr(RotaryPositionalEncoding(8))


@LAYOUTS
def test_rotary_scores_depend_on_the_distance_alone(layout: Any) -> None:
    rotary = RotaryPositionalEncoding(8, layout=layout)
    q, k = torch.randn(2, 4, 5, 8, dtype=torch.float64).unbind(0)
    near = rotary(q) @ rotary(k).mT
    far = rotary(q, offset=10**6) @ rotary(k, offset=10**6).mT
    assert torch.allclose(near, far, atol=1e-13)
    positions = torch.arange(5) + 7
    assert torch.allclose(rotary(q, offset=7), rotary(q, positions=positions), atol=1e-14)
    turned = rotate(q, -positions, layout=layout)
    assert torch.allclose(rotary(q, offset=7), turned, atol=1e-14)


def llama(x: Tensor, base: float) -> Tensor:
    """Rotary embedding as Llama writes it, in float64."""
    half = x.shape[-1] // 2
    omega = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[-2]).unsqueeze(-1) * omega
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def test_rotary_has_the_sign_and_layout_of_llama() -> None:
    q = torch.randn(2, 4, 30, 16, dtype=torch.float64)
    ours = RotaryPositionalEncoding(16, base=500_000, layout="split")(q)
    assert torch.allclose(ours, llama(q, 500_000), atol=1e-13)


def test_rotary_takes_views_and_half_types() -> None:
    flat = torch.randn(1 + 2 * 3 * 8)
    x = flat[1:].view(2, 3, 8)  # starts between two complex numbers
    rotary = RotaryPositionalEncoding(8)
    assert torch.equal(rotary(x), rotary(x.clone()))
    expanded = x[:1].expand(4, 3, 8)
    assert torch.equal(rotary(expanded)[3], rotary(x)[0])
    assert torch.equal(rotary(x.mT.contiguous().mT), rotary(x))
    assert rotary(x[:0]).shape == (0, 3, 8)
    for dtype in (torch.float16, torch.bfloat16):
        half = rotary(x.to(dtype), offset=100_000)
        assert torch.equal(half, rotary(x.to(dtype).float(), offset=100_000).to(dtype))


def test_zero_size_batches() -> None:
    module = SinusoidalPositionalEncoding(8)
    for shape in ((0, 3, 8), (2, 0, 8)):
        assert module(torch.zeros(shape)).shape == shape
        assert RotaryPositionalEncoding(8)(torch.zeros(shape)).shape == shape


@pytest.mark.parametrize("seq_len", [1, 64 * 40, 64 * 129 + 5])
def test_threads_share_a_table_without_changing_a_bit(seq_len: int) -> None:
    build = partial(pe_lib.numpy.sinusoidal_table, seq_len, 512, start=123_456)
    expected = torch.from_numpy(build())
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            assert torch.equal(torch.from_numpy(build(workers=threads)), expected)
            assert torch.equal(sinusoidal_table(seq_len, 512, start=123_456), expected)
    finally:
        torch.set_num_threads(before)


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_device_encodes_many_positions_in_parts(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, layout: Any
) -> None:
    monkeypatch.setattr("pe_lib.torch._values", lambda positions: None)  # as on a device
    positions = 1e6 * torch.rand(7, 5, dtype=torch.float64)
    whole = sinusoidal_encoding(positions, 8, dtype=dtype, layout=layout)
    monkeypatch.setattr("pe_lib.torch.CHUNK", 12)
    assert torch.equal(sinusoidal_encoding(positions, 8, dtype=dtype, layout=layout), whole)
    assert torch.equal(sinusoidal_encoding(positions[:0], 8, dtype=dtype), whole[:0])


def test_the_constants_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pe_lib.torch.KEPT", 3)
    built: list[int] = []

    def build(key: int) -> Tensor:
        built.append(key)
        return torch.zeros(1)

    kept = pe_lib.torch._Kept(build)
    for other in range(10):
        kept(-1)  # wanted each time, between others
        kept(other)
    assert built == [-1, *range(10)]
    assert len(kept.kept) == 3


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def fill(*args: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            failed.set()
            raise MemoryError
        assert failed.wait(timeout=20)

    monkeypatch.setattr(pe_lib.numpy, "_fill_blocks", fill)
    with pytest.raises(MemoryError):
        pe_lib.numpy.sinusoidal_table(4096, 512, workers=2)


MPS = torch.device("mps")


class OnMps(Tensor):
    """A tensor that says that it lies on a device without float64."""


class PlayMps(TorchFunctionMode):
    """That device, played by the CPU. It refuses float64, as the real one does."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function == Tensor.device.__get__ and isinstance(args[0], OnMps):
            return MPS
        if function is Tensor.cpu:
            return args[0].as_subclass(Tensor)
        if function is Tensor.to and args[1:] == (MPS,):
            found = args[0].as_subclass(OnMps)
        elif kwargs.get("device") == MPS:
            found = function(*args, **kwargs | {"device": "cpu"}).as_subclass(OnMps)
        else:
            found = function(*args, **kwargs)
        if isinstance(found, OnMps) and found.dtype == torch.float64:
            raise TypeError("MPS has no float64")
        return found


def test_a_device_without_float64_gets_the_same_numbers() -> None:
    x = torch.randn(3, 8)
    module = SinusoidalPositionalEncoding(8, 4)
    rotary = RotaryPositionalEncoding(8, layout="split")
    calls: list[Callable[[Tensor, Any], Tensor]] = [
        lambda x, device: sinusoidal_table(3, 8, device=device),
        lambda x, device: sinusoidal_encoding([0, 0.5, 3], 8, device=device),
        lambda x, device: sinusoidal_encoding(torch.arange(3.0).double(), 8, device=device),
        lambda x, device: sinusoidal_encoding(torch.arange(3).to(device), 8),
        lambda x, device: rotation_matrix(1, 8, dtype=torch.float32, device=device),
        lambda x, device: rotate(x, 7),
        lambda x, device: rotate(x, [1, 2, 3], layout="split"),
        lambda x, device: module(x.unsqueeze(0), positions=[0, 1, 2.5]),
        lambda x, device: rotary(x),
        lambda x, device: rotary(x, positions=[0, 1, 2.5]),
    ]
    for call in calls:
        expected = call(x, "cpu")
        with PlayMps():
            module.table = module.table.to(MPS)
            found = call(x.to(MPS), MPS)
        module.table = module.table.as_subclass(Tensor)
        assert isinstance(found, OnMps)
        assert torch.allclose(found.as_subclass(Tensor), expected, rtol=0, atol=1e-6)
    with PlayMps(), pytest.raises(TypeError, match="no float64"):
        similarity(3, 8, device=MPS)


def test_embedding_scaled_encoded_dropped_trains_beyond_max_len() -> None:
    """The first lines of the paper's model, as a reader would write them."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Embedding(11, 16),
        SinusoidalPositionalEncoding(16, max_len=8, dropout=0.1, scale_input=True),
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
        nn.Linear(16, 11),
    )
    tokens = torch.randint(0, 11, (4, 24))
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())
