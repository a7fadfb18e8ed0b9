"""What the search knows: the prose of every page, place by place, and the names of each place.

A place is a page, a section, a theorem, a term of the glossary or a function of the library. When
the pages are finished, they are read once, and search_index.js keeps what a reader may search for.
The book's script (website/assets/search.js) finds and quotes with that file alone: a page that is
found need not be fetched, so that the search is the same from a folder on a disk.
"""

import hashlib
import html
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag
from sphinx.search.en import SearchEnglish, english_stopwords

from website.extensions.search_page import ADDRESS, VERSION
from website.finish.site import Site

ROOT = Path(__file__).resolve().parent.parent.parent
WORDS = ROOT / "book" / "data" / "search_words.yml"
SCRIPT = ROOT / "website" / "assets" / "search.js"
STEMMER = SearchEnglish({})  # what the script stems with, too
# Words that say nothing: the script does not look for them, so no place needs to hold them.
LISTED = re.compile("EMPTY_WORDS = new Set\\(`(.*?)`", re.DOTALL)
EMPTY_WORDS = english_stopwords | set(LISTED.findall(SCRIPT.read_text(encoding="utf-8"))[0].split())
START, END = "const PAGES = ", ";\n"
# A place is stored as a list of these, without their names, which makes the file lighter.
FIELDS = ("anchor", "names", "prose", "also", "known")

DRAWN = re.compile(
    r"<mjx-container.*?<mjx-assistive-mml[^>]*>(.*?)</mjx-assistive-mml></mjx-container>", re.DOTALL
)
APPLIED = "\u2061"  # the sign between sin and x, which nobody sees
INVISIBLE = re.compile("[\u2062-\u2064]")
ARTICLE = re.compile('<article class="bd-article".*?</article>', re.DOTALL)
PICTURE = re.compile("<(script|svg).*?</\\1>", re.DOTALL)  # a script may hold pictures
GREEK = re.compile("[Α-Ωα-ω]")
# No single letters, and nothing that begins as a number does, such as 1e4, or 2f of a format.
WORD = re.compile(r"\b[^\W\d]\w+")
RELATIONS = "=≠≈<>≤≥≪≫∈∼→⟺"
ACCENTS = ("mover", "munder", "munderover")

# What no reader searches for: live figures, folded source, what cells printed, solutions of
# exercises, the page's own ends; and what stands behind the last sentence of a paragraph. Nor is
# read what a picture says to those who do not see it: the words around it say what it is about.
FURNITURE = """script, style, svg, .headerlink, .caption-number, .section-number, .live,
    .cell_output > :not(figure), .cell-mark, .checked-by-running, .reading-line,
    details.hide, .toctree-wrapper, .bd-sidenav, #references, #what-comes-next, .citation .label,
    .solution,
    .finding > .grade, p > a:last-child[href*='korean.html#']"""
# Pages of which each place is quoted with its opening alone: what the cells of checks test and what
# the archive says of claims would outweigh the chapters. The opening is as many sentences as fit,
# and one at least.
BRIEF_PAGES = ("book/checks/", "book/sources")
UNREAD_THERE = "pre, figcaption, .proof-text"
OPENING = re.compile(r"(?:.{1,100}|.*?)[.?!][)”]*(?=\s|$)")
# What is searched but never quoted, since it does not stand alone.
UNQUOTED = "figure, table, pre, .exercise, .solution, .proof-text"
PROSE = "p, dd, li"
NUMBER = re.compile(r"^\d+\.\s")
SENTENCE = re.compile(r"[.?!:][)”]*$")
PLACES = "section[id], .proof[id], dd[id]"


def formula_as_line(found: re.Match[str]) -> str:
    """A formula as a reader would type it, or "…" where it needs more than a line."""
    root = BeautifulSoup(found[1], "html.parser")
    line = "…" if root.find("mtable") else line_of(root).strip()
    line = re.sub(rf"(?<=\w)(?=(?:sin|cos|ln|log|exp){APPLIED})", " ", line)
    line = line.replace(APPLIED + "(", "(").replace(APPLIED, " ")
    return html.escape(line, quote=False)


