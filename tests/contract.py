"""What the contract of a chapter counts: words, lines of code, pictures, minutes."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

FOLDED_TAGS = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
DROPDOWN = re.compile(
    r"^(:{3,})\{[^}]+\}[^\n]*\n:class:[^\n]*dropdown[^\n]*$.*?^\1\s*$", re.M | re.S
)
PROOF = re.compile(r"^(:{3,})\{prf:proof\}.*?^\1\s*$", re.M | re.S)
SOLUTION = re.compile(r"^:::\{solution-start\}.*?(?:^:::\{solution-end\}\n:::|\Z)", re.M | re.S)
MARKUP = (
    (r"\$\$.*?\$\$", " formula "),  # a formula is read as one word
    (r"\$[^$]+\$", " formula "),
    (r"^:\w[\w-]*:[^\n]*$", " "),  # an option of a directive
    (r"^:{3,}[^\n]*$", " "),
    (r"\]\([^)]*\)", " "),  # the target of a link
    (r"\{[\w:]+\}`[^`]*`", " reference "),
    (r"<[^>]+>", " "),
)


@dataclass(frozen=True)
class Numbers:
    """The numbers of one page that the contract bounds."""

    words: int
    words_of_open_proofs: int
    words_before_the_first_picture: int
    lines: list[int]  # of each visible cell
    pictures: int
    live: int

    @property
    def minutes(self) -> int:
        """Words at 180 a minute, open proofs at 60, a line of code in 8 seconds, a picture in 20;
        up to a five."""
        reading = (self.words - self.words_of_open_proofs) / 180
        looking = (8 * sum(self.lines) + 20 * self.pictures) / 60
        taken = reading + self.words_of_open_proofs / 60 + looking
        return 5 * math.ceil(taken / 5)


def numbers_of(notebook: NotebookNode) -> Numbers:
    """Count a page as its reader meets it: what is folded is not counted."""
    words = proofs = before = pictures = live = 0
    lines = []
    for cell, text in seen(notebook):
        words += words_in(text)
        proofs += sum(words_in(found[0]) for found in PROOF.finditer(text))
        if cell.cell_type == "code":
            if not before and shows_picture(cell):
                before = words
            pictures += shows_picture(cell)
            live += is_live(cell)
            if is_visible(cell):
                lines.append(sum(bool(line.strip()) for line in cell.source.splitlines()))
    return Numbers(words, proofs, before or words, lines, pictures, live)


def seen(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Each cell outside solutions, with the prose that it shows: its text, or its caption."""
    in_solution = False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if not in_solution:
                yield cell, cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
            continue
        text = f":::{{solution-start}}\n{cell.source}" if in_solution else cell.source
        in_solution = text.rfind("{solution-start}") > text.rfind("{solution-end}")
        yield cell, DROPDOWN.sub(" ", SOLUTION.sub(" ", text))


def words_in(text: str) -> int:
    for pattern, left in MARKUP:
        text = re.sub(pattern, left, text, flags=re.M | re.S)
    return sum(any(map(str.isalnum, word)) for word in text.split())


def is_visible(cell: NotebookNode) -> bool:
    return not FOLDED_TAGS & set(cell.metadata.get("tags", []))


def shows_picture(cell: NotebookNode) -> bool:
    return is_live(cell) or any(
        kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {})
    )


def is_live(cell: NotebookNode) -> bool:
    return any(
        output.get("data", {}).get("text/plain", "").startswith("Live figure")
        for output in cell.outputs
    )
