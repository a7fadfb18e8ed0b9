"""What nbval has run is not run again by the build, if it is as it was."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_cache import get_cache
from jupyter_cache.base import JupyterCacheAbstract
from nbformat.v4 import new_code_cell, new_notebook, new_output

from website import build as builder

CHECK = """
import sys
from pathlib import Path
import pytest
from website import build
build.ROOT, build.BUILD = Path(sys.argv[1]), Path(sys.argv[1]) / "_build"
options = ["-q", "-c", "/dev/null", "-p", "no:cacheprovider", "-p", "website.received"]
pytest.main([*options, "--rootdir", sys.argv[1], "--nbval", "--nbval-current-env", sys.argv[1]])
"""
LIVE = ["import ipywidgets\nslider = ipywidgets.IntSlider(3)", "slider.value = 4\nslider"]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three notebooks that nbval has run: one is right, one has changed its mind, one is live."""
    folder = tmp_path_factory.mktemp("checked")
    (folder / "book").mkdir()
    (folder / "requirements.txt").write_text("numpy\n")
    write(folder, "right", ["x = 2", "x * 3"], [[], result("6")])
    write(folder, "wrong", ["y = 2", "y * 3"], [[], result("7")])
    write(folder, "live", LIVE, [[], result("IntSlider(value=4)")])
    told = subprocess.run([sys.executable, "-c", CHECK, str(folder)], capture_output=True)
    assert b"5 passed" in told.stdout, told.stdout
    return folder


@pytest.fixture
def repository(checked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in the place of the repository."""
    copy = tmp_path / "copy"
    shutil.copytree(checked, copy)
    monkeypatch.setattr(builder, "ROOT", copy)
    monkeypatch.setattr(builder, "BUILD", copy / "_build")
    monkeypatch.setattr(builder, "CACHE", copy / "_build" / "cache")
    return copy


def result(text: str) -> list[nbformat.NotebookNode]:
    return [new_output("execute_result", {"text/plain": text}, execution_count=2)]


def write(
    where: Path, name: str, cells: list[str], outputs: list[list[nbformat.NotebookNode]]
) -> None:
    code = [
        new_code_cell(source, outputs=found, execution_count=number)
        for number, (source, found) in enumerate(zip(cells, outputs, strict=True), 1)
    ]
    nbformat.write(new_notebook(cells=code), where / "book" / f"{name}.ipynb")


def left_to_run(monkeypatch: pytest.MonkeyPatch, *, afresh: bool = False) -> set[str]:
    """The notebooks that the build would run."""
    asked: set[str] = set()

    def note(paths: list[Path], _: JupyterCacheAbstract) -> list[Path]:
        asked.update(path.stem for path in paths)
        return []

    monkeypatch.setattr(builder, "run_notebooks", note)
    builder.execute(builder.notebooks_of_the_book(), afresh=afresh)
    return asked


def test_what_has_passed_is_taken_with_its_outputs(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repository / "book" / "right.ipynb"
    before = nbformat.read(path, as_version=4)
    before.cells[1].outputs = []  # what is kept is what ran, and not what is stored
    nbformat.write(before, path)
    assert left_to_run(monkeypatch) == {"wrong"}
    cache = get_cache(str(builder.CACHE))
    _, found = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
    assert [each["data"] for each in found.cells[1].outputs] == [{"text/plain": "6"}]
    assert "seconds" not in found.metadata


def test_a_widget_is_taken_with_its_last_state(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the build itself would note it."""
    left_to_run(monkeypatch)
    path = repository / "book" / "live.ipynb"
    _, found = get_cache(str(builder.CACHE)).merge_match_into_notebook(
        nbformat.read(path, as_version=4)
    )
    ran, _ = builder.run_notebook(path)
    for notebook in (found, ran):
        (_, shown), (state,) = notebook.cells, notebook.metadata.widgets.values()
        (output,) = shown.outputs
        model = state["state"][
            output["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
        ]
        assert (model["model_name"], model["state"]["value"]) == ("IntSliderModel", 4)


def test_what_has_changed_since_runs(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repository, "right", ["x = 3", "x * 3"], [[], result("6")])
    assert left_to_run(monkeypatch) == {"right", "wrong"}


def test_with_other_packages_all_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "requirements.txt").write_text("numpy==2\n")
    assert left_to_run(monkeypatch) == {"right", "wrong", "live"}


def test_afresh_is_afresh(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_to_run(monkeypatch, afresh=True) == {"right", "wrong", "live"}
