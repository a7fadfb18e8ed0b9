"""The folklore agrees with the cells that decide it, both ways."""

import re
from pathlib import Path
from typing import Any

import nbformat
import page_text
import pytest
import yaml
from nbformat import NotebookNode

from website.build import notebooks_of_the_book
from website.extensions import finding, folklore

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
DATA: dict[str, Any] = yaml.safe_load(folklore.DATA.read_text(encoding="utf-8"))
ENTRIES: list[dict[str, Any]] = DATA["entries"]
NEEDED = {"id", "group", "quote", "who", "year", "verdict", "right", "grade", "cell"}
OPTIONAL = {"paraphrase", "url", "number", "means"}
NEEDS_NO_NUMBER = {"proved", "read in the code"}

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])


def deciding_cells() -> list[tuple[str, str, NotebookNode]]:
    """The page, the entry and the cell, for each entry that a cell names."""
    return [
        (path.relative_to(BOOK).with_suffix("").as_posix(), name, cell)
        for path in notebooks_of_the_book()
        for cell in page_text.code_cells(nbformat.read(path, 4))
        for name in cell.metadata.get("folklore", [])
    ]


DECIDED = deciding_cells()


@every_entry
def test_an_entry_is_whole(entry: dict[str, Any]) -> None:
    assert NEEDED <= set(entry) <= NEEDED | OPTIONAL
    assert re.fullmatch(r"[a-z][a-z\d-]*", entry["id"])
    assert entry["group"] in {group["id"] for group in DATA["groups"]}
    assert entry["verdict"] in folklore.VERDICTS
    assert isinstance(entry["year"], int)
    assert entry.get("paraphrase", True) is True
    assert "url" in entry or "paraphrase" in entry, "a quotation names its page"
    assert entry["quote"][0] not in "\"'“‘", "the page sets quotation marks"
    assert ("number" in entry) == ("means" in entry)
    marks = entry["grade"].split(" · ")
    assert [mark for mark in marks if not finding.MARK.fullmatch(mark)] == []
    assert "number" in entry or set(marks) <= NEEDS_NO_NUMBER


def test_names_are_unique_and_what_nobody_knows_says_what_would_settle_it() -> None:
    names = [one["id"] for part in ("groups", "entries", "unknown") for one in DATA[part]]
    assert len(names) == len(set(names))
    for one in DATA["unknown"]:
        assert {"id", "question", "settle"} <= set(one) <= {"id", "question", "settle", "see"}
        assert one["question"].endswith("?")
        assert "see" not in one or (BOOK / f"{one['see']}.ipynb").exists()


def test_each_entry_is_decided_by_one_cell_of_the_page_that_it_names() -> None:
    """So the anchor to which its link leads exists, and stands at the cell that decides it."""
    assert sorted((page, name) for page, name, _ in DECIDED) == sorted(
        (entry["cell"], entry["id"]) for entry in ENTRIES
    )


@every_entry
def test_the_number_of_an_entry_is_the_one_that_its_cell_prints(entry: dict[str, Any]) -> None:
    (cell,) = [cell for _, name, cell in DECIDED if name == entry["id"]]
    shown = page_text.shown_by(nbformat.v4.new_notebook(cells=[cell]))
    assert unprinted(str(entry.get("number", "")), shown) == []


def unprinted(number: str, shown: str) -> list[str]:
    """The numerals of an entry's number that a cell does not print, rounded to their digits."""
    printed = set(page_text.numbers_in(shown))
    missing = [one.text for one in page_text.numbers_in(number) if not one.is_shown_by(printed)]
    return sorted({*missing, *page_text.unshown(number, shown)})


@pytest.mark.parametrize(
    ("number", "shown", "missing"),
    [
        ("0.42", "mean cosine 0.4183", []),
        ("0.42", "mean cosine 0.4283", ["0.42"]),
        ("90,000 of 90,000", "90000 of 90000 are different", []),
        ("47 of 256", "47 and 256", ["47"]),
        ("3.63 against 3.67", "untied 3.63, rotary 3.66", ["3.67"]),
        ("25 %", "25 words", ["25"]),
        ("4", "none", ["4"]),
    ],
)
def test_a_number_that_its_cell_does_not_print_is_found(
    number: str, shown: str, missing: list[str]
) -> None:
    assert unprinted(number, shown) == missing


@every_entry
def test_every_result_in_its_words_is_shown_on_its_page(entry: dict[str, Any]) -> None:
    shown = page_text.shown_by(nbformat.read(BOOK / f"{entry['cell']}.ipynb", 4))
    assert page_text.unshown(f"{entry['right']} {entry.get('means', '')}", shown) == []


def test_the_page_types_no_number_of_its_own() -> None:
    page = (BOOK / "folklore.md").read_text(encoding="utf-8")
    assert page_text.unshown(page, "") == []
