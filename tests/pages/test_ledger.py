"""The ledger of the sources agrees with the cells that decide its claims, both ways."""

import re
from pathlib import Path

import nbformat
import page_text
import yaml

from website.build import notebooks_of_the_book

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
DATA = yaml.safe_load((BOOK / "data" / "claims.yml").read_text(encoding="utf-8"))
CLAIMS = DATA["claims"]
MANY = {"A": 72, "B": 40, "C": 14, "D": 17, "E": 27}
IDS = [f"{source}{n:02d}" for source, many in MANY.items() for n in range(1, many + 1)]
NEEDED = {"id", "lines", "says", "verdict", "right", "decided_in"}
VERDICTS = {"true", "true with conditions", "imprecise", "false"}
CHECKS = {path.stem: nbformat.read(path, 4) for path in (BOOK / "checks").glob("*.ipynb")}
# Each checks page and each claim that a cell of it decides.
DECIDED = {
    (name, claim)
    for name, notebook in CHECKS.items()
    for cell in page_text.code_cells(notebook)
    for claim in cell.metadata.get("claims", [])
}


def test_every_claim_is_there_in_its_order_with_a_verdict() -> None:
    assert [claim["id"] for claim in CLAIMS] == IDS
    for claim in CLAIMS:
        assert set(claim) - {"slip", "lesson"} == NEEDED, claim
        texts = [value for key, value in claim.items() if key != "slip"]
        assert all(isinstance(value, str) and value.strip() for value in texts), claim
        assert claim["verdict"] == "false" or "slip" not in claim, claim
        assert claim.get("slip", True) is True, claim
        assert re.fullmatch(r"\d+(?:(?:–|, )\d+)?", claim["lines"]), claim
        assert claim["verdict"] in VERDICTS, claim
        assert claim["says"] != claim["right"], claim


def test_every_claim_is_decided_where_the_ledger_says() -> None:
    astray = [c["id"] for c in CLAIMS if (c["decided_in"], c["id"]) not in DECIDED]
    assert astray == [], "the page named has no cell for them"
    assert {claim for _, claim in DECIDED} <= set(IDS)


def test_pages_lead_to_claims_by_their_names_or_in_words() -> None:
    """To claims that there are, and one that is named is the one that a link leads to."""
    texts = [page_text.markdown_of(nbformat.read(path, 4)) for path in notebooks_of_the_book()]
    links = re.findall(r"\[([^\]]*)\]\((?:\.\./)?sources\.md#([\w-]+)\)", "\n".join(texts))
    named = [(text, anchor) for text, anchor in links if re.fullmatch(r"[A-E]\d\d", text)]
    assert len(links) >= 10
    assert named
    assert {anchor for _, anchor in links} <= {claim.lower() for claim in IDS}
    assert [text.lower() for text, _ in named] == [anchor for _, anchor in named]


def test_every_precise_number_is_computed_on_the_deciding_page() -> None:
    shown = {name: page_text.shown_by(notebook) for name, notebook in CHECKS.items()}
    missing = {}
    for claim in CLAIMS:
        prose = " ".join([claim["says"], claim["right"], claim.get("lesson", "")])
        missing[claim["id"]] = page_text.unshown(prose, shown[claim["decided_in"]])
    assert {claim: numbers for claim, numbers in missing.items() if numbers} == {}


def test_the_page_lists_about_a_dozen_claims_that_teach_most() -> None:
    lessons = [claim["lesson"] for claim in CLAIMS if "lesson" in claim]
    assert 10 <= len(lessons) <= 15
    assert all(lesson.endswith(".") and len(lesson.split()) < 40 for lesson in lessons)


def test_the_page_types_no_number_of_its_own() -> None:
    page = (BOOK / "sources.md").read_text(encoding="utf-8")
    assert page_text.unshown(page, "") == []


def test_sources_are_named_as_in_the_notation() -> None:
    notation = (BOOK / "notation.md").read_text(encoding="utf-8")
    assert set(DATA["sources"]) == set(MANY)
    for letter, source in DATA["sources"].items():
        assert f"| {letter} | {source['title']} | {source['by']} |" in notation
