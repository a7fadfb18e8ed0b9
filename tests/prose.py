"""Read the prose of a notebook: its blocks, its words, and the numbers it states."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbformat import NotebookNode

NOT_PROSE = (
    r"```.*?```",  # code
    r"`[^`]*`",  # code, and the target of a role
    r"\{[\w:]+\}",  # a role
    r"\]\([^)]*\)",  # the target of a link
    r"https?://\S+",
    r"^:\w+:[^\n]*$",  # an option of a directive
    r"\[[A-E]\d\d\]",  # a claim of the sources
)
NUMBER = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)"
    r"(?:\s*(?:\\times|\\cdot|×|·)\s*10\^?\{?([-−+]?\d+)\}?|e([-+]?\d+))?"
)
YEARS = range(1900, 2031)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


@dataclass(frozen=True)
class Number:
    """A number as it is written: its value, and the weight of its last digit."""

    text: str
    value: float
    unit: float
    digits: int = field(compare=False)

    def is_shown_by(self, others: set["Number"]) -> bool:
        """Whether one of the others, rounded to the digits of this one, is this one."""
        half = 0.5 * self.unit * (1 + 1e-9)
        return any(abs(other.value - self.value) <= half for other in others)


def numbers_in(text: str) -> Iterator[Number]:
    """Every number of a text, thousands separators and powers of ten understood."""
    text = re.sub(r"(?<=\d)(?:,|\{,\}|_)(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda m: "10^" + m[1].translate(SUPERSCRIPTS), text)
    for found in NUMBER.finditer(text):
        mantissa = found[1]
        exponent = int((found[2] or found[3] or "0").replace("−", "-"))
        decimals = len(mantissa.partition(".")[2])
        digits = mantissa.replace(".", "").lstrip("0")
        if "." not in mantissa:
            digits = digits.rstrip("0")
        yield Number(
            found[0], float(f"{mantissa}e{exponent}"), 10.0 ** (exponent - decimals), len(digits)
        )


def precise_numbers_in(prose: str) -> Iterator[Number]:
    """The numbers of a prose text that a cell has to show: three or more digits, and no year."""
    for pattern in NOT_PROSE:
        prose = re.sub(pattern, " ", prose, flags=re.DOTALL | re.MULTILINE)
    for number in numbers_in(prose):
        is_year = number.unit == 1 and number.value in YEARS
        if number.digits >= 3 and not is_year:
            yield number


def numbers_shown_by(notebook: NotebookNode) -> set[Number]:
    """The numbers of the stored outputs, pictures aside, and those of the assertions."""
    texts = []
    for cell in code_cells(notebook):
        texts += assertions_of(cell.source)
        texts += [output.get("text", "") for output in cell.outputs]
        texts += [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return {number for text in texts for number in numbers_in(text)}


def assertions_of(source: str) -> list[str]:
    """The text of every assertion in a cell, NumPy's and torch's own included."""
    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert) or _asserts(node)]
    return [ast.get_source_segment(source, node) or "" for node in found]


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and "assert" in ast.unparse(node.func)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def markdown_of(notebook: NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def section(markdown: str, heading: str) -> str:
    """The text under a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\s*$(.*?)(?=^## |\Z)", markdown, re.M | re.S)
    return found[1] if found else ""
