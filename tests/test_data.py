"""The extracts of trained models: whole, licensed, and what their provenance says they are."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DATA = Path(__file__).resolve().parent.parent / "book" / "data"
MOST_BYTES = {"minilm/extract": 5_000_000, "minilm/use": 800_000, "smollm2/extract": 400_000}
APACHE = ("Apache License", "Version 2.0, January 2004", "9. Accepting Warranty")
LICENCES = {
    "minilm/LICENSE": APACHE,
    "smollm2/LICENSE": APACHE,
    "minilm/LICENSE-use": ("MIT License", "creativecommons.org/licenses/by/3.0", "SCOWL"),
}


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
    names = {f"{name}.npz" for name in MOST_BYTES} | set(LICENCES) | {"claims.yml"}
    names |= {"minilm/provenance.json", "smollm2/provenance.json"}
    files = (path for path in DATA.rglob("*") if path.is_file())
    assert {path.relative_to(DATA).as_posix() for path in files} == names


@pytest.mark.parametrize("name", MOST_BYTES)
def test_arrays_are_those_of_the_provenance(name: str) -> None:
    provenance = provenance_of(name.split("/")[0])
    checksum = provenance["extract_sha256"]
    if name == "minilm/use":
        provenance = provenance["use"]
        checksum = provenance["sha256"]
    raw, arrays = (DATA / f"{name}.npz").read_bytes(), arrays_of(name)
    assert len(raw) < MOST_BYTES[name]
    assert hashlib.sha256(raw).hexdigest() == checksum
    for key, array in arrays.items():
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), key
            assert array.std() > 0, key


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_provenance_names_the_source(model: str) -> None:
    provenance = provenance_of(model)
    assert len(bytes.fromhex(provenance["source_sha256"])) == 32
    assert (DATA.parents[1] / provenance["command"].removeprefix("python ")).is_file()
    for name in ("model", "package", "version", "licence", "date", "changes"):
        assert provenance[name], name


@pytest.mark.parametrize("name", LICENCES)
def test_licences_are_whole(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    for part in LICENCES[name]:
        assert part in text


def test_words_agree_where_lists_hold_them(extract: dict[str, Any]) -> None:
    rows: dict[int, Any] = {}
    shared = 0
    for name, arrays in (("sample", extract), ("text", extract), ("use", arrays_of("minilm/use"))):
        ids = arrays[f"{name}_ids"]
        assert (np.diff(ids) > 0).all()
        for word, row in zip(ids, arrays[f"{name}_words"], strict=True):
            shared += word in rows
            np.testing.assert_array_equal(rows.setdefault(word, row), row)
    assert shared > 0


def test_samples_are_the_draws_that_the_provenance_names(extract: dict[str, Any]) -> None:
    """One is uniform, one by the counts."""
    provenance, use = provenance_of("minilm"), arrays_of("minilm/use")
    words, size = provenance["full_vocabulary"]["words"], len(extract["sample_ids"])
    drawn = np.random.default_rng(provenance["seed"]).choice(words, size, replace=False)
    np.testing.assert_array_equal(extract["sample_ids"], np.sort(drawn))
    counts = use["use_counts"]
    assert np.count_nonzero(counts) == provenance["use"]["full_vocabulary"]["words"]
    drawn = np.random.default_rng(provenance["seed"]).choice(
        words, provenance["use"]["draws"], p=counts / counts.sum()
    )
    ids, times = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(use["use_ids"], ids)
    np.testing.assert_array_equal(use["use_times"], times)


def test_sentences_can_be_looked_up(extract: dict[str, Any]) -> None:
    provenance = provenance_of("minilm")
    for name in ("sample", "text"):
        tokens = extract[f"{name}_tokens"]
        assert len(set(tokens)) == len(tokens) == len(extract[f"{name}_words"])
    known = set(extract["text_tokens"])
    for number, sentence in enumerate(provenance["sentences"]):
        tokens = sentence.split()
        assert set(tokens) <= known
        attention = extract[f"attention_{number}"]
        assert attention.shape == (provenance["heads"], len(tokens), len(tokens))
        np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
