"""The extracts of trained models: whole, small, and what their provenance says they are."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from pe_book import minilm, published_tables

DATA = Path(__file__).resolve().parent.parent.parent / "book" / "data"
MOST_BYTES = {
    "minilm/extract": 5_000_000,
    "minilm/use": 800_000,
    "published_tables/extract": 900_000,
    "smollm2/extract": 700_000,
}


def test_no_other_extract_is_shipped() -> None:
    files = {path.relative_to(DATA).as_posix() for path in DATA.rglob("*.np*")}
    assert files == {f"{name}.npz" for name in MOST_BYTES}


@pytest.mark.parametrize("name", MOST_BYTES)
def test_arrays_are_those_of_the_provenance(name: str) -> None:
    provenance = json.loads((DATA / name).with_name("provenance.json").read_text("utf-8"))
    for model in provenance.get("tables", {"": provenance}).values():
        for key in ("model", "package", "version", "licence", "source_sha256"):
            assert model[key], key
    assert provenance["date"]
    assert provenance["changes"]
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


def test_published_tables_are_whole() -> None:
    tables = published_tables.load(DATA / "published_tables")
    for table in tables.values():
        first, end = table.provenance["rows"]
        assert table.rows.shape == (end - first, table.provenance["shape"][1])
        assert np.isfinite(table.rows).all()


def test_rows_as_short_as_new_ones_are_in_no_piece() -> None:
    draw = np.random.default_rng(0)
    rows = 0.02 * draw.standard_normal((100, 256))
    rows[:70] *= 3  # trained
    table = published_tables.PublishedTable(rows, {"start": 0.02})
    assert list(np.flatnonzero(table.as_short_as_new)) == list(range(70, 100))
    pieces = table.pieces(20, starts=(1, 40, 50, 51))
    assert list(pieces) == [1, 40, 50]
    for first, piece in pieces.items():
        np.testing.assert_array_equal(piece, rows[first : first + 20])
