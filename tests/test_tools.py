"""What `make` does on a machine or in a folder that is not as it should be."""

import sqlite3
import subprocess
import sys
import venv
from contextlib import closing
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from jupyter_cache import get_cache
from test_repository import ROOT, load


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/install.py, for an environment of its own."""
    module = load("tools/install.py")
    inside = module.PYTHON.relative_to(module.VENV)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / inside)
    return module


@pytest.fixture
def build_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/build_book.py, for a book of one page that is written and not built."""
    module = load("tools/build_book.py")
    build = tmp_path / "_build"
    for name, path in {"BUILD": build, "SITE": build / "html", "CACHE": build / "cache"}.items():
        monkeypatch.setattr(module, name, path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "INDEX", build / "html" / "index.html")
    monkeypatch.setattr(module, "builds", [], raising=False)

    def write_site() -> None:
        module.builds.append("site")
        for name in ("index.html", "page.html"):
            module.SITE.mkdir(parents=True, exist_ok=True)
            (module.SITE / name).write_text(name)

    monkeypatch.setattr(module, "build", write_site)
    monkeypatch.setattr(module, "execute", lambda notebooks: None)
    return module


def test_old_python_is_told_what_to_do(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    with pytest.raises(SystemExit, match=r"3\.11 or newer is needed.*make book PYTHON="):
        install.main()


def test_half_made_environment_is_not_used(install: ModuleType) -> None:
    assert not install.is_usable()
    venv.create(install.VENV, with_pip=False)
    assert not install.is_usable()


def test_whole_environment_is_used(install: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "PYTHON", Path(sys.executable))
    assert install.is_usable()
    monkeypatch.setattr(install.platform, "python_version", lambda: "3.99.0")
    assert not install.is_usable()


def test_interrupted_environment_is_taken_away(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        install.VENV.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(install, "is_usable", lambda: False)
    monkeypatch.setattr(install.subprocess, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        install.make_environment()
    assert not install.VENV.exists()


def test_second_build_does_nothing_until_the_site_loses_a_page(build_book: ModuleType) -> None:
    build_book.main()
    build_book.main()
    assert len(build_book.builds) == 1
    (build_book.SITE / "page.html").unlink()
    build_book.main()
    assert len(build_book.builds) == 2


def test_interrupted_build_is_done_again(
    build_book: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build_book.build

    def interrupted() -> None:
        whole()
        raise KeyboardInterrupt

    monkeypatch.setattr(build_book, "build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_book.main()
    monkeypatch.setattr(build_book, "build", whole)
    build_book.main()
    assert len(build_book.builds) == 2


def test_outputs_of_another_library_are_not_kept(build_book: ModuleType) -> None:
    (build_book.ROOT / "pe_lib").mkdir()
    (build_book.ROOT / "pe_lib" / "numpy.py").write_text("before")
    build_book.main()
    make_cache(build_book)
    build_book.main()
    assert build_book.CACHE.exists()
    (build_book.ROOT / "pe_lib" / "numpy.py").write_text("after")
    build_book.main()
    assert not build_book.CACHE.exists()


def test_notebooks_run_beside_their_data_and_a_failure_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("tools/build_book.py")
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    (tmp_path / "here").touch()
    for name, code in (("good", 'open("here") and 1'), ("bad", 'open("nowhere")')):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    good, bad = tmp_path / "good.ipynb", tmp_path / "bad.ipynb"
    _, executed = module.execute([good]).merge_match_into_notebook(nbformat.read(good, 4))
    assert executed.cells[0].outputs[0].data["text/plain"] == "1"
    with pytest.raises(SystemExit, match=r"Not executed: .*bad\.ipynb"):
        module.execute([good, bad])


def test_stored_outputs_can_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("tools/build_book.py")
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    path = ROOT / "book" / "09_tested_code.ipynb"
    module.take_stored([path])
    stored = nbformat.read(path, 4)
    _, taken = get_cache(str(module.CACHE)).merge_match_into_notebook(nbformat.read(path, 4))
    assert taken.cells == stored.cells


def make_cache(build_book: ModuleType) -> tuple[Path, Path]:
    """A cache of one executed notebook: its list, and the notebook."""
    notebook: Path = build_book.CACHE / "executed" / "key" / "base.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.touch()
    listed: Path = build_book.CACHE / "global.db"
    with closing(sqlite3.connect(listed)) as database:
        database.execute("CREATE TABLE nbcache (hashkey TEXT)")
        database.execute("INSERT INTO nbcache VALUES ('key')")
        database.commit()
    return listed, notebook


@pytest.mark.parametrize("lost", ["half of the list", "the list", "the notebook"])
def test_torn_cache_is_not_kept(build_book: ModuleType, lost: str) -> None:
    build_book.main()
    listed, notebook = make_cache(build_book)
    assert build_book.cache_is_sound()
    if lost == "half of the list":
        listed.write_bytes(listed.read_bytes()[:3000])
    else:
        (listed if lost == "the list" else notebook).unlink()
    (build_book.SITE / "page.html").unlink()
    build_book.main()
    assert not build_book.CACHE.exists()


def test_a_disk_that_refuses_gets_a_sentence(tmp_path: Path) -> None:
    for name in ("tools/build_book.py", "book/_ext/repository.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    script = tmp_path / "tools" / "build_book.py"
    (tmp_path / "_build").write_text("a file where the folder should be")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "The book was not built: its folder must be writable" in done.stderr
    assert "Traceback" not in done.stderr
