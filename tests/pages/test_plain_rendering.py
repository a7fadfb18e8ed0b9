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

from website.build import notebooks_of_the_book

READABLE_DIRECTIVE = re.compile(
    r"^:{3,}\{(prf:(theorem|lemma|proposition|corollary|definition|proof|remark|example)"
    r"|admonition|note|exercise|solution-start|solution-end)\}"
)
TELLING_ROLE = re.compile(
    r"\{(prf:)?ref\}`(thm|lem|prop|cor|def|rem|exm|ex|claim|sec)-[a-z][a-z\d-]*`"
    r"|\{cite(:t|:p)?\}`[a-z]{2,}[a-z\d-]*(,\s*[a-z]{2,}[a-z\d-]*)*`"
)
DIRECTIVE = re.compile(r"^[ \t]*[:`~]{3,}\s*\{.*", re.M)
ROLE = re.compile(r"\{[\w:-]+\}`[^`]*`")
MARKUP_OF_MYST = re.compile(
    r"^%.*"  # a comment
    r"|^\([\w-]+\)=$"  # a target
    r"|^\+\+\+.*"  # a break between blocks
    r"|\{\{.*?\}\}"  # a substitution
    r"|\$\$ \([\w-]+\)$"  # the label of an equation
    r"|^:(?!label:|class:)[\w-]+: .*"  # an option of a directive, but for these two
    r"|^\\begin\{.*"  # an equation without dollar signs
    r"|^ {4,}\S.*",  # text set as code
    re.M,
)


def complaints_about(markdown: str) -> list[str]:
    """What a reader of the plain rendering would miss or stumble over."""
    hidden = [line for line in DIRECTIVE.findall(markdown) if not READABLE_DIRECTIVE.match(line)]
    hidden += [role for role in ROLE.findall(markdown) if not TELLING_ROLE.fullmatch(role)]
    text = re.sub(r"^(`{3,}).*?^\1", "", markdown, flags=re.M | re.S)
    text = re.sub(r"\$\$.*?\$\$", "$$", text, flags=re.S)
    return hidden + [found[0] for found in MARKUP_OF_MYST.finditer(text)]


@pytest.mark.parametrize(
    "path", notebooks_of_the_book(), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_nothing_is_lost_where_directives_are_not_understood(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert [complaint for text in texts for complaint in complaints_about(text)] == []


@pytest.mark.parametrize(
    ("markdown", "complaint"),
    [
        (":::{prf:theorem} Shift by rotation\n:label: thm-shift\n:::", None),
        ("```{prf:theorem} Its text would be code\n```", "```{prf:theorem} Its text would be code"),
        (":::{tip}\nA word that says nothing.\n:::", ":::{tip}"),
        ("As {prf:ref}`thm-shift` and {cite:t}`vaswani2017` say", None),
        ("in {numref}`fig-clocks`", "{numref}`fig-clocks`"),
        ("by {prf:ref}`shift`", "{prf:ref}`shift`"),
        ("(sec-end)=\n## The end", "(sec-end)="),
        ("It takes {{ minutes }}.", "{{ minutes }}"),
        ("$$\nx = 1\n$$ (eq-x)", "$$ (eq-x)"),
        (":width: 300px", ":width: 300px"),
        ("Text\n\n    as code", "    as code"),
        ("```python\n    x = 1\n```", None),
    ],
)
def test_what_would_be_lost_is_found(markdown: str, complaint: str | None) -> None:
    assert complaints_about(markdown) == ([complaint] if complaint else [])
