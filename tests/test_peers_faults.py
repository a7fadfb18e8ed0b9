"""Faults met in other libraries' positional encodings, each turned into a test of this one.

They were reproduced in positional-encodings 6.0.3, x-transformers 2.31.10, transformers 5.23.0,
diffusers 0.42.1, torchtune, keras-hub and the common tutorials.
"""

import inspect

import numpy as np
import pytest
import torch
from backends import Backend, both

import pe_lib.numpy
import pe_lib.torch
from pe_lib.torch import RotaryPositionalEncoding, SinusoidalPositionalEncoding, sinusoidal_table


def test_integer_embeddings_do_not_make_an_integer_table() -> None:
    """positional-encodings builds its table in the dtype of x."""
    with pytest.raises(TypeError, match="int64"):
        SinusoidalPositionalEncoding(8)(torch.zeros(1, 3, 8, dtype=torch.int64))


def test_writing_into_a_result_changes_no_later_one() -> None:
    """positional-encodings returns its cache."""
    module, x = SinusoidalPositionalEncoding(8), torch.zeros(1, 3, 8)
    module(x).fill_(9)
    assert torch.equal(module(x)[0], sinusoidal_table(3, 8))


def test_every_documented_argument_works() -> None:
    """x-transformers documents seq_start_pos, which raises."""
    module, rotary, x = (
        SinusoidalPositionalEncoding(8),
        RotaryPositionalEncoding(8),
        torch.ones(2, 3, 8),
    )
    starts = torch.tensor([[5], [9]]) + torch.arange(3)
    for layer in (module, rotary):
        shifted = layer(x, positions=starts)
        assert torch.allclose(shifted[0], layer(x, offset=5)[0])
        assert torch.allclose(shifted[1], layer(x, offset=9)[1])


def test_the_table_is_right_from_construction_and_after_moves() -> None:
    """Marian's is random until the model's own initialiser runs."""
    with torch.device("meta"):
        lazy = SinusoidalPositionalEncoding(8, 5)
    for module in (SinusoidalPositionalEncoding(8, 5), lazy.to_empty(device="cpu")):
        assert torch.equal(module(torch.zeros(1, 5, 8))[0], sinusoidal_table(5, 8))


def test_an_offset_survives_growth() -> None:
    """speech_to_text forgets past_key_values_length when its table grows."""
    module, x = SinusoidalPositionalEncoding(8, 4), torch.zeros(1, 3, 8)
    assert torch.equal(module(x, offset=50)[0], sinusoidal_table(53, 8)[50:])
    assert torch.equal(module(x, offset=51)[0], sinusoidal_table(54, 8)[51:])


@both
def test_two_dimensions_give_no_nan(backend: Backend) -> None:
    """diffusers divides by d/2 − 1 = 0."""
    for spacing in ("paper", "tensor2tensor"):
        table = backend.numpy(backend.pe.sinusoidal_table(3, 2, spacing=spacing))
        np.testing.assert_allclose(table[:, 0], np.sin(np.arange(3)), atol=1e-7)


def test_past_max_len_there_is_no_error() -> None:
    """torchtune raises an obscure reshape error."""
    assert SinusoidalPositionalEncoding(8, 4)(torch.zeros(1, 100, 8)).shape == (1, 100, 8)
    assert RotaryPositionalEncoding(8)(torch.zeros(1, 100, 8)).shape == (1, 100, 8)


@both
def test_odd_width_says_so(backend: Backend) -> None:
    """The tutorial, d2l and diffusers crash on a shape."""
    with pytest.raises(ValueError, match="d_model must be a positive even integer, got 7"):
        backend.pe.sinusoidal_table(3, 7)


def test_one_wide_embeddings_are_not_broadcast() -> None:
    """The tutorial, d2l and diffusers add a (…, 1) tensor to a table without a word."""
    with pytest.raises(ValueError, match="last axis of x must be d_model = 8, got 1"):
        SinusoidalPositionalEncoding(8)(torch.zeros(1, 3, 1))


def test_rotary_keeps_far_positions_in_bfloat16() -> None:
    """Llama's, cast with its model, keeps frequencies in bfloat16: off by 1.56 near 10⁶."""
    x = torch.randn(1, 64, 16)
    rotary = RotaryPositionalEncoding(16).to(torch.bfloat16)
    exact = RotaryPositionalEncoding(16)(x.double(), offset=10**6)
    assert (rotary(x, offset=10**6) - exact).abs().max() < 2e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_tables_keep_positions_apart(dtype: torch.dtype) -> None:
    """Positions and angles computed in a half type collapse: 769 different rows of 4096."""
    table = sinusoidal_table(4096, 512, dtype=dtype)
    assert len(torch.unique(table.view(torch.int16), dim=0)) == 4096


@both
def test_accuracy_does_not_depend_on_position(backend: Backend) -> None:
    """Float32 angles lose a digit for every digit of the position: 1.6 at 2²⁴."""
    near = backend.numpy(backend.pe.sinusoidal_table(100, 64, start=2**24))
    double = backend.pe.sinusoidal_table(100, 64, start=2**24, dtype=backend.dtype("float64"))
    assert np.abs(near - backend.numpy(double)).max() <= 2.0**-25


def test_both_implementations_have_one_signature() -> None:
    """But for the device, and the threads, which PyTorch counts for the whole process."""
    for name in pe_lib.numpy.__all__:
        ours = inspect.signature(getattr(pe_lib.numpy, name)).parameters
        theirs = inspect.signature(getattr(pe_lib.torch, name)).parameters
        shared = [p for p in ours if p != "workers"]
        assert shared == [p for p in theirs if p != "device"], name
        for p in shared:
            assert ours[p].kind == theirs[p].kind, (name, p)
            if p != "dtype":
                assert ours[p].default == theirs[p].default, (name, p)
