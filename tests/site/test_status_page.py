"""The status page tells of every notebook, of the versions, and of the GPU or its absence."""

import json
import platform
from importlib.metadata import version

import pytest
from bs4 import BeautifulSoup, Tag
from site_under_test import ROOT, SITE

BOOK = ROOT / "book"
NOTEBOOKS = sorted(
    path.relative_to(BOOK).with_suffix("").as_posix() for path in BOOK.rglob("*.ipynb")
)


@pytest.fixture(scope="module")
def page() -> BeautifulSoup:
    return BeautifulSoup((SITE / "book" / "status.html").read_text(), "html.parser")


def rows_of(table: Tag) -> list[list[str]]:
    return [[cell.get_text() for cell in row.select("td")] for row in table.select("tbody tr")]


def test_every_notebook_has_its_time_and_its_memory(page: BeautifulSoup) -> None:
    table = page.select("article table")[0]
    links = [str(link["href"]).removesuffix(".html") for link in table.select("tbody a")]
    assert sorted(links) == NOTEBOOKS
    recorded = json.loads((ROOT / "book" / "status.json").read_text())["notebooks"]
    for name, (_, processor, memory) in zip(links, rows_of(table), strict=True):
        assert float(processor) == recorded[name]["processor_seconds"]
        assert float(memory) == recorded[name]["peak_mib"]


def test_versions_are_those_of_the_build(page: BeautifulSoup) -> None:
    versions = dict(rows_of(page.select("article table")[1]))
    assert versions.pop("Python") == platform.python_version()
    assert versions["numpy"] == version("numpy")
    assert {"torch", "Sphinx", "jupyter-book"} <= set(versions)


def test_results_of_a_gpu_are_shown_or_said_to_be_missing(page: BeautifulSoup) -> None:
    section = page.select_one("#on-a-gpu")
    assert isinstance(section, Tag)
    measured = (ROOT / "benchmarks" / "results" / "gpu.json").exists()
    assert bool(section.select("table")) is measured
    assert ("Not measured" in section.get_text()) is not measured
