"""Fix the HTML of the theme and the directives: accessible names, landmarks, unique anchors.

Each function takes a parsed page and fixes one thing. They run once the pages are written, so that
the checks of the site look at what a reader gets.
"""

import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import NavigableString
from sphinx.errors import ExtensionError

from pe_book.plots import ENLARGED
from website.finish.site import Site

VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
EQUATION = re.compile(r" ([=≠<>≤≥≈]) ")
PERCENTAGE = re.compile(r"(?<=\d) %")
LETTERS_ON_A_PHONE = 80  # of a row of a table: two lines or so
LONG_CALL = re.compile(r"\S{40}")  # nearly the width of a phone
PART_OF_A_CALL = re.compile(r"(?<=[a-z][.(])(?=\w)")
BEHIND_THE_PAGES = "Checks"  # the part of _toc.yml that the contents leave out
# What stands in a <pre>, where it is marks and letters alone, and name_languages has nothing to do.
CODE = re.compile(r"(?<=<pre>)(?:[^<가-힣]++|</?span(?: class=\"[\w ]+\")?>)++(?=</pre>)")
PLAIN_NAME = re.compile(r'<span class="[nopw]">([^<]*)</span>')
ASIDE = "\ue000"  # of the private use area: no text of the book has it
KOREAN = re.compile(r"(\d*[가-힣]+(?:[ ,.·]+[가-힣]+)*)")


def name_buttons(page: BeautifulSoup) -> None:
    """A button that shows an icon alone is named by its title.

    The button of the search shows a text, and the keys that open the search. A reader who controls
    the browser by voice says what a button shows, so its name has to be this text, and not a label.
    """
    for button in page.select("button"):
        button.attrs.setdefault("type", "button")
        if title := button.get("title"):
            button.attrs.setdefault("aria-label", title)
    for button in page.select(".search-button-field"):
        del button["aria-label"]


def submit_search(page: BeautifulSoup) -> None:
    """The form of the search gets a button to send it: its own icon. The button comes after the
    field, since a dialog that opens gives the focus to the first that can take it."""
    for form in page.select("form.bd-search"):
        button = page.new_tag("button", attrs={"type": "submit", "aria-label": "Search"})
        for icon in form.select(":scope > i"):
            icon["aria-hidden"] = "true"
            button.append(icon.extract())
        form.append(button)


def offer_to_run(page: BeautifulSoup) -> None:
    """The menu of downloads says how to run a notebook (templates/page.html). The theme's own has
    the browser's printing besides, and the sources of the other pages, which nobody can run."""
    run = page.select_one(".run-this-page")
    for menu in page.select(".dropdown-download-buttons"):
        link = menu.select_one("a.btn-download-source-button[href$='.ipynb']")
        if link is None or run is None:
            menu.decompose()
            continue
        name = "Run or download this page"
        opens = {"type": "button", "class": "btn run-button", "popovertarget": str(run["id"])}
        button = page.new_tag("button", attrs=opens | {"title": name})
        button.append(page.new_tag("i", attrs={"class": "fas fa-download", "aria-hidden": "true"}))
        menu.replace_with(button)
        button.insert_after(run.extract())
        run.select("a[download]")[0]["href"] = link["href"]


def drop_hidden_toggles(page: BeautifulSoup) -> None:
    """The theme's script listens to the first buttons for contents and outline that it finds: they
    must not be those of the header that the book hides."""
    for button in page.select("#pst-header .sidebar-toggle"):
        button.decompose()


def leave_out_checks(page: BeautifulSoup) -> None:
    """The contents lead to what is read; to the checks and the bibliography the end of each page
    leads (templates/footer_links.html)."""
    for caption in page.select("#pst-primary-sidebar p.caption"):
        pages = caption.find_next_sibling("ul")
        if caption.get_text(strip=True) == BEHIND_THE_PAGES and pages is not None:
            pages.decompose()
            caption.decompose()


def use_landmarks(page: BeautifulSoup) -> None:
    """All content belongs to a landmark, and a heading is one."""
    for item in page.select(".sidebar-primary-item:has(> .navbar-brand)"):
        item.name, item["aria-label"] = "nav", "Home"
    for caption in page.select("p.caption[role=heading]"):
        caption.name = "h2"
        del caption["role"], caption["aria-level"]


