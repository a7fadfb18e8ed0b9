"""What a shared link shows of a page: its card, a picture with one sentence and one drawing.

The sentences stand in book/data/cards.yml. website/cover.py draws the pictures, which are kept in
website/assets/cards, and website/extensions/page_head.py names them in the head of each page.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
SENTENCES = BOOK / "data" / "cards.yml"
FOLDER = ROOT / "website" / "assets" / "cards"
SIZE = (1200, 630)  # pixels, what those who show links ask for
GENERAL = "index"  # the card of the book, and of every page that has none of its own
Counts = dict[str, int]


@dataclass(frozen=True)
class Card:
    """A picture: the page that it stands for, its sentence, its grade, and what is drawn."""

    name: str
    says: str
    grade: str
    shows: str
    width: int = SIZE[0]
    height: int = SIZE[1]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.png"

    @property
    def alt(self) -> str:
        """The sentence, how sure it is, and the drawing, for those who do not see the picture."""
        stop = "" if self.says.endswith(".") else "."
        return f"{self.says}{stop} ({self.grade}) {self.shows}"


@cache
def cards() -> dict[str, Card]:
    """The cards by the names of their pages, with what the pages count filled in."""
    written = yaml.safe_load(SENTENCES.read_text(encoding="utf-8"))
    filled = {}
    for name, texts in written.items():
        counts = COUNTS[name]() if name in COUNTS else {}
        filled[name] = Card(name, **{one: text.format(**counts) for one, text in texts.items()})
    return filled


def card_of(page: str) -> Card:
    """The card of a page such as "book/rope". Where there is no picture, it is that of the book."""
    card = cards().get(page.removeprefix("book/"))
    return card if card and card.path.exists() else cards()[GENERAL]


# ---- What pages count


def verdicts() -> Counts:
    """How many of the sentences of the folklore have which verdict."""
    text = (BOOK / "data" / "folklore.yml").read_text(encoding="utf-8")
    found = Counter(entry["verdict"] for entry in yaml.safe_load(text)["entries"])
    return {
        "all": found.total(),
        "true": found["true"],
        "incomplete": found["incomplete"],
        "half": found["half true"],
        "not": found["wrong reason"] + found["false"] + found["not here"],
    }


def statements() -> Counts:
    """How many statements of *What is settled* are proved and measured, and how many are open."""
    text = (BOOK / "settled.md").read_text(encoding="utf-8")
    proved, measured, unknown = text.split("\n## ")[1:4]
    rows, questions = re.compile(r"^\| (?!statement)", re.M), re.compile(r"^: ", re.M)
    return {
        "proved": len(rows.findall(proved)),
        "measured": len(rows.findall(measured)),
        "open": len(questions.findall(unknown)),
    }


COUNTS: dict[str, Callable[[], Counts]] = {
    "folklore": verdicts,
    "settled": statements,
}
