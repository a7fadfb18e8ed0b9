"""What stands on the first screen, and what readers of phones, of Korean and of few colours see."""

import io
import json
import re
from contextlib import closing

import numpy as np
import pytest
import tinycss2
from matplotlib.image import imread
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site.browser import DESK, PHONE, visit
from website.build import notebooks_of_the_book
from website.built_site import PAGES, ROOT, SITE, chapters, parsed

LANDING, CHEAT_SHEET = "book/index.html", "book/cheat_sheet.html"
CHAPTERS = ["book/tour.html", *chapters()]
NOTEBOOKS = [name for name in PAGES if (ROOT / name).with_suffix(".ipynb").exists()]
SCHEMES = ("light", "dark")


def pixels(place: Locator) -> np.ndarray:
    """The colours of a place on the screen, one row a pixel."""
    picture = imread(io.BytesIO(place.screenshot()))
    return picture.reshape(-1, picture.shape[-1])


def declarations(text: str) -> set[tuple[str, str]]:
    """All properties and values of these rules, without those of fonts and without variables."""
    found = set()
    for part in tinycss2.parse_blocks_contents(text, skip_comments=True, skip_whitespace=True):
        if part.type == "declaration" and not part.name.startswith("--"):
            found.add((part.lower_name, tinycss2.serialize(part.value).strip()))
        elif part.type == "at-rule" and part.lower_at_keyword == "font-face":
            continue
        elif part.type in ("at-rule", "qualified-rule") and part.content:
            found |= declarations(part.content)
    return found


@pytest.mark.parametrize("file", ["website/assets/book.css", "pe_book/live/kit.css"])
def test_the_browser_of_the_tests_knows_every_property(browser: Browser, file: str) -> None:
    """What another browser alone applies is seen by no test. `hanging-punctuation`, which Safari
    alone knows, moved each opening bracket of a formula onto the letter before it."""
    found = declarations((ROOT / file).read_text(encoding="utf-8"))
    assert len(found) > 50
    with closing(browser.new_page()) as page:
        unknown = page.evaluate("(all) => all.filter((one) => !CSS.supports(...one))", [*found])
    assert unknown == []


# ---- The first screen


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_the_landing_page_opens_on_its_promise_its_first_door_and_its_figure(
    browser: Browser, size: tuple[int, int]
) -> None:
    viewport = dict(zip(("width", "height"), size, strict=True))
    with visit(browser, (SITE / LANDING).as_uri(), viewport=viewport) as page:
        for part in ("article h1 + p", "article .start a"):
            expect(page.locator(part).first).to_be_in_viewport(ratio=1)
        expect(page.locator(".live-picture:visible").first).to_be_in_viewport(ratio=0.5)


# ---- Phones


def test_formulas_in_korean_keep_their_own_fonts_and_are_whole(browser: Browser) -> None:
    with visit(browser, (SITE / "book/korean.html").as_uri(), **PHONE) as page:
        formulas = page.locator("[lang=ko] mjx-container")
        assert formulas.count() >= 2
        faces = formulas.locator("mjx-math").evaluate_all(
            "all => all.map((one) => getComputedStyle(one).fontFamily)"
        )
        assert all("MJX" in face and "Gothic" not in face for face in faces), faces
        assert formulas.evaluate_all(
            """all => all.every((one) => one.scrollWidth <= one.clientWidth + 1
                 || one.hasAttribute("data-wide"))"""
        )


# ---- Few colours


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tracks_and_bars_are_seen_where_the_system_chooses_the_colours(
    browser: Browser, scheme: str
) -> None:
    forced = {"color_scheme": scheme, "forced_colors": "active"}
    with visit(browser, (SITE / CHAPTERS[3]).as_uri(), **forced) as page:
        track = page.locator(".live[data-live] input[type=range]").first
        shown = pixels(track)
        ground = shown[0]
        assert (np.abs(shown - ground).max(axis=1) > 0.25).mean() > 0.1, "the track is not seen"
    with visit(browser, (SITE / "book/sources.html").as_uri(), **forced) as page:
        for media in ("screen", "print"):
            page.emulate_media(media=media)
            bar = pixels(page.locator(".ledger-bar").last)
            assert len({tuple(colour.round(1)) for colour in bar}) >= 4, media


# ---- What stands in the pages


