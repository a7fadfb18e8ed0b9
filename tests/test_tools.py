"""What `make` does on a machine or in a folder that is not as it should be."""

import sys
from pathlib import Path

import build_book
import install
import nbformat
import pytest


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the repository, and what is built in it."""
    build = tmp_path / "_build"
    places = {"ROOT": tmp_path, "BUILD": build, "SITE": build / "html", "CACHE": build / "cache"}
    for name, place in places.items():
        monkeypatch.setattr(build_book, name, place)
    for name in ("book", "pe_lib"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_old_python_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "VENV", None)  # nothing is installed where it goes on
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    with pytest.raises(SystemExit, match=r"3\.11 or newer is needed.*make book PYTHON="):
        install.main()


def test_a_site_is_built_once_until_something_changes(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build() -> None:
        build_book.SITE.mkdir(parents=True, exist_ok=True)
        (build_book.SITE / "index.html").touch()
        built.append("site")
        if (repository / "book" / "wrong.md").exists():
            sys.exit("a warning")

    monkeypatch.setattr(build_book, "build", build)
    monkeypatch.setattr(build_book, "execute", lambda notebooks: None)
    files = ["book/a.md", "book/_assets/book.css", "pe_lib/numpy.py", "_toc.yml"]
    for count, name in enumerate([*files, "a fork"], start=1):
        if name in files:
            (repository / name).parent.mkdir(exist_ok=True)
            (repository / name).touch()
        else:
            monkeypatch.setenv("GITHUB_REPOSITORY", name)
        build_book.main()
        build_book.main()
        assert len(built) == count, name
    (repository / "book" / "wrong.md").touch()
    with pytest.raises(SystemExit):
        build_book.main()
    (repository / "book" / "wrong.md").unlink()
    build_book.main()
    assert len(built) == count + 2


def write_page(folder: Path, name: str, code: str) -> Path:
    cell = nbformat.v4.new_code_cell(code)
    path = folder / name
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def test_a_page_is_run_beside_its_data_and_again_when_the_library_changes(
    repository: Path,
) -> None:
    page = write_page(repository / "book", "page.ipynb", 'open("runs", "a").write("x")')
    for runs in ("x", "xx"):
        for _ in range(2):
            build_book.execute([page])
            assert (repository / "book" / "runs").read_text() == runs
        (repository / "pe_lib" / "numpy.py").touch()


def test_a_failure_is_named(repository: Path) -> None:
    page = write_page(repository / "book", "page.ipynb", "1 / 0")
    with pytest.raises(SystemExit, match=r"Not executed: book/page\.ipynb\."):
        build_book.execute([page])
