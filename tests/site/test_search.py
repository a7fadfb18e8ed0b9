"""The search: the page that answers comes first, under a sentence of its prose, from a disk too."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from tests.site.browser import visit
from website.build import is_hidden
from website.built_site import PAGES, ROOT, SITE, SIZES_OF_FILES, parsed
from website.extensions.search_page import COPY_CODE
from website.finish import search_index

CHAPTER, GLOSSARY, NOTATION = "book/rotation.html", "book/glossary.html", "book/notation.html"
WORD = "clockwise"  # of the chapter's text, and of few other pages'
# What readers bring, and the page that must come first.
ANSWERS = {
    "rotate_half": "rope_in_your_model",
    "position_ids": "rope_in_your_model",
    "KV cache": "rope_in_your_model",
    "llama": "rope_in_your_model",
    "left padding": "rope_in_your_model",
    "convert checkpoint": "rope_in_your_model",
    "M-RoPE": "rope_in_your_model",
    "YaRN": "longer",
    "NTK scaling": "longer",
    "attention_factor": "longer",
    "add or concatenate": "add_or_concatenate",
    "why add not concatenate": "add_or_concatenate",
    "learned positional embedding": "trained_model",
    "bfloat16": "computing",
    "bf16": "computing",
    "why sine and cosine": "conditions",
    "relative position": "rotation",
    "orthogonal matrix": "rotation",
    "상대 위치": "rotation",
    "회전 행렬": "rotation",
    "직교": "orthogonality",
}
# The questions of five readers, written down before the search could answer them.
ASKED = {
    # a newcomer
    "how does rope work": "rope",
    "what is positional encoding": "tour",
    "why do transformers need positional encoding": "why_order",
    "does order matter in transformer": "why_order",
    "what is a rotation matrix": "rotation",
    "which positional encoding should I use": "cheat_sheet",
    "why sin and cos": "conditions",
    "postional encoding": "tour",
    "attention is all you need": "bibliography",
    # a student after a formula
    "positional encoding formula": "tour",
    "rope formula": "rope",
    "PE(pos+k) linear function of PE(pos)": "rotation",
    "why 10000": "conditions",
    "why multiply embedding by sqrt(d)": "add_or_concatenate",
    "dot product of positional encodings": "dot_product",
    "permutation equivariance proof": "why_order",
    "list of symbols": "notation",
    "block diagonal rotation": "rotation",
    # an engineer with a bug
    "freqs_cis": "rope_in_your_model",
    "apply_rotary_pos_emb": "rope_in_your_model",
    "inv_freq": "rope_in_your_model",
    "theta base": "rope_in_your_model",
    "rope bfloat16 cast": "rope_in_your_model",
    "left padding wrong positions generate": "rope_in_your_model",
    "rope wrong layout": "symptoms",
    "interleaved vs half rotation": "rope_in_your_model",
    "attention mask packing": "rope_in_your_model",
    "rope scaling config": "rope_in_your_model",
    "half rotary": "rope_in_your_model",
    "gemma 3 rope": "rope_families",
    # a researcher
    "context extension": "longer",
    "alibi vs rope": "longer",
    "NoPE": "why_order",
    "learned vs sinusoidal": "trained_model",
    "length extrapolation": "longer",
    "distance decay of sinusoidal similarity": "dot_product",
    "vision 2d rope": "rope_in_your_model",
    "timestep embedding": "rope_in_your_model",
    "random vectors nearly orthogonal high dimension": "orthogonality",
    "is the sinusoidal encoding the only one with relative shifts": "converse",
    # a Korean reader
    "위치 인코딩": "tour",
    "위치 인코딩이 왜 필요한가": "why_order",
    "로터리": "rope",
    "회전 위치 임베딩": "rope",
    "사인 코사인": "conditions",
    "순열 등변성": "why_order",
    "상대 위치 인코딩": "rotation",
    "더하기 연결 차이": "add_or_concatenate",
    # all five again, when the search was finished
    "rope explained simply": "rope",
    "transformer word order": "why_order",
    "sine wave position encoding": "conditions",
    "what does positional embedding do": "tour",
    "prove dot product depends only on distance": "dot_product",
    "rotation matrix is orthogonal proof": "rotation",
    "yarn temperature formula": "longer",
    "wavelengths geometric progression": "conditions",
    "int32 position overflow": "computing",
    "model.half() rope frequencies": "rope_in_your_model",
    "qwen2-vl position ids": "rope_in_your_model",
    "rotate_hlaf": "rope_in_your_model",
    "kv cache wrong position offset": "rope_in_your_model",
    "ntk aware interpolation": "longer",
    "concatenating position embeddings instead of adding": "add_or_concatenate",
    "bert position embedding matrix singular values": "trained_model",
    "로터리 위치 임베딩이란": "rope",
    "사인 함수를 쓰는 이유": "conditions",
    "임베딩에 위치를 더하는 이유": "add_or_concatenate",
    # after the pages on folklore, serving and families were written
    "how to implement rope in pytorch": "rope_in_your_model",
    "positional encoding myths": "folklore",
    "open questions": "settled",
    "context shift": "serving",
    "speculative decoding tree": "serving",
    "deepseek rope": "rope_families",
    "vllm rotary": "rope_conventions",
    "does rope decay with distance": "rope",
    "한국어 요약": "korean",
}
# What engineers type, whether the book uses the word or not.
TYPED = {
    "precompute_freqs_cis": "rope_in_your_model",
    "cos_cached": "rope_in_your_model",
    "rope scaling": "longer",
    "long context": "longer",
    "attention sink": "glossary",
    "2d positional encoding": "rope_in_your_model",
    "mrope": "rope_in_your_model",
    "qwen2-vl": "rope_in_your_model",
    "neox style": "rope_in_your_model",
    "flash attention": "rope_conventions",
    # Korean compounds, for which the book leaves a space
    "위치인코딩": "tour",
    "상대위치": "rotation",
    "회전행렬": "rotation",
    "회전위치임베딩": "rope",
    "순열등변성": "why_order",
    "사인코사인": "conditions",
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
SEARCH_AGAIN = """(query) => {
  document.querySelector("#search-results").replaceChildren();
  Search.performSearch(query);
}"""
FOUND = """(words) => peSearch.find(peSearch.parse(words)).map(({ page }) => page.name)"""
# The words of the first list that the index holds, unless the second has them in another form.
IN_THE_INDEX = """([words, others]) => {
  const { stemOf, book } = peSearch;
  const known = new Set(others.map(stemOf));
  const isAlone = (word) => word.length > 4 && !known.has(stemOf(word));
  return words.filter((word) => isAlone(word) && book.counts.has(stemOf(word)));
}"""


class Hit(NamedTuple):
    address: str  # from the folder of the site
    title: str
    said: str


def hits_of(page: Page, site: str, query: str) -> list[Hit]:
    """What the search page lists, once something is said below each hit."""
    page.goto(f"{site}search.html?q={quote(query)}")
    return listed(page, site)


def hits_of_another(page: Page, site: str, query: str) -> list[Hit]:
    """The same for a page of the search that is open, which has read its index already."""
    page.evaluate(SEARCH_AGAIN, query)
    return listed(page, site)


def listed(page: Page, site: str) -> list[Hit]:
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


@pytest.mark.parametrize("query", ASKED | TYPED)
def test_what_readers_ask_and_type_is_answered_first(search: Page, url: str, query: str) -> None:
    if "/search.html" not in search.url:  # an earlier test has followed a hit
        search.goto(f"{url}search.html")
    check(hits_of_another(search, url, query), (ASKED | TYPED)[query])


def test_a_section_that_answers_is_named_and_opened(search: Page, url: str) -> None:
    first = hits_of(search, url, "vision 2d rope")[0]
    assert first.title.endswith("RoPE in your model > Images and video")
    search.locator("#search-results a").first.click()
    expect(search.locator("#images-and-video h2")).to_be_in_viewport()


def test_a_misspelt_word_is_corrected_and_an_unknown_one_is_named(search: Page, url: str) -> None:
    note = search.locator(".search-note")
    for query, corrected, said in (
        ("postional encoding", "positional", "Results for positional encoding."),
        ("rotate_hlaf", "rotate_half", "Results for rotate_half."),
    ):
        hits_of(search, url, query)
        expect(note).to_have_text(said)
        expect(note.locator("em")).to_have_text(corrected)
    assert hits_of(search, url, "linformer attention")[0].title == "Glossary > attention"
    expect(note).to_have_text("The book does not have the word “linformer”.")
    assert hits_of(search, url, "xyzzy") == []
    expect(search.locator(".search-summary")).to_contain_text("Nothing was found")


def test_a_quotation_stands_alone(search: Page, url: str) -> None:
    """It begins with no sentence that needs the one before, and no fold of aims is quoted."""
    said = {hit.address: hit.said for hit in hits_of(search, url, "llama 3.1")}
    quoted = said["book/rope_in_your_model.html"]
    assert "In Llama 3.1 it is 1" not in quoted.split(". ")[0]
    for hit in hits_of(search, url, "KV cache"):
        assert "what a key-value cache is" not in hit.said
    for query in ("회전 행렬", "직교", "위치 인코딩"):
        assert not [hit for hit in hits_of(search, url, query) if "…" in hit.said]


def test_a_term_is_listed_once_with_its_meaning(search: Page, url: str) -> None:
    for query in ("YaRN", "RoPE", "위치 인코딩"):
        titles = [hit.title for hit in hits_of(search, url, query)]
        assert len(titles) == len(set(titles))
    term = next(hit for hit in hits_of(search, url, "YaRN") if hit.title == "Glossary > YaRN")
    assert term.said.startswith("A way to serve longer texts.")


def test_each_place_with_words_of_readers_is_in_the_book() -> None:
    for place in yaml.safe_load((ROOT / "book/data/search_words.yml").read_text(encoding="utf-8")):
        page, _, anchor = place.partition("#")
        assert not anchor or parsed(SITE / f"{page}.html").select(f"[id='{anchor}']"), place


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


def test_from_a_disk_everything_is_found_and_said_alike(
    browser: Browser, search: Page, url: str
) -> None:
    site = f"{SITE.as_uri()}/"
    with visit(browser, f"{site}search.html") as page:
        for query in ("rotate_half", "add or concatenate", "상대 위치", "YaRN", "wavelength"):
            assert hits_of(page, site, query) == hits_of(search, url, query)


def test_the_index_of_sphinx_holds_no_words() -> None:
    """The page of the search asks for it, and the book's own script never reads it."""
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    held = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    assert held["terms"] == held["titleterms"] == held["alltitles"] == {}
    assert not any(held["titles"])


