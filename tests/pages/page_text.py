"""Read the text of a notebook: its prose, its code, and the numbers that both state."""

import ast
import builtins
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
    r"\b(?:Llama|GPT|Qwen|Gemma|GLM|Phi|SmolLM)[- ]?\d[\d.]*(?:-\d[\d.]*[MB]\b)?",  # models
    r"\b(?:[Ss]ections?|[Vv]ersions?) \d[\d.]*(?:(?:,| and| to|–) ?\d[\d.]*)*",
)
NUMBER = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)"
    r"(?:\s*(?:\\times|\\cdot|×|·)\s*10\^?\{?([-−+]?\d+)\}?|e([-+]?\d+))?"
)
# The three kinds of results that are compared with results of their own kind alone.
DECIMAL = r"(?<![\w.])(\d+(?:\.\d+)?)"
PERCENTAGE = rf"{DECIMAL}\s*(?:%|per cent)"
RATIO = rf"{DECIMAL}\s*(?:times|-fold|×(?!\s*\d))|factor of {DECIMAL}"
COUNT = rf"{DECIMAL} (?:out )?of (?:the )?(\d+)"
NUMBER_OF_ANY_KIND = "number"
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


def without_separators(text: str) -> str:
    """The same text with 12,345 as 12345, and powers of ten as 10^-3."""
    text = re.sub(r"(?<=\d)(?:,|\{,\}|_)(?=\d{3}(?!\d))", "", text)
    return re.sub(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda m: "10^" + m[1].translate(SUPERSCRIPTS), text)


def numbers_in(text: str) -> Iterator[Number]:
    """Every number of a text, thousands separators and powers of ten understood."""
    for found in NUMBER.finditer(without_separators(text)):
        mantissa = found[1]
        exponent = int((found[2] or found[3] or "0").replace("−", "-"))
        decimals = len(mantissa.partition(".")[2])
        digits = mantissa.replace(".", "").lstrip("0")
        if "." not in mantissa:
            digits = digits.rstrip("0")
        yield Number(
            found[0], float(f"{mantissa}e{exponent}"), 10.0 ** (exponent - decimals), len(digits)
        )


def stated_in(prose: str) -> Iterator[tuple[str, Number]]:
    """The kind and the value of each result that a prose text states, and a cell has to show.

    A percentage, a ratio ("10 times", "a factor of 4") and a count ("8 of 12") are results with any
    number of digits. Other numbers count where they have a decimal point or three digits, without
    the zeros at the end of a whole number, and are no year: "two pairs", "d = 8", "12,000 words"
    and "part 3" need no cell.
    """
    for pattern in NOT_PROSE:
        prose = re.sub(pattern, " ", prose, flags=re.DOTALL | re.MULTILINE)
    prose = prose.replace("\\%", "%")
    for kind in (PERCENTAGE, RATIO, COUNT):
        yield from results_of(kind, prose)
    for number in numbers_in(prose):
        is_year = number.unit == 1 and number.value in YEARS
        if not is_year and (number.digits >= 3 or number.unit < 1):
            yield NUMBER_OF_ANY_KIND, number


def shown_in(outputs: str) -> Iterator[tuple[str, Number]]:
    """The same of what a cell has printed or asserted, where every number counts."""
    for kind in (PERCENTAGE, RATIO, COUNT):
        yield from results_of(kind, outputs)
    for number in numbers_in(outputs):
        yield NUMBER_OF_ANY_KIND, number


def results_of(kind: str, text: str) -> Iterator[tuple[str, Number]]:
    """Results of one kind; a count of 8 of 12 is a kind of its own for each 12."""
    for found in re.finditer(kind, without_separators(text)):
        value, *rest = (group for group in found.groups() if group is not None)
        (number,) = numbers_in(value)
        yield (f"{kind} {rest[0]}" if kind == COUNT else kind), number


def unshown(prose: str, outputs: str) -> list[str]:
    """The results of a prose text that no output shows, as they are written."""
    shown: dict[str, set[Number]] = {}
    for kind, number in shown_in(outputs):
        shown.setdefault(kind, set()).add(number)
    missing = {
        number.text
        for kind, number in stated_in(prose)
        if not number.is_shown_by(shown.get(kind, set()))
    }
    return sorted(missing)


def shown_by(notebook: NotebookNode) -> str:
    """What the cells have printed, pictures aside, and what they assert."""
    texts = []
    for cell in code_cells(notebook):
        texts += assertions_of(cell.source)
        texts += [output.get("text", "") for output in cell.outputs]
        texts += [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(texts)


def assertions_of(source: str) -> list[str]:
    """The text of every assertion in a cell, NumPy's and torch's own included."""
    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert) or _asserts(node)]
    return [ast.get_source_segment(source, node) or "" for node in found]


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and "assert" in ast.unparse(node.func)


def assertions_that_can_fail(source: str) -> list[str]:
    """The assertions that hang on what a cell has computed.

    One of constants alone is as true as when it was written, also where Python's own functions are
    called with them. A tuple is always true. The call of a function counts only where its name
    begins as NumPy's and torch's do, and where it is given something computed.
    """
    return [text for text in assertions_of(source) if _hangs_on_a_name(text)]


def _hangs_on_a_name(assertion: str) -> bool:
    (statement,) = ast.parse(assertion).body
    if isinstance(statement, ast.Assert):
        decides: list[ast.expr] = [statement.test]
        if isinstance(statement.test, ast.Tuple):
            return False
    else:
        assert isinstance(statement, ast.Expr)
        assert isinstance(statement.value, ast.Call)
        call = statement.value
        name = ast.unparse(call.func).rpartition(".")[2]
        decides = call.args if name.startswith("assert_") else []
    names = [n.id for part in decides for n in ast.walk(part) if isinstance(n, ast.Name)]
    return any(name not in dir(builtins) for name in names)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def markdown_of(notebook: NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def section(markdown: str, heading: str) -> str:
    """The text under a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\s*$(.*?)(?=^## |\Z)", markdown, re.M | re.S)
    return found[1] if found else ""
