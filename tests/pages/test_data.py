"""The extracts of trained models: whole, small, and what their provenance says they are."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from pe_book import minilm

DATA = Path(__file__).resolve().parent.parent.parent / "book" / "data"
MOST_BYTES = {"minilm/extract": 5_000_000, "minilm/use": 800_000, "smollm2/extract": 700_000}


def test_no_other_extract_is_shipped() -> None:
    files = {path.relative_to(DATA).as_posix() for path in DATA.rglob("*.np*")}
    assert files == {f"{name}.npz" for name in MOST_BYTES}


@pytest.mark.parametrize("name", MOST_BYTES)
def test_arrays_are_those_of_the_provenance(name: str) -> None:
    provenance = json.loads((DATA / name).with_name("provenance.json").read_text("utf-8"))
    for key in ("model", "package", "version", "licence", "source_sha256", "date", "changes"):
        assert provenance[key], key
    checksum = provenance["extract_sha256"]
    if name == "minilm/use":
        provenance = provenance["use"]
        checksum = provenance["sha256"]
    file = DATA / f"{name}.npz"
    assert file.stat().st_size < MOST_BYTES[name]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == checksum


@pytest.mark.parametrize(
    "script", sorted(DATA.glob("*/extract.py")), ids=lambda path: path.parent.name
)
def test_a_script_writes_beside_itself(script: Path) -> None:
    """Only its line about the folder is run, because the script loads a model's own library."""
    (folder,) = re.findall(r"^FOLDER = (.+)$", script.read_text(encoding="utf-8"), re.M)
    assert eval(folder, {"Path": Path, "__file__": str(script)}) == script.parent


def test_a_token_that_the_extract_lacks_is_named() -> None:
    model = minilm.load(DATA / "minilm")
    with pytest.raises(ValueError, match="must occur in the sentences of the extract, got 'zebra'"):
        model.word_rows([model.sentences[0][0], "zebra"])
