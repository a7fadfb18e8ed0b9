"""The notebooks keep what is promised of them, checked on the stored files.

A chapter teaches and keeps the contract of its size; its checks page, of the same name in
book/checks, proves by running.
"""

import copy
import re
import statistics
from functools import cache
from pathlib import Path

import contract
import nbformat
import notebooks
import prose
import pytest
from nbformat import NotebookNode

BOOK = Path(__file__).resolve().parent.parent / "book"
NOTEBOOKS = sorted(path.relative_to(BOOK).as_posix() for path in BOOK.rglob("*.ipynb"))
CHAPTERS = [name for name in NOTEBOOKS if re.match(r"\d\d_", name)]
CHECKS = [name for name in NOTEBOOKS if name.startswith("checks/")]
CLOSING_SECTIONS = ["What the sources said", "Exercises", "What comes next", "References"]
THEOREM = re.compile(
    r"^:{3,}\{prf:(?:theorem|proposition|lemma|corollary)\}.*?\n:label: (\S+)", re.M
)
PROOF_OF = re.compile(r"^:{3,}\{prf:proof\}\n(?::class: .*\n)?\s*Of \{prf:ref\}`(\S+?)`", re.M)
IMPORTS_OR_DEFINES = re.compile(r"^(import|from|def) ", re.M)
ANNOTATION = re.compile(r"^\s*def .*(?:->|\w: ?\w)|^\w+: \w", re.M)

every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
every_checks_page = pytest.mark.parametrize("name", CHECKS)


@cache
def read(name: str) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(BOOK / name, as_version=4)
    return notebook


def ties(name: str, kind: str) -> set[str]:
    """The theorems or claims that the cells of a page name in their metadata."""
    return {one for cell in prose.code_cells(read(name)) for one in cell.metadata.get(kind, [])}


# Every notebook.


@every_notebook
def test_is_stored_executed_in_the_normal_form(name: str) -> None:
    notebook = read(name)
    normal = copy.deepcopy(notebook)
    notebooks.serve_colab(normal, "", (BOOK / name).parent.relative_to(BOOK.parent))
    notebooks.normalise(normal)
    normal.cells[1].execution_count = 1
    assert notebook == normal, "run tools/notebooks.py"
    assert all(cell.source.strip() for cell in notebook.cells)
    cells = prose.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


@every_notebook
def test_figures_have_caption_name_and_alternative(name: str) -> None:
    for cell in filter(contract.shows_picture, prose.code_cells(read(name))):
        shown = cell.metadata.get("mystnb", {})
        assert len(shown.get("figure", {}).get("caption", "")) > 20, cell.source
        assert shown["figure"]["name"].startswith("fig-"), cell.source
        alternative = shown.get("image", {}).get("alt", "")
        assert contract.is_live(cell) or len(alternative) > 20, cell.source
        data = [output.get("data", {}) for output in cell.outputs]
        assert any("image/svg+xml" in one for one in data), "a live figure keeps its still"


@every_notebook
def test_every_precise_number_of_the_prose_is_computed(name: str) -> None:
    notebook = read(name)
    texts = [prose.markdown_of(notebook)]
    for cell in prose.code_cells(notebook):
        shown = cell.metadata.get("mystnb", {})
        texts += [shown.get("figure", {}).get("caption", ""), shown.get("image", {}).get("alt", "")]
    shown_numbers = prose.numbers_shown_by(notebook)
    if f"checks/{name}" in CHECKS:
        shown_numbers |= prose.numbers_shown_by(read(f"checks/{name}"))
    stated = {number for text in texts for number in prose.precise_numbers_in(text)}
    missing = sorted(n.text for n in stated if not n.is_shown_by(shown_numbers))
    assert not missing, "numbers in the prose that no output or assertion shows"


# Chapters.


def test_each_chapter_has_its_checks_page() -> None:
    assert len(CHAPTERS) >= 9
    assert [f"checks/{name}" for name in CHAPTERS] == CHECKS


@every_chapter
def test_chapter_keeps_its_contract_of_size_and_states_its_minutes(name: str) -> None:
    n = contract.numbers_of(read(name))
    assert n.words <= 1900
    assert n.words_before_the_first_picture <= 250
    assert sum(n.lines) <= 120
    assert statistics.median(n.lines) <= 6
    assert max(n.lines) <= 15
    assert n.pictures >= 5
    assert n.live >= 1
    assert n.minutes <= 25
    opening, index = read(name).cells[0].source, (BOOK / "index.md").read_text()
    stated = re.findall(r"^\*\*Time\.\*\* (\d+) minutes\.$", opening, re.M)
    listed = re.findall(rf"\[\]\({name}\).*\| (\d+) \|$", index, re.M)
    assert stated == listed == [str(n.minutes)]


