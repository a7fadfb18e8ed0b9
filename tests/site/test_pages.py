"""Every page as a reader gets it: what stands in its file, and what one visit to it shows.

All that can be asked of a visit is asked of the same one, so each question is a subtest of its own.
"""

import functools
import importlib
import inspect
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from bs4.element import NavigableString
from PIL import Image
from playwright.sync_api import Browser, Page

from tests.site.browser import DESK, PHONE, SETTLE, visit
from website.browser import move
from website.built_site import DRAWN_FORMULA, PAGES, ROOT, SITE, SIZES_OF_FILES, chapters, parsed
from website.cards import GENERAL, SIZE, cards
from website.install import HTML_VALIDATE_PROGRAM, why_html_is_not_validated

MOST_BYTES = 450_000
MOST_SHIFT = 0.02
WRITTEN = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
RAW = re.compile(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$\$|:::|\{[a-z:]+\}`|^```|[ωΣ]_\w|\^\(", re.MULTILINE)
HANGUL = re.compile("[가-힣]")

# Everything that is folded, opened as a reader opens it.
UNFOLD = """() => {
  document.querySelectorAll("details:not([open]) > summary").forEach((fold) => fold.click());
}"""
# What holds more than it shows, unless it scrolls and the keyboard reaches it and a fade tells.
CUT_OFF = """() => {
  const clips = (box) => getComputedStyle(box).overflowX !== "visible";
  const scrolls = (box) =>
    getComputedStyle(box).overflowX === "auto" && box.scrollWidth > box.clientWidth &&
    box.tabIndex === 0 && box.hasAttribute("data-after");
  const drawn = document.querySelectorAll("mjx-container > mjx-math, article :is(table, pre > *)");
  return [...drawn].filter((one) => {
    const right = one.getBoundingClientRect().right;
    for (let box = one; one.checkVisibility() && box; box = box.parentElement) {
      if (scrolls(box)) return false;
      if (clips(box) && right > box.getBoundingClientRect().right + 1) return true;
    }
  }).map((one) => `${one.localName}: ${one.parentElement.textContent.slice(0, 60)}`);
}"""
# The formulas whose comma, or whatever else touches them, stands on another line: one part begins
# below the end of another.
PARTED = """() => [...document.querySelectorAll(".kept")].filter((kept) => {
  const parts = [...kept.getClientRects()];
  const lowest = Math.max(...parts.map((part) => part.top));
  return lowest >= Math.min(...parts.map((part) => part.bottom));
}).map((kept) => kept.textContent)"""
SHIFTED = """() => new Promise((resolve) => {
  const observer = new PerformanceObserver((list) => {
    resolve(list.getEntries().reduce((sum, entry) => sum + entry.value, 0));
  });
  observer.observe({ type: "layout-shift", buffered: true });
  setTimeout(() => resolve(0), 100);
})"""
FIT = "all => all.map((figure) => figure.getBoundingClientRect().height <= innerHeight)"
# In pixels of the screen.
SIZES_OF_LETTERS = """all => all
  .flatMap((figure) => [...figure.querySelectorAll(".live__picture text")])
  .filter((text) => text.checkVisibility())
  .map((text) => [parseFloat(getComputedStyle(text).fontSize), text.getScreenCTM()])
  .map(([size, { a, b }]) => size * Math.hypot(a, b))"""
PART_ON_THE_SCREEN = """all => {
  const picture = all.find((one) => one.checkVisibility()).getBoundingClientRect();
  return Math.min(1, (innerHeight - picture.top) / picture.height);
}"""
# The words that stand on two lines, but for those that end in a sign at which a line may end.
BROKEN = r"""() => {
  const range = document.createRange();
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const around = text.parentElement;
    if (!around.closest("td, th") || around.closest("mjx-container")) continue;
    if (!around.checkVisibility()) continue;
    for (const { 0: word, index } of text.data.matchAll(/[^\s\-–—\/)]+/gu)) {
      if (/[가-힣]/.test(word)) continue;
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size > 1)
        broken.push(word);
    }
  }
  return broken;
}"""
# What is printed below a figure and has the sign of its source on it, and the titles of folds whose
# arrow has no room beside them.
COVERED = """() => {
  const lieOnOneAnother = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const printed = [...document.querySelectorAll("details.hide > summary")].flatMap((sign) => {
    const place = sign.getBoundingClientRect();
    const texts = [...sign.closest(".cell").querySelectorAll(".cell_output pre")];
    return texts.filter((text) => lieOnOneAnother(place, text.getBoundingClientRect()));
  });
  const titles = [...document.querySelectorAll(".fold > summary")]
    .filter((title) => parseFloat(getComputedStyle(title).paddingInlineEnd) < 16);
  return [...printed, ...titles].map((one) => one.textContent.slice(0, 60));
}"""
LENGTHS = "all => all.filter((one) => one.checkVisibility()).map((one) => one.clientWidth)"
LOOKS_OF_PICTURES = """() => [...document.querySelectorAll("article img:not(.live *)")]
  .filter((picture) => picture.checkVisibility()).map(getComputedStyle)
  .map((style) => [style.filter, style.backgroundColor].join())"""
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
# Marks one element for each look of a text, its colour, size and weight on the same grounds: to
# measure the contrast of all takes minutes. The MathML of formulas far off the screen is skipped by
# a browser, and a question about it then lays it out anew each time: here all of it is there.
# One program draws all formulas, and alike, so of those in a line only some are kept whole: the
# first, and those with a mark. Of the others axe sees the box. They are most of the elements of a
# page, and of the time that axe takes.
MARK_LOOKS = """() => {
  const whole = "<style>mjx-assistive-mml { content-visibility: visible; }</style>";
  document.head.insertAdjacentHTML("beforeend", whole);
  const grounds = new Map([[null, ""]]);
  const groundOf = (element) => {
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, filter].join();
      const below = groundOf(element.parentElement);
      grounds.set(element, own === "rgba(0, 0, 0, 0),none,1,none" ? below : `${own}|${below}`);
    }
    return grounds.get(element);
  };
  const looks = new Map();
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  for (const text of document.body.querySelectorAll("*")) {
    if (!hasText(text) || !text.checkVisibility()) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(text);
    looks.set([color, fontSize, fontWeight, groundOf(text)].join("|"), text);
  }
  for (const text of looks.values()) text.dataset.look = "";
  const formulas = [...document.querySelectorAll("mjx-container:not([display])")];
  for (const formula of formulas.slice(1))
    if (!formula.querySelector("[data-look]"))
      for (const part of formula.children) part.textContent = "formula";
}"""
RUN_AXE = """(rules) => {
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-look]" }] });
  const more = { "label-content-name-mismatch": { enabled: true } }; // WCAG 2.1, 2.5.3
  return axe.run({ runOnly: rules, rules: more, resultTypes: ["violations"], preload: false })
    .then((found) => found.violations);
}"""
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def article_of(path: Path) -> str:
    """The text of a page outside code."""
    page = parsed(path)
    silent = {
        text for code in page.select("pre, code, script") for text in code.find_all(string=True)
    }
    whole = page.select_one("article") or page
    return "".join(text for text in whole.find_all(string=True) if text not in silent)


@functools.cache
def anchors_of(path: Path) -> set[str]:
    return {str(element["id"]) for element in parsed(path).select("[id]")}


# ---- What stands in the file


def links_resolve(path: Path) -> None:
    """Every link within the site leads somewhere, anchors included."""
    elements = parsed(path).select(":not(base)[href], [src]")
    dead = []
    for address in {str(one.get("href") or one.get("src")) for one in elements}:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment) if target.suffix == ".html" else ""
        if not target.is_file() or (anchor and anchor not in anchors_of(target)):
            dead.append(address)
    assert dead == []


def korean_is_marked_and_nothing_else(path: Path) -> None:
    for text in parsed(path).find_all(string=HANGUL):
        assert text.find_parent(["head", "script"]) or text.find_parent(lang="ko"), text
    for element in parsed(path).select("[lang=ko]"):
        assert HANGUL.search(element.get_text()), element


def no_markup_is_left_in_the_text(path: Path) -> None:
    """Every formula is set, is heard as MathML, and nothing of MyST, TeX or docstrings is left."""
    assert RAW.findall(article_of(path)) == []
    formulas = DRAWN_FORMULA.findall(path.read_text(encoding="utf-8"))
    assert len(formulas) == len(parsed(path).select(".math"))
    for formula in formulas:
        assert "<mjx-assistive-mml" in formula
        assert "data-mjx-error" not in formula


def formulas_and_phrases_keep_what_touches_them(path: Path) -> None:
    """So that no line begins with a comma, or ends with a bracket."""
    for box in parsed(path).select("article :is(span.math, span[data-state])"):
        kept = box.find_parent(class_="kept") or box
        for beside, nearest in ((kept.previous_sibling, -1), (kept.next_sibling, 0)):
            assert not isinstance(beside, NavigableString) or beside[nearest].isspace(), kept.parent


def page_introduces_itself(path: Path) -> None:
    """To search engines and shared links: by a title, a description and an icon."""
    if path.relative_to(SITE).as_posix() not in PAGES:
        return
    said = {str(one.get("name") or one.get("property")): one for one in parsed(path).select("meta")}
    for name in ("description", "og:title", "og:description"):
        assert len(str(said[name]["content"])) >= 5, name
    # What is said begins with the subject, in whole sentences, and is not cut.
    assert re.fullmatch(r"(?!This page)[^…]{5,199}[.?]", str(said["description"]["content"]))
    assert parsed(path).select("head > link[rel=icon]")
    # What needs the address of the site is there where the address is known.
    if canonical := parsed(path).select("head > link[rel=canonical]"):
        address = str(canonical[0]["href"]).removesuffix(path.relative_to(SITE).as_posix())
        names_its_picture(
            path, address, {name: str(one.get("content")) for name, one in said.items()}
        )


def names_its_picture(path: Path, address: str, said: dict[str, str]) -> None:
    """A page with a card shows it, and every other page that of the book."""
    name = path.stem if path.parent.name == "book" and path.stem in cards() else GENERAL
    picture = SITE / said["og:image"].removeprefix(address)
    assert picture == SITE / "_static" / "cards" / f"{name}.png"
    with Image.open(picture) as drawn:
        assert drawn.size == SIZE
    assert cards()[name].says in said["og:image:alt"]
    assert [said[f"og:image:{side}"] for side in ("width", "height")] == [*map(str, SIZE)]
    assert said["twitter:card"] == "summary_large_image"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(SITE)))
