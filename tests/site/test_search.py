"""The search: the page that answers comes first, under a sentence of its prose, from a disk too."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tools.browser import visit
from tools.built_site import ROOT, SITE, parsed

CHAPTER, GLOSSARY, NOTATION = "book/03_rotation.html", "book/glossary.html", "book/notation.html"
WORD = "clockwise"  # of the chapter's text, and of few other pages'
# What readers bring, and the page that must come first.
ANSWERS = {
    "rotate_half": "08_rope",
    "position_ids": "09_rope_in_your_model",
    "KV cache": "09_rope_in_your_model",
    "llama": "09_rope_in_your_model",
    "left padding": "09_rope_in_your_model",
    "convert checkpoint": "09_rope_in_your_model",
    "M-RoPE": "09_rope_in_your_model",
    "YaRN": "10_longer",
    "NTK scaling": "10_longer",
    "attention_factor": "10_longer",
    "add or concatenate": "05_add_or_concatenate",
    "why add not concatenate": "05_add_or_concatenate",
    "learned positional embedding": "07_trained_model",
    "bfloat16": "11_tested_code",
    "why sine and cosine": "02_conditions",
    "relative position": "03_rotation",
    "orthogonal matrix": "03_rotation",
    "상대 위치": "03_rotation",
    "회전 행렬": "03_rotation",
    "직교": "06_orthogonality",
}
LISTED = """async () => {
  const hits = () => [...document.querySelectorAll("#search-results li")];
  const said = (hit) => hit.querySelector(":scope > p, :scope > span");
  const told = () => document.querySelector("#search-results .search-summary")?.textContent;
  while (!told() || !hits().every(said)) await new Promise((resolve) => setTimeout(resolve, 50));
  return hits().map((hit) => {
    const link = hit.querySelector("a");
    return [link.href, link.textContent, said(hit).textContent.trim()];
  });
}"""
# TeX, code, the names of buttons, the cells of a heat map: what no sentence of prose holds.
NO_PROSE = re.compile(r"\\|\$|\bimport |= np\.|Show the |\.ipynb|\d{7}|[⁰¹²³⁴-⁹₀-₉]{3}|\n")
MARKED_INSIDE = """() => [...document.querySelectorAll(".highlighted")]
  .map((mark) => (mark.previousSibling?.data ?? "") + mark.textContent)
  .filter((text) => /[a-z]rope$/.test(text))"""
FOUND = """(words) => Search._performSearch(...Search._parseQuery(words)).map(([page]) => page)"""
# The words of the first list that the index holds, unless the second has them in another form.
IN_THE_INDEX = """([words, others]) => {
  const stem = (word) => new Stemmer().stemWord(word);
  const known = new Set(others.map(stem));
  const isAlone = (word) => word.length > 4 && !known.has(stem(word));
  return words.filter((word) => isAlone(word) && stem(word) in Search._index.terms);
}"""


class Hit(NamedTuple):
    address: str  # from the folder of the site
    title: str
    said: str


def hits_of(page: Page, site: str, query: str) -> list[Hit]:
    """What the search page lists, once something is said below each hit."""
    page.goto(f"{site}search.html?q={quote(query)}")
    return [
        Hit(address.removeprefix(site), title, said)
        for address, title, said in page.evaluate(LISTED)
    ]


def check(hits: list[Hit], answer: str) -> None:
    first = hits[0].address.partition("#")[0]
    assert first == f"book/{answer}.html"
    assert len({hit.address for hit in hits}) == len(hits), "the same place twice"
    for hit in hits:
        assert hit.said.rstrip(")”")[-1] in ".?!:…", hit
        assert not NO_PROSE.search(hit.said), hit
        assert 15 <= len(hit.said) <= 600, hit


@pytest.fixture(scope="module")
def search(browser: Browser, url: str) -> Iterator[Page]:
    with visit(browser, f"{url}search.html") as page:
        yield page


@pytest.mark.parametrize("query", ANSWERS)
def test_the_page_that_answers_comes_first(search: Page, url: str, query: str) -> None:
    check(hits_of(search, url, query), ANSWERS[query])


def test_a_word_is_no_part_of_another(search: Page, url: str) -> None:
    """Neither in what is quoted, nor in what is marked: "rope" is not in "properties"."""
    hits = hits_of(search, url, "rope")
    assert not [hit for hit in hits if "propert" in hit.said and "RoPE" not in hit.said]
    assert search.locator("#search-results .highlighted").count() > 5
    assert search.evaluate(MARKED_INSIDE) == []
    # The chapter speaks of RoPE and of properties, and Sphinx marks what it finds.
    search.goto(url + CHAPTER)
    expect(search.locator("article .highlighted", has_text="RoPE").first).to_be_attached()
    search.wait_for_function(f"() => ({MARKED_INSIDE})().length === 0")  # after Sphinx's own timer


def test_from_a_disk_the_same_page_comes_first_and_is_described(browser: Browser) -> None:
    site = f"{SITE.as_uri()}/"
    with visit(browser, f"{site}search.html") as page:
        for query in ("rotate_half", "add or concatenate", "상대 위치"):
            hits = hits_of(page, site, query)
            check(hits, ANSWERS[query])
            described = parsed(SITE / hits[0].address.partition("#")[0])
            description = described.select("meta[name=description]")[0]["content"]
            assert hits[0].said == f"({description})"


def test_a_hit_quotes_the_section_that_holds_a_word_and_opens_it(
    browser: Browser, url: str
) -> None:
    with visit(browser, url + CHAPTER) as page:
        page.keyboard.press("Control+k")
        expect(page.locator("dialog[open] input[type=search]")).to_be_focused()
        page.keyboard.type(WORD)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/search.html?q={WORD}")
        hit = page.locator("#search-results li", has=page.locator(f"a[href*='{CHAPTER}']")).first
        expect(hit.locator(".context")).to_contain_text(WORD)
        expect(hit.locator("a").first).to_have_attribute("href", re.compile("#"))
        section = str(hit.locator("a").first.get_attribute("href")).split("#")[1]
        assert WORD in parsed(SITE / CHAPTER).select(f"article section [id='{section}']")[0].text


def test_the_search_finds_symbols_by_name_and_words_of_both_languages(
    browser: Browser, url: str
) -> None:
    rows = parsed(SITE / NOTATION).select("article table")[0].select("tbody tr")
    names = [row.select("td")[1].get_text(strip=True) for row in rows]
    words = dict.fromkeys([*names, "omega", "lambda", "Delta", "seq_len"], NOTATION)
    words |= dict.fromkeys(("내적", "회전 변환", "wavelength"), GLOSSARY)
    with visit(browser, url + "search.html?q=wavelength") as page:
        page.locator("#search-results li").first.wait_for()
        for word, name in words.items():
            assert name.removesuffix(".html") in page.evaluate(FOUND, word), word


def test_what_is_folded_is_not_searched(search: Page, url: str) -> None:
    """None of the words that stand in folded source alone is in the index."""
    folded: list[str] = []
    shown: list[str] = []
    for path in (ROOT / "book").glob("**/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            is_folded = "hide-input" in cell["metadata"].get("tags", [])
            (folded if is_folded else shown).extend(words_of("".join(cell["source"])))
            shown.extend(words_of(json.dumps(cell["metadata"])))  # captions
    for suffix in (".md", ".bib", ".py"):
        for path in (*ROOT.glob(f"book/**/*{suffix}"), *ROOT.glob(f"pe_*/**/*{suffix}")):
            shown.extend(words_of(path.read_text(encoding="utf-8")))
    assert len(set(folded) - set(shown)) > 20
    hits_of(search, url, "wavelength")
    assert search.evaluate(IN_THE_INDEX, [folded, shown]) == []


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())
