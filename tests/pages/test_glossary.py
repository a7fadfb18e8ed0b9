"""The glossary: each term in both languages, and the page that introduces it."""

import re
from pathlib import Path

import nbformat
import page_text

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
ENTRY = re.compile(r"((?:^\S.*\n)+)((?:^(?:  .*)?\n)+)", re.M)  # terms, then what they mean
READ_MORE = re.compile(r"Read more in (?:\[chapter (\d+)\]|the \[[^]]+\])\((\S+)\)")


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


PAGES = {path.name: words_of(path) for path in sorted(BOOK.glob("[01][0-9]_*.ipynb"))}
PAGES["cheat_sheet.md"] = words_of(BOOK / "cheat_sheet.md").replace("*", "")  # it defines nothing
GLOSSARY_PAGE = (BOOK / "glossary.md").read_text(encoding="utf-8")
GLOSSARY = GLOSSARY_PAGE.partition(":::{glossary}\n")[2].partition(":::")[0]
ENTRIES = [(terms.splitlines(), meaning) for terms, meaning in ENTRY.findall(GLOSSARY)]


def introduced_in(terms: list[str]) -> str | None:
    """The first page that has a term in bold or defines it, else the one that uses it."""
    term = "(?:" + "|".join(re.escape(as_words(term)) for term in terms) + ")s?"
    bold = [name for name, text in PAGES.items() if re.search(rf"\*\*{term}\*\*", text, re.I)]
    plain = [name for name, text in PAGES.items() if re.search(rf"\b{term}\b", text, re.I)]
    return next(iter(bold + plain), None)


def test_terms_are_in_order_and_have_a_korean_word() -> None:
    firsts = [terms[0].casefold() for terms, _ in ENTRIES]
    assert len(firsts) > 50
    assert firsts == sorted(firsts)
    for terms, _ in ENTRIES:
        assert re.search("[가-힣]", " ".join(terms)), terms


def test_the_page_named_is_the_one_that_introduces_the_term() -> None:
    for terms, meaning in ENTRIES:
        ((number, page),) = READ_MORE.findall(meaning)
        assert page.startswith(f"{int(number):02}_" if number else "cheat_sheet"), terms
        assert page == introduced_in(terms), terms
