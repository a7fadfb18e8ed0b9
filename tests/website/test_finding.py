"""The opening of a page: its finding, its grade and its grey line."""

import nbformat
import pytest
from nbformat import NotebookNode

from website.extensions import finding
from website.page_measures import measures_of

OPENING = """# A title

**It holds for every
$x$.** *proved · five
seeds, small models*

*Needs:* the softmax. [한국어 요약](korean.md#ko-page)

Then the question?"""


def test_the_finding_the_grade_and_the_minutes_are_set() -> None:
    assert (
        finding.marked_up(OPENING, "9 minutes")
        == """# A title

{.finding}
**It holds for every
$x$.** <span class="grade">proved · five seeds, small models</span>

{.reading-line}
9 minutes · *Needs:* the softmax. [한국어 요약](korean.md#ko-page)

Then the question?"""
    )


def test_a_page_without_minutes_has_a_finding_too() -> None:
    assert "{.reading-line}\n*Needs:* the softmax." in finding.marked_up(OPENING, "")


def test_a_page_without_a_finding_has_its_minutes_alone() -> None:
    text = "# A title\n\nIts **first.** *line*"
    assert finding.marked_up(text, "") == text
    expected = "# A title\n\n{.reading-line}\n9 minutes\n\n\nIts **first.** *line*"
    assert finding.marked_up(text, "9 minutes") == expected


@pytest.mark.parametrize(
    ("mark", "allowed"),
    [
        ("proved", True),
        ("12 seeds, small models", True),
        ("five seeds, small models", True),
        ("n seeds, small models", False),
        ("proven", False),
        ("one trained model", True),
    ],
)
def test_a_mark_is_one_of_the_five(mark: str, allowed: bool) -> None:
    assert bool(finding.MARK.fullmatch(mark)) == allowed


def page(*cells: NotebookNode) -> NotebookNode:
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=list(cells))
    return notebook


def test_what_is_folded_takes_no_time() -> None:
    text = "One two three.\n\n:::{admonition} Four\n:class: dropdown\n\nFive six.\n:::\n"
    folded = nbformat.v4.new_code_cell("x = 1\ny = 2", metadata={"tags": ["hide-input"]})
    shown = nbformat.v4.new_code_cell("x = 1\n\ny = 2")
    measures = measures_of(page(nbformat.v4.new_markdown_cell(text), folded, shown))
    assert (measures.words, measures.lines_of_code, measures.pictures) == (3, 2, 0)