def drop_withdrawn_roles(page: BeautifulSoup) -> None:
    """docutils gives a list of citations roles that have been withdrawn."""
    for citations in page.select(".citation-list"):
        del citations["role"]
        for element in citations.select("[role]"):
            del element["role"]


def make_anchors_unique(page: BeautifulSoup) -> None:
    """Theorems, proofs and exercises carry anchors that repeat, or hold a slash."""
    for content in page.select("section[id$=-content]"):
        del content["id"]
    for proof in page.select("div.proof[id^=proof]"):
        del proof["id"]
        proof["class"] = f"{proof['class']} proof-text"
    for element in page.select('[id*="/"]'):
        element["id"] = str(element["id"]).replace("/", "-")
    for link in page.select('a[href*="#"]'):
        address, anchor = str(link["href"]).split("#", 1)
        link["href"] = f"{address}#{anchor.replace('/', '-')}"


def fold_boxes(page: BeautifulSoup) -> None:
    """A folded box is a <details>: it opens without a script, also where the browser searches the
    page or a link leads into it. Its title holds no link, because a press of it opens the box."""
    for title in page.select("div.dropdown.admonition > p.admonition-title"):
        for link in title.select("a"):
            link.unwrap()
        title.name = "summary"
        box = title.parent
        assert box is not None
        box.name = "details"
        box["class"] = " ".join(str(box["class"]).replace("dropdown", "fold").split())


def fold_proofs(page: BeautifulSoup) -> None:
    """A folded proof has no title, and gets one."""
    for proof in page.select("div.proof.dropdown:not(:has(> .admonition-title))"):
        proof.name = "details"
        proof["class"] = "admonition proof proof-text proof-fold fold"
        summary = page.new_tag("summary", attrs={"class": "admonition-title"})
        summary.string = "Proof"
        said = proof.p.find(string=re.compile(r"^Proof\.\s*")) if proof.p else None
        if said is not None:
            said.replace_with(re.sub(r"^Proof\.\s*", "", said))
        proof.insert(0, summary)


def keep_together(page: BeautifulSoup) -> None:
    """No line begins with the comma after a formula, or after a phrase that sets a figure, or ends
    with the bracket before it."""
    for box in page.select(".bd-article :is(span.math, span[data-state])"):
        kept = page.new_tag("span", attrs={"class": "kept"})
        box.wrap(kept)
        before, after = kept.previous_sibling, kept.next_sibling
        if isinstance(before, NavigableString) and (joined := re.search(r"\S+\Z", before)):
            kept.insert(0, joined[0])
            before.replace_with(before[: joined.start()])
        if isinstance(after, NavigableString) and (joined := re.match(r"\S+", after)):
            kept.append(joined[0])
            after.replace_with(after[joined.end() :])
        if len(kept.contents) == 1:
            kept.unwrap()


def keep_equations(page: BeautifulSoup) -> None:
    """A caption is text alone: no line of it begins or ends with the sign of an equation."""
    for caption in page.select("figcaption"):
        for text in caption.find_all(string=EQUATION):
            text.replace_with(EQUATION.sub("\u00a0\\1\u00a0", text))


def keep_percentages(page: BeautifulSoup) -> None:
    """No line begins with the sign of a percentage."""
    for text in page.find_all(string=PERCENTAGE):
        if not text.find_parent(["head", "script", "pre", "svg"]):
            text.replace_with(PERCENTAGE.sub("\u00a0%", text))


def leave_names_plain(code: str) -> str:
    """In code, names and operators look like text, and a page is a fifth lighter without marks."""
    return PLAIN_NAME.sub(r"\1", code)


