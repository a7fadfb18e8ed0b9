"""Every page as a reader gets it: what stands in its file, and what one visit to it shows.

A page is visited on a light desk and, unless it is a page of checks, on a dark phone. All that can
be asked of a visit is asked of the same one.
"""

import collections
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import html5lib
import pytest
from playwright.sync_api import Browser
from site_under_test import (
    ALL_PAGES,
    DESK,
    FORMULA,
    PAGES,
    PHONE,
    SITE,
    Visit,
    parsed,
    visit,
)

MOST_BYTES = 450_000
MOST_SHIFT = 0.05
HTML_VALIDATE = "html-validate@10.17.0"
WRITTEN = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
RAW = re.compile(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$\$|:::|\{[a-z:]+\}`|^```", re.MULTILINE)
HANGUL = re.compile("[가-힣]")

# Everything that is folded, opened as a reader opens it.
UNFOLD = """() => {
  const folds = ".toggle-hidden > .toggle-button, details:not([open]) > summary";
  document.querySelectorAll(folds).forEach((fold) => fold.click());
}"""
# What holds more than it shows, unless it scrolls and the keyboard reaches it and a fade tells.
CUT_OFF = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let passed = 0; passed < 3; passed++) await frame();
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
# The formulas whose comma, or whatever else touches them, stands on another line.
PARTED = """() => [...document.querySelectorAll(".kept")]
  .filter((kept) => kept.getClientRects().length > 1).map((kept) => kept.textContent)"""
SHIFTED = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  resolve(list.getEntries().reduce((sum, entry) => sum + entry.value, 0));
}).observe({ type: "layout-shift", buffered: true }) || setTimeout(() => resolve(0), 100))"""
LOOKS_OF_PICTURES = """() => [...document.querySelectorAll("article img:not(.live *)")]
  .map(getComputedStyle).map((style) => [style.filter, style.backgroundColor].join())"""

every_file = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=name, marks=pytest.mark.xdist_group(name))
        for path in WRITTEN
        for name in [str(path.relative_to(SITE))]
    ],
)


def article_of(path: Path) -> str:
    """The text of a page outside code."""
    page = parsed(path)
    silent = {
        text for code in page.select("pre, code, script") for text in code.find_all(string=True)
    }
    whole = page.select_one("article") or page
    return "".join(text for text in whole.find_all(string=True) if text not in silent)


@functools.cache
def anchors_of(path: Path) -> list[str]:
    return [str(element["id"]) for element in parsed(path).select("[id]")]


# ---- What stands in the file


def test_every_page_of_the_contents_was_written() -> None:
    missing = {SITE / name for name in ALL_PAGES} - set(WRITTEN)
    assert missing == set()


@every_file
def test_html_is_well_formed(path: Path) -> None:
    """The standard's own parser meets no error, and no anchor stands twice."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(FORMULA.sub("", path.read_text(encoding="utf-8")))
    assert [(place, code) for place, code, _ in parser.errors] == []
    names = collections.Counter(anchors_of(path))
    assert [name for name, count in names.items() if count > 1] == []


@every_file
def test_links_resolve(path: Path) -> None:
    """Every link within the site leads somewhere, anchors included."""
    elements = parsed(path).select("[href], [src]")
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


@every_file
def test_korean_is_marked_and_nothing_else(path: Path) -> None:
    for text in parsed(path).find_all(string=HANGUL):
        assert text.find_parent(["head", "script"]) or text.find_parent(lang="ko"), text
    for element in parsed(path).select("[lang=ko]"):
        assert HANGUL.search(element.get_text())
        if element.name in ("span", "dt"):
            assert not re.search("[A-Za-z]{2}", element.get_text())


@every_file
def test_no_markup_is_left_in_the_text(path: Path) -> None:
    """Every formula is set, is heard as MathML, and nothing of MyST or TeX is left."""
    assert RAW.findall(article_of(path)) == []
    text = path.read_text(encoding="utf-8")
    formulas = FORMULA.findall(text)
    assert len(formulas) == len(parsed(path).select(".math"))
    for formula in formulas:
        assert "<mjx-assistive-mml" in formula
        assert "data-mjx-error" not in formula


