"""The ledger of the sources agrees with the cells that decide its claims, both ways."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import prose
import pytest
import yaml
from nbformat import NotebookNode

BOOK = Path(__file__).resolve().parent.parent / "book"
DATA = yaml.safe_load((BOOK / "data" / "claims.yml").read_text(encoding="utf-8"))
CLAIMS = DATA["claims"]
LEDGER = {claim["id"]: claim for claim in CLAIMS}
MANY = {"A": 72, "B": 40, "C": 14, "D": 17, "E": 27}
VERDICTS = {"true", "true with conditions", "imprecise", "false"}
NOTEBOOKS: dict[str, NotebookNode] = {
    path.stem: nbformat.read(path, as_version=4)
    for path in sorted((BOOK / "checks").glob("*.ipynb"))
}


def decided_by_cells() -> Iterator[tuple[str, str]]:
    """Each checks page and each claim that a cell of it decides."""
    for name, notebook in NOTEBOOKS.items():
        for cell in prose.code_cells(notebook):
            for claim in cell.metadata.get("claims", []):
                yield name, claim


def test_every_claim_is_there_in_its_order() -> None:
    wanted = [f"{source}{n:02d}" for source, many in MANY.items() for n in range(1, many + 1)]
    assert [claim["id"] for claim in CLAIMS] == wanted


def test_every_field_is_filled() -> None:
    fields = {"id", "lines", "says", "verdict", "right", "decided_in"}
    for claim in CLAIMS:
        assert set(claim) == fields, claim["id"]
        assert all(isinstance(value, str) and value.strip() for value in claim.values()), claim
        assert re.fullmatch(r"\d+(?:(?:–|, )\d+)?", claim["lines"]), claim["id"]
        assert claim["says"] != claim["right"], claim["id"]


def test_every_verdict_is_one_of_four() -> None:
    assert [claim["id"] for claim in CLAIMS if claim["verdict"] not in VERDICTS] == []


def test_every_claim_is_decided_where_the_ledger_says() -> None:
    decided = set(decided_by_cells())
    astray = [c["id"] for c in CLAIMS if (c["decided_in"], c["id"]) not in decided]
    assert astray == [], "the page named has no cell for them"


def test_every_decided_claim_is_in_the_ledger() -> None:
    assert {claim for _, claim in decided_by_cells()} <= set(LEDGER)


def test_chapters_lead_to_claims_that_are_in_the_ledger() -> None:
    for path in BOOK.glob("[01]*.ipynb"):
        said = prose.section(prose.markdown_of(nbformat.read(path, 4)), "What the sources said")
        linked = re.findall(r"\[([A-E]\d\d)\]\(a_sources\.md#([a-e]\d\d)\)", said)
        assert linked, path.name
        for claim, anchor in linked:
            assert claim in LEDGER, path.name
            assert anchor == claim.lower(), path.name


@functools.cache
def numbers_on(name: str) -> set[prose.Number]:
    return prose.numbers_shown_by(NOTEBOOKS[name])


def numbers_missing(claim: dict[str, str]) -> list[str]:
    """The precise numbers of an entry that its deciding page neither prints nor asserts."""
    stated = prose.precise_numbers_in(f"{claim['says']} {claim['right']}")
    return [n.text for n in stated if not n.is_shown_by(numbers_on(claim["decided_in"]))]


@pytest.mark.parametrize("claim", CLAIMS, ids=LEDGER)
def test_every_precise_number_is_computed_on_the_deciding_page(claim: dict[str, str]) -> None:
    if claim["decided_in"] in NOTEBOOKS:  # otherwise the test above fails
        assert numbers_missing(claim) == []


def test_the_page_types_no_number_of_its_own() -> None:
    page = (BOOK / "a_sources.md").read_text(encoding="utf-8")
    assert [number.text for number in prose.precise_numbers_in(page)] == []


def test_sources_are_named_as_in_the_notation() -> None:
    notation = (BOOK / "notation.md").read_text(encoding="utf-8")
    assert set(DATA["sources"]) == set(MANY)
    for letter, source in DATA["sources"].items():
        assert f"| {letter} | {source['title']} | {source['by']} |" in notation
