"""The repository and the site of this checkout, and the buttons that lead there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup

from website import repository
from website.extensions import launch_buttons

ROOT = Path(__file__).resolve().parent.parent.parent
# An extension of Sphinx that runs one of the finishing steps.
SITEMAP_ALONE = """
from pathlib import Path
from website.finish import sitemap
from website.finish.site import Site

def setup(app):
    write = lambda app, exception: sitemap.write(Site(app, Path(app.outdir), {}))
    app.connect("build-finished", write)
"""


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
        "extensions": "myst_nb,website.extensions.launch_buttons,website.extensions.page_head,"
        "sitemap_alone",
        "html_theme": "sphinx_book_theme",
        "templates_path": str(ROOT / "website" / "templates"),
        "nb_execution_mode": "off",
        "root_doc": "book/rotation",
    }
    (tmp_path / "sitemap_alone.py").write_text(SITEMAP_ALONE, encoding="utf-8")
    options = [f"-D{name}={value}" for name, value in settings.items()]
    site = tmp_path / "site"
    fork = {"GITHUB_REPOSITORY": "a/fork", "GITHUB_REF_NAME": "fix/one", "GITHUB_BASE_REF": ""}
    fork["BOOK_URL"] = "https://a.example/fork"
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-C", *options, tmp_path, site],
        env=os.environ | fork | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        check=True,
    )
    built = BeautifulSoup(
        (site / "book" / "rotation.html").read_text(encoding="utf-8"), "html.parser"
    )
    shown = [str(link["href"]) for link in built.select(".article-header-buttons a[href^=http]")]
    assert [link for link in shown if "/issues/" not in link] == [
        f"https://mybinder.org/v2/gh/a/fork/fix/one?urlpath=lab/tree/{page}",
        f"https://colab.research.google.com/github/a/fork/blob/colab/{page}",
        "https://github.com/a/fork",
        f"https://github.com/a/fork/edit/fix/one/{page}",
    ]
    address = "https://a.example/fork/book/rotation.html"
    assert [link["href"] for link in built.select("link[rel=canonical]")] == [address]
    (picture,) = built.select('meta[property="og:image"]')
    assert picture["content"] == "https://a.example/fork/_static/cards/rotation.png"
    assert f"<loc>{address}</loc>" in (site / "sitemap.xml").read_text(encoding="utf-8")
