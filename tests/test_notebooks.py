"""Hygiene of the notebooks: what is promised of every page, checked on the stored files."""

import re
from pathlib import Path

import nbformat
import prose
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if re.match(r"\d\d_", path.name)]
CLAIMS = {"A": 72, "B": 40, "C": 14, "D": 17, "E": 27}
CLOSING_SECTIONS = ["What the sources said", "Exercises", "What comes next", "References"]
KNOWN_METADATA = {"checks", "claims", "mystnb", "tags"}
KNOWN_METADATA_OF_THE_COLAB_CELL = {"cellView", "jupyter", "tags"}
MACHINE_PATH = re.compile(r"(?<![\w.])(/(tmp|home|root|Users|work|mnt)/\w|[A-Z]:\\\\\w)")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def figures_of(cell: NotebookNode) -> list[NotebookNode]:
    """Picture outputs that are not the first frame of a slider."""
    return [
        output
        for output in cell.outputs
        if any(kind.startswith("image/") for kind in output.get("data", {}))
        and not output.data.get("text/plain", "").startswith("Slider")
    ]


def test_there_are_chapters() -> None:
    assert len(CHAPTERS) >= 3


@every_notebook
def test_every_cell_has_run_in_order(path: Path) -> None:
    counts = [cell.execution_count for cell in prose.code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


@every_notebook
def test_no_empty_code_cell(path: Path) -> None:
    assert all(cell.source.strip() for cell in read(path).cells)


@every_notebook
def test_no_error_or_stderr_is_stored(path: Path) -> None:
    outputs = [output for cell in prose.code_cells(read(path)) for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


@every_notebook
def test_metadata_is_minimal(path: Path) -> None:
    notebook = read(path)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for number, cell in enumerate(notebook.cells, start=1):
        known = KNOWN_METADATA_OF_THE_COLAB_CELL if number == 2 else KNOWN_METADATA
        assert set(cell.metadata) <= known, f"cell {number}"
        assert cell.id == f"cell-{number:03d}"


@every_notebook
def test_no_path_of_one_machine(path: Path) -> None:
    assert not MACHINE_PATH.search(path.read_text())


@every_notebook
def test_figures_have_caption_name_and_alternative(path: Path) -> None:
    for cell in prose.code_cells(read(path)):
        if figures_of(cell):
            shown = cell.metadata.get("mystnb", {})
            assert len(shown.get("figure", {}).get("caption", "")) > 20, cell.source
            assert shown["figure"]["name"].startswith("fig-"), cell.source
            assert len(shown.get("image", {}).get("alt", "")) > 20, cell.source


@every_notebook
def test_figures_stand_beside_an_assertion(path: Path) -> None:
    cells = prose.code_cells(read(path))
    for number, cell in enumerate(cells):
        if figures_of(cell):
            beside = cells[max(number - 1, 0) : number + 2]
            assert any(prose.assertions_of(near.source) for near in beside), cell.source


@every_notebook
def test_every_precise_number_of_the_prose_is_computed(path: Path) -> None:
    notebook = read(path)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    for cell in prose.code_cells(notebook):
        shown = cell.metadata.get("mystnb", {})
        texts += [shown.get("figure", {}).get("caption", ""), shown.get("image", {}).get("alt", "")]
    shown_numbers = prose.numbers_shown_by(notebook)
    stated = {number for text in texts for number in prose.precise_numbers_in(text)}
    missing = sorted(n.text for n in stated if not n.is_shown_by(shown_numbers))
    assert not missing, "numbers in the prose that no output or assertion shows"


@every_notebook
def test_claims_are_real(path: Path) -> None:
    for cell in prose.code_cells(read(path)):
        for claim in cell.metadata.get("claims", []):
            assert re.fullmatch(r"[A-E]\d\d", claim)
            assert 1 <= int(claim[1:]) <= CLAIMS[claim[0]], claim


@every_notebook
def test_directives_with_prose_are_fenced_with_colons(path: Path) -> None:
    found = re.findall(
        r"^`{3,}\{(?!code|bibliography)[\w:-]+\}.*$", prose.markdown_of(read(path)), re.M
    )
    assert not found


@every_chapter
def test_verdicts_and_deciding_cells_agree(path: Path) -> None:
    notebook = read(path)
    decided = {c for cell in prose.code_cells(notebook) for c in cell.metadata.get("claims", [])}
    verdicts = prose.section(prose.markdown_of(notebook), "What the sources said")
    linked = {found.upper() for found in re.findall(r"\(#claim-([a-e]\d\d)\)", verdicts)}
    assert linked, "no verdict"
    assert linked == decided


@every_chapter
def test_chapter_opens_with_its_contract(path: Path) -> None:
    notebook = read(path)
    assert notebook.cells[0].source.startswith("# ")
    opening = prose.markdown_of(notebook).partition("\n## ")[0]
    for item in ("In this chapter", "**Question", "**You will be able to", "**Prereq", "**Time"):
        assert item in opening, item
    assert "한국어 요약" in opening


@every_chapter
def test_chapter_closes_with_its_contract(path: Path) -> None:
    assert prose.headings_of(prose.markdown_of(read(path)))[-4:] == CLOSING_SECTIONS


@every_chapter
def test_chapter_has_a_length_to_read_in_one_sitting(path: Path) -> None:
    assert 1100 <= prose.words_to_read(read(path)) <= 2300


@every_chapter
def test_minutes_are_those_of_the_count_and_of_the_landing_page(path: Path) -> None:
    notebook = read(path)
    stated = re.findall(r"^\*\*Time\.\*\* (\d+) minutes\.$", notebook.cells[0].source, re.M)
    listed = re.findall(
        rf"\[\]\({path.name}\) .*\| (\d+) \|$", (ROOT / "book" / "index.md").read_text(), re.M
    )
    assert stated == listed == [str(prose.minutes_to_read(notebook))]


@every_chapter
def test_exercises_have_executed_solutions(path: Path) -> None:
    notebook = read(path)
    text = "\n".join(c.source if c.cell_type == "markdown" else "<code>" for c in notebook.cells)
    labels = re.findall(r"^:{3}\{exercise\}.*\n:label: (\S+)", text, re.M)
    assert 3 <= len(labels) <= 5
    for label in labels:
        solved = re.search(
            rf"^:::\{{solution-start\}} {label}\n:class: dropdown\n:::(.*?)^:::\{{solution-end\}}",
            text,
            re.M | re.S,
        )
        assert solved, f"{label} has no folded solution"
        assert "<code>" in solved[1], f"the solution of {label} runs nothing"


@every_chapter
def test_theorems_are_proved_and_checked(path: Path) -> None:
    notebook = read(path)
    text = prose.markdown_of(notebook)
    theorem = r"^:{3,}\{prf:(?:theorem|proposition|lemma|corollary)\}.*?\n:label: (\S+)"
    labels = re.findall(theorem, text, re.M)
    proofs = re.findall(r"^:{3,}\{prf:proof\}", text, re.M)
    assert labels
    assert len(proofs) >= len(labels)
    checked = {
        label
        for cell in prose.code_cells(notebook)
        if prose.assertions_of(cell.source)
        for label in cell.metadata.get("checks", [])
    }
    assert checked == set(labels)


@every_chapter
def test_chapter_has_figures_and_a_slider(path: Path) -> None:
    cells = prose.code_cells(read(path))
    sliders = [
        output
        for cell in cells
        for output in cell.outputs
        if output.get("data", {}).get("text/plain", "").startswith("Slider")
    ]
    assert sliders
    assert all("image/svg+xml" in slider.data for slider in sliders)
    assert sum(len(figures_of(cell)) for cell in cells) >= 3


# The reader of the prose is itself tested: a check that cannot fail is no check.


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("the last is 9646.6 times", ["9646.6"]),
        ("about $1.33\\times10^{-7}$ apart", ["1.33\\times10^{-7}"]),
        ("1.33 × 10⁻⁷", ["1.33 × 10^-7"]),
        ("10,000 and 10{,}000 and 0.5 and 42", []),
        ("12{,}345 words", ["12345"]),
        ("in 2017, at `d_model=512`, [A31](#claim-a31)", []),
        ("width 512", ["512"]),
        ("an error of 0.500", ["0.500"]),
        (":label: thm-123\n\nafter an option 1.25", ["1.25"]),
    ],
)
def test_precise_numbers_are_found(text: str, numbers: list[str]) -> None:
    assert [number.text for number in prose.precise_numbers_in(text)] == numbers


@pytest.mark.parametrize(
    ("stated", "output", "shown"),
    [
        ("9646.6", "9646.616", True),
        ("9646.7", "9646.616", False),
        ("$1.33\\times10^{-7}$", "1.327e-07", True),
        ("0.333", "0.33279", True),
        ("0.334", "0.33279", False),
        ("512", "d=512", True),
        ("512", "5120", False),
    ],
)
def test_a_stated_number_is_matched_by_rounding(stated: str, output: str, shown: bool) -> None:
    (number,) = prose.precise_numbers_in(stated)
    assert number.is_shown_by(set(prose.numbers_in(output))) is shown
