"""The ways to open a page elsewhere: on Colab, on Binder, and the buttons that lead there."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from shutil import copy, copytree

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from test_repository import load

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
OF_EVERY_PAGE = {
    "repository",
    "page_head",
    "mend_pages",
    "formulas",
}  # the local extensions that a stub needs
notebooks, repository = load("tools/notebooks.py"), load("book/_ext/repository.py")


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(("git", *author, *arguments), cwd=folder, check=True, capture_output=True)


# Colab


def colab_cell(repository: str = "") -> NotebookNode:
    """The cell as a notebook stores it that names this repository."""
    cells = [nbformat.v4.new_markdown_cell("# A page"), nbformat.v4.new_code_cell("1 + 1")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebooks.serve_colab(notebook, repository)
    stored: NotebookNode = notebook.cells[1]
    return stored


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_has_the_cell_for_colab(path: Path) -> None:
    """For whichever repository it names: that alone may differ, in a fork."""
    first = next(c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    expected = colab_cell(notebooks.repository_named_in(first))
    assert first.source == expected.source, "run tools/notebooks.py on it"
    assert first.metadata == expected.metadata
    assert first.outputs == []


def test_all_notebooks_name_the_same_repository() -> None:
    firsts = [nbformat.read(path, as_version=4).cells[1] for path in NOTEBOOKS]
    assert len({notebooks.repository_named_in(cell) for cell in firsts}) == 1


def test_a_repository_is_named_anew_and_kept_where_none_is_known() -> None:
    cells = [nbformat.v4.new_markdown_cell(text) for text in ("# A page", "Its text.")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    for address, named in (
        ("", ""),
        ("https://github.com/me/book", "https://github.com/me/book"),
        ("", "https://github.com/me/book"),
        ("https://gitlab.com/you/book", "https://gitlab.com/you/book"),
    ):
        notebooks.serve_colab(notebook, address)
        assert len(notebook.cells) == 3
        assert notebooks.repository_named_in(notebook.cells[1]) == named


@pytest.fixture
def colab_server() -> Iterator[HTTPServer]:
    """A server that lists what is open, as Colab's own does."""

    class Sessions(BaseHTTPRequestHandler):
        opened = ""

        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/api/sessions" else 404)
            self.end_headers()
            self.wfile.write(json.dumps([{"path": f"fileId={self.opened}"}]).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Sessions) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def make_repository(folder: Path) -> None:
    """A git repository with the library and the data of this one."""
    for name in ("pe_lib", "book/data", "benchmarks/results"):
        copytree(ROOT / name, folder / name)
    for file in (*ROOT.glob("*.md"), *ROOT.glob("*.in"), ROOT / "LICENSE", ROOT / "pyproject.toml"):
        copy(file, folder)
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all")):
        git(folder, *arguments)


PRETEND_COLAB = """\
import sys, types
called = []
output = types.SimpleNamespace(enable_custom_widget_manager=lambda: called.append(True))
sys.modules["google.colab"] = types.SimpleNamespace(output=output)
"""


