"""What `make` does on a machine or in a folder that is not as it should be."""

import platform
import sys
import venv
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


def test_only_a_whole_environment_of_this_python_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = install.PYTHON.relative_to(install.VENV)
    monkeypatch.setattr(install, "PYTHON", tmp_path / inside)
    assert not install.is_usable()
    venv.create(tmp_path, with_pip=False)
    assert not install.is_usable(), "half made"
    monkeypatch.setattr(install, "PYTHON", Path(sys.executable))
    assert install.is_usable()
    monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "99", "0"))
    assert not install.is_usable()


def test_a_site_is_built_once_until_something_changes(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build() -> None:
        build_book.SITE.mkdir(parents=True, exist_ok=True)
        (build_book.SITE / "index.html").touch()
        built.append("site")
        if (repository / "book" / "slow.md").exists():
            raise KeyboardInterrupt

    monkeypatch.delenv("GITHUB_BASE_REF", raising=False)
    monkeypatch.setattr(build_book, "build", build)
    monkeypatch.setattr(build_book, "execute", lambda notebooks: None)
    files = ["book/a.md", "book/_assets/book.css", "pe_lib/numpy.py", "_config.yml", "_toc.yml"]
    variables = ["GITHUB_REPOSITORY", "GITHUB_REF_NAME", "BOOK_URL"]
    for count, name in enumerate([*files, "requirements.txt", *variables], start=1):
        if name in variables:
            monkeypatch.setenv(name, "some/other")
        else:
            (repository / name).parent.mkdir(exist_ok=True)
            (repository / name).touch()
        build_book.main()
        build_book.main()
        assert len(built) == count, name
    (repository / "book" / "slow.md").touch()
    with pytest.raises(KeyboardInterrupt):
        build_book.main()
    (repository / "book" / "slow.md").unlink()
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
    book, library = repository / "book", repository / "pe_lib"
    # As long as pages run there is no stamp: a build that crashes may have torn the cache.
    code = """from pathlib import Path
if not Path("../_build/execution-inputs").exists():
    open("runs", "a").write("x")"""
    path = write_page(book, "page.ipynb", code)
    for runs in ("x", "xx", "xxx"):
        for _ in range(2):
            build_book.execute([path])
            assert (book / "runs").read_text() == runs
        if runs == "x":
            (library / "numpy.py").touch()
        else:
            (build_book.BUILD / "execution-inputs").unlink()


def test_what_is_stored_can_be_taken_and_a_failure_is_named(repository: Path) -> None:
    book = repository / "book"
    taken = write_page(book, "taken.ipynb", 'open("nowhere")')
    bad = write_page(book, "bad.ipynb", "1 / 0")
    build_book.take_stored([taken])
    build_book.execute([taken])
    with pytest.raises(SystemExit, match=r"Not executed: .*bad\.ipynb"):
        build_book.execute([taken, bad])
