"""The record of the status page is whole, notebooks keep within limits, and the page tells both."""

import datetime
import re

import data_pages
import pytest

ROOT = data_pages.ROOT
RUN = data_pages.status()["run"]
MOST_SECONDS, MOST_MIB = 10, 1024


def test_record_names_the_notebooks_that_there_are_and_the_pinned_versions() -> None:
    book = ROOT / "book"
    there = {path.relative_to(book).with_suffix("").as_posix() for path in book.rglob("*.ipynb")}
    assert set(RUN["notebooks"]) == there, "run `make status`"
    pins = (ROOT / "constraints.txt").read_text()
    for name, version in RUN["versions"].items():
        assert re.search(rf"^{name}=={re.escape(version.split('+')[0])}$", pins, re.M), name
    assert datetime.date.fromisoformat(RUN["date"])


@pytest.mark.parametrize("name", RUN["notebooks"])
def test_notebook_keeps_within_its_limits(name: str) -> None:
    took = RUN["notebooks"][name]
    assert 0 < took["processor_seconds"] <= MOST_SECONDS
    assert 0 < took["peak_mib"] <= MOST_MIB


def test_results_of_a_gpu_are_shown_or_said_to_be_missing() -> None:
    run = {"task": "table", "seq_len": 8, "d_model": 4, "fraction_of_copy_bandwidth": 0.5}
    measured = {"device": "GPU", "torch": "2", "date": "2026", "runs": [run]}
    page = data_pages.JINJA.from_string((ROOT / "book" / "status.md").read_text())
    with_gpu, without = (
        page.render(data_pages.status() | {"gpu": gpu}) for gpu in (measured, None)
    )
    assert "| table | 8 × 4 | 50% |" in with_gpu
    assert "Not measured" not in with_gpu
    assert "Not measured" in without
