"""The formulas of chapters 10 and 11 are those of the transformers library."""

from typing import Any

import numpy as np
import pytest
import torch
from test_rotary_peers import (
    FLOAT32_ANGLE,
    LENGTH,
    config,
    gpt_j_turn,
    gpt_neox_turn,
    llama_turn,
    random_heads,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from pe_lib.book import rope


def test_turns_are_the_peers() -> None:
    x, positions = random_heads(), torch.arange(LENGTH)
    for formula, peer in (
        (rope.gpt_neox, gpt_neox_turn),
        (rope.gpt_neox, llama_turn),
        (rope.gpt_j, gpt_j_turn),
    ):
        ours = formula(x.numpy(), positions.numpy())
        assert np.abs(ours - peer(x, positions).numpy()).max() < FLOAT32_ANGLE


def peers_frequencies(
    kind: str, d: int, base: float, length: int, scale: float, **options: Any
) -> tuple[np.ndarray, float]:
    """What transformers makes of a `rope_parameters` entry: frequencies, factor on cos and sin."""
    parameters = {"rope_type": kind, "rope_theta": base, "factor": scale}
    if kind == "yarn":
        parameters["original_max_position_embeddings"] = length
    settings = config(head_dim=d, max_position_embeddings=length, rope_parameters=parameters)
    frequencies, factor = ROPE_INIT_FUNCTIONS[kind](settings, torch.device("cpu"), **options)
    return frequencies.double().numpy(), factor


@pytest.mark.parametrize(
    ("d", "base", "length"), [(128, 1e4, 4096), (128, 5e5, 8192), (64, 1e4, 2048)]
)
@pytest.mark.parametrize("scale", [2.0, 8.0, 32.0])
def test_scaled_frequencies_are_the_peers(d: int, base: float, length: int, scale: float) -> None:
    interpolated, _ = peers_frequencies("linear", d, base, length, scale)
    assert np.allclose(rope.interpolated(scale, d, base, length), interpolated, rtol=1e-5)

    # With a factor of 1, "dynamic" takes its scale from the length of the text.
    reached = int(scale * length)
    dynamic, _ = peers_frequencies("dynamic", d, base, length, 1.0, seq_len=reached)
    assert np.allclose(rope.ntk_aware(scale, d, base, length), dynamic, rtol=1e-5)

    yarn, factor = peers_frequencies("yarn", d, base, length, scale)
    assert np.allclose(rope.yarn(scale, d, base, length), yarn, rtol=1e-5)
    assert factor == pytest.approx(0.1 * np.log(scale) + 1)

    others = [rope.interpolated, rope.ntk_aware, rope.extrapolated]
    assert not any(np.allclose(other(scale, d, base, length), yarn, rtol=0.01) for other in others)