def stack_on_phones(page: BeautifulSoup) -> None:
    """A table of sentences: on a phone each row stands as a card, and each cell has the heading of
    its column above it. So has the first, which is the title of the card: what it says may depend
    on its heading ("without this condition"). Tables of numbers stay, and those with a form of
    their own.
    """
    for table in page.select(".bd-article table:has(> thead)"):
        names = [heading.get_text(" ", strip=True) for heading in table.select("thead th")]
        rows = [row.find_all(["td", "th"], recursive=False) for row in table.select("tbody > tr")]
        classes = str(table.get("class", "")).split()  # fix_parsed leaves them one text
        is_plain = not {"families", "conventions", "ledger"}.intersection(classes)
        if not is_plain or any(len(row) != len(names) for row in rows):
            continue
        widest = [max(len(cell.text) for cell in column) for column in zip(*rows, strict=True)]
        if sum(widest) > LETTERS_ON_A_PHONE:
            table["class"] = " ".join([*classes, "stacked"])
            for row in rows:
                for cell, name in zip(row, names, strict=True):
                    if name:
                        cell["data-name"] = name


def break_long_calls(page: BeautifulSoup) -> None:
    """In a table, a line may end after a dot or a bracket of a long call. Else its column would be
    as wide as the call, and leave too little room for the others."""
    for code in page.select(".bd-article td code"):
        for call in code.find_all(string=LONG_CALL):
            first, *others = PART_OF_A_CALL.split(call)
            breaks = (part for other in others for part in (page.new_tag("wbr"), other))
            call.replace_with(first, *breaks)


def scope_headings(page: BeautifulSoup) -> None:
    """Where a table heads its rows as well as its columns, each heading says which it heads."""
    for heading in page.select("table:has(th.stub) th"):
        heading["scope"] = "col" if heading.find_parent("thead") else "row"


def name_folds(page: BeautifulSoup) -> None:
    """A fold is named by its text, and that text is no paragraph."""
    for summary in page.select("summary[aria-label]"):
        del summary["aria-label"]
    for text in page.select("summary > p"):
        text.name = "span"


def open_on_figures(page: BeautifulSoup) -> None:
    """A figure comes before the fold of its source. With a style sheet alone a reader would see the
    fold jump: a browser may draw a page before it has read the figure."""
    for output in page.select(".cell.tag_hide-input > .cell_output:has(figure, .live)"):
        for fold in output.find_previous_siblings("details"):
            output.insert_after(fold.extract())


def run_scripts_last(page: BeautifulSoup, folder: Path) -> None:
    """Scripts run in their order once the page has been read, so that no text waits for them. The
    settings of Sphinx, which scripts inside the page add to, stand in the page themselves. The page
    of the search is left alone: there the book's script has to follow those of Sphinx."""
    if page.select_one("script[src*='searchtools.js']"):
        return
    for script in page.select("script[src]"):
        address = str(script["src"]).partition("?")[0]
        if address.endswith("documentation_options.js"):
            del script["src"]
            script.string = (folder / address).read_text(encoding="utf-8")
        else:
            script["defer"] = ""


def wait_for_the_first_table(page: BeautifulSoup) -> None:
    """A table near the top is drawn when all of it has come: its columns take their widths from all
    rows, so a browser that draws the first ones would move them."""
    article = page.select_one("article.bd-article")
    table = article.select_one("section > section:first-of-type table") if article else None
    after = table.find_next(["section", "h2", "footer"], id=True) if table else None
    if after is not None and page.head is not None:
        waits = {"rel": "expect", "href": f"#{after['id']}", "blocking": "render"}
        page.head.append(page.new_tag("link", attrs=waits))


def hold_places(page: BeautifulSoup, folder: Path) -> None:
    """Pictures keep their place while they load, and load when they are near. So does the first: it
    has a twin (dark_figures.py), and a browser fetches what it hides unless that is lazy."""
    for image in page.select(".bd-article img"):
        image["loading"] = "lazy"
        picture = folder / str(image["src"])
        if picture.suffix != ".svg":
            continue
        if box := VIEW_BOX.search(picture.read_text(encoding="utf-8")):
            # The box is in points, of which 72 make an inch; of a page's pixels 96 do.
            image["width"], image["height"] = (
                str(round(float(points) * ENLARGED * 96 / 72)) for points in box.groups()
            )


