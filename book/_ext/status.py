"""The tables of the status page: run times, memory, versions, and what was measured on a GPU.

Run times of this build come from myst-nb, once every page is read; the rest from book/status.json,
which `make status` writes, from the installed packages, and from benchmarks/results/gpu.json.
"""

import json
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent.parent
FULL_RUN, ON_A_GPU = ROOT / "book" / "status.json", ROOT / "benchmarks" / "results" / "gpu.json"
NOT_KNOWN = "–"


class NotebookTable(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils has no types
    """Stands for the table of notebooks until the run times of all of them are known."""


class BookStatus(SphinxDirective):
    """``{book-status} WHAT``: one of the tables or sentences of the status page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        for file in (FULL_RUN, ON_A_GPU):
            self.env.note_dependency(str(file))
        parts: dict[str, Callable[[], nodes.Node]] = {
            "notebooks": NotebookTable,
            "machine": lambda: sentence(machine(read(FULL_RUN))),
            "versions": lambda: table(("package", "version"), versions(read(FULL_RUN))),
            "gpu": lambda: gpu(read(ON_A_GPU)),
        }
        return [parts[directives.choice(self.arguments[0], tuple(parts))]()]


def read(file: Path) -> dict[str, Any]:
    """The results in a file, or none where it has not been written."""
    return json.loads(file.read_text()) if file.exists() else {}


def machine(full_run: dict[str, Any]) -> str:
    """What the full run ran on."""
    if not full_run:
        return "No full run has been recorded."
    versions = full_run["versions"]
    return (
        f"Full run: {full_run['date']}, {full_run['cpu']}, {full_run['cores']} cores, "
        f"{full_run['system']}, Python {full_run['python']}, NumPy {versions['numpy']}, "
        f"PyTorch {versions['torch']}."
    )


def versions(full_run: dict[str, Any]) -> list[list[str]]:
    """Name and version, in this build, of what a page's numbers depend on."""
    packages = sorted(full_run.get("versions", {"numpy": ""}), key=str.lower)
    return [["Python", platform.python_version()], *([name, version(name)] for name in packages)]


def gpu(results: dict[str, Any]) -> nodes.Node:
    """Fractions of the copy bandwidth, or that nobody has measured them."""
    if not results:
        return sentence(
            "Not measured: no run of benchmarks/gpu.py has been stored, and nothing in this book "
            "claims a speed on a GPU. Every page runs unchanged without one."
        )
    head = ("task", "positions × width", "share of the copy bandwidth")
    rows = [
        [
            run["task"],
            f"{run['seq_len']} × {run['d_model']}",
            f"{run['fraction_of_copy_bandwidth']:.0%}",
        ]
        for run in results["runs"]
    ]
    measured = f"{results['device']}, PyTorch {results['torch']}, {results['date']}:"
    return nodes.container("", sentence(measured), table(head, rows))


def sentence(text: str) -> nodes.paragraph:
    return nodes.paragraph(text, text)


def table(head: Sequence[str], rows: Iterable[Sequence[str | nodes.Node]]) -> nodes.table:
    """A plain table; a cell is text or an inline node."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", row_of(head))
    group += nodes.tbody("", *(row_of(row) for row in rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def row_of(cells: Iterable[str | nodes.Node]) -> nodes.row:
    inline = (nodes.Text(cell) if isinstance(cell, str) else cell for cell in cells)
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in inline))


def run_times(env: BuildEnvironment) -> dict[str, float]:
    """Seconds that each notebook of the book ran, when it was last executed."""
    data = {name: NbMetadataCollector.get_doc_data(env)[name] for name in sorted(env.found_docs)}
    times = {name: found.get("exec_data", {}).get("runtime") for name, found in data.items()}
    return {name: seconds for name, seconds in times.items() if seconds is not None}


def fill_table(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the table of notebooks where it is wanted, now that all pages are read."""
    for place in list(document.findall(NotebookTable)):
        full_run = read(FULL_RUN).get("notebooks", {})
        rows = []
        for name, seconds in run_times(app.env).items():
            title = app.env.titles[name].astext()
            address = app.builder.get_relative_uri(page, name)
            link = nodes.reference("", title, refuri=address, internal=True)
            rows.append([link, f"{seconds:.1f}", *shown(full_run.get(name.removeprefix("book/")))])
        place.replace_self(table(("page", "run, s", "processor, s", "memory, MiB"), rows))


def shown(measured: dict[str, float] | None) -> list[str]:
    """What the full run says of a notebook; nothing, where it came later."""
    if measured is None:
        return [NOT_KNOWN] * 2
    return [f"{measured['processor_seconds']:.1f}", f"{measured['peak_mib']:.0f}"]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(NotebookTable)
    app.add_directive("book-status", BookStatus)
    app.connect("doctree-resolved", fill_table)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
