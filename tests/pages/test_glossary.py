"""The glossary: each term in both languages, and the page that introduces it."""

import re
from pathlib import Path

import nbformat
import page_text

from website.contents import chapters_in, pages_in

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
ENTRY = re.compile(r"((?:^\S.*\n)+)((?:^(?:  .*)?\n)+)", re.M)  # terms, then what they mean
READ_MORE = re.compile(r"Read more (?:in|on) (?:the )?\[[^]]*\]\((\S+)\)")
READ_IN_ORDER = ["tour.ipynb", *(f"{name.removeprefix('book/')}.ipynb" for name in chapters_in())]
LISTS = {"glossary", "korean", "notation", "sources", "bibliography"}  # they introduce no term


def words_of(path: Path) -> str:
    """What a reader sees of a page: no code, and no name of a label or of a file."""
    notebook = path.suffix == ".ipynb"
    if notebook:
        text = page_text.markdown_of(nbformat.read(path, 4))
    else:
        text = path.read_text(encoding="utf-8")
    text = re.sub(r"\{prf:definition\} (.+?)(?: \((.+)\))?$", r"**\1** **\2**", text, flags=re.M)
    text = re.sub(r"`(\w+_\w+)`", r"\1", text)  # a name such as rotate_half is a term as well
    for pattern in page_text.NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.M | re.S)
    return as_words(text)


def as_words(text: str) -> str:
    """Line breaks and hyphens make no difference between two spellings."""
    return " ".join(text.replace("-", " ").split())


def pages_by_name() -> dict[str, str]:
    """The words of each page, in the order of the contents; the front page, a list, comes last."""
    front, *others = pages_in()
    paths = [BOOK.parent / f"{name}{end}" for name in (*others, front) for end in (".ipynb", ".md")]
    return {
        path.relative_to(BOOK).as_posix(): words_of(path)
        for path in paths
        if path.exists() and path.stem not in LISTS
    }


PAGES = pages_by_name()
GLOSSARY_PAGE = (BOOK / "glossary.md").read_text(encoding="utf-8")
GLOSSARY = GLOSSARY_PAGE.partition(":::{glossary}\n")[2].partition(":::")[0]
ENTRIES = [(terms.splitlines(), meaning) for terms, meaning in ENTRY.findall(GLOSSARY)]


def introduced_in(terms: list[str]) -> str | None:
    """The first chapter that has a term in bold or defines it, else the first page that uses it."""
    term = "(?:" + "|".join(re.escape(as_words(term)) for term in terms) + ")s?"
    introduces, uses = (re.compile(rf"\*\*{term}\*\*", re.I), re.compile(rf"\b{term}\b", re.I))
    chapters = [name for name in READ_IN_ORDER if introduces.search(PAGES[name])]
    users = [name for name, text in PAGES.items() if uses.search(text)]
    return next(iter(chapters + users), None)


def test_the_glossary_and_the_pages_are_read() -> None:
    assert len(ENTRIES) > 50
    assert len(READ_IN_ORDER) > 10
    assert next(iter(PAGES)) == READ_IN_ORDER[0]
    assert all(len(PAGES[name]) > 1000 for name in READ_IN_ORDER)


def test_terms_are_in_order_and_have_a_korean_word() -> None:
    firsts = [terms[0].casefold() for terms, _ in ENTRIES]
    assert firsts == sorted(firsts)
    for terms, _ in ENTRIES:
        assert re.search("[가-힣]", " ".join(terms)), terms


def test_the_page_named_is_the_one_that_introduces_the_term() -> None:
    named = {terms[0]: READ_MORE.findall(meaning) for terms, meaning in ENTRIES}
    assert named == {terms[0]: [introduced_in(terms)] for terms, _ in ENTRIES}
