"""The page of the sources: its rows and its counts are the ledger's, and its filter filters."""

import collections
import re

import yaml
from bs4 import Tag
from playwright.sync_api import Browser, Page, expect
from site_under_test import ROOT, SITE, parsed, visit

PAGE = SITE / "book" / "a_sources.html"
DATA = yaml.safe_load((ROOT / "book" / "data" / "claims.yml").read_text(encoding="utf-8"))
CLAIMS = DATA["claims"]
VERDICTS = ["true", "true with conditions", "imprecise", "false"]
ROWS = ".ledger tbody tr"


def text_of(element: Tag) -> str:
    return " ".join(element.get_text().split())


def words_of(text: str) -> list[str]:
    """The words, without mathematics and markup."""
    text = re.sub(r"\$[^$]*\$|\\\(.*?\\\)", " ", text)
    return re.findall(r"[\w'/]+", text.translate(str.maketrans("’‘", "''")))


def test_every_claim_has_its_row() -> None:
    rows = parsed(PAGE).select(ROWS)
    assert [row["id"] for row in rows] == [claim["id"].lower() for claim in CLAIMS]
    for row, claim in zip(rows, CLAIMS, strict=True):
        name, says, verdict, right = row.find_all(["th", "td"], recursive=False)
        assert re.fullmatch(f"{claim['id']} lines? {claim['lines']}", text_of(name))
        assert [text_of(badge) for badge in verdict.select(".verdict")] == [claim["verdict"]]
        for cell, field in ((says, "says"), (right, "right")):
            for formula in cell.select("span.math"):
                formula.string = " "
            assert words_of(text_of(cell)) == words_of(claim[field])


def test_row_and_deciding_cell_lead_to_each_other() -> None:
    """That the anchors are there is tested with all links."""
    leads = {str(link["href"]) for link in parsed(PAGE).select(f"{ROWS} td .verdict + a")}
    assert leads == {f"checks/{c['decided_in']}.html#claim-{c['id'].lower()}" for c in CLAIMS}
    for name in {claim["decided_in"] for claim in CLAIMS}:
        marks = parsed(SITE / "book" / "checks" / f"{name}.html").select(".cell-mark")
        back = {str(link["href"]) for mark in marks for link in mark.select(".decided a")}
        here = [claim["id"].lower() for claim in CLAIMS if claim["decided_in"] == name]
        assert back >= {f"../a_sources.html#{anchor}" for anchor in here}


def test_verdicts_are_counted_right() -> None:
    for row in parsed(PAGE).select(".ledger-counts tbody tr"):
        letter, *cells = [text_of(cell) for cell in row.select("th, td")]
        counted = collections.Counter(
            claim["verdict"] for claim in CLAIMS if letter in ("all", claim["id"][0])
        )
        numbers = [str(counted[verdict]) for verdict in VERDICTS]
        assert cells[:5] == [*numbers, str(counted.total())]
        assert [part["width"] for part in row.select("rect")] == numbers


def wanted(sources: str = "ABCDE", verdicts: list[str] = VERDICTS) -> list[str]:
    return [c["id"] for c in CLAIMS if c["id"][0] in sources and c["verdict"] in verdicts]


def check(page: Page, expected: list[str]) -> None:
    """These claims are shown, with their sources' headings, and their number is announced."""
    rows = page.locator(f"{ROWS}:visible")
    assert rows.evaluate_all("rows => rows.map((row) => row.id.toUpperCase())") == expected
    headings = page.locator("h2:visible", has_text="Source ").all_inner_texts()
    assert [text.split()[1][0] for text in headings] == sorted({claim[0] for claim in expected})
    status = page.locator(".ledger-filter [role=status][aria-live=polite]")
    total = len(CLAIMS)
    said = f"All {total} claims" if len(expected) == total else f"{len(expected)} of {total} claims"
    assert status.inner_text() == said


def test_filter(browser: Browser) -> None:
    """From the folder, by key and by mouse."""
    with visit(browser, PAGE.as_uri()) as seen:
        page = seen.page
        form = page.get_by_role("search", name="Claims")
        box, words = form.get_by_label("B", exact=True), form.get_by_label("Words")
        check(page, wanted())
        box.press("Space")
        check(page, wanted("B"))
        assert box.evaluate("box => getComputedStyle(box).outlineStyle") == "solid"
        form.get_by_label("C", exact=True).click()
        form.get_by_label("imprecise").click()
        form.get_by_label("false", exact=True).click()
        check(page, wanted("BC", ["imprecise", "false"]))
        form.get_by_role("button", name="Show all").press("Enter")
        check(page, wanted())
        form.get_by_label("E", exact=True).click()
        words.fill("GRADIENT descent")
        words.press("Enter")
        check(page, ["E11"])
        page.evaluate("location.hash = '#b21'")  # a link to a claim that is hidden shows it
        expect(page.locator("#b21")).to_be_in_viewport()
        check(page, wanted())
        page.emulate_media(media="print")
        expect(form.locator("input:visible")).to_have_count(0)
        assert seen.complaints == []
