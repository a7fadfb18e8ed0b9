"""The one normal form in which notebooks are stored."""

import sys
from pathlib import Path

import nbformat
import pytest

from website import notebooks


def test_what_a_cell_prints_in_parts_is_stored_as_one() -> None:
    """Where the parts are cut is a matter of timing, and a page stored twice is the same file."""

    def store(*printed: tuple[str, str]) -> str:
        """The stored form of a page whose cell has printed these texts to these streams."""
        cell = nbformat.v4.new_code_cell("print(1, 2)", id="one")
        cell.outputs = [
            nbformat.v4.new_output("stream", name=stream, text=text) for stream, text in printed
        ]
        page = nbformat.v4.new_notebook(cells=[cell])
        notebooks.normalise(page)
        return str(nbformat.writes(page))

    whole = store(("stdout", "1 2\n"), ("stderr", "beware"), ("stdout", "3"))
    parts = store(("stdout", "1 "), ("stdout", "2\n"), ("stderr", "beware"), ("stdout", "3"))
    assert parts == whole
    assert whole.count('"stream"') == 3


@pytest.mark.parametrize("name", ["book/mistyped.ipynb", "book/a.md", "../elsewhere.ipynb"])
def test_a_mistyped_path_is_named_before_anything_is_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    (repository / "book").mkdir(parents=True)
    (repository / "book" / "a.md").touch()
    (tmp_path / "elsewhere.ipynb").touch()
    monkeypatch.setattr(notebooks, "ROOT", repository)
    monkeypatch.setattr(notebooks, "execute", pytest.fail)
    monkeypatch.setattr(sys, "argv", ["notebooks.py", str(repository / name)])
    with pytest.raises(SystemExit, match=name):
        notebooks.main()


def test_a_cell_that_is_inserted_changes_no_other() -> None:
    """Nor does one without an id, as an editor of text leaves it, or one that was copied."""
    cells = [nbformat.v4.new_code_cell(text, id=f"cell-{text}") for text in "abc"]
    page = nbformat.v4.new_notebook(cells=cells)
    page.cells.insert(1, nbformat.v4.new_code_cell("new"))
    page.cells.insert(3, nbformat.v4.new_code_cell("copied", id="cell-a"))
    page.cells.insert(4, nbformat.v4.new_code_cell("without"))
    del page.cells[4]["id"]
    notebooks.normalise(page)
    ids = [cell.id for cell in page.cells]
    assert [ids[place] for place in (0, 2, 5)] == ["cell-a", "cell-b", "cell-c"]
    assert len(set(ids)) == len(ids)
    stored = nbformat.writes(page)
    notebooks.normalise(page)
    assert nbformat.writes(page) == stored
