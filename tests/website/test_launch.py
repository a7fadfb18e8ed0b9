"""The ways to open a page elsewhere: on Colab, on Binder, and the buttons that lead there."""

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import launch_buttons
import nbformat
import page_head
import pytest
from bs4 import BeautifulSoup
from jinja2 import Environment, FileSystemLoader
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.errors import ExtensionError

from website import notebooks, repository

ROOT = Path(__file__).resolve().parent.parent.parent
FORK = "https://github.com/some/fork"


# Colab


def colab_cell(address: str) -> str:
    """The cell as a notebook stores it that names this repository."""
    cells = [nbformat.v4.new_markdown_cell(text) for text in ("# A page", "Its text.")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebooks.serve_colab(notebook, address)
    stored = copy.deepcopy(notebook)
    notebooks.serve_colab(notebook, "")  # it keeps what it names where none is known
    assert notebook == stored
    assert len(notebook.cells) == 3
    return str(notebook.cells[1].source)


@pytest.mark.parametrize("texts", [[], ["# A page"], ["# A page", "Its text."]])
def test_a_page_of_any_length_gets_the_cell_once(texts: list[str]) -> None:
    cells = [nbformat.v4.new_markdown_cell(text) for text in texts]
    notebook = nbformat.v4.new_notebook(cells=cells)
    for _ in range(2):
        notebooks.serve_colab(notebook, FORK)
        sources = [cell.source for cell in notebook.cells]
        assert [source for source in sources if FORK not in source] == texts
        assert len(sources) == len(texts) + 1


@pytest.mark.parametrize(
    ("opened", "named"),
    [
        ("https%3A%2F%2Fgithub.com%2Fsome%2Ffork%2Fblob%2Fmain%2Fbook%2F07.ipynb", "/nowhere"),
        ("1ab2cd3", FORK),  # a copy kept in Drive
    ],
)
def test_a_page_opened_alone_on_colab_fetches_its_repository(
    opened: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def shell(command: str) -> str:
        asked.append(command)
        return f'[{{"path": "fileId={opened}"}}]' if command.startswith("curl") else ""

    monkeypatch.setitem(sys.modules, "google.colab", sys)
    monkeypatch.setattr(subprocess, "getoutput", shell)
    (tmp_path / "book" / "book").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    exec(colab_cell(named), {})
    assert asked == [
        "curl -s $COLAB_JUPYTER_IP:$KMP_TARGET_PORT/api/sessions",
        f"test -d book || git clone -q --depth 1 '{FORK}' book",
        "pip install -q './book[book]'",
    ]
    assert Path.cwd() == tmp_path / "book" / "book"


def test_the_cell_for_colab_does_nothing_elsewhere_or_beside_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "getoutput", pytest.fail)
    (tmp_path / "book").mkdir()
    monkeypatch.chdir(tmp_path / "book")
    exec(colab_cell(FORK), {})
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    (tmp_path / "pe_lib").mkdir()
    exec(colab_cell(FORK), {})


# Buttons


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one branch, and nothing in the environment that names another."""
    if not shutil.which("git"):
        pytest.skip("there is no git")
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


@pytest.mark.parametrize(
    ("setting", "remote", "address"),
    [
        ("https://a.example/book/", "", "https://a.example/book/"),
        ("https://a.example", "https://github.com/me/book", "https://a.example/"),
        ("", "git@github.com:Me/Book.git", "https://me.github.io/Book/"),
        ("", "https://github.com/Me/me.github.io", "https://me.github.io/"),
        ("", "https://gitlab.com/me/book", ""),
    ],
)
def test_the_address_of_the_site_needs_no_setting_where_pages_publishes_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, setting: str, remote: str, address: str
) -> None:
    monkeypatch.setenv("BOOK_URL", setting)
    subprocess.run(["git", "-C", str(checkout), "remote", "add", "origin", remote], check=True)
    assert repository.site_address() == address


def test_without_git_there_is_no_button(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert (repository.repository_url(), repository.branch()) == ("", "main")
    site: Any = SimpleNamespace(html_theme_options={})
    launch_buttons.name_repository(site, site)
    assert not any(site.html_theme_options.values())


def test_a_site_leads_to_its_repository_and_names_its_own_address(tmp_path: Path) -> None:
    """A site of one page, built from a fork for a known address."""
    page = "book/rotation.ipynb"
    (tmp_path / "book").mkdir()
    cells = [nbformat.v4.new_markdown_cell("# A chapter\n\nIts only sentence.")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / page)
    settings = {
        "extensions": "myst_nb,launch_buttons,page_head",
        "html_theme": "sphinx_book_theme",
        "nb_execution_mode": "off",
        "root_doc": "book/rotation",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    site = tmp_path / "site"
    fork = {"GITHUB_REPOSITORY": "a/fork", "GITHUB_REF_NAME": "fix/one", "GITHUB_BASE_REF": ""}
    fork["BOOK_URL"] = "https://a.example/fork"
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-C", *options, tmp_path, site],
        env=os.environ | fork | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book' / '_ext'}"},
        check=True,
    )
    built = BeautifulSoup(
        (site / "book" / "rotation.html").read_text(encoding="utf-8"), "html.parser"
    )
    shown = [str(link["href"]) for link in built.select(".article-header-buttons a[href^=http]")]
    assert [link for link in shown if "/issues/" not in link] == [
        f"https://mybinder.org/v2/gh/a/fork/fix/one?urlpath=lab/tree/{page}",
        f"https://colab.research.google.com/github/a/fork/blob/fix/one/{page}",
        "https://github.com/a/fork",
        f"https://github.com/a/fork/edit/fix/one/{page}",
    ]
    address = "https://a.example/fork/book/rotation.html"
    assert [link["href"] for link in built.select("link[rel=canonical]")] == [address]
    assert f"<loc>{address}</loc>" in (site / "sitemap.xml").read_text(encoding="utf-8")


def test_an_old_address_that_leads_nowhere_is_named() -> None:
    context = {"moved": {"book/old": "book/mistyped"}}
    site: Any = SimpleNamespace(
        builder=StandaloneHTMLBuilder.__new__(StandaloneHTMLBuilder),
        config=SimpleNamespace(html_context=context),
        env=SimpleNamespace(titles={"book/index": None}),
    )
    with pytest.raises(ExtensionError, match=r"_config\.yml.*book/old.*book/mistyped.*no page"):
        page_head.write_redirects(site, None)


def test_an_old_address_shows_the_picture_of_the_site_where_its_address_is_known() -> None:
    """The root of the site is one: its address is shared most."""
    templates = Environment(loader=FileSystemLoader(ROOT / "book" / "_ext" / "templates"))
    page = {"docstitle": "A book", "own": "A page", "pageurl": "https://a.example/fork/page.html"}
    for known in ("https://a.example/fork/", ""):
        html = templates.get_template("redirect.html").render(page, html_baseurl=known)
        shown = BeautifulSoup(html, "html.parser")
        picture = [tag["content"] for tag in shown.select("meta[property='og:image']")]
        canonical = [link["href"] for link in shown.select("link[rel=canonical]")]
        assert picture == [f"{known}_static/social.png"] * bool(known)
        assert canonical == [page["pageurl"]] * bool(known)