def test_outputs_stand_on_the_lines_on_which_the_notebook_has_them() -> None:
    """Parts that a cell has printed are joined without a new line between them."""
    for path in notebooks_of_the_book():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        printed = [
            "".join(text for one in cell["outputs"] for text in one.get("text", ()))
            for cell in cells
            if cell["cell_type"] == "code"
            and any(one.get("name") == "stdout" for one in cell["outputs"])
            and "remove-output" not in cell["metadata"].get("tags", [])
        ]
        page = SITE / path.relative_to(ROOT).with_suffix(".html")
        shown = [one.text for one in parsed(page).select(".output.stream pre")]
        assert [text.rstrip() for text in shown] == [text.rstrip() for text in printed], path


def test_a_table_of_sentences_is_a_card_for_each_row_on_a_phone(browser: Browser) -> None:
    for name in ("symptoms", "serving", "library", "notation", "cheat_sheet"):
        with visit(browser, (SITE / f"book/{name}.html").as_uri(), **PHONE) as page:
            tables = page.locator("article table.stacked").filter(visible=True)
            assert tables.count() > 0
            for table in tables.all():
                place = table.bounding_box()
                assert place is not None
                assert place["width"] <= 390
                cells = table.locator("tbody tr").first.locator("> *").all()
                tops = [
                    cell.evaluate("(cell) => cell.getBoundingClientRect().top") for cell in cells
                ]
                assert tops == sorted(set(tops))  # one below the other


# What of a displayed formula scrolls, in pixels.
SCROLLS = """() => [...document.querySelectorAll(":is(div.math, .math-line) mjx-container")]
  .filter((formula) => formula.checkVisibility())
  .map((formula) => [formula.scrollWidth - formula.clientWidth, formula.textContent.slice(0, 40)])
  .filter(([hidden]) => hidden > 2)"""

# How many clauses have a piece on a line of its own.
BROKEN = """() => [...document.querySelectorAll(".math-line > span")].filter(({ children }) => {
  const [first, last] = [children[0], children[children.length - 1]];
  return last.getBoundingClientRect().top > first.getBoundingClientRect().bottom - 5;
}).length"""


def test_no_displayed_formula_is_wider_than_a_phone(browser: Browser) -> None:
    """One that is too long is broken, between its clauses or before a relation."""
    broken = 0
    for name in CHAPTERS:
        with visit(browser, (SITE / name).as_uri(), **PHONE) as page:
            assert page.evaluate(SCROLLS) == [], name
            broken += page.evaluate(BROKEN)
    assert broken > 3


def test_the_landing_page_speaks_of_a_rocket_only_where_there_is_one() -> None:
    rockets = parsed(SITE / CHAPTERS[3]).select(".dropdown-launch-buttons, .fa-rocket")
    assert ("rocket" in parsed(SITE / LANDING).select("article")[0].text) == bool(rockets)


def test_the_landing_page_leads_to_the_table_of_model_families() -> None:
    assert parsed(SITE / LANDING).select_one("article a[href$='rope_families.html']")


def test_the_menu_of_a_notebook_downloads_it_and_says_how_to_run_it(browser: Browser) -> None:
    for name in PAGES:
        link = parsed(SITE / name).select(".bd-header-article .run-this-page a[download]")
        assert len(link) == (name in NOTEBOOKS), name
        assert all(str(one["href"]).endswith(".ipynb") for one in link), name
    with visit(browser, (SITE / CHAPTERS[3]).as_uri()) as page:
        menu = page.locator(".run-this-page")
        expect(menu).to_be_hidden()
        page.get_by_role("button", name="Run or download this page").press("Enter")
        expect(menu).to_be_visible()
        expect(menu).to_contain_text("make lab")
        page.keyboard.press("Escape")
        expect(menu).to_be_hidden()


def test_the_contents_lead_to_what_is_read_and_the_end_of_a_page_to_the_checks() -> None:
    for name in PAGES:
        page = parsed(SITE / name)
        links = [str(link["href"]) for link in page.select("#pst-primary-sidebar a[href]")]
        assert not [link for link in links if "checks/" in link or "bibliography" in link], name
        last = [str(link["href"]) for link in page.select("footer .footer-links a")]
        here = name.removeprefix("book/")
        for target, link in zip(["checks/index.html", "bibliography.html"], last, strict=True):
            is_named = link.endswith(target.rpartition("/")[2])
            assert is_named or (link == "#" and here == target), name