def test_file(path: Path, subtests: pytest.Subtests) -> None:
    """What stands in a page leads somewhere and says what it is."""
    for check in (
        links_resolve,
        korean_is_marked_and_nothing_else,
        no_markup_is_left_in_the_text,
        formulas_and_phrases_keep_what_touches_them,
        page_introduces_itself,
    ):
        with subtests.test(check.__name__):
            check(path)


def test_the_address_of_the_site_introduces_the_landing_page() -> None:
    """It is what people share, and who reads it there runs no script."""
    shared, landing = parsed(SITE / "index.html"), parsed(SITE / PAGES[0])
    assert shared.select("title")[0].text == landing.select("title")[0].text
    names = ["[name=description]", "[property='og:description']", "[property='og:title']"]
    if landing.select("link[rel=canonical]"):
        names += ["[property='og:image']", "[property='og:image:alt']"]
    for name in names:
        said = [page.select(f"meta{name}")[0]["content"] for page in (shared, landing)]
        assert said[0] == said[1], name


@pytest.mark.parametrize("half", ["pe_lib.numpy", "pe_lib.torch", "pe_book.plots", "pe_book.live"])
def test_the_page_of_the_library_has_an_example_of_every_name(half: str) -> None:
    module = importlib.import_module(half)
    first_half = importlib.import_module("pe_lib.numpy")
    for name in documented_names(module):
        shared = getattr(module, name) is getattr(first_half, name, None)
        home = first_half if shared else module  # what both halves share is shown once
        said = f'dt[id="{home.__name__}.{name}"] + dd > .doctest .gp'
        assert parsed(SITE / "book" / "library.html").select(said), name


