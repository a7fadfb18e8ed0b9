"""Keep what notebooks print while nbval checks them, so that the build does not run them again.

tests/run.py gives this file to pytest as a plugin. A notebook is kept if all its cells have passed,
in a folder named by what its execution depends on. Notebooks with live figures are not kept: nbval
does not note the states of widgets, which the site needs.
"""

import functools
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from website import build
from website.notebooks import WIDGET_VIEW

# Outputs and seconds of the cells that have passed, by notebook and number.
passed: defaultdict[Path, dict[int, tuple[list[Any], float]]] = defaultdict(dict)


@functools.cache
def folder() -> Path:
    """The folder for what runs with the files as they are at the first call."""
    return build.received(build.fingerprint(build.EXECUTION_INPUTS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not isinstance(item, IPyNbCell):
        return (yield)
    folder()  # named by the files as they are, so before the cell runs
    started = time.perf_counter()
    result = yield  # an error of the cell goes on from here
    passed[item.path][item.cell_num] = item.test_outputs, time.perf_counter() - started
    return result


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if isinstance(item, IPyNbCell) and (nextitem is None or nextitem.parent is not item.parent):
        assert isinstance(item.parent, IPyNbFile)
        keep(item.path, item.parent.nb, passed.pop(item.path, {}), folder())


def keep(
    path: Path,
    notebook: nbformat.NotebookNode,
    cells: dict[int, tuple[list[Any], float]],
    where: Path,
) -> None:
    """Write a notebook with these outputs, if all its cells have passed and none shows a widget."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for received, _ in cells.values() for output in received]
    if len(cells) < len(code) or any(WIDGET_VIEW in out.get("data", {}) for out in outputs):
        return
    for number, cell in enumerate(code):
        cell.outputs, cell.execution_count = cells[number][0], number + 1
    notebook.metadata["seconds"] = sum(seconds for _, seconds in cells.values())
    for older in set(where.parent.glob("*")) - {where}:
        shutil.rmtree(older, ignore_errors=True)
    file = where / path.relative_to(build.ROOT)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)