def test_the_first_figure_of_a_page_is_its_first() -> None:
    """Each figure has a number. In a chapter that of the chapter stands before it."""
    for name in NOTEBOOKS:
        page = parsed(SITE / name)
        numbers = [number.text.strip() for number in page.select("figcaption .caption-number")]
        before = f"{chapters().index(name) + 1}." if name in chapters() else ""
        figures = range(1, len(page.select("figcaption")) + 1)
        assert figures or name not in CHAPTERS, name
        assert numbers == [f"Fig. {before}{count}" for count in figures], name


def test_the_page_of_mistakes_opens_on_its_table() -> None:
    """And not on a folded cell of imports."""
    page = parsed(SITE / "book/symptoms.html")
    assert page.select("article :is(table, details.hide)")[0].name == "table"


def test_a_page_waits_for_one_style_sheet_and_for_no_script() -> None:
    for name in PAGES:
        page = parsed(SITE / name)
        sheets = [str(link["href"]) for link in page.select("link[rel=stylesheet]")]
        to_the_top = "../" * name.count("/")
        assert [sheet.partition("?")[0] for sheet in sheets] == [f"{to_the_top}_static/site.css"]
        assert not page.select("script[src]:not([defer])"), name


def test_boxes_that_fit_are_left_as_they_are(browser: Browser) -> None:
    """The theme would mark each of them, which sets the page again (watchWide in book.js)."""
    with visit(browser, (SITE / "book/rotation.html").as_uri()) as page:
        boxes = page.locator("article pre")
        assert boxes.count() > 0
        assert boxes.locator("xpath=self::*[@tabindex='-1']").count() == 0


def test_no_line_begins_with_the_sign_of_a_percentage() -> None:
    for name in PAGES:
        for text in parsed(SITE / name).find_all(string=re.compile(r"\d %")):
            assert text.find_parent(["head", "script", "pre", "svg"]), f"{name}: {text}"


def test_prepared_drawings_say_what_they_show(browser: Browser) -> None:
    """Not the value of their slider alone: the sentence below them, for voices, is that of the
    drawing, and it changes with it."""
    with_drawings = [
        name for name in NOTEBOOKS if parsed(SITE / name).select('[data-figure="frames"]')
    ]
    assert with_drawings
    for name in with_drawings:
        with visit(browser, (SITE / name).as_uri()) as page:
            for figure in page.locator('.live[data-figure="frames"]:has(input)').all():
                expect(figure).to_have_attribute("data-live", "")
                says = figure.locator(".live__says")
                before = says.inner_text()
                slider = figure.locator("input").first
                at_the_end = slider.input_value() == slider.get_attribute("max")
                slider.press("ArrowLeft" if at_the_end else "ArrowRight")
                expect(says).not_to_have_text(before)
                assert len(before) > 30, before


# ---- The table that stays beside the tour

BESIDE = "[data-beside] > .live"
FACES = ["table", "products", "added", "turned", "", "learned", ""]
# To where a mark of the text stands at the top of the window; -1 is the figure before the first.
SCROLL_TO = """(which) => {
  const marks = document.querySelectorAll("[data-face]");
  const place = which < 0 ? document.querySelector("#fig-tour-table") : marks[which];
  scrollTo(0, place.getBoundingClientRect().top + scrollY - 0.3 * innerHeight);
}"""
SHIFT = """() => {
  window.shift = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => (shift += one.value)))
    .observe({ type: "layout-shift" });
}"""


def face_of(page: Page) -> str:
    """Which face shows, by what it says of a step that is not 0."""
    says = page.locator(f"{BESIDE} .live__says").filter(visible=True)
    if not says.count():
        return ""
    words = {"every row as far": "table", "as before": "products", "misses it": "learned"}
    words |= {"“": "added", "as it did": "turned"}
    return next(face for word, face in words.items() if word in says.inner_text())


