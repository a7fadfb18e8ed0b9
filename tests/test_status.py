"""The status page's record names every notebook, and every notebook keeps within its limits."""

import datetime
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STATUS = json.loads((ROOT / "book" / "status.json").read_text())
MOST_SECONDS, MOST_MIB = 10, 1024


def test_record_names_the_notebooks_that_there_are() -> None:
    book = ROOT / "book"
    there = {path.relative_to(book).with_suffix("").as_posix() for path in book.rglob("*.ipynb")}
    assert set(STATUS["notebooks"]) == there, "run `make status`"


@pytest.mark.parametrize("name", STATUS["notebooks"])
def test_notebook_keeps_within_its_limits(name: str) -> None:
    took = STATUS["notebooks"][name]
    assert 0 < took["processor_seconds"] <= MOST_SECONDS
    assert 0 < took["peak_mib"] <= MOST_MIB


def test_record_was_made_with_the_pinned_versions() -> None:
    pins = (ROOT / "constraints.txt").read_text()
    for name, version in STATUS["versions"].items():
        assert re.search(rf"^{name}=={re.escape(version.split('+')[0])}$", pins, re.M), name
    assert datetime.date.fromisoformat(STATUS["date"])
