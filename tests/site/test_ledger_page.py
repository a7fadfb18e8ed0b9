"""The page of the sources: its rows and its counts are the ledger's, and its filter filters."""

from collections import Counter

import yaml
from playwright.sync_api import Browser, Page, expect

from tests.site.browser import visit
from website.built_site import ROOT, SITE, parsed

PAGE = SITE / "book" / "sources.html"
CLAIMS = yaml.safe_load((ROOT / "book" / "data" / "claims.yml").read_text("utf-8"))["claims"]
VERDICTS = ["true", "true with conditions", "imprecise", "false"]
ROWS = ".ledger tbody tr"


def test_rows_and_their_numbers_are_the_ledgers() -> None:
    rows = parsed(PAGE).select(ROWS)
    shown = [(row.select("[id]")[0]["id"], row.select(".verdict")[0].text) for row in rows]
    assert shown == [(claim["id"].lower(), claim["verdict"]) for claim in CLAIMS]
    counts = [
        [cell.get_text(strip=True) for cell in row.select("th, td")][:6]
        for row in parsed(PAGE).select(".ledger-counts tbody tr")
    ]
    found = Counter(claim["verdict"] for claim in CLAIMS)
    numbers = [*(found[verdict] for verdict in VERDICTS), len(CLAIMS)]
    assert counts == [["all", *map(str, numbers)]], "the errors of an author are not counted"


def wanted(sources: str = "ABCDE", verdicts: list[str] = VERDICTS) -> list[str]:
    return [c["id"] for c in CLAIMS if c["id"][0] in sources and c["verdict"] in verdicts]


def check(page: Page, expected: list[str]) -> None:
    """These claims are shown, with their sources' headings, and their number is announced."""
    names = page.locator(f"{ROWS}:visible th p")
    assert names.evaluate_all("all => all.map((one) => one.id.toUpperCase())") == expected
    headings = page.locator("h2:visible", has_text="Source ").all_inner_texts()
    assert [text.split()[1][0] for text in headings] == sorted({claim[0] for claim in expected})
    status = page.locator(".ledger-filter [role=status][aria-live=polite]")
    total = len(CLAIMS)
    said = f"All {total} claims" if len(expected) == total else f"{len(expected)} of {total} claims"
    assert status.inner_text() == said


def test_filter(browser: Browser) -> None:
    """From the folder, by key and by mouse."""
    with visit(browser, PAGE.as_uri()) as page:
        form = page.get_by_role("search", name="Claims")
        box, words = form.get_by_label("B", exact=True), form.get_by_label("Words")
        check(page, wanted())
        box.press("Space")
        check(page, wanted("B"))
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
        form.get_by_label("E", exact=True).click()
        check(page, wanted("E"))
        page.evaluate("location.hash = '#source-b'")
        check(page, wanted())
        form.get_by_label("E", exact=True).click()
        page.locator("a[href='#source-b']:visible").first.click()  # the address is this one already
        expect(page.locator("#source-b")).to_be_in_viewport()
        check(page, wanted())
        page.evaluate("location.hash = '#%'")  # no name of anything
        page.wait_for_url("**#%")
        page.emulate_media(media="print")
        expect(form.locator("input:visible")).to_have_count(0)