def test_the_table_stays_beside_the_tour_with_the_step_that_it_was_pulled_by(
    browser: Browser,
) -> None:
    with visit(browser, (SITE / "book/tour.html").as_uri(), **DESK) as page:
        table = page.locator("#fig-tour-table .live[data-live]")
        step = table.locator('input[data-key="step"]')
        step.evaluate(
            "one => (one.value = 5, one.dispatchEvent(new Event('input', { bubbles: true })))"
        )
        page.evaluate(SHIFT)
        outline = page.locator(".bd-sidebar-secondary")
        for which in (*range(7), *range(6, -1, -1)):
            page.evaluate(SCROLL_TO, which)
            beside = page.locator(BESIDE).filter(visible=True)
            expect(beside).to_have_count(1 if FACES[which] else 0)
            page.wait_for_timeout(100)
            assert face_of(page) == FACES[which]
            folded = outline.evaluate("one => one.classList.contains('hide')")
            assert folded == bool(FACES[which])
            if beside.count():
                expect(beside).to_be_in_viewport(ratio=1)
                page.wait_for_function(
                    f"(figure) => ({COVERED})(figure).length === 0", arg=beside.element_handle()
                )
        page.locator(f'{BESIDE} input[data-key="step"]').press("ArrowRight")
        page.evaluate(SCROLL_TO, -1)
        expect(step).to_have_value("5.1")  # the reader returns, and finds it as it was left
        expect(page.locator(BESIDE)).to_be_hidden()
        assert page.evaluate("shift") <= 0.02


# All before the next frame, as a key may be that scrolls the page to what has the focus.
RETURN_BY_KEY = """(slider) => {
  slider.focus();
  slider.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  slider.value = Number(slider.value) + 1;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def test_a_key_moves_the_table_that_has_come_back(browser: Browser) -> None:
    with visit(browser, (SITE / "book/tour.html").as_uri(), **DESK) as page:
        row = page.locator('#fig-tour-table .live[data-live] input[data-key="x"]')
        before = int(row.input_value())
        page.evaluate(SCROLL_TO, 0)
        expect(page.locator(BESIDE)).to_be_visible()
        row.evaluate(RETURN_BY_KEY)
        expect(page.locator(BESIDE)).to_be_hidden()
        expect(row).to_have_value(str(before + 1))


# What of the text or of the folded outline the figure lies on, in pixels.
COVERED = """(figure) => {
  const mine = figure.getBoundingClientRect();
  const others = document.querySelectorAll("article :is(p, figure, pre), .bd-sidebar-secondary");
  return [...others].filter((one) => one.checkVisibility()).filter((one) => {
    const its = one.getBoundingClientRect();
    return its.left < mine.right - 1 && mine.left < its.right - 1 &&
      its.top < mine.bottom - 1 && mine.top < its.bottom - 1;
  }).map((one) => one.textContent.slice(0, 40));
}"""


def test_the_outline_opens_over_the_table_for_the_keyboard(browser: Browser) -> None:
    with visit(browser, (SITE / "book/tour.html").as_uri(), **DESK) as page:
        page.evaluate(SCROLL_TO, 0)
        expect(page.locator(BESIDE)).to_be_visible()
        link = page.locator(".bd-sidebar-secondary nav a").nth(5)
        link.focus()
        expect(page.locator(".bd-sidebar-secondary nav")).to_have_css("opacity", "1")
        on_top = """one => {
          const { left, top } = one.getBoundingClientRect();
          return one.contains(document.elementFromPoint(left + 5, top + 5));
        }"""
        page.wait_for_function(f"one => ({on_top})(one)", arg=link.element_handle())


def test_no_table_stands_beside_the_tour_on_a_phone_on_paper_or_without_scripts(
    browser: Browser,
) -> None:
    address = (SITE / "book/tour.html").as_uri()
    with visit(browser, address, **PHONE) as page:
        expect(page.locator(".live:not([data-live])")).to_have_count(0)
        page.evaluate(SCROLL_TO, 0)
        assert page.locator("[data-beside], script[src*=companion]").count() == 0
    with visit(browser, address, **DESK) as page:
        page.evaluate(SCROLL_TO, 0)
        expect(page.locator(BESIDE)).to_be_visible()
        page.emulate_media(media="print")
        expect(page.locator(BESIDE)).to_be_hidden()
    with browser.new_page(java_script_enabled=False, **DESK) as page:
        page.goto(address)
        assert page.locator("[data-beside]").count() == 0
        expect(page.locator("[data-face]").first).to_be_attached()
