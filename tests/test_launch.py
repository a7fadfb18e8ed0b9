"""The ways to open a page elsewhere: on Colab, on Binder, and the buttons that lead there."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from test_repository import load

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").rglob("*.ipynb"))
FORK = "https://github.com/some/fork"
notebooks, repository = load("tools/notebooks.py"), load("book/_ext/repository.py")


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(("git", *author, *arguments), cwd=folder, check=True, capture_output=True)


# Colab


def colab_cell(address: str = "", folder: Path = Path("book")) -> NotebookNode:
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
    firsts = {path: nbformat.read(path, as_version=4).cells[1] for path in NOTEBOOKS}
    (named,) = {notebooks.repository_named_in(cell) for cell in firsts.values()}
    for path, cell in firsts.items():
        expected = colab_cell(named, path.parent.relative_to(ROOT))
        assert cell.source == expected.source, f"run tools/notebooks.py on {path}"
        assert (cell.metadata, cell.outputs) == (expected.metadata, [])


PRETEND_COLAB = 'import sys; sys.modules["google.colab"] = sys\n'
READ = "\nimport pe_lib; print(pe_lib.__file__, open('data/file').read(), Path.cwd().name)"


def run_cell(source: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", source]
    settings = os.environ | environment
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)


def run_on_colab(
    cell: NotebookNode, folder: Path, opened: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the cell where GitHub's repository is one here, Colab's server says what is open, and pip
    copies what it is to install."""
    origin, commands, content = (folder / name for name in ("origin", "commands", "content"))
    if not origin.exists():
        for file, text in (("pe_lib/__init__.py", ""), ("book/data/file", "data")):
            (origin / file).parent.mkdir(parents=True)
            (origin / file).write_text(text)
        for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all")):
            git(origin, *arguments)
        commands.mkdir()
        (content / "installed").mkdir(parents=True)
    for name, asked, done in (
        ("pip", "install -q ./book[book]", "cp -r book/pe_lib installed"),
        ("curl", "-s host:80/api/sessions", f'echo \'[{{"path": "fileId={opened}"}}]\''),
    ):
        (commands / name).write_text(f'#!/bin/sh\ntest "$*" = "{asked}" && {done}\n')
        (commands / name).chmod(0o755)
    return run_cell(
        f"{PRETEND_COLAB}{cell.source}{READ}",
        content,
        PATH=f"{commands}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=str(content / "installed"),
        COLAB_JUPYTER_IP="host",
        KMP_TARGET_PORT="80",
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{origin.as_uri()}.insteadOf",
        GIT_CONFIG_VALUE_0=FORK,
        GIT_TERMINAL_PROMPT="0",
    )


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
    for _ in ("at first", "after a restart of the kernel"):
        done = run_on_colab(colab_cell(named), tmp_path, opened)
        assert done.returncode == 0, done.stdout + done.stderr
        where = tmp_path / "content" / "installed" / "pe_lib" / "__init__.py"
        assert done.stdout.splitlines()[-1].split() == [str(where), "data", "book"]


def test_without_a_repository_the_cell_for_colab_stops(tmp_path: Path) -> None:
    done = run_on_colab(colab_cell(), tmp_path)
    assert "fatal" in done.stdout
    assert "FileNotFoundError" in done.stderr


@pytest.mark.parametrize("preface", ["", PRETEND_COLAB])
def test_the_cell_for_colab_does_nothing_beside_the_library(preface: str, tmp_path: Path) -> None:
    """Neither on another machine nor, run again, on Colab itself."""
    for name in ("pe_lib", "book", "elsewhere"):
        (tmp_path / name).mkdir()
    for name in ("book", *(["elsewhere"] if not preface else [])):
        done = run_cell(f"{preface}{colab_cell(FORK).source}\nprint(dir())", tmp_path / name)
        assert "'sys'" in done.stdout
        assert "repository" not in done.stdout
        assert list((tmp_path / name).iterdir()) == []


