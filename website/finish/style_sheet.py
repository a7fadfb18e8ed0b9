"""Give the site one style sheet, which holds the rules that its pages can use.

Sphinx, the theme and the book bring a dozen style sheets, one of which asks for another, and a
browser shows no text before the last of them has come. Most of their rules are for parts that this
book does not have. So the sheets of all pages become one, in their order, without the rules for a
class or an anchor whose name stands in no page and in no script.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import tinycss2
from sphinx.errors import ExtensionError

from website.finish.site import Site

NAME = "_static/site.css"
LINK = re.compile(r'<link href="([^"?]*_static/[^"?]*\.css)[^"]*" rel="stylesheet"[^>]*/>\n?')
SCRIPT = re.compile(r'<script[^>]* src="([^"?]*)')
ADDRESS = re.compile(r'url\("?(?!data:|"|#)([^")]+)"?\)')
# Most texts and formulas use these fonts, so the style sheet itself holds them. A font that comes
# later would move lines, and the browser would lay out the page again.
FIRST_FONTS = re.compile(
    r'url\("(vendor/[\w/-]+/(?:MathJax_(?:Zero|Main-Regular|Math-Italic)|source-serif-4-[\w-]+)'
    r'\.woff2)"\)'
)
WORD = re.compile(r"[\w-]+")
GROUPS = ("media", "supports", "container")  # at-rules that hold rules


def join(site: Site) -> None:
    """Write the one style sheet, and let each page ask for it alone."""
    others = site.other_pages()
    pages = others | site.pages
    memory = Path(site.app.doctreedir, "style_sheets.json")
    asked = [style_sheets_of(text, path, site.folder) for path, text in site.pages.items()]
    if others:  # they ask for the one sheet already
        asked.append(json.loads(memory.read_text(encoding="utf-8")))
    sheets = in_one_order(asked)
    if not sheets:
        return
    memory.write_text(json.dumps(sheets), encoding="utf-8")
    scripts = (path.read_text(encoding="utf-8") for path in scripts_of(pages, site.folder))
    words = words_in(pages.values()) | words_in(scripts)
    rules = (rule for sheet in sheets for rule in rules_of(site.folder / sheet, site.folder, words))
    text = with_first_fonts("\n".join(rules), site.folder / "_static")
    (site.folder / NAME).write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    for path, page in pages.items():
        root = "../" * (len(path.relative_to(site.folder).parts) - 1)
        link = f'<link href="{root}{NAME}?v={digest}" rel="stylesheet"/>\n'
        if link not in page:
            site.pages[path] = with_one_link(page, link)


def style_sheets_of(text: str, page: Path, site: Path) -> list[str]:
    """The style sheets that a page asks for, as paths in the site."""
    folder = page.parent.relative_to(site).as_posix()
    return [path_in_site(address, folder) for address in LINK.findall(text)]


def path_in_site(address: str, folder: str) -> str:
    """The path of a file that a file in ``folder`` names by a relative address."""
    return urljoin(f"/{folder}/" if folder != "." else "/", address).lstrip("/")


def in_one_order(lists: Iterable[list[str]]) -> list[str]:
    """The longest list. Each other list must be this one with some entries left out.

    Else there is no order that is right for all pages, and the build fails.
    """
    by_length = sorted(lists, key=len, reverse=True)
    longest = by_length[0] if by_length else []
    for sheets in by_length:
        if sheets != [sheet for sheet in longest if sheet in sheets]:
            message = f"One page asks for the style sheets {longest}, another for {sheets}."
            raise ExtensionError(f"{message} They cannot become one, because later rules win.")
    return longest


def scripts_of(pages: dict[Path, str], site: Path) -> set[Path]:
    """The scripts that the pages load, which may use classes that no page has yet."""
    return {
        site / path_in_site(address, path.parent.relative_to(site).as_posix())
        for path, text in pages.items()
        for address in SCRIPT.findall(text)
    }


def words_in(texts: Iterable[str]) -> set[str]:
    """All words of some texts. What names a class is among them."""
    return {word for text in texts for word in WORD.findall(text)}


def rules_of(path: Path, site: Path, words: set[str]) -> Iterator[str]:
    """The rules of a style sheet that the site can use, and those of the sheets that it imports."""
    text = path.read_text(encoding="utf-8")
    folder = path.parent.relative_to(site).as_posix()
    for rule in tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True):
        if rule.type == "at-rule" and rule.lower_at_keyword == "import":
            imported = tinycss2.serialize(rule.prelude).strip(' "')
            yield from rules_of(site / path_in_site(imported, folder), site, words)
        elif kept := used_part(rule, words):
            yield with_paths_from_static(kept, folder)


def used_part(rule: Any, words: set[str]) -> str:
    """A rule with the selectors that can match something; empty where there is none."""
    if rule.type == "at-rule" and rule.lower_at_keyword in GROUPS:
        inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        kept = "\n".join(filter(None, (used_part(one, words) for one in inner)))
        head = f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}"
        return f"{head}{{{kept}}}" if kept else ""
    if rule.type != "qualified-rule":
        return str(rule.serialize())
    used = [one for one in selectors_of(rule.prelude) if all(name in words for name in names(one))]
    content = tinycss2.serialize(rule.content).strip()
    return f"{','.join(map(tinycss2.serialize, used)).strip()}{{{content}}}" if used else ""


def selectors_of(prelude: list[Any]) -> Iterator[list[Any]]:
    """The selectors of a rule, which commas separate."""
    selector: list[Any] = []
    for token in prelude:
        if token == ",":
            yield selector
            selector = []
        elif token.type != "comment":
            selector.append(token)
    yield selector


def names(selector: list[Any]) -> Iterator[str]:
    """The classes, the anchors and the elements of MathJax that an element must have or be. Their
    names hold a hyphen, as those of all custom elements. What stands in brackets is not looked at,
    since `:not(.a)` matches without the class."""
    for before, token in zip([None, *selector], selector, strict=False):
        is_custom = token.type == "ident" and "-" in token.value and before != ":"
        if token.type == "hash" or (token.type == "ident" and before == ".") or is_custom:
            yield token.value


def with_paths_from_static(rule: str, folder: str) -> str:
    """The same rule with its addresses as seen from the folder of the one style sheet."""
    start = Path(NAME).parent.as_posix()

    def moved(found: re.Match[str]) -> str:
        path = path_in_site(found[1], folder)
        return f'url("{path.removeprefix(f"{start}/")}")'

    return ADDRESS.sub(moved, rule)


def with_first_fonts(rules: str, static: Path) -> str:
    """The rules with the fonts of most texts in them."""
    return FIRST_FONTS.sub(lambda url: data_address(static / url[1]), rules)


def data_address(font: Path) -> str:
    """The address of a font that holds the font itself."""
    return f'url("data:font/woff2;base64,{base64.b64encode(font.read_bytes()).decode()}")'


def with_one_link(text: str, link: str) -> str:
    """The page with this link at the place of its first one, and without the others."""
    first = LINK.search(text)
    if first is None:
        return text
    before, after = text[: first.start()], text[first.start() :]
    return before + link + LINK.sub("", after)
