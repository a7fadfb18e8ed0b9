"""The notebooks keep what is promised of them, checked on the stored files.

A chapter teaches and keeps the contract of CONTRIBUTING.md; its checks page, of the same name in
book/checks, proves by running.
"""

import ast
import copy
import posixpath
import re
from functools import cache
from pathlib import Path

import nbformat
import page_text
import pytest
from nbformat import NotebookNode

from pe_book import plots
from website import notebooks, page_measures
from website.build import notebooks_of_the_book
from website.contents import chapters_in
from website.extensions import finding

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
NOTEBOOKS = [path.relative_to(BOOK).as_posix() for path in notebooks_of_the_book()]
CHAPTERS = [f"{name.removeprefix('book/')}.ipynb" for name in chapters_in()]
CHECKS = [name for name in NOTEBOOKS if name.startswith("checks/")]
CLOSING_SECTIONS = ["The answer", "Exercises", "What comes next", "References"]
THEOREM = re.compile(
    r"^:{3,}\{prf:(?:theorem|proposition|lemma|corollary)\}.*(?:\n:class: .*)?\n:label: (\S+)", re.M
)
PROOF_OF = re.compile(r"^:{3,}\{prf:proof\}\n(?::class: .*\n)?\s*Of \{prf:ref\}`(\S+?)`", re.M)
IMPORTS_OR_DEFINES = re.compile(r"^(import|from|def) ", re.M)
ANNOTATION = re.compile(r"^\s*def .*(?:->|\w: ?\w)|^\w+: \w", re.M)
WIDEST_LINE = 82  # letters of code in the column of a page

every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
every_checks_page = pytest.mark.parametrize("name", CHECKS)


@cache
def read(name: str) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(BOOK / name, as_version=4)
    return notebook


def ties(name: str, kind: str) -> set[str]:
    """The theorems or claims that the cells of a page name in their metadata."""
    return {one for cell in page_text.code_cells(read(name)) for one in cell.metadata.get(kind, [])}


# Every notebook.


@every_notebook
def test_a_method_has_no_colour_of_a_role(name: str) -> None:
    """RoPE was drawn in the colour of a difference Δx, and its turns by Δx are drawn in it, too."""
    found = [
        part
        for cell in page_text.code_cells(read(name))
        for part in methods_in_the_colour_of_a_step(cell.source)
    ]
    assert found == []


def methods_in_the_colour_of_a_step(source: str) -> list[str]:
    """The calls, and the lines, that name both a method and the colour of a step."""
    calls = [
        " ".join(map(ast.unparse, [*call.args, *call.keywords]))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
    ]
    method = re.compile(r"\b(RoPE|rotary|untied|relative-bias)\b")
    parts = [*calls, *source.splitlines()]
    return [part for part in parts if method.search(part) and "plots.STEP" in part]


@pytest.mark.parametrize(
    "source",
    [
        'SHOWN = {\n    "rotary": (plots.STEP, "-"),\n}',
        'ax.plot(x, y, color=plots.STEP, label="RoPE")',
        'ax.plot(\n    x,\n    label="RoPE",\n    color=plots.STEP,\n)',
    ],
)
def test_a_method_in_the_colour_of_a_step_is_found(source: str) -> None:
    assert methods_in_the_colour_of_a_step(source)
    assert not methods_in_the_colour_of_a_step(source.replace("STEP", "INK"))


@every_notebook
def test_is_stored_executed_in_the_normal_form(name: str) -> None:
    notebook = read(name)
    normal = copy.deepcopy(notebook)
    notebooks.normalise(normal)
    assert notebook == normal, "run website/notebooks.py"
    assert all(cell.source.strip() for cell in notebook.cells)
    cells = page_text.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


@every_notebook
def test_figures_have_caption_name_and_alternative(name: str) -> None:
    for cell in filter(page_measures.shows_picture, page_text.code_cells(read(name))):
        shown = cell.metadata.get("mystnb", {})
        assert len(shown.get("figure", {}).get("caption", "")) > 20, cell.source
        assert shown["figure"]["name"].startswith("fig-"), cell.source
        alternative = shown.get("image", {}).get("alt", "")
        assert page_measures.is_live(cell) or len(alternative) > 20, cell.source
        data = [output.get("data", {}) for output in cell.outputs]
        assert any("image/svg+xml" in one for one in data), "a live figure keeps its still"


@every_notebook
def test_no_drawing_is_wider_than_its_letters_allow(name: str) -> None:
    """A phone shows a drawing as wide as its screen, so the letters of a wider one shrink more."""
    margins = 0.25  # inches: the notebook adds 0.2, and a label may stick out a little
    most_points = (plots.WIDTH + margins) * 72
    for cell in filter(page_measures.shows_picture, page_text.code_cells(read(name))):
        for output in cell.outputs:
            svg = output.get("data", {}).get("image/svg+xml", "")
            for opening in re.findall(r'<svg [^>]*\bwidth="[\d.]+pt"[^>]*>', svg):
                # Frames are enlarged to the column of a page: what they were drawn at counts.
                (drawn,) = re.findall(r'\bviewBox="0 0 ([\d.]+) ', opening)
                assert float(drawn) <= most_points, cell.source