def line_of(node: Tag) -> str:
    """A part of MathML as text: fractions get a slash, powers a caret, indices an underscore."""
    parts = [
        part.get_text() if isinstance(part, NavigableString) else line_of(part)
        for part in node.children
        if isinstance(part, (NavigableString, Tag))
    ]
    if node.name == "mfrac":
        return "/".join(map(in_brackets, parts))
    if node.name == "msqrt":
        return "√" + in_brackets("".join(parts))
    if node.name == "msup":
        return f"{parts[0]}ᵀ" if parts[1] == "⊤" else f"{parts[0]}^{in_brackets(parts[1])}"
    if node.name == "msub" or (node.name == "munder" and parts[0] == "∑"):
        return f"{parts[0]}_{in_brackets(parts[1])}"
    if node.name == "msubsup":
        return f"{parts[0]}_{in_brackets(parts[1])}^{in_brackets(parts[2])}"
    if node.name in ACCENTS:
        return parts[0]
    text = INVISIBLE.sub("", "".join(parts))
    return f" {text} " if node.name == "mo" and text in RELATIONS and text else text


def in_brackets(text: str) -> str:
    """What a power or a fraction holds, in brackets if it is more than one sign or number."""
    return text if re.fullmatch(r"\w+|.", text) else f"({text})"


def read_page(text: str, brief: bool = False) -> dict[str, Any]:
    """The title of an article, and its places: each with its names, its prose, its other words.

    Of a brief page the prose is an opening. It is found by its words all the same, but for those of
    its code, its captions and its proofs.
    """
    article = BeautifulSoup(DRAWN.sub(formula_as_line, PICTURE.sub("", text)), "html.parser")
    for paragraph in article.select("dl.glossary > dd > p:not(:first-of-type)"):
        paragraph.decompose()  # where to read more, which the search says better
    for part in article.select(f"{FURNITURE}, {UNREAD_THERE}" if brief else FURNITURE):
        part.decompose()
    drop_aims(article)
    name_definitions(article)
    title = text_of(article.select("h1")[0])
    places: dict[str, dict[str, Any]] = {}
    places[""] = {"anchor": "", "names": [title]}
    for element in article.select(PLACES):
        if element.find("h1", recursive=False) is None:
            anchor = str(element["id"])
            places[anchor] = {"anchor": anchor, "names": names_of(element)}
    for place in places.values():
        place["prose"], place["also"] = [], []
    read_blocks(article, places)
    for place in places.values():
        if brief:
            whole, place["prose"] = place["prose"], openings(place["prose"])
            place["also"] += whole
        place["also"] = other_words(place["prose"], place["also"])
    return {"title": title, "places": list(places.values())}


def openings(prose: list[str]) -> list[str]:
    """The opening of the first paragraph that has one."""
    return [found[0] for text in prose if (found := OPENING.match(text))][:1]


def other_words(prose: list[str], others: list[str]) -> str:
    """The words by which a place is found and which its prose does not hold.

    They come from its other texts and from the names of the Greek letters in any of them. Of words
    with one stem, such as "rotate" and "rotated", one is enough, because the search compares stems.
    The words are in alphabetical order, in which they compress best.
    """
    letters = sorted(set(GREEK.findall(" ".join((*prose, *others)))))
    forms = {STEMMER.stem(word): word for word in words_of(*others, *map(name_of, letters))}
    said = set(map(STEMMER.stem, words_of(*prose)))
    return " ".join(sorted(word for stem, word in forms.items() if stem not in said))


def words_of(*texts: str) -> list[str]:
    """The words of some texts that say something, each once, in alphabetical order."""
    return sorted(set(WORD.findall(" ".join(texts).lower())) - EMPTY_WORDS)


def read_blocks(article: Tag, places: dict[str, dict[str, Any]]) -> None:
    """Give each place its prose, and the other words that stand there."""
    unquoted = set(map(id, article.select(UNQUOTED)))
    quoted: set[int] = set()
    for block in article.select(PROSE):
        text = text_of(block)
        whole = SENTENCE.search(text) and not text[0].islower() and not block.select_one(PROSE)
        alone = not any(id(part) in unquoted for part in (block, *block.parents))
        if whole and alone and "admonition-title" not in classes_of(block):
            place_of(block, places)["prose"].append(text)
            quoted.add(id(block))
    for words in list(article.find_all(string=True)):
        if words.strip() and not any(id(parent) in quoted for parent in words.parents):
            parent = words.parent
            if parent is not None and parent.name not in ("h1", "h2", "h3", "h4"):
                place_of(parent, places)["also"].append(" ".join(words.split()))


