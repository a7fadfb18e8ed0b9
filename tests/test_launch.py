"""The ways to open a page elsewhere: on Colab, on Binder, and the buttons that lead there."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import notebooks
import pytest
import repository
from bs4 import BeautifulSoup
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
FORK = "https://github.com/some/fork"


# Colab


def colab_cell(address: str, folder: Path = Path("book")) -> NotebookNode:
    """The cell as a notebook stores it that names this repository."""
    cells = [nbformat.v4.new_markdown_cell(text) for text in ("# A page", "Its text.")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebooks.serve_colab(notebook, address, folder)
    notebooks.serve_colab(notebook, "", folder)  # it keeps what it names where none is known
    assert len(notebook.cells) == 3
    stored: NotebookNode = notebook.cells[1]
    return stored


def test_every_notebook_has_the_cell_for_colab() -> None:
    """For whichever repository they name, all the same: that alone may differ, in a fork."""
    paths = sorted((ROOT / "book").rglob("*.ipynb"))
    firsts = {path: nbformat.read(path, as_version=4).cells[1] for path in paths}
    (named,) = {notebooks.repository_named_in(cell) for cell in firsts.values()}
    for path, cell in firsts.items():
        expected = colab_cell(named, path.parent.relative_to(ROOT))
        assert cell.source == expected.source, f"run tools/notebooks.py on {path}"
        assert (cell.metadata, cell.outputs) == (expected.metadata, [])


PRETEND_COLAB = 'import sys; sys.modules["google.colab"] = sys\n'
READ = "\nimport pe_lib; print(pe_lib.__file__, open('data/file').read(), Path.cwd().name)"
# What the cell asks of three programs, and what they do here: git brings a repository, pip copies
# what it is to install, and Colab's server says what is open.
PROGRAMS = {
    "git": (
        f"clone -q --depth 1 {FORK} book",
        "mkdir -p book/pe_lib book/book/data && touch book/pe_lib/__init__.py"
        " && printf data > book/book/data/file",
    ),
    "pip": ("install -q ./book[book]", "cp -r book/pe_lib installed"),
    "curl": ("-s host:80/api/sessions", 'echo \'[{"path": "fileId=OPENED"}]\''),
}


def run_cell(source: str, folder: Path, **environment: str) -> str:
    """What a cell prints."""
    command = [sys.executable, "-c", source]
    settings = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("opened", "named"),
    [
        ("https%3A%2F%2Fgithub.com%2Fsome%2Ffork%2Fblob%2Fmain%2Fbook%2F07.ipynb", "/nowhere"),
        ("1ab2cd3", FORK),  # a copy kept in Drive
    ],
)
def test_a_page_opened_alone_on_colab_gets_the_library_and_the_data(
    opened: str, named: str, tmp_path: Path
) -> None:
    content = tmp_path / "content"
    (content / "installed").mkdir(parents=True)
    for name, (asked, done) in PROGRAMS.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ntest "$*" = "{asked}" && {done.replace("OPENED", opened)}')
        program.chmod(0o755)
    for _ in ("at first", "after a restart of the kernel"):
        printed = run_cell(
            f"{PRETEND_COLAB}{colab_cell(named).source}{READ}",
            content,
            PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            PYTHONPATH=str(content / "installed"),
            COLAB_JUPYTER_IP="host",
            KMP_TARGET_PORT="80",
        )
        where = content / "installed" / "pe_lib" / "__init__.py"
        assert printed.splitlines()[-1].split() == [str(where), "data", "book"]


@pytest.mark.parametrize(
    ("preface", "folder"), [("", "book"), ("", "elsewhere"), (PRETEND_COLAB, "book")]
)
def test_the_cell_for_colab_does_nothing_beside_the_library(
    preface: str, folder: str, tmp_path: Path
) -> None:
    """Neither on another machine nor, run again, on Colab itself."""
    for name in ("pe_lib", "book", "elsewhere"):
        (tmp_path / name).mkdir()
    printed = run_cell(f"{preface}{colab_cell(FORK).source}\nprint(dir())", tmp_path / folder)
    assert "'sys'" in printed
    assert "repository" not in printed
    assert list((tmp_path / folder).iterdir()) == []


# Buttons


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one branch, and nothing in the environment that names another."""
    for name in ("REPOSITORY", "SERVER_URL", "REF_NAME", "BASE_REF"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/me/book", "https://github.com/me/book"),
        ("https://name:password@github.com/me/book.git/", "https://github.com/me/book"),
        ("git@github.com:me/book.git", "https://github.com/me/book"),
        ("https://notgithub.com/me/book", ""),
        ("../github.com/me/book", ""),
    ],
)
def test_the_repository_is_that_of_the_remote(checkout: Path, remote: str, address: str) -> None:
    assert repository.repository_url() == ""
    subprocess.run(["git", "-C", str(checkout), "remote", "add", "origin", remote], check=True)
    assert (repository.repository_url(), repository.branch()) == (address, "trunk")


@pytest.mark.usefixtures("checkout")
def test_in_a_workflow_the_repository_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "a/fork")
    monkeypatch.setenv("GITHUB_REF_NAME", "12/merge")
    assert repository.repository_url() == "https://github.com/a/fork"
    assert repository.branch() == "12/merge"
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example.org")
    monkeypatch.setenv("GITHUB_BASE_REF", "develop")
    assert repository.repository_url() == "https://github.example.org/a/fork"
    assert repository.branch() == "develop"


def test_without_git_there_is_no_button(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert (repository.repository_url(), repository.branch()) == ("", "main")
    site: Any = SimpleNamespace(html_theme_options={})
    repository.name_repository(site, site)
    assert not any(site.html_theme_options.values())


def test_the_buttons_of_a_page_lead_to_it_in_its_repository(tmp_path: Path) -> None:
    """In a site of one page, built from a fork."""
    page = "book/03_rotation.ipynb"
    (tmp_path / "book").mkdir()
    cells = [nbformat.v4.new_markdown_cell("# A chapter\n\nIts only sentence.")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / page)
    settings = {
        "extensions": "myst_nb,repository",
        "html_theme": "sphinx_book_theme",
        "nb_execution_mode": "off",
        "root_doc": "book/03_rotation",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    site = tmp_path / "site"
    fork = {"GITHUB_REPOSITORY": "a/fork", "GITHUB_REF_NAME": "fix/one", "GITHUB_BASE_REF": ""}
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-C", *options, tmp_path, site],
        env=os.environ | fork | {"PYTHONPATH": str(ROOT / "book" / "_ext")},
        check=True,
    )
    built = BeautifulSoup((site / "book" / "03_rotation.html").read_text(), "html.parser")
    shown = [str(link["href"]) for link in built.select(".article-header-buttons a[href^=http]")]
    assert [link for link in shown if "/issues/" not in link] == [
        f"https://mybinder.org/v2/gh/a/fork/fix/one?urlpath=lab/tree/{page}",
        f"https://colab.research.google.com/github/a/fork/blob/fix/one/{page}",
        "https://github.com/a/fork",
        f"https://github.com/a/fork/edit/fix/one/{page}",
    ]