# Buttons


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own repository with one commit, and nothing in the environment that names another."""
    for name in ("REPOSITORY", "SERVER_URL", "REF_NAME", "BASE_REF"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
    monkeypatch.delenv("CI_COMMIT_REF_NAME", raising=False)
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    git(tmp_path, "init", "-q", "-b", "trunk")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    return tmp_path


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/me/book", "https://github.com/me/book"),
        ("https://name:password@github.com/me/book.git/", "https://github.com/me/book"),
        ("git@github.com:me/book.git", "https://github.com/me/book"),
        ("ssh://git@ssh.github.com:443/me/book.git", "https://github.com/me/book"),
        ("git@gitlab.com:group/part/book.git", "https://gitlab.com/group/part/book"),
        ("https://gitlab.example.org:8443/me/book", "https://gitlab.example.org:8443/me/book"),
        ("https://notgithub.com/me/book", ""),
        ("https://example.org/me/github", ""),
        ("file:///srv/github.com/book", ""),
        ("../github.com/book", ""),
        ("", ""),
    ],
)
def test_a_remote_has_a_web_address(remote: str, address: str) -> None:
    assert repository.web_address(remote) == address


def test_the_repository_is_that_of_the_environment_or_of_the_remote(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repository.repository_url() == ""
    git(checkout, "remote", "add", "origin", "git@github.com:me/book.git")
    assert repository.repository_url() == "https://github.com/me/book"
    monkeypatch.setenv("GITHUB_REPOSITORY", "a/fork")
    assert repository.repository_url() == "https://github.com/a/fork"
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example.org")
    assert repository.repository_url() == "https://github.example.org/a/fork"


def test_without_git_there_is_no_repository(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert (repository.repository_url(), repository.branch()) == ("", "main")
    config = SimpleNamespace(html_theme_options={})
    repository.name_repository(None, config)
    assert not any(config.html_theme_options.values())


def test_the_branch_is_the_one_that_a_reader_can_open(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repository.branch() == "trunk"
    git(checkout, "checkout", "-q", "--detach")
    assert repository.branch() == "main"
    git(checkout, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/stable")
    assert repository.branch() == "stable"
    git(checkout, "tag", "v1.0")
    assert repository.branch() == "v1.0"
    monkeypatch.setenv("GITHUB_REF_NAME", "12/merge")
    monkeypatch.setenv("GITHUB_BASE_REF", "develop")
    assert repository.branch() == "develop"


BINDER, COLAB = "https://mybinder.org/v2", "https://colab.research.google.com/github"
PAGE = "book/03_rotation.ipynb"


def test_a_project_of_gitlab_has_its_own_names() -> None:
    """Binder reads its groups as one name, and Colab takes GitHub's notebooks alone."""
    url = "https://gitlab.com/github-readers/part/book"
    assert repository.launch_links(url, "trunk", PAGE) == {
        "Binder": f"{BINDER}/gl/github-readers%2Fpart%2Fbook/trunk?urlpath=lab/tree/{PAGE}"
    }
    assert repository.provider_of(url) == "gitlab"


def test_the_buttons_of_a_page_lead_to_it_in_its_repository(tmp_path: Path) -> None:
    """In a book of the same settings with one chapter of one sentence, built from a fork."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())
    settings["execute"] = {"execute_notebooks": "off"}
    sphinx, needed = settings["sphinx"], ("repository", "page_head", "mend_pages", "formulas")
    for name in set(sphinx["local_extensions"]).difference(needed):
        del sphinx["local_extensions"][name]
        sphinx["config"]["extensions"].remove(name)
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(settings))
    contents = {"root": "book/index", "chapters": [{"file": "book/03_rotation"}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump({"format": "jb-book", **contents}))
    for name in ("_ext", "_assets"):
        copytree(ROOT / "book" / name, tmp_path / "book" / name)
    (tmp_path / "book" / "references.bib").touch()
    (tmp_path / "book" / "index.md").write_text("# The book\n\nIts first page.\n")
    cells = [nbformat.v4.new_markdown_cell("# A chapter\n\nIts only sentence.")]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / PAGE)
    fork = {"GITHUB_REPOSITORY": "a/fork", "GITHUB_REF_NAME": "fix/one", "GITHUB_BASE_REF": ""}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "jupyter-book"), "build", str(tmp_path)],
        env=os.environ | fork,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    chapter, index = (
        BeautifulSoup((tmp_path / f"_build/html/book/{name}.html").read_text(), "html.parser")
        for name in ("03_rotation", "index")
    )
    shown = [str(link["href"]) for link in chapter.select(".article-header-buttons a[href^=http]")]
    assert [link for link in shown if "/issues/" not in link] == [
        f"{BINDER}/gh/a/fork/fix/one?urlpath=lab/tree/{PAGE}",
        f"{COLAB}/a/fork/blob/fix/one/{PAGE}",
        "https://github.com/a/fork",
        f"https://github.com/a/fork/edit/fix/one/{PAGE}",
    ]
    assert not index.select(".dropdown-launch-buttons"), "this page has nothing to run"
