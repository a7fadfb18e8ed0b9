"""Keep what notebooks print while nbval checks them, so that the build does not run them again.

tests/run.py gives this file to pytest as a plugin. A notebook is kept if all its cells have passed,
in a folder named by what its execution depends on. The states of its widgets, from which the site
draws live figures, nbval passes over; nbclient notes them from the same messages.
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
from nbclient import NotebookClient
from nbval.plugin import IPyNbCell, IPyNbFile

from website import build

# Outputs and seconds of the cells that have passed, by notebook and number.
passed: defaultdict[Path, dict[int, tuple[list[Any], float]]] = defaultdict(dict)
# What notes the widgets of each notebook that is running.
clients: dict[Path, NotebookClient] = {}


@functools.cache
def folder() -> Path:
    """The folder for what runs with the files as they are at the first call."""
    return build.received(build.fingerprint(build.EXECUTION_INPUTS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not isinstance(item, IPyNbCell):
        return (yield)
    folder()  # named by the files as they are, so before the cell runs
    if item.path not in clients:
        clients[item.path] = note_widgets(item.parent)
    started = time.perf_counter()
    result = yield  # an error of the cell goes on from here
    passed[item.path][item.cell_num] = item.test_outputs, time.perf_counter() - started
    return result


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if isinstance(item, IPyNbCell) and (nextitem is None or nextitem.parent is not item.parent):
        assert isinstance(item.parent, IPyNbFile)
        if client := clients.pop(item.path, None):  # none where its kernel did not start
            client.set_widgets_metadata()
            keep(item.path, item.parent.nb, passed.pop(item.path, {}), folder())


def note_widgets(file: IPyNbFile) -> NotebookClient:
    """Let a client, whose own kernel never starts, see each message that nbval gets of widgets."""
    client, receive = NotebookClient(file.nb), file.get_kernel_message

    def receive_and_note(*args: Any, **options: Any) -> Any:
        message = receive(*args, **options)
        if message["msg_type"].startswith("comm_"):
            client.handle_comm_msg([], message, 0)
        return message

    file.get_kernel_message = receive_and_note
    return client


def keep(
    path: Path,
    notebook: nbformat.NotebookNode,
    cells: dict[int, tuple[list[Any], float]],
    where: Path,
) -> None:
    """Write a notebook with these outputs, if all its cells have passed."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if len(cells) < len(code):
        return
    for number, cell in enumerate(code):
        cell.outputs, cell.execution_count = cells[number][0], number + 1
    notebook.metadata["seconds"] = sum(seconds for _, seconds in cells.values())
    for older in set(where.parent.glob("*")) - {where}:
        shutil.rmtree(older, ignore_errors=True)
    file = where / path.relative_to(build.ROOT)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)
