"""The status page tells of every notebook, of the versions, and of the GPU or its absence."""

import json
import platform
from importlib.metadata import version

from bs4 import Tag
from site_under_test import ROOT, SITE, parsed

PAGE = SITE / "book" / "status.html"
RECORD = json.loads((ROOT / "book" / "status.json").read_text())


def rows_of(table: Tag) -> list[list[str]]:
    return [[cell.get_text() for cell in row.select("td")] for row in table.select("tbody tr")]


def test_tables_are_those_of_the_record_and_of_the_build() -> None:
    notebooks, versions = parsed(PAGE).select("article table")[:2]
    links = [str(link["href"]).removesuffix(".html") for link in notebooks.select("tbody a")]
    shown = [[float(number) for number in row[1:]] for row in rows_of(notebooks)]
    assert dict(zip(links, shown, strict=True)) == {
        name: [took["processor_seconds"], took["peak_mib"]]
        for name, took in RECORD["notebooks"].items()
    }
    built_with = {name: version(name) for name in RECORD["versions"]}
    assert dict(rows_of(versions)) == {"Python": platform.python_version(), **built_with}


def test_results_of_a_gpu_are_shown_or_said_to_be_missing() -> None:
    (section,) = parsed(PAGE).select("#on-a-gpu")
    measured = (ROOT / "benchmarks" / "results" / "gpu.json").exists()
    assert bool(section.select("table")) is measured
    assert ("Not measured" in section.get_text()) is not measured