@pytest.mark.parametrize("name", PAGES)
def test_page_introduces_itself(name: str) -> None:
    """A heading and text; to search engines and shared links a title, a description and an icon."""
    page = parsed(SITE / name)
    assert page.select_one("article h1")
    assert page.select_one("article p")
    for selector, attribute in {
        "meta[name=description]": "content",
        'meta[property="og:title"]': "content",
        'meta[property="og:description"]': "content",
        "link[rel=icon]": "href",
    }.items():
        (element,) = page.select(f"head {selector}")
        assert len(str(element[attribute])) >= 5


def test_descriptions_differ() -> None:
    (said,) = ([str(parsed(SITE / name).select("meta[name=description]")) for name in PAGES],)
    assert len(set(said)) == len(PAGES)


def test_html_is_valid(tmp_path: Path) -> None:
    """html-validate's rules of the standard and of accessibility find nothing.

    It comes by npm, where there is npm. One rule is off: Sphinx's search wants role="main" on the
    main element. Another is as the standard has it: an anchor may hold the dots of a Python name.
    """
    npx = shutil.which("npx")
    if npx is None:
        assert not os.environ.get("CI"), "CI needs Node.js, for html-validate"
        pytest.skip("html-validate needs Node.js; the tests above need Python alone")
    for path in WRITTEN:
        copy = tmp_path / path.relative_to(SITE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(FORMULA.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
    rules = str(Path(__file__).with_name("htmlvalidate.json"))
    command = [npx, "--yes", HTML_VALIDATE, "--config", rules, "--max-warnings", "0", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "npm error" in done.stderr and not os.environ.get("CI"):
        pytest.skip("html-validate could not be fetched; the tests above need no network")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


# ---- What a visit shows. Each worker of a parallel run takes whole groups, so opens a page once.

LOOKS = [
    pytest.param((name, setting), id=look, marks=pytest.mark.xdist_group(look))
    for name in ALL_PAGES
    for setting in ([DESK] if "/checks/" in name else [DESK, PHONE])
    for look in [f"{name}-{setting.scheme}-{setting.width}"]
]


@pytest.fixture(scope="module", params=LOOKS)
def seen(browser: Browser, url: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Each page in each setting, opened once for all that is asked of it."""
    name, setting = request.param
    with visit(browser, url + name, setting) as opened:
        yield opened


def test_first_view_is_light_and_stands_still(seen: Visit) -> None:
    seen.page.wait_for_load_state("networkidle")
    largest = sorted(seen.sizes.items(), key=lambda item: -item[1])[:8]
    assert sum(seen.sizes.values()) <= MOST_BYTES, f"the largest: {largest}"
    assert seen.page.evaluate(SHIFTED) <= MOST_SHIFT


def test_nothing_comes_from_other_hosts(seen: Visit) -> None:
    assert seen.foreign == []


def test_pictures_have_text_alternatives(seen: Visit) -> None:
    said = seen.page.locator("article img").evaluate_all("all => all.map((e) => e.alt)")
    frames = "all => all.map((e) => e.getAttribute('aria-label') ?? '')"
    said += seen.page.locator("article svg[role=img]").evaluate_all(frames)
    assert [text for text in said if len(text) < 10] == []


def test_figures_turn_dark(seen: Visit) -> None:
    """In the dark a figure's white becomes the page's own colour, with no box around it."""
    dark = seen.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    expected = "invert(0.93) hue-rotate(180deg)" if dark else "none"
    assert set(seen.page.evaluate(LOOKS_OF_PICTURES)) <= {f"{expected},rgba(0, 0, 0, 0)"}
    paper = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(18, 18, 18)" if dark else "rgb(255, 255, 255)")


def test_nothing_is_cut_off_at_any_width(seen: Visit) -> None:
    """With all folds open; nor is a formula parted from its comma."""
    page = seen.page
    page.evaluate(UNFOLD)
    own = page.viewport_size or {"width": 0, "height": 0}
    for width in (own["width"], *((360, 320) if own["width"] < 500 else ())):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CUT_OFF) == [], f"{width} pixels wide"
        assert page.evaluate(PARTED) == [], f"{width} pixels wide"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(own)


def test_axe_finds_no_violation(seen: Visit) -> None:
    """With all folds open."""
    assert seen.axe() == []


def test_the_console_stays_silent(seen: Visit) -> None:
    """Asked last, once everything has run."""
    assert seen.complaints == []