def documented_names(module: ModuleType) -> list[str]:
    """All public names of the library; of the book's modules, the functions that a page calls."""
    functions = inspect.getmembers(module, inspect.isfunction)
    own = [name for name, one in functions if one.__module__ == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def test_html_is_valid(tmp_path: Path) -> None:
    """html-validate's rules of the standard and of accessibility find nothing.

    Set-up fetches it where there is npm. One rule is off: Sphinx's search wants role="main" on the
    main element. Another is as the standard has it: an anchor may hold the dots of a Python name.
    """
    if reason := why_html_is_not_validated():
        pytest.skip(reason)
    for path in WRITTEN:
        copy = tmp_path / path.relative_to(SITE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(DRAWN_FORMULA.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
    rules = str(Path(__file__).with_name("htmlvalidate.json"))
    options = ["--config", rules, "--max-warnings", "0"]
    subprocess.run([HTML_VALIDATE_PROGRAM, *options, tmp_path], check=True)


# ---- What a visit shows


def first_view_is_light_and_stands_still(page: Page) -> None:
    sizes = page.evaluate(SIZES_OF_FILES)
    assert sum(size for size, _ in sizes) <= MOST_BYTES, f"the largest: {sorted(sizes)[-8:]}"
    assert page.evaluate(SHIFTED) <= MOST_SHIFT


def a_chapter_opens_on_its_picture(page: Page) -> None:
    """More than half of it is on the first screen of a desk."""
    if is_chapter(page) and not is_phone(page):
        pictures = page.locator("article :is(.live__picture > svg, figure img)")
        assert pictures.evaluate_all(PART_ON_THE_SCREEN) > 0.6


def a_phone_names_the_page_and_keeps_words_and_code_whole(page: Page) -> None:
    """Names fit into the header, no word of a table is broken, and code keeps its lines."""
    if not is_phone(page) or not page.locator("article").count():
        return
    if is_chapter(page):
        place = page.locator(".place__page")
        assert place.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
        assert place.evaluate("one => one.clientWidth") >= 90
    assert page.evaluate(BROKEN) == []
    looks = page.locator("article .highlight pre").evaluate_all(
        "all => all.map(getComputedStyle).map((look) => look.whiteSpace + look.overflowX)"
    )
    assert set(looks) <= {"preauto"}


def is_phone(page: Page) -> bool:
    return bool(page.evaluate("innerWidth") == PHONE["viewport"]["width"])


def is_chapter(page: Page) -> bool:
    return any(page.url.split("#")[0].endswith(name) for name in ["book/tour.html", *chapters()])


def signs_of_folds_lie_on_no_text(page: Page) -> None:
    assert page.evaluate(COVERED) == []


def pictures_have_text_alternatives(page: Page) -> None:
    """That say something: axe is content with any."""
    said = page.locator("article img").evaluate_all("all => all.map((e) => e.alt)")
    assert [text for text in said if len(text) < 10] == []


def figures_turn_dark(page: Page) -> None:
    """Each still figure shows the twin of the page's scheme, with no filter and no box."""
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert set(page.evaluate(LOOKS_OF_PICTURES)) <= {"none,rgba(0, 0, 0, 0)"}
    shown = "only-dark" if dark else "only-light"
    others = page.locator(f"article figure img:not(.{shown})").filter(visible=True)
    assert others.count() == 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(18, 18, 18)" if dark else "rgb(255, 255, 255)")


def nothing_is_cut_off_at_any_width(page: Page) -> None:
    """With all folds open; nor is a formula parted from its comma."""
    page.evaluate(UNFOLD)
    own = page.evaluate("innerWidth")
    for width in (*((320, 360) if own < 500 else ()), own):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(SETTLE)
        assert page.evaluate(CUT_OFF) == [], f"{width} pixels wide"
        assert page.evaluate(PARTED) == [], f"{width} pixels wide"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def every_figure_shows_its_caption(page: Page) -> None:
    """The folds are open, by the check before. The theme hides captions of hidden pictures."""
    captions = page.locator("article figure figcaption")
    assert captions.filter(visible=True).count() == captions.count()


def figures_of(name: str) -> int:
    """How many live figures the source of a page shows, in its outputs or by a directive."""
    sources = (ROOT / Path(name).with_suffix(suffix) for suffix in (".ipynb", ".md"))
    texts = [path.read_text(encoding="utf-8") for path in sources if path.exists()]
    return sum(len(re.findall(r'"Live figure: |^\{\{ box\(', text, re.M)) for text in texts)


def live_figures_move(page: Page) -> None:
    """Every live figure of the sources is there, fits on the screen, and each control moves it. The
    tracks of its controls are long enough to be aimed at."""
    figures = page.locator(".live")
    assert figures.count() == figures_of(f"book/{page.url.rpartition('/book/')[2]}")
    for figure in figures.all():
        move(figure)
    for width, height in ((844, 390), (page.evaluate("innerWidth"), 900)):  # a phone may be turned
        page.set_viewport_size({"width": width, "height": height})
        assert all(figures.evaluate_all(FIT))
        assert all(size >= 12 for size in figures.evaluate_all(SIZES_OF_LETTERS))
    tracks = figures.locator("input[type=range]").evaluate_all(LENGTHS)
    assert all(length >= 100 for length in tracks), tracks


def axe_finds_no_violation(page: Page) -> None:
    """With all folds open, by the check before. Contrast is measured at one text of each look."""
    page.evaluate(SETTLE)  # the window has just got its own width back
    page.evaluate(MARK_LOOKS)
    page.evaluate(AXE)
    found = page.evaluate(RUN_AXE, AXE_RULES)
    assert [f"{one['id']}: {node['html'][:150]}" for one in found for node in one["nodes"]] == []


VISITED = (*PAGES, "search.html", "search.html?q=rope", "404.html")
AT_A_DESK = [pytest.param(name, DESK, id=f"{name}-desk") for name in VISITED]
BY_PHONE = [
    pytest.param(name, PHONE, id=f"{name}-phone", marks=pytest.mark.phone)
    for name in VISITED
    if "/checks/" not in name
]


@pytest.mark.parametrize(("name", "setting"), [*AT_A_DESK, *BY_PHONE])
def test_visit(
    browser: Browser, url: str, name: str, setting: dict[str, Any], subtests: pytest.Subtests
) -> None:
    """All that is asked of a page in a setting, in one visit: from a server at a desk, and on a
    phone from the folder, as it is read from a disk."""
    site = url if setting == DESK else f"{SITE.as_uri()}/"
    with visit(browser, site + name, **setting) as page:
        for check in (
            first_view_is_light_and_stands_still,
            a_chapter_opens_on_its_picture,
            a_phone_names_the_page_and_keeps_words_and_code_whole,
            signs_of_folds_lie_on_no_text,
            pictures_have_text_alternatives,
            figures_turn_dark,
            nothing_is_cut_off_at_any_width,
            every_figure_shows_its_caption,
            live_figures_move,
            axe_finds_no_violation,
        ):
            with subtests.test(check.__name__):
                check(page)
