"""What remains of a page where MyST is not understood: on GitHub, on Colab, through nbconvert.

There a directive is its opening line, its text and its closing line. That is readable while the
opening line says in a word what follows, as "{prf:theorem} Shift by rotation", and the text is no
code. A role is its name and its target. That is readable while the target is telling: a label as
thm-shift, which stands below the theorem's opening line, or author and year. All else would hide
what it means.
"""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.filters.markdown import markdown2html

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))

READABLE_DIRECTIVES = {
    *("prf:theorem", "prf:lemma", "prf:proposition", "prf:corollary", "prf:definition"),
    *("prf:proof", "prf:remark", "prf:example", "admonition", "note", "tip", "important"),
    *("warning", "exercise", "solution-start", "solution-end"),
}
TELLING_TARGETS = {
    **dict.fromkeys(
        ("prf:ref", "ref"), r"(thm|lem|prop|cor|def|rem|exm|ex|claim|sec)-[a-z][a-z\d-]*"
    ),
    **dict.fromkeys(("cite:t", "cite:p", "cite"), r"[a-z]{2,}[a-z\d-]*(,\s*[a-z]{2,}[a-z\d-]*)*"),
}
MARKUP_OF_MYST = {
    "a comment": r"^%",
    "a target": r"^\([\w-]+\)=$",
    "a block break": r"^\+\+\+",
    "a substitution": r"\{\{.*?\}\}",
    "attributes": r"^\{[.#]\w+",
    "a label of an equation": r"\$\$ \([\w-]+\)$",
    "an option of a directive that is not a label or a class": r"^:(?!label:|class:)[\w-]+: ",
}


def complaints_about(markdown: str) -> list[str]:
    """What a reader of the plain rendering would miss or stumble over."""
    found = [
        f"{{{name}}} hides what it means"
        for name in re.findall(r"^\s*(?::{3,}|`{3,}|~{3,})\s*\{([\w:-]+)\}", markdown, re.M)
        if name not in READABLE_DIRECTIVES
    ]
    for name, target in re.findall(r"\{([\w:-]+)\}`([^`]*)`", markdown):
        if not re.fullmatch(TELLING_TARGETS.get(name, r"(?!)"), target):
            found.append(f"{{{name}}}`{target}` does not say where it leads")
    text = re.sub(r"^(`{3,}).*?^\1", "", markdown, flags=re.M | re.S)
    for what, pattern in MARKUP_OF_MYST.items():
        found += [f"{what}: {line}" for line in re.findall(f"(?m){pattern}.*", text)]
    formulas = re.compile(r"\$\$.*?\$\$", re.S)
    if re.search(r"\\begin\{", re.sub(r"\$[^$]+\$", "", formulas.sub("", text))):
        found.append("an equation without dollar signs")
    page = BeautifulSoup(markdown2html(markdown), "html.parser")
    for code in page.select("pre"):
        if re.search(r":::|\$|\{(prf:|cite)", code.get_text()):
            found.append(f"text set as code: {code.get_text()[:60]}")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_is_lost_where_directives_are_not_understood(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert [complaint for text in texts for complaint in complaints_about(text)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_output_has_a_form_that_needs_no_kernel(path: Path) -> None:
    """A live figure keeps its still in the file."""
    cells = nbformat.read(path, as_version=4).cells
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        if "data" in output:
            assert {"text/plain", "image/svg+xml", "image/png", "text/html"} & set(output.data)
            assert "Live figure" not in output.data.get("text/plain", "") or (
                "image/svg+xml" in output.data
            )


READABLE = [
    "Some `code`, $x_i$ and {prf:ref}`thm-shift`, as {cite:t}`vaswani2017`.",
    ":::{prf:theorem} Shift by rotation\n:label: thm-shift\n\nFor all $x$\n\n$$a=b$$\n:::",
    "```python\n% a comment of a listing\n```",
    "$$\\begin{aligned}a&=b\\end{aligned}$$",
]
HIDDEN = [
    "```{prf:theorem} Shift\nFor all $x$\n```",
    ":::{figure} picture.png\nA caption\n:::",
    ":::{list-table}\n* - a\n:::",
    "```{math}\na = b\n```",
    "See {term}`clock` and {doc}`notation`.",
    "See {prf:ref}`t1`.",
    "See {cite:t}`12`.",
    "See {numref}`figure %s <fig-clocks>`.",
    "% a note to myself",
    "(here)=\n# Title",
    "The value is {{ value }}.",
    "$$a=b$$ (eq-one)",
    ":::{admonition} Title\n:name: here\nText\n:::",
    "\\begin{align}a&=b\\end{align}",
    ":::{note}\n\n    For all $x$\n:::",
]


@pytest.mark.parametrize("markdown", [*READABLE, *HIDDEN])
def test_markup_that_hides_meaning_is_found_and_no_other(markdown: str) -> None:
    assert bool(complaints_about(markdown)) is (markdown in HIDDEN)
