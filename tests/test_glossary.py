"""The glossary: each term in both languages, and the chapter that uses it first."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import prose
import pytest

BOOK = Path(__file__).resolve().parent.parent / "book"
CHAPTERS = {
    path.name: prose.markdown_of(nbformat.read(path, as_version=4))
    for path in sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))
}
HANGUL = re.compile("[가-힣]")


@dataclass
class Entry:
    """Terms on lines of their own, then what they mean, indented."""

    english: list[str]
    korean: list[str]
    definition: str

    def is_used_in(self, text: str) -> bool:
        return any(re.search(rf"\b{re.escape(term)}s?\b", text, re.I) for term in self.english)


def read_entries() -> list[Entry]:
    text = (BOOK / "glossary.md").read_text()
    found = re.search(r"^:::\{glossary\}\n(.*?)^:::$", text, re.M | re.S)
    assert found
    blocks = re.findall(r"(?:^\S.*\n)+(?:^(?:  .*)?\n)+", found[1] + "\n", re.M)
    assert "".join(blocks).split() == found[1].split(), "a line belongs to no entry"
    entries = []
    for block in blocks:
        terms = [line for line in block.splitlines() if line and not line.startswith(" ")]
        korean = [term for term in terms if HANGUL.search(term)]
        english = [term for term in terms if term not in korean]
        entries.append(Entry(english, korean, block.partition("\n  ")[2]))
    return entries


ENTRIES = read_entries()
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.english[0])


def test_terms_are_in_order_and_stand_once() -> None:
    assert len(ENTRIES) > 50
    firsts = [entry.english[0] for entry in ENTRIES]
    assert firsts == sorted(firsts)
    terms = [term for entry in ENTRIES for term in (*entry.english, *entry.korean)]
    assert len(terms) == len(set(terms))


@every_entry
def test_a_term_stands_in_both_languages_with_one_meaning(entry: Entry) -> None:
    assert entry.english
    assert entry.korean
    meaning = entry.definition.partition("First in")[0]
    assert 15 < len(meaning) < 200


@every_entry
def test_the_chapter_named_is_the_first_that_uses_the_term(entry: Entry) -> None:
    (number, named), *others = re.findall(r"First in \[chapter (\d+)\]\((\S+)\)", entry.definition)
    assert not others
    using = [name for name, text in CHAPTERS.items() if entry.is_used_in(text)]
    assert using[0] == named
    assert named.startswith(f"{int(number):02}_")


@every_entry
def test_words_of_the_sources_are_terms_of_the_entry(entry: Entry) -> None:
    sources = entry.definition.partition("In the sources: ")[2]
    for word, letters in re.findall(r"([^,(]+) \(([^)]+)\)", sources):
        assert word.strip() in entry.korean
        assert re.fullmatch(r"[A-E]([,–] ?[A-E])*", letters)
    assert not HANGUL.search(re.sub(r"[^,(]+ \([^)]+\)", "", sources))
