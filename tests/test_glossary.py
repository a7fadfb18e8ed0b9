"""The glossary: each term in both languages, and the page that introduces it."""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import prose

BOOK = Path(__file__).resolve().parent.parent / "book"
HANGUL = re.compile("[가-힣]")
FIRST_IN = re.compile(r"First in (?:\[chapter (\d+)\]|the \[[^]]+\])\((\S+)\)")


def words_of(path: Path) -> str:
    """What a reader sees of a page: no code, and no name of a label or of a file."""
    notebook = path.suffix == ".ipynb"
    text = prose.markdown_of(nbformat.read(path, 4)) if notebook else path.read_text()
    text = re.sub(r"\{prf:definition\} (.+?)(?: \((.+)\))?$", r"**\1** **\2**", text, flags=re.M)
    for pattern in prose.NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.M | re.S)
    return as_words(text)


def as_words(text: str) -> str:
    """Line breaks and hyphens make no difference between two spellings."""
    return " ".join(text.replace("-", " ").split())


CHAPTERS = {path.name: words_of(path) for path in sorted(BOOK.glob("[01][0-9]_*.ipynb"))}
WORDS = CHAPTERS | {"cheat_sheet.md": words_of(BOOK / "cheat_sheet.md")}


class Entry(NamedTuple):
    """Terms on lines of their own, then what they mean, indented."""

    english: list[str]
    korean: list[str]
    definition: str


def read_entries() -> list[Entry]:
    text = (BOOK / "glossary.md").read_text().partition(":::{glossary}\n")[2].partition(":::")[0]
    blocks = re.findall(r"((?:^\S.*\n)+)((?:^(?:  .*)?\n)+)", text, re.M)
    assert "".join(map("".join, blocks)) == text, "a line belongs to no entry"
    entries = []
    for terms, definition in blocks:
        korean = [term for term in terms.splitlines() if HANGUL.search(term)]
        english = [term for term in terms.splitlines() if term not in korean]
        entries.append(Entry(english, korean, definition))
    return entries


def introduced_in(terms: list[str]) -> str | None:
    """The first chapter that has a term in bold or defines it, else the page that uses it."""
    term = "(?:" + "|".join(re.escape(as_words(term)) for term in terms) + ")s?"
    bold = [name for name in CHAPTERS if re.search(rf"\*\*{term}\*\*", CHAPTERS[name], re.I)]
    plain = [name for name, text in WORDS.items() if re.search(rf"\b{term}\b", text, re.I)]
    return next(iter(bold + plain), None)


ENTRIES = read_entries()


def test_terms_are_in_order_and_stand_once() -> None:
    firsts = [entry.english[0].casefold() for entry in ENTRIES]
    assert len(firsts) > 50
    assert firsts == sorted(firsts)
    terms = [term for entry in ENTRIES for term in (*entry.english, *entry.korean)]
    assert len(terms) == len(set(terms))


def test_each_term_has_one_meaning_and_a_korean_word() -> None:
    for entry in ENTRIES:
        assert entry.korean, entry
        assert 15 < len(entry.definition.partition("First in")[0].strip()) < 200, entry


def test_the_page_named_is_the_one_that_introduces_the_term() -> None:
    for entry in ENTRIES:
        ((number, page),) = FIRST_IN.findall(entry.definition)
        assert page.startswith(f"{int(number):02}_" if number else "cheat_sheet"), entry
        assert page == introduced_in(entry.english), entry


def test_words_of_the_sources_are_terms_of_the_entry() -> None:
    for entry in ENTRIES:
        sources = entry.definition.partition("In the sources: ")[2]
        words = re.findall(r"([^,(]+) \([A-E](?:[,–] ?[A-E])*\)", sources)
        assert {word.strip() for word in words} <= set(entry.korean), entry
        assert len(words) == sources.count("("), entry