@every_notebook
def test_no_line_of_code_is_wider_than_its_column(name: str) -> None:
    """The formatter leaves long texts as they are; on a page of 1280 px they would scroll."""
    for cell in page_text.code_cells(read(name)):
        if not {"remove-cell", "remove-input"} & set(cell.metadata.get("tags", [])):
            assert max(map(len, cell.source.split("\n"))) <= WIDEST_LINE, cell.source


@every_notebook
def test_every_result_in_the_prose_is_shown_by_a_cell(name: str) -> None:
    """Of the page itself, or of a page that it links to and that proves it."""
    notebook = read(name)
    prose = [page_text.markdown_of(notebook)]
    for cell in page_text.code_cells(notebook):
        shown = cell.metadata.get("mystnb", {})
        prose += [shown.get("figure", {}).get("caption", ""), shown.get("image", {}).get("alt", "")]
    outputs = [page_text.shown_by(read(page)) for page in (name, *pages_that_prove(name))]
    assert page_text.unshown("\n\n".join(prose), "\n".join(outputs)) == []


def pages_that_prove(name: str) -> set[str]:
    """The pages of checks that a page links to. The tour tells what whole chapters show."""
    links = re.findall(r"\]\(([\w./-]+\.ipynb)", page_text.markdown_of(read(name)))
    linked = {posixpath.normpath(posixpath.join(posixpath.dirname(name), link)) for link in links}
    if name == "tour.ipynb":
        chapters = linked & set(CHAPTERS)
        return linked | {page for chapter in chapters for page in pages_that_prove(chapter)}
    return linked & set(CHECKS)


# Chapters.


def test_each_chapter_has_its_checks_page() -> None:
    assert len(CHAPTERS) >= 9
    assert {f"checks/{name}" for name in CHAPTERS} <= set(CHECKS)


def test_the_landing_page_types_no_minutes() -> None:
    """They are measured when the book is built (website/extensions/reading_time.py)."""
    assert not re.search(r"\b(?:\d+|[Tt]en) minutes\b", (BOOK / "index.md").read_text("utf-8"))


@every_chapter
def test_chapter_teaches_and_leaves_proving_to_its_checks(name: str) -> None:
    for cell in page_text.code_cells(read(name)):
        assert not page_text.assertions_of(cell.source), cell.source
        assert not ANNOTATION.search(cell.source), cell.source
        assert not {"checks", "claims"} & set(cell.metadata), cell.source
        if page_measures.is_visible(cell) and not IMPORTS_OR_DEFINES.search(cell.source):
            assert cell.outputs, f"shows nothing:\n{cell.source}"


@every_chapter
def test_chapter_opens_on_its_finding_with_its_grade(name: str) -> None:
    """Title, finding, and what the reader needs; each chapter links its own summary in Korean."""
    first = read(name).cells[0].source
    opening = finding.OPENING.match(first)
    assert opening, "# Title, then **finding.** *grade*, then *Needs:* …"
    assert re.search(r"[.?!]$", opening["finding"])
    marks = opening["grade"].split(" · ")
    assert [mark for mark in marks if not finding.MARK.fullmatch(mark)] == []
    (summary,) = re.findall(r"\[한국어 요약\]\(korean\.md#([\w-]+)\)", opening["needs"])
    assert f"({summary})=" in (BOOK / "korean.md").read_text(encoding="utf-8")


@every_chapter
def test_chapter_asks_before_its_first_figure(name: str) -> None:
    """In its text, or in the question of a live figure. Nothing is folded before."""
    cells = read(name).cells
    shows = [cell.cell_type == "code" and page_measures.shows_picture(cell) for cell in cells]
    before = cells[: shows.index(True) + 1]
    assert any("?" in cell.source for cell in before)
    assert not any(":class: dropdown" in cell.source for cell in before)


@every_chapter
def test_chapter_has_a_live_figure(name: str) -> None:
    assert any(map(page_measures.is_live, page_text.code_cells(read(name))))


@every_chapter
def test_chapter_closes_with_its_answer(name: str) -> None:
    text = page_text.markdown_of(read(name))
    headings = re.findall(r"^## (.+?)\s*$", text, re.M)
    assert headings[-4:] == CLOSING_SECTIONS
    for heading in CLOSING_SECTIONS:
        assert page_measures.words_in(page_text.section(text, heading)) > 0, heading


