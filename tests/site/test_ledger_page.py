"""The page of the sources: all claims without scripts, links that arrive, a filter that filters."""

import collections
import re

import yaml
from bs4 import Tag
from playwright.sync_api import Browser, Locator, Page
from site_under_test import ROOT, SITE, Setting, parsed, visit

PAGE = "book/a_sources.html"
DATA = yaml.safe_load((ROOT / "book" / "data" / "claims.yml").read_text(encoding="utf-8"))
CLAIMS = DATA["claims"]
VERDICTS = ["true", "true with conditions", "imprecise", "false"]
ROWS = ".ledger tbody tr"


def text_of(element: Tag) -> str:
    return " ".join(element.get_text().split())


def the(element: Tag, selector: str) -> Tag:
    """The one element within this one that the selector finds."""
    (found,) = element.select(selector)
    return found


def words_of(text: str) -> list[str]:
    """The words, without mathematics and markup."""
    text = re.sub(r"\$[^$]*\$|\\\(.*?\\\)", " ", text)
    return re.findall(r"[\w'/]+", text.translate(str.maketrans("’‘", "''")))


def test_every_claim_has_its_row() -> None:
    rows = parsed(SITE / PAGE).select(ROWS)
    assert [row["id"] for row in rows] == [claim["id"].lower() for claim in CLAIMS]
    for row, claim in zip(rows, CLAIMS, strict=True):
        name, says, verdict, right = row.find_all(["th", "td"], recursive=False)
        assert text_of(name).startswith(f"{claim['id']} line")
        assert text_of(name).endswith(f" {claim['lines']}")
        assert text_of(the(verdict, ".verdict")) == claim["verdict"]
        for cell, field in ((says, "says"), (right, "right")):
            for formula in cell.select("span.math"):
                formula.string = " "
            assert words_of(text_of(cell)) == words_of(claim[field])


def test_row_and_deciding_cell_lead_to_each_other() -> None:
    rows = {row["id"]: row for row in parsed(SITE / PAGE).select(ROWS)}
    marks = {
        (name, anchor["id"]): mark
        for name in {claim["decided_in"] for claim in CLAIMS}
        for mark in parsed(SITE / "book" / "checks" / f"{name}.html").select(".cell-mark")
        for anchor in [mark, *mark.select("[id]")]
        if anchor.get("id")
    }
    for claim in CLAIMS:
        anchor, page = claim["id"].lower(), claim["decided_in"]
        there = the(rows[anchor], "td .verdict + a")
        assert there["href"] == f"checks/{page}.html#claim-{anchor}"
        mark = marks[page, f"claim-{anchor}"]
        backwards = {text_of(link): link["href"] for link in mark.select(".decided a")}
        assert backwards[claim["id"]] == f"../a_sources.html#{anchor}"
        cell = mark.find_next_sibling()
        assert cell is not None
        assert "decides-claims" in cell["class"], claim["id"]


def counts_of(letter: str) -> list[int]:
    """The verdicts of a source, or of all of them, and their sum."""
    found = collections.Counter(
        claim["verdict"] for claim in CLAIMS if letter in ("all", claim["id"][0])
    )
    return [*(found[verdict] for verdict in VERDICTS), found.total()]


def test_verdicts_are_counted_right() -> None:
    table = the(parsed(SITE / PAGE), ".ledger-counts")
    assert [text_of(head) for head in table.select("thead th")][1:5] == VERDICTS
    rows = {text_of(the(row, "th")): row for row in table.select("tbody tr")}
    assert list(rows) == [*DATA["sources"], "all"]
    for letter, row in rows.items():
        numbers = [int(text_of(cell)) for cell in row.select("td")[:5]]
        assert numbers == counts_of(letter)
        lengths = [part["width"] for part in row.select("rect")]
        assert lengths == [str(number) for number in numbers[:4]]
        assert the(row, "svg")["viewbox"] == f"0 0 {numbers[4]} 1"


def test_sources_carry_their_names() -> None:
    names = [text_of(name) for name in parsed(SITE / PAGE).select(".ledger-source")]
    for name, (letter, source) in zip(names, DATA["sources"].items(), strict=True):
        total = counts_of(letter)[-1]
        assert name.startswith(f"{source['title']}, {source['by']}. {total} claims: ")


def test_all_claims_stand_without_scripts(browser: Browser, url: str) -> None:
    with visit(browser, url + PAGE, java_script_enabled=False) as seen:
        assert seen.page.locator(f"{ROWS}:visible").count() == len(CLAIMS)
        assert seen.page.locator(".ledger-filter").count() == 0, "a control that does nothing"


