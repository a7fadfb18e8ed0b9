"""The glossary: each term in both languages, and the page that introduces it."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import prose

BOOK = Path(__file__).resolve().parent.parent / "book"
HANGUL = re.compile("[가-힣]")
FIRST_IN = re.compile(r"First in (?:\[chapter (\d+)\]|the \[[^]]+\])\((\S+)\)")


def words_of(path: Path) -> str:
    """What a reader sees of a page: no code, and no name of a label or of a file."""
    notebook = path.suffix == ".ipynb"
    text = prose.markdown_of(nbformat.read(path, 4)) if notebook else path.read_text()
    text = re.sub(r"\{prf:definition\} (.*)", in_bold, text)
    for pattern in prose.NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.M | re.S)
    return as_words(text)


def as_words(text: str) -> str:
    """Line breaks and hyphens make no difference between two spellings."""
    return " ".join(text.replace("-", " ").split())


def in_bold(title: re.Match[str]) -> str:
    """The title of a definition, with what stands in brackets for itself."""
    return " ".join(f"**{part.strip()}**" for part in re.split(r"[()]", title[1]))


CHAPTERS = {path.name: words_of(path) for path in sorted(BOOK.glob("[01][0-9]_*.ipynb"))}
WORDS = CHAPTERS | {"cheat_sheet.md": words_of(BOOK / "cheat_sheet.md")}


@dataclass
class Entry:
    """Terms on lines of their own, then what they mean, indented."""

    english: list[str]
    korean: list[str]
    definition: str

    def introduced_in(self) -> str | None:
        """The first chapter that has the term in bold or defines it, else the page that uses it."""
        term = "(?:" + "|".join(re.escape(as_words(term)) for term in self.english) + ")s?"
        bold = [name for name in CHAPTERS if re.search(rf"\*\*{term}\*\*", CHAPTERS[name], re.I)]
        plain = [name for name, text in WORDS.items() if re.search(rf"\b{term}\b", text, re.I)]
        return next(iter(bold + plain), None)


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


def test_terms_are_in_order_and_stand_once() -> None:
    firsts = [entry.english[0].casefold() for entry in ENTRIES]
    assert firsts == sorted(firsts)
    terms = [term for entry in ENTRIES for term in (*entry.english, *entry.korean)]
    assert len(terms) == len(set(terms))


def test_each_term_has_one_meaning_and_a_korean_word() -> None:
    for entry in ENTRIES:
        assert entry.korean, entry
        assert 15 < len(entry.definition.partition("First in")[0]) < 200, entry


def test_the_page_named_is_the_one_that_introduces_the_term() -> None:
    astray = []
    for entry in ENTRIES:
        ((number, page),) = FIRST_IN.findall(entry.definition)
        assert page.startswith(f"{int(number):02}_" if number else "cheat_sheet"), entry
        if page != entry.introduced_in():
            astray.append(f"{entry.english[0]}: {entry.introduced_in()}, not {page}")
    assert astray == []


def test_words_of_the_sources_are_terms_of_the_entry() -> None:
    for entry in ENTRIES:
        sources = entry.definition.partition("In the sources: ")[2]
        for word, letters in re.findall(r"([^,(]+) \(([^)]+)\)", sources):
            assert word.strip() in entry.korean
            assert re.fullmatch(r"[A-E]([,–] ?[A-E])*", letters)
        assert not HANGUL.search(re.sub(r"[^,(]+ \([^)]+\)", "", sources))