@every_chapter
def test_exercises_have_starters_and_executed_solutions(name: str) -> None:
    cells = read(name).cells
    text = "\n".join(c.source if c.cell_type == "markdown" else "<code>" for c in cells)
    text = text.partition("\n## Exercises\n")[2]
    labels = re.findall(r"^:{3}\{exercise\}.*\n:label: (\S+)", text, re.M)
    assert len(labels) >= 2
    solution = r"^:::\{solution-start\} (\S+)\n:class: dropdown\n:::(.*?)^:::\{solution-end\}"
    solved = dict(re.findall(solution, text, re.M | re.S))
    assert list(solved) == labels
    starters = re.sub(solution, "", text, flags=re.M | re.S).count("<code>")
    assert starters >= 2, "at least two exercises have something to run"


# Theorems, claims, and the checks that decide them.


@every_chapter
def test_each_theorem_is_proved_and_checked_by_running(name: str) -> None:
    """On the chapter or its checks: a proof follows before the next one, or the checks name it."""
    theorems: dict[str, str] = {}
    for page in (name, f"checks/{name}"):
        _, *parts = THEOREM.split(page_text.markdown_of(read(page)))
        theorems |= dict(zip(parts[::2], parts[1::2], strict=True))
    elsewhere = PROOF_OF.findall(page_text.markdown_of(read(f"checks/{name}")))
    unproved = [label for label, text in theorems.items() if "{prf:proof}" not in text]
    assert set(unproved) <= set(elsewhere)
    assert set(theorems) == ties(f"checks/{name}", "checks")


@every_checks_page
def test_each_check_can_fail_and_says_what_it_found(name: str) -> None:
    notebook = read(name)
    ties_of_a_cell = {"checks", "claims", "folklore"}
    decided = [c for c in page_text.code_cells(notebook) if ties_of_a_cell & set(c.metadata)]
    for cell in decided:
        assert page_text.assertions_that_can_fail(cell.source), cell.source
        assert cell.outputs, f"prints nothing:\n{cell.source}"
    chapter = BOOK / Path(name).name
    if chapter.exists():
        assert f"(../{chapter.name})" in notebook.cells[0].source, "no way back to the chapter"
        assert f"(checks/{chapter.name})" in page_text.markdown_of(read(chapter.name))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("assert x < 1", 1),
        ("assert all(row > 0 for row in rows), rows", 1),
        ("np.testing.assert_allclose(x, 1)", 1),
        ("torch.testing.assert_close(x, y)", 1),
        ("assert True", 0),
        ("assert len([1]) == 1", 0),
        ("assert isinstance(1, int)", 0),
        ("assert (x > 1, 'too small')", 0),
        ("assert 2**20 / 2**9 * 2 == 4096, x", 0),
        ("assert_close(1, 1)", 0),
        ("print_assertions(x)", 0),
        ("assert not False\nassert f(x)", 1),
    ],
)
def test_assertions_that_cannot_fail_decide_nothing(source: str, count: int) -> None:
    assert len(page_text.assertions_that_can_fail(source)) == count


# The reader of the prose is itself tested: a check that cannot fail is no check.


@pytest.mark.parametrize(
    ("text", "output", "missing"),
    [
        ("the last is 9646.6 times", "9646.616 times", []),
        ("the last is 9646.7 times", "9646.616 times", ["9646.7"]),
        ("about $1.33\\times10^{-7}$ apart", "1.327e-07", []),
        ("42 and 12{,}345", "12346", ["12345"]),
        ("in 2017, at `d_model=512`, [A31](#claim-a31)", "", []),
        ("width 512 and an error of 0.500", "d=5120", ["0.500", "512"]),
        (":label: thm-123\n\nafter an option 1.25", "", ["1.25"]),
        # A changed percentage, count, ratio or decimal is found here, although the same number
        # stands elsewhere in the outputs. On a page that prints hundreds of numbers, a change may
        # hit another one by chance: of changes by one in the last digit, nearly all of counts and
        # ratios are found there, and about half of percentages and other numbers.
        ("42 per cent of its mean square", "0.42 and 41.8 %", []),
        ("47 per cent of its mean square", "47 runs, 41.8 %", ["47"]),
        ("right in 8 of 12 seeds", "8 of 12", []),
        ("right in 9 of 12 seeds", "8 of 12, 9 of 10, 9", ["9"]),
        ("10 times as large", "ratio: 9.8 times", []),
        ("20 times as large", "20 words, 9.8 times", ["20"]),
        ("by a factor of 4", "factor of 4.1", []),
        ("by a factor of 5", "factor of 4.1, 5", ["5"]),
        ("a loss of 0.7", "0.65", []),
        ("a loss of 0.8", "0.65, 8", ["0.8"]),
    ],
)
def test_results_that_nothing_shows_are_found(text: str, output: str, missing: list[str]) -> None:
    assert page_text.unshown(text, output) == missing