def run_on_colab(
    cell: NotebookNode, folder: Path, server: HTTPServer, origin: Path, then: str
) -> subprocess.CompletedProcess[str]:
    """Run the cell in a folder of its own, with GitHub's repositories replaced by one here."""
    installed, commands = folder / "installed", folder / "commands"
    for needed in (installed, commands, folder / "content"):
        needed.mkdir(exist_ok=True)
    pip = f'#!/bin/sh\nshift\nexec "{sys.executable}" -m pip install --no-build-isolation --no-deps'
    (commands / "pip").write_text(f'{pip} --upgrade --target "{installed}" "$@"\n')
    (commands / "pip").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(installed),
        "COLAB_JUPYTER_IP": "127.0.0.1",
        "KMP_TARGET_PORT": str(server.server_port),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{origin.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/some/fork",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return subprocess.run(
        [sys.executable, "-c", f"{PRETEND_COLAB}\n{cell.source}\n{then}"],
        cwd=folder / "content",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


READ = """
import pe_lib
from pathlib import Path
assert Path("data/minilm/extract.npz").exists() and Path("../benchmarks/results/cpu.json").exists()
print(called, pe_lib.__file__)
"""


@pytest.mark.parametrize(
    ("opened", "named"),
    [
        ("https%3A%2F%2Fgithub.com%2Fsome%2Ffork%2Fblob%2Fmain%2Fbook%2F07.ipynb", ""),
        ("https%3A%2F%2Fgithub.com%2Fsome%2Ffork%2Fblob%2Fmain%2Fbook%2F07.ipynb", "/nowhere"),
        ("1ab2cd3", "https://github.com/some/fork"),  # a copy kept in Drive
    ],
)
def test_a_page_opened_alone_on_colab_gets_the_library_and_the_data(
    opened: str, named: str, tmp_path: Path, colab_server: HTTPServer
) -> None:
    make_repository(tmp_path / "origin")
    colab_server.RequestHandlerClass.opened = opened  # type: ignore[attr-defined]
    arguments = (colab_cell(named), tmp_path, colab_server, tmp_path / "origin", READ)
    for _ in ("at first", "after a restart of the kernel"):
        done = run_on_colab(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        called, where = done.stdout.splitlines()[-1].split(maxsplit=1)
        assert called == "[True]"
        assert Path(where).is_relative_to(tmp_path / "installed")


def test_without_a_repository_the_cell_for_colab_stops(
    tmp_path: Path, colab_server: HTTPServer
) -> None:
    done = run_on_colab(colab_cell(), tmp_path, colab_server, tmp_path, "")
    assert done.returncode
    assert "fatal" in done.stdout
    assert "FileNotFoundError" in done.stderr


@pytest.mark.parametrize("preface", ["", PRETEND_COLAB])
def test_the_cell_for_colab_does_nothing_beside_the_library(preface: str, tmp_path: Path) -> None:
    """Neither on another machine nor, run again, on Colab itself."""
    (tmp_path / "pe_lib").mkdir()
    (tmp_path / "book").mkdir()
    source = f"{preface}\n{colab_cell('https://github.com/some/fork').source}\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{source}print(dir())"],
        cwd=tmp_path / "book",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "'sys'" in done.stdout
    assert "repository" not in done.stdout
    assert list((tmp_path / "book").iterdir()) == []


def test_the_cell_for_colab_does_nothing_elsewhere(tmp_path: Path) -> None:
    source = colab_cell("https://github.com/some/fork").source
    subprocess.run([sys.executable, "-c", source], cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []


# Buttons


SETTINGS_OF_REPOSITORY = (
    "GITHUB_REPOSITORY",
    "GITHUB_SERVER_URL",
    "GITHUB_REF_NAME",
    "GITHUB_BASE_REF",
    "CI_COMMIT_REF_NAME",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own repository with one commit, and nothing in the environment that names another."""
    for name in SETTINGS_OF_REPOSITORY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    git(tmp_path, "init", "-q", "-b", "trunk")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    return tmp_path


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/me/book", "https://github.com/me/book"),
        ("https://github.com/me/book.git", "https://github.com/me/book"),
        ("https://name:password@github.com/me/book.git/", "https://github.com/me/book"),
        ("git@github.com:me/book.git", "https://github.com/me/book"),
        ("ssh://git@github.com:22/me/book.git", "https://github.com/me/book"),
        ("ssh://git@ssh.github.com:443/me/book.git", "https://github.com/me/book"),
        ("git@gitlab.com:group/part/book.git", "https://gitlab.com/group/part/book"),
        ("https://gitlab.example.org:8443/me/book", "https://gitlab.example.org:8443/me/book"),
        ("https://example.org/me/github", ""),
        ("https://notgithub.com/me/book", ""),
        ("/srv/git/github/book.git", ""),
        ("../github.com/book", ""),
        ("file:///srv/github.com/book", ""),
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
    assert repository.repository_url() == ""
    assert repository.branch() == "main"


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
    monkeypatch.delenv("GITHUB_BASE_REF")
    monkeypatch.setenv("GITHUB_REF_NAME", "release/2")
    assert repository.branch() == "release/2"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of the same settings with one chapter of one sentence."""
    folder = tmp_path_factory.mktemp("stub")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())
    settings["execute"] = {"execute_notebooks": "off"}
    for name in set(settings["sphinx"]["local_extensions"]) - OF_EVERY_PAGE:
        del settings["sphinx"]["local_extensions"][name]
        settings["sphinx"]["config"]["extensions"].remove(name)
    (folder / "_config.yml").write_text(yaml.safe_dump(settings))
    contents = {"root": "book/index", "chapters": [{"file": "book/03_rotation"}]}
    (folder / "_toc.yml").write_text(yaml.safe_dump({"format": "jb-book", **contents}))
    for name in ("_ext", "_assets"):
        copytree(ROOT / "book" / name, folder / "book" / name)
    (folder / "book" / "references.bib").touch()
    (folder / "book" / "index.md").write_text("# The book\n\nIts first page.\n")
    cells = [nbformat.v4.new_markdown_cell("# A chapter\n\nIts only sentence.")]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    chapter = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(chapter, folder / "book" / "03_rotation.ipynb")
    git(folder, "init", "-q", "-b", "trunk")
    return folder


BINDER_OPENS = "?urlpath=lab/tree/book/03_rotation.ipynb"
GITHUB_LINKS = [
    f"https://mybinder.org/v2/gh/me/book/trunk{BINDER_OPENS}",
    "https://colab.research.google.com/github/me/book/blob/trunk/book/03_rotation.ipynb",
    "https://github.com/me/book",
    "https://github.com/me/book/edit/trunk/book/03_rotation.ipynb",
]


@pytest.mark.parametrize(
    ("remote", "environment", "links"),
    [
        ("", {}, []),
        ("https://github.com/me/book.git", {}, GITHUB_LINKS),
        ("git@github.com:me/book.git", {}, GITHUB_LINKS),
        (
            "git@github.com:me/book.git",
            {"GITHUB_REPOSITORY": "a/fork", "GITHUB_REF_NAME": "fix/one"},
            [
                f"https://mybinder.org/v2/gh/a/fork/fix/one{BINDER_OPENS}",
                "https://colab.research.google.com/github/a/fork/blob/fix/one/book/03_rotation.ipynb",
                "https://github.com/a/fork",
                "https://github.com/a/fork/edit/fix/one/book/03_rotation.ipynb",
            ],
        ),
        (
            "git@gitlab.com:github-readers/part/book.git",
            {},
            [
                f"https://mybinder.org/v2/gl/github-readers%2Fpart%2Fbook/trunk{BINDER_OPENS}",
                "https://gitlab.com/github-readers/part/book",
                "https://gitlab.com/github-readers/part/book/-/edit/trunk/book/03_rotation.ipynb",
            ],
        ),
    ],
)
def test_the_buttons_of_a_page_lead_to_it_in_its_repository(
    remote: str, environment: dict[str, str], links: list[str], stub: Path
) -> None:
    named = {key: value for key, value in os.environ.items() if key not in SETTINGS_OF_REPOSITORY}
    if remote:
        git(stub, "config", "remote.origin.url", remote)
    build = [str(Path(sys.executable).parent / "jupyter-book"), "build", "--all", str(stub)]
    done = subprocess.run(build, env=named | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    pages = stub / "_build" / "html" / "book"
    chapter, index = (
        BeautifulSoup((pages / f"{name}.html").read_text(), "html.parser")
        for name in ("03_rotation", "index")
    )
    shown = [str(link["href"]) for link in chapter.select(".article-header-buttons a[href^=http]")]
    assert [link for link in shown if "/issues/" not in link] == links
    launch = [link for link in shown if re.search("mybinder|colab", link)]
    assert len(chapter.select(".dropdown-launch-buttons")) == bool(launch)
    assert not index.select(".dropdown-launch-buttons"), "this page has nothing to run"