def test_scripts_that_copy_code_come_with_code_alone() -> None:
    """They are seven kilobytes, and the page of the search shows none."""
    asked = {page: (SITE / page).read_text(encoding="utf-8") for page in ("search.html", CHAPTER)}
    for script in COPY_CODE:
        assert script not in asked["search.html"]
        assert script in asked[CHAPTER]


def test_the_index_is_asked_for_by_its_version(search: Page, url: str) -> None:
    """So that no browser keeps an old one when the book has changed. So are the scripts."""
    hits_of(search, url, "wavelength")
    addresses = [address for _, address in search.evaluate(SIZES_OF_FILES)]
    asked = [address for address in addresses if re.search(r"/search(_index|_page)?\.js", address)]
    assert len(asked) == 3
    assert len({address.partition("?v=")[2] for address in asked} - {""}) == 1


def test_the_index_has_sentences_for_every_page_and_no_numbers_of_chapters(search: Page) -> None:
    """A snippet is a sentence of its page, and a title is the same when chapters are moved."""
    pages = search_index.known_pages(SITE / "_static/search_index.js")
    assert set(pages) == {name.removesuffix(".html") for name in PAGES}
    for name, page in pages.items():
        assert set(page) == {"title", "places"}, "a description would be quoted"
        assert any(place["prose"] for place in page["places"]), name
        titles = [page["title"], *(title for place in page["places"] for title in place["names"])]
        assert not [title for title in titles if re.match(r"\d+(\.\d+)*\.?\s", title)], name


