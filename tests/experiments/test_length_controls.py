"""The controls of the experiment on length: what they hide and change, what is stored."""

import json
from typing import Any

import pytest
import torch

from experiments import common, length_transfer
from experiments.common import TEST_STREAM, Attention
from experiments.length_transfer import controls
from experiments.length_transfer import run as lt
from experiments.length_transfer.model import HEADS, LENGTH, Rotary, rotary_of, transformer

STORED: dict[str, Any] = length_transfer.stored("controls")
TRANSFER: dict[str, Any] = length_transfer.stored()
SEEDS = STORED["settings"]["seeds"]
L = LENGTH


def test_stored_results_are_whole_and_of_this_code() -> None:
    now = json.loads(json.dumps(lt.closer_look(SEEDS)))
    for name in ("settings", "command"):
        assert STORED[name] == now[name]
    assert SEEDS >= 5
    assert [(run["control"], run["seed"]) for run in STORED["runs"]] == controls.jobs(SEEDS)


@pytest.mark.parametrize(
    ("control", "measure"),
    [("add, first", "rows"), ("add, copy", "one letter more"), ("causal, copy", "early")],
)
def test_a_stored_run_comes_out_again(control: str, measure: str) -> None:
    """To the last digit on the processor that made it. Elsewhere 500 steps carry rounding on."""
    (stored,) = (r for r in STORED["runs"] if (r["control"], r["seed"]) == (control, 0))
    again = controls.run(controls.Job(control, 0))
    assert again["accuracy"] == pytest.approx(stored["accuracy"], abs=0.01)
    assert again[measure] == pytest.approx(stored[measure], abs=0.1)


def test_models_of_rope_are_those_of_the_experiment() -> None:
    """What both scripts measure has to agree: with the frequencies of YaRN, near enough also for a
    run that was stored by another processor."""
    for task in ("copy", "first"):
        for run in (r for r in STORED["runs"] if r["control"] == f"rotary, {task}"):
            (before,) = (
                r
                for r in TRANSFER["runs"]
                if (r["size"], r["code"], r["task"], r["seed"])
                == ("small", "rotary", task, run["seed"])
            )
            way = "YaRN" if task == "copy" else "YaRN by pair"
            changed = run["changed"]["2L"][way]
            assert changed == pytest.approx(before["stretched"][way]["2L"], abs=0.02)


def test_hidden_letters_do_not_reach_the_answer() -> None:
    """A layer that is kept from far letters gives the early places what it gives them in a text
    without far letters. Afterwards nothing is hidden any more."""
    torch.manual_seed(0)
    model = transformer(Rotary, common.Size(64, 1, HEADS, 4 * L, lt.VOCABULARY), 128)
    whole = controls.far_letters_hidden(model, 0, ())
    hidden = controls.far_letters_hidden(model, 0, (0,))
    (texts,) = lt.batches(TEST_STREAM, 1, lt.MEASURED, 2 * L)
    with torch.no_grad():
        near = [model(texts[:, : at + L])[:, at].argmax(-1) for at in range(1, L)]
    right = [(answer == texts[:, 0]).double().mean() for answer in near]
    assert hidden["early"] == pytest.approx(float(sum(right)) / (L - 1), abs=1e-4)
    assert whole["early"] != hidden["early"]


def test_attention_is_that_of_the_model() -> None:
    """If all heads have the same values, which are not mapped afterwards, then the mean of the
    heads' results is the mean attention times these values."""
    torch.manual_seed(0)
    model = lt.encoder("rotary")
    attend = model.layers[-1].attend
    assert isinstance(attend, Attention)
    (texts,) = lt.batches(0, 1, 1, 2 * L)
    seen: list[torch.Tensor] = []
    attend.register_forward_hook(lambda _, inputs, result: seen.extend((inputs[0], result)))
    with torch.no_grad():
        for part in (attend.qkv.weight, attend.qkv.bias):
            values = part[-64:].unflatten(0, (HEADS, -1))
            values[:] = values[0].clone()
        attend.out.weight.copy_(torch.eye(64))
        attend.out.bias.zero_()
        model(texts)
        weights = controls.last_attention(model, texts)
        x, result, *_ = seen
        (same_values,) = attend.qkv(x)[..., -16:]
    assert weights.shape == (2 * L, 2 * L)
    heads = result[0].unflatten(-1, (HEADS, -1))
    assert (heads.mean(dim=1) - weights @ same_values).abs().max() < 1e-6


def test_one_pair_is_changed_and_the_others_are_halved() -> None:
    omega = torch.arange(8, 0, -1).double()
    new = controls.at_twice_the_length(omega)
    assert torch.equal(new["all halved"], omega / 2)
    for pair, multiple in controls.ONE_PAIR:
        changed = new[f"pair {pair} times {multiple:g}"] / omega
        assert changed[pair] == multiple
        assert (changed[torch.arange(8) != pair] == 0.5).all()


def test_frequencies_and_factor_reach_every_layer() -> None:
    """A factor of 0 makes all scores equal, so the frequencies do not matter any more."""
    torch.manual_seed(0)
    model = lt.encoder("rotary")
    with torch.no_grad():  # so that attention decides the answers
        for part in model.modules():
            if isinstance(part, Attention):
                part.qkv.weight *= 10
    omega = rotary_of(model).omega
    found = {
        (scale, factor): controls.with_frequencies(
            model, "copy", scale * omega, "2L", 0, factor=factor
        )
        for scale in (1.0, 0.1)
        for factor in (0.0, 1.0)
    }
    assert found[1.0, 0.0] == found[0.1, 0.0]
    assert found[1.0, 1.0] != found[0.1, 1.0]
    assert torch.equal(rotary_of(model).omega, 0.1 * omega)


def test_a_model_that_looks_at_row_0_names_the_letter_that_has_it() -> None:
    """Exchanging rows 0 and 9 makes a perfect model name letter 9, and shuffling the others does
    nothing."""

    class Perfect(torch.nn.Module):
        """Rows are 0 everywhere but at place 0: the answer is the letter there."""

        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(lt.VOCABULARY, lt.VOCABULARY + 1)
            letters = torch.eye(lt.VOCABULARY, lt.VOCABULARY + 1)
            self.embed.weight = torch.nn.Parameter(letters, requires_grad=False)

        def scores_of(self, x: torch.Tensor) -> torch.Tensor:
            marked = x[:, :, -1:]
            return (x * marked).sum(1, keepdim=True).expand_as(x)[:, :, :-1]

    table = torch.zeros(L, lt.VOCABULARY + 1)
    table[0, -1] = 1
    found = controls.rows_used(Perfect(), table, 0)  # type: ignore[arg-type]
    assert set(found.values()) == {1.0}
