"""The ledger of the sources agrees with the cells that decide its claims, both ways."""

import re
from pathlib import Path

import nbformat
import prose
import yaml

BOOK = Path(__file__).resolve().parent.parent / "book"
DATA = yaml.safe_load((BOOK / "data" / "claims.yml").read_text(encoding="utf-8"))
CLAIMS = DATA["claims"]
MANY = {"A": 72, "B": 40, "C": 14, "D": 17, "E": 27}
IDS = [f"{source}{n:02d}" for source, many in MANY.items() for n in range(1, many + 1)]
VERDICTS = {"true", "true with conditions", "imprecise", "false"}
CHECKS = {path.stem: nbformat.read(path, 4) for path in (BOOK / "checks").glob("*.ipynb")}
# Each checks page and each claim that a cell of it decides.
DECIDED = {
    (name, claim)
    for name, notebook in CHECKS.items()
    for cell in prose.code_cells(notebook)
    for claim in cell.metadata.get("claims", [])
}


def test_every_claim_is_there_in_its_order_with_a_verdict() -> None:
    assert [claim["id"] for claim in CLAIMS] == IDS
    for claim in CLAIMS:
        assert set(claim) == {"id", "lines", "says", "verdict", "right", "decided_in"}, claim
        assert all(isinstance(value, str) and value.strip() for value in claim.values()), claim
        assert re.fullmatch(r"\d+(?:(?:–|, )\d+)?", claim["lines"]), claim
        assert claim["verdict"] in VERDICTS, claim
        assert claim["says"] != claim["right"], claim


def test_every_claim_is_decided_where_the_ledger_says() -> None:
    astray = [c["id"] for c in CLAIMS if (c["decided_in"], c["id"]) not in DECIDED]
    assert astray == [], "the page named has no cell for them"
    assert {claim for _, claim in DECIDED} <= set(IDS)


def test_chapters_lead_to_claims_by_their_names() -> None:
    """That there are such rows, the build knows."""
    for path in BOOK.glob("[01]*.ipynb"):
        said = prose.section(prose.markdown_of(nbformat.read(path, 4)), "What the sources said")
        linked = re.findall(r"\[([A-E]\d\d)\]\(a_sources\.md#([a-e]\d\d)\)", said)
        assert linked, path.name
        assert all(claim.lower() == anchor for claim, anchor in linked), path.name


def test_every_precise_number_is_computed_on_the_deciding_page() -> None:
    shown = {name: prose.numbers_shown_by(notebook) for name, notebook in CHECKS.items()}
    missing = [
        (claim["id"], number.text)
        for claim in CLAIMS
        for number in prose.precise_numbers_in(f"{claim['says']} {claim['right']}")
        if not number.is_shown_by(shown[claim["decided_in"]])
    ]
    assert missing == []


def test_the_page_types_no_number_of_its_own() -> None:
    page = (BOOK / "a_sources.md").read_text(encoding="utf-8")
    assert [number.text for number in prose.precise_numbers_in(page)] == []


def test_sources_are_named_as_in_the_notation() -> None:
    notation = (BOOK / "notation.md").read_text(encoding="utf-8")
    assert set(DATA["sources"]) == set(MANY)
    for letter, source in DATA["sources"].items():
        assert f"| {letter} | {source['title']} | {source['by']} |" in notation