@pytest.mark.parametrize("query", ["how to implement rope in pytorch", "bf16", "rotary", "직교"])
def test_what_is_quoted_stands_on_the_page(search: Page, url: str, query: str) -> None:
    for hit in hits_of(search, url, query)[:5]:
        path = SITE / hit.address.partition("#")[0]
        words = re.findall(r"\w{4,}", hit.said)
        text = " ".join(parsed(path).select("article")[0].get_text().split())
        assert words
        assert not [word for word in words if word not in text], hit


def test_a_chapter_is_quoted_with_its_finding_where_no_sentence_answers(
    search: Page, url: str
) -> None:
    first = hits_of(search, url, "how to implement rope in pytorch")[0]
    finding = parsed(SITE / "book/rope_in_your_model.html").select(".finding strong")[0]
    assert first.said == " ".join(finding.get_text().split())


@pytest.mark.parametrize("lacks", ["the index", "a part of the browser"])
def test_a_search_that_cannot_work_says_so(lacks: str, browser: Browser, url: str) -> None:
    with browser.new_page() as page:
        if lacks == "the index":
            page.route("**/search_index.js*", lambda route: route.abort())
        else:
            page.add_init_script("delete Intl.Segmenter")
        page.goto(f"{url}search.html?q=wavelength")
        expect(page.locator(".search-summary")).to_have_text(
            "The search does not work here: load this page again, or use a newer browser."
        )
        expect(page.locator("#search-results h2")).to_have_text("Search Results")


def test_the_button_of_the_form_stands_beside_its_field(search: Page, url: str) -> None:
    search.goto(f"{url}search.html")
    form = search.locator(".bd-search-container form.bd-search")
    icon, field = (form.locator(part).bounding_box() for part in ("button > i", "input"))
    assert icon is not None
    assert field is not None
    assert icon["x"] + icon["width"] <= field["x"]
    middles = [box["y"] + box["height"] / 2 for box in (icon, field)]
    assert middles[0] == pytest.approx(middles[1], abs=2)


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
    for path in files_of("book/**/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            is_folded = "hide-input" in cell["metadata"].get("tags", [])
            (folded if is_folded else shown).extend(words_of("".join(cell["source"])))
            shown.extend(words_of(json.dumps(cell["metadata"])))  # captions
    for suffix in (".md", ".bib", ".py"):
        for path in (*files_of(f"book/**/*{suffix}"), *files_of(f"pe_*/**/*{suffix}")):
            shown.extend(words_of(path.read_text(encoding="utf-8")))
    assert len(set(folded) - set(shown)) > 20
    hits_of(search, url, "wavelength")
    assert search.evaluate(IN_THE_INDEX, [folded, shown]) == []


def files_of(pattern: str) -> list[Path]:
    """Files of the book. What editors keep of them in hidden folders is not among them."""
    return [path for path in ROOT.glob(pattern) if not is_hidden(path.relative_to(ROOT))]


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())
