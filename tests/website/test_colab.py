"""The pages for Colab: opened alone, they bring what they import and what they read."""

import json
import shutil
import subprocess
from pathlib import Path

import nbclient
import nbformat
import pytest

from website import colab

PAGE = """\
from pathlib import Path
import only_there
print(only_there.NAME, Path("data/there").read_text(encoding="utf-8"))"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on a branch `trunk`, with a module, a page that imports it, and its data."""
    if not shutil.which("git"):
        pytest.skip("there is no git")
    root = tmp_path / "repository"
    (root / "book" / "checks").mkdir(parents=True)
    (root / "book" / "data").mkdir()
    (root / "only_there.py").write_text('NAME = "the library"', encoding="utf-8")
    (root / "book" / "data" / "there").write_text("and its data", encoding="utf-8")
    cells = [nbformat.v4.new_markdown_cell("# A page"), nbformat.v4.new_code_cell(PAGE)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "book" / "page.ipynb")
    nbformat.write(nbformat.v4.new_notebook(), root / "book" / "checks" / "page.ipynb")
    for command in (
        ("init", "-q", "-b", "trunk"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "All"),
    ):
        subprocess.run(["git", "-C", root, *command], check=True)
    monkeypatch.setattr(colab, "ROOT", root)
    return root


def test_a_page_opened_alone_fetches_what_it_imports_and_reads(
    repository: Path, tmp_path: Path
) -> None:
    opened, alone = tmp_path / "opened", tmp_path / "alone"
    alone.mkdir()
    colab.write(opened, repository.as_uri(), "trunk")
    notebook = nbformat.read(opened / "book" / "page.ipynb", as_version=4)
    nbclient.execute(notebook, cwd=str(alone), timeout=120)
    # A kernel may send what one `print` writes in several messages.
    printed = "".join(output.text for output in notebook.cells[-1].outputs)
    assert printed == "the library and its data\n"


def test_a_page_of_checks_is_one_folder_further_down(repository: Path, tmp_path: Path) -> None:
    colab.write(tmp_path, "https://a.example/me/book", "trunk")
    page = json.loads((tmp_path / "book" / "checks" / "page.ipynb").read_text(encoding="utf-8"))
    assert "%cd -q positional-encoding/book/checks" in page["cells"][0]["source"]
    assert 'append("../..")' in page["cells"][0]["source"]


def test_without_a_repository_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colab, "repository_url", lambda: "")
    monkeypatch.setattr("sys.argv", ["colab.py", str(tmp_path / "pages")])
    with pytest.raises(SystemExit, match="GitHub"):
        colab.main()
    assert not (tmp_path / "pages").exists()
