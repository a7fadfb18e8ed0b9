"""Korean on an English page says that it is Korean, and is found by the search."""

import re
from urllib.parse import quote

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser
from site_under_test import PAGES, SITE, visit

HANGUL = re.compile("[가-힣]")
GLOSSARY = "book/glossary.html"


def body_of(name: str) -> BeautifulSoup:
    page = BeautifulSoup((SITE / name).read_text(), "html.parser")
    for silent in page.select("head, script, style"):
        silent.extract()
    return page


@pytest.mark.parametrize("name", PAGES)
def test_korean_is_marked_and_nothing_else(name: str) -> None:
    page = body_of(name)
    unmarked = [text for text in page.find_all(string=HANGUL) if not text.find_parent(lang="ko")]
    assert unmarked == []
    marked = [element.get_text() for element in page.select("[lang=ko]")]
    assert [text for text in marked if not HANGUL.search(text)] == []


def test_most_letters_of_marked_text_are_korean() -> None:
    for name in PAGES:
        for element in body_of(name).select("span[lang=ko], dt[lang=ko]"):
            assert not re.search("[A-Za-z]{2}", element.get_text()), name


def test_korean_is_set_in_a_korean_face(browser: Browser, url: str) -> None:
    """Each system's own, by name: what a bare `serif` gives is poor on some."""
    with visit(browser, url + GLOSSARY) as seen:
        faces = seen.page.locator("dt:lang(ko)").evaluate_all(
            "all => all.map((e) => getComputedStyle(e).fontFamily)"
        )
    assert len(faces) > 50
    for face in ("Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans CJK KR"):
        assert all(face in family for family in faces)


def test_terms_can_be_linked_to() -> None:
    terms = body_of(GLOSSARY).select("dl.glossary > dt")
    assert len(terms) > 100
    assert all(term.get("id") for term in terms)


@pytest.mark.parametrize("term", ["내적", "회전 변환", "wavelength"])
def test_search_finds_the_glossary_in_both_languages(browser: Browser, url: str, term: str) -> None:
    with visit(browser, f"{url}search.html?q={quote(term)}") as seen:
        found = seen.page.locator('#search-results a[href*="glossary.html"]')
        found.first.wait_for(timeout=5000)