def name_languages(page: BeautifulSoup) -> None:
    """Text in Korean says so, for the voices that read it and the fonts that draw it."""
    for block in page.select(".bd-article :is(p, li, td, dt)"):
        letters = [letter for letter in block.get_text() if letter.isalpha()]
        korean = sum("가" <= letter <= "힣" for letter in letters)
        if korean > len(letters) / 2:
            block["lang"] = "ko"
    for text in page.find_all(string=KOREAN):
        if not text.find_parent(["head", "script", "style"]) and not text.find_parent(lang="ko"):
            marked = KOREAN.sub(r'<span lang="ko">\1</span>', html.escape(text, quote=False))
            text.replace_with(BeautifulSoup(marked, "html.parser"))


def be_light_at_first(page: BeautifulSoup) -> None:
    """Without scripts nothing tells light from dark, and a page would have neither's colours."""
    for root in page.select("html[data-theme]"):
        root["data-theme"] = "light"


# The fixes, in the order in which they run.
FIXES: tuple[Callable[[BeautifulSoup], None], ...] = (
    offer_to_run,  # before name_buttons: it makes one
    name_buttons,
    submit_search,
    drop_hidden_toggles,
    leave_out_checks,  # before use_landmarks, which makes captions headings
    use_landmarks,
    drop_withdrawn_roles,
    make_anchors_unique,  # before the folds: it looks for proofs that are a <div> still
    fold_boxes,
    fold_proofs,
    keep_together,  # before name_languages, which cuts texts where Korean begins or ends
    keep_equations,
    keep_percentages,
    scope_headings,
    stack_on_phones,
    break_long_calls,
    name_folds,
    name_languages,
    be_light_at_first,
    open_on_figures,
    wait_for_the_first_table,
)
# These read files that a page names by addresses relative to its folder.
FIXES_WITH_FILES: tuple[Callable[[BeautifulSoup, Path], None], ...] = (
    run_scripts_last,
    hold_places,
)

# These take the text of highlighted code, and no parsed page.
FIXES_OF_CODE: tuple[Callable[[str], str], ...] = (leave_names_plain,)


def fix(text: str, folder: Path, unused: set[str]) -> str:
    """The same page, with every fix. A fix that changes something is taken out of ``unused``.

    Highlighted code, which is two thirds of the elements, stands aside meanwhile.
    """
    codes, numbers = CODE.findall(text), count()
    rest = CODE.sub(lambda _: f"{ASIDE}{next(numbers)}{ASIDE}", text)
    fixed = fix_parsed(rest, folder, unused)
    for one in FIXES_OF_CODE:
        before, codes = codes, [one(code) for code in codes]
        if codes != before:
            unused.discard(one.__name__)
    return re.sub(f"{ASIDE}(\\d+){ASIDE}", lambda found: codes[int(found[1])], fixed)


def fix_parsed(text: str, folder: Path, unused: set[str]) -> str:
    page = BeautifulSoup(text, "html.parser", multi_valued_attributes=None)
    for one in FIXES:
        with noting_a_change(page, one.__name__, unused):
            one(page)
    for with_files in FIXES_WITH_FILES:
        with noting_a_change(page, with_files.__name__, unused):
            with_files(page, folder)
    return page.decode()


@contextmanager
def noting_a_change(page: BeautifulSoup, name: str, unused: set[str]) -> Iterator[None]:
    """Take a fix out of ``unused`` where it changes the page. Later pages are not compared."""
    before = page.decode() if name in unused else ""
    yield
    if name in unused and page.decode() != before:
        unused.remove(name)


def fix_pages(site: Site) -> None:
    """Fix every page that this build has written.

    A fix that changes none of them fails the build: after an update of the theme it would otherwise
    be missing from all pages, and nobody would see it.
    """
    # A few pages need not need them all.
    every = (*FIXES, *FIXES_WITH_FILES, *FIXES_OF_CODE)
    unused = {one.__name__ for one in every} if site.is_whole else set()
    for path, text in site.pages.items():
        site.pages[path] = fix(text, path.parent, unused)
    if unused:
        named = ", ".join(sorted(unused))
        raise ExtensionError(
            f"These functions of website/finish/html_fixes.py found nothing to fix: {named}. "
            "Has the theme changed? What the book no longer needs can be deleted."
        )