def place_of(block: Tag, places: dict[str, Any]) -> dict[str, Any]:
    """The smallest place around a block."""
    around = (str(part["id"]) for part in (block, *block.parents) if part.has_attr("id"))
    place: dict[str, Any] = places[next((name for name in around if name in places), "")]
    return place


def name_of(letter: str) -> str:
    """The name of a Greek letter: formulas hold the letter, and readers type its name."""
    return unicodedata.name(letter).split()[-1].replace("LAMDA", "LAMBDA")


def text_of(element: Tag) -> str:
    return " ".join(element.get_text().split())


def classes_of(element: Tag) -> list[str]:
    return [str(name) for name in element.get_attribute_list("class")]


def drop_aims(article: Tag) -> None:
    """The box of aims and prerequisites names what a page is not about."""
    for title in article.select(".admonition-title"):
        if text_of(title) == "In this chapter" and title.parent is not None:
            title.parent.decompose()


def name_definitions(article: Tag) -> None:
    """A definition stands below its terms: it takes the anchor of the first and all names."""
    for terms in article.select("dl.glossary, dl.py"):
        names: list[str] = []
        anchor = ""
        for part in terms.find_all(["dt", "dd"], recursive=False):
            if part.name == "dt":
                anchor = anchor or str(part.get("id", ""))
                is_function = "sig" in classes_of(part) and anchor
                names.append(anchor if is_function else text_of(part))
                if not is_function:
                    part.clear()
            elif anchor:
                part["id"], part["data-names"] = anchor, json.dumps(names)
                names, anchor = [], ""


def names_of(element: Tag) -> list[str]:
    """What a place is called: its terms, its heading, or the name of a theorem in brackets. The
    number of one among several is no part of it."""
    if "data-names" in element.attrs:
        names: list[str] = json.loads(str(element["data-names"]))
        return names
    heading = element.select_one(":scope > :is(h2, h3, h4, .admonition-title)")
    title = text_of(heading) if heading else ""
    return [NUMBER.sub("", re.sub(r"^\((.*)\)$", r"\1", title))]


def known_words() -> dict[str, list[str]]:
    """What readers call each place, beside its heading: by its page, or by its page and anchor."""
    words: dict[str, list[str]] = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    return {place: [str(word) for word in listed] for place, listed in words.items()}


def write(site: Site) -> None:
    """Read the pages that this build has written. The others are known already, and pages that are
    no longer in the book are forgotten."""
    env, path = site.app.env, site.folder / ADDRESS
    read = {page: entry for page, entry in known_pages(path).items() if page in env.found_docs}
    for page in env.found_docs:
        if text := site.pages.get(site.path_of(page)):
            brief = page.startswith(BRIEF_PAGES)
            read[page] = read_page(ARTICLE.findall(text)[0], brief)
    known = known_words()
    for page, entry in read.items():
        for place in entry["places"]:
            place["known"] = known.get(f"{page}#{place['anchor']}".rstrip("#"), [])
    # In this order two builds write the same file, and pages with the same words lie together.
    in_order = {
        page: entry | {"places": [[place[name] for name in FIELDS] for place in entry["places"]]}
        for page, entry in sorted(read.items())
    }
    text = json.dumps(in_order, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{START}{text}{END}", encoding="utf-8")
    ask_for_this_version(site, path)


def known_pages(index: Path) -> dict[str, Any]:
    """What an earlier build has read of its pages."""
    if not index.exists():
        return {}
    pages: dict[str, Any] = json.loads(index.read_text(encoding="utf-8")[len(START) : -len(END)])
    for entry in pages.values():
        entry["places"] = [dict(zip(FIELDS, place, strict=True)) for place in entry["places"]]
    return pages


def ask_for_this_version(site: Site, index: Path) -> None:
    """Let the pages ask for this very search, and not for an older one that a browser kept."""
    files = [*index.parent.glob("search*.js"), *index.parent.glob("search*.css")]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()[:8]
    for path, text in site.pages.items():
        site.pages[path] = text.replace(VERSION, version)
