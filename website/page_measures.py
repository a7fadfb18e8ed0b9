"""Measure a notebook as its reader meets it: the minutes that it takes, and where its pictures are.

What is folded is not counted. The build prints the minutes on the page.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

BOOK = Path(__file__).resolve().parent.parent / "book"
FOLDED_TAGS = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
DROPDOWN = re.compile(
    r"^(:{3,})\{[^}]+\}[^\n]*\n(?::\w+: [^\n]*\n)*:class:[^\n]*dropdown[^\n]*$.*?^\1\s*$",
    re.M | re.S,
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

WORDS_A_MINUTE = 200
WORDS_OF_A_PROOF_A_MINUTE = 60
SECONDS_A_LINE = 10
SECONDS_A_PICTURE = 20


@dataclass(frozen=True)
class Measures:
    """What a reader sees of one page before anything is unfolded."""

    words: int
    words_of_open_proofs: int
    lines_of_code: int
    pictures: int

    @property
    def minutes(self) -> int:
        """How long an attentive first reading takes, rounded up."""
        prose = (self.words - self.words_of_open_proofs) / WORDS_A_MINUTE
        proofs = self.words_of_open_proofs / WORDS_OF_A_PROOF_A_MINUTE
        code = self.lines_of_code * SECONDS_A_LINE / 60
        pictures = self.pictures * SECONDS_A_PICTURE / 60
        return math.ceil(prose + proofs + code + pictures)


def minutes(name: str) -> int:
    """How long a page takes, by the name of its notebook without the suffix."""
    return measures_of(nbformat.read(BOOK / f"{name}.ipynb", as_version=4)).minutes


def measures_of(notebook: NotebookNode) -> Measures:
    """Count the words, lines and pictures that a page shows."""
    words = words_of_open_proofs = lines_of_code = pictures = 0
    for cell, text in cells_outside_solutions(notebook):
        words += words_in(text)
        words_of_open_proofs += sum(words_in(proof[0]) for proof in PROOF.finditer(text))
        if cell.cell_type == "code":
            pictures += shows_picture(cell)
            if is_visible(cell):
                lines_of_code += sum(bool(line.strip()) for line in cell.source.splitlines())
    return Measures(words, words_of_open_proofs, lines_of_code, pictures)


def cells_outside_solutions(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Each cell outside solutions, with the prose that it shows: its text, or its caption.

    A solution begins in one cell of text and may end in a later one, with code in between.
    """
    in_solution = False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if not in_solution:
                yield cell, cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
            continue
        text = cell.source
        if in_solution:  # it began in an earlier cell: say so again, for the pattern to find it
            text = f":::{{solution-start}}\n{text}"
        # A solution is open if the last start in this cell comes after the last end (-1: none).
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