def test_all_claims_are_printed(browser: Browser, url: str) -> None:
    with visit(browser, url + PAGE) as seen:
        seen.page.emulate_media(media="print")
        assert seen.page.locator(f"{ROWS}:visible").count() == len(CLAIMS)
        assert seen.page.locator(".ledger-filter input:visible").count() == 0


def shown(page: Page) -> list[str]:
    """The claims that can be seen."""
    rows = page.locator(f"{ROWS}:visible")
    ids: list[str] = rows.evaluate_all("rows => rows.map((row) => row.id.toUpperCase())")
    return ids


def wanted(sources: str = "ABCDE", verdicts: list[str] | None = None) -> list[str]:
    return [
        claim["id"]
        for claim in CLAIMS
        if claim["id"][0] in sources and claim["verdict"] in (verdicts or VERDICTS)
    ]


def check(page: Page, expected: list[str]) -> None:
    """These claims are shown, with their sources' headings, and their number is announced."""
    assert shown(page) == expected
    headings = page.locator("h2:visible", has_text="Source ").all_inner_texts()
    assert [text.split()[1][0] for text in headings] == sorted({claim[0] for claim in expected})
    status = page.locator(".ledger-filter [role=status][aria-live=polite]")
    total = len(CLAIMS)
    said = f"All {total} claims" if len(expected) == total else f"{len(expected)} of {total} claims"
    assert status.inner_text() == said


def press_until(page: Page, goal: Locator, key: str = "Tab") -> None:
    """Go to an element by keyboard alone, from where the focus is."""
    for _ in range(40):
        if goal.evaluate("element => element === document.activeElement"):
            outline = goal.evaluate("element => getComputedStyle(element).outlineStyle")
            assert outline == "solid", "focus cannot be seen"
            return
        page.keyboard.press(key)
    raise AssertionError(f"{goal} cannot be reached by {key}")


def test_filter_by_mouse(browser: Browser) -> None:
    """From the folder."""
    with visit(browser, (SITE / PAGE).as_uri()) as seen:
        page = seen.page
        form = page.get_by_role("search", name="Claims")
        check(page, wanted())
        form.get_by_label("false", exact=True).click()
        check(page, wanted(verdicts=["false"]))
        form.get_by_label("B", exact=True).click()
        check(page, wanted("B", ["false"]))
        form.get_by_label("C", exact=True).click()
        form.get_by_label("imprecise").click()
        check(page, wanted("BC", ["imprecise", "false"]))
        form.get_by_label("false", exact=True).click()
        check(page, wanted("BC", ["imprecise"]))
        form.get_by_role("button", name="Show all").click()
        check(page, wanted())
        assert form.locator("input:checked").count() == 0
        assert seen.complaints == []


def test_filter_by_keyboard(browser: Browser, url: str) -> None:
    """From a server."""
    with visit(browser, url + PAGE) as seen:
        page = seen.page
        form = page.get_by_role("search", name="Claims")
        form.get_by_label("A", exact=True).focus()
        page.keyboard.press("Tab")
        press_until(page, form.get_by_label("E", exact=True))
        page.keyboard.press("Space")
        check(page, wanted("E"))
        press_until(page, form.get_by_label("true with conditions"))
        page.keyboard.press("Space")
        check(page, wanted("E", ["true with conditions"]))
        press_until(page, form.get_by_label("Words"))
        page.keyboard.type("GRADIENT descent")
        check(page, ["E11"])
        page.keyboard.press("Enter")
        check(page, ["E11"])
        page.keyboard.type(" nowhere")
        check(page, [])
        press_until(page, form.get_by_role("button"))
        page.keyboard.press("Enter")
        check(page, wanted())
        assert seen.complaints == []


def test_a_link_to_a_hidden_claim_shows_it(browser: Browser, url: str) -> None:
    with visit(browser, f"{url}{PAGE}#a34") as seen:
        page = seen.page
        form = page.get_by_role("search", name="Claims")
        form.get_by_label("D", exact=True).click()
        check(page, wanted("D"))
        page.evaluate("location.hash = '#b21'")
        page.wait_for_function("!document.querySelector('#b21').closest('[hidden]')")
        check(page, wanted())
        top = page.locator("#b21").evaluate("row => row.getBoundingClientRect().top")
        assert 0 <= top < 450


def test_filter_fits_a_phone(browser: Browser, url: str) -> None:
    """At the width of a phone every control is there, and large enough for a finger."""
    with visit(browser, url + PAGE, Setting("light", 390)) as seen:
        for control in seen.page.locator(".ledger-filter :is(label, button)").all():
            box = control.bounding_box()
            assert box is not None
            assert box["height"] >= 24
            assert box["x"] + box["width"] <= 390
