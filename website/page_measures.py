"""Measure a notebook as its reader meets it: words, lines of code, pictures, minutes.

What is folded is not counted. The build prints the minutes on the page, and the tests hold each
chapter to the bounds of its contract (CONTRIBUTING.md, "Two kinds of page").
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

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
STATEMENT = re.compile(r"^:{3,}\{prf:(?:theorem|proposition|lemma|corollary)\}", re.M)

WORDS_A_MINUTE = 200
WORDS_OF_A_PROOF_A_MINUTE = 60
SECONDS_A_LINE = 10
SECONDS_A_PICTURE = 20


@dataclass(frozen=True)
class Measures:
    """What a reader sees of one page before anything is unfolded."""

    words: int
    words_of_open_proofs: int
    words_before_the_first_picture: int
    lines_of_cells: list[int]
    statements: int  # theorems, propositions, lemmas, corollaries
    pictures: int
    live_pictures: int

    @property
    def minutes(self) -> int:
        """How long an attentive first reading takes, rounded up."""
        prose = (self.words - self.words_of_open_proofs) / WORDS_A_MINUTE
        proofs = self.words_of_open_proofs / WORDS_OF_A_PROOF_A_MINUTE
        code = sum(self.lines_of_cells) * SECONDS_A_LINE / 60
        pictures = self.pictures * SECONDS_A_PICTURE / 60
        return math.ceil(prose + proofs + code + pictures)


def measures_of(notebook: NotebookNode) -> Measures:
    """Count the words, lines and pictures that a page shows."""
    words = words_of_open_proofs = 0
    words_before_the_first_picture: int | None = None
    statements = pictures = live_pictures = 0
    lines_of_cells = []
    for cell, text in cells_outside_solutions(notebook):
        is_picture = cell.cell_type == "code" and shows_picture(cell)
        if is_picture and words_before_the_first_picture is None:
            words_before_the_first_picture = words  # without its caption, which stands below it
        words += words_in(text)
        words_of_open_proofs += sum(words_in(proof[0]) for proof in PROOF.finditer(text))
        statements += len(STATEMENT.findall(text))
        if cell.cell_type != "code":
            continue
        if is_picture:
            pictures += 1
            live_pictures += is_live(cell)
        if is_visible(cell):
            lines_of_cells.append(sum(bool(line.strip()) for line in cell.source.splitlines()))
    if words_before_the_first_picture is None:
        words_before_the_first_picture = words
    return Measures(
        words=words,
        words_of_open_proofs=words_of_open_proofs,
        words_before_the_first_picture=words_before_the_first_picture,
        lines_of_cells=lines_of_cells,
        statements=statements,
        pictures=pictures,
        live_pictures=live_pictures,
    )


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
