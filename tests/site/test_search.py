"""The search finds what the page of notation names."""

from urllib.parse import quote

from bs4 import BeautifulSoup
from playwright.sync_api import Browser
from site_under_test import SITE, visit

NOTATION = "book/notation.html"
SYMBOLS = ["omega", "lambda", "Delta", "seq_len", "rotation_matrix"]


def names_of_symbols() -> list[str]:
    """The second column of the table of symbols."""
    page = BeautifulSoup((SITE / NOTATION).read_text(), "html.parser")
    (table, *_) = page.select("article table")
    return [row.select("td")[1].get_text(strip=True) for row in table.select("tbody tr")]


def test_terms_of_the_notation_are_found(browser: Browser, url: str) -> None:
    names = names_of_symbols()
    assert len(names) > 10
    with visit(browser, url + "search.html") as seen:
        for term in [*names, *SYMBOLS]:
            seen.page.goto(f"{url}search.html?q={quote(term)}")
            found = seen.page.locator(f'#search-results a[href*="{NOTATION.split("/")[1]}"]')
            found.first.wait_for(timeout=5000)
        assert seen.complaints == []