def test_the_tour_takes_ten_minutes() -> None:
    notebook = read("tour.ipynb")
    n = contract.numbers_of(notebook)
    assert n.words <= 1000
    assert sum(n.lines) <= 60
    assert n.minutes <= 10
    screens = re.split(r"^## (?=\d)", prose.markdown_of(notebook), flags=re.M)[1:]
    assert len(screens) == n.pictures == 8


@every_chapter
def test_chapter_teaches_and_leaves_proving_to_its_checks(name: str) -> None:
    for cell in prose.code_cells(read(name)):
        assert not prose.assertions_of(cell.source), cell.source
        assert not ANNOTATION.search(cell.source), cell.source
        assert not {"checks", "claims"} & set(cell.metadata), cell.source
        if contract.is_visible(cell) and not IMPORTS_OR_DEFINES.search(cell.source):
            assert cell.outputs, f"shows nothing:\n{cell.source}"


@every_chapter
def test_chapter_opens_and_closes_with_its_contract(name: str) -> None:
    notebook = read(name)
    assert notebook.cells[0].source.startswith("# ")
    text = prose.markdown_of(notebook)
    opening = text.partition("\n## ")[0]
    boxes = ("In this chapter", "**Question", "**You will be able to", "**Prereq")
    for item in (*boxes, "The answer in three sentences", "한국어 요약"):
        assert item in opening, item
    assert re.findall(r"^## (.+?)\s*$", text, re.M)[-4:] == CLOSING_SECTIONS
    assert contract.words_in(prose.section(text, "What the sources said")) <= 150


@every_chapter
def test_exercises_have_starters_and_executed_solutions(name: str) -> None:
    cells = read(name).cells
    text = "\n".join(c.source if c.cell_type == "markdown" else "<code>" for c in cells)
    text = text.partition("\n## Exercises\n")[2]
    labels = re.findall(r"^:{3}\{exercise\}.*\n:label: (\S+)", text, re.M)
    assert 3 <= len(labels) <= 4
    solution = r"^:::\{solution-start\} (\S+)\n:class: dropdown\n:::(.*?)^:::\{solution-end\}"
    solved = dict(re.findall(solution, text, re.M | re.S))
    assert list(solved) == labels
    assert sum("<code>" in told for told in solved.values()) >= 2
    starters = re.sub(solution, "", text, flags=re.M | re.S).count("<code>")
    assert starters >= 2, "at least two exercises have something to run"


# Theorems, claims, and the checks that decide them.


@every_chapter
def test_each_theorem_is_proved_and_checked_by_running(name: str) -> None:
    """A proof follows it before the next theorem, or one on the page of checks names it."""
    _, *parts = THEOREM.split(prose.markdown_of(read(name)))
    theorems = dict(zip(parts[::2], parts[1::2], strict=True))
    elsewhere = PROOF_OF.findall(prose.markdown_of(read(f"checks/{name}")))
    unproved = [label for label, text in theorems.items() if "{prf:proof}" not in text]
    assert set(unproved) <= set(elsewhere)
    assert set(theorems) == ties(f"checks/{name}", "checks")


@every_checks_page
def test_each_check_can_fail_and_says_what_it_found(name: str) -> None:
    notebook = read(name)
    decided = [c for c in prose.code_cells(notebook) if {"checks", "claims"} & set(c.metadata)]
    for cell in decided:
        assert prose.assertions_of(cell.source), cell.source
        assert cell.outputs, f"prints nothing:\n{cell.source}"
    assert f"(../{Path(name).name})" in notebook.cells[0].source, "no way back to the chapter"
    assert f"(checks/{Path(name).name})" in prose.markdown_of(read(Path(name).name))


# The reader of the prose is itself tested: a check that cannot fail is no check.


@pytest.mark.parametrize(
    ("text", "output", "missing"),
    [
        ("the last is 9646.6 times", "9646.616", []),
        ("the last is 9646.7 times", "9646.616", ["9646.7"]),
        ("about $1.33\\times10^{-7}$ apart", "1.327e-07", []),
        ("10,000 and 0.5 and 42 and 12{,}345", "12346", ["12345"]),
        ("in 2017, at `d_model=512`, [A31](#claim-a31)", "", []),
        ("width 512 and an error of 0.500", "d=5120", ["512", "0.500"]),
        (":label: thm-123\n\nafter an option 1.25", "", ["1.25"]),
    ],
)
def test_precise_numbers_that_nothing_shows_are_found(
    text: str, output: str, missing: list[str]
) -> None:
    shown = set(prose.numbers_in(output))
    stated = prose.precise_numbers_in(text)
    assert [number.text for number in stated if not number.is_shown_by(shown)] == missing
