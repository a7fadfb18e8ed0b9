"""The tables of the status page: processor time, memory, versions, and what a GPU was seen to do.

They come from book/status.json, which `make status` writes, from the installed packages, and from
benchmarks/results/gpu.json. Each is written in Markdown and read as the page is.
"""

import json
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent.parent
FULL_RUN, ON_A_GPU = ROOT / "book" / "status.json", ROOT / "benchmarks" / "results" / "gpu.json"


class BookStatus(SphinxDirective):
    """``{book-status} WHAT``: one of the tables or sentences of the status page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        parts: dict[str, tuple[Path, Callable[[dict[str, Any]], str]]] = {
            "notebooks": (FULL_RUN, notebooks),
            "machine": (FULL_RUN, machine),
            "versions": (FULL_RUN, versions),
            "gpu": (ON_A_GPU, gpu),
        }
        file, tell = parts[directives.choice(self.arguments[0], tuple(parts))]
        self.env.note_dependency(str(file))
        text = tell(json.loads(file.read_text()) if file.exists() else {})
        said = nodes.container()
        self.state.nested_parse(StringList(text.splitlines()), self.content_offset, said)
        return list(said.children)


def notebooks(full_run: dict[str, Any]) -> str:
    """What each notebook took, as `make status` recorded it."""
    rows = (
        (f"[]({name}.ipynb)", f"{took['processor_seconds']:.1f}", f"{took['peak_mib']:.0f}")
        for name, took in full_run["notebooks"].items()
    )
    return table(("page", "processor, s", "memory, MiB"), rows)


def machine(full_run: dict[str, Any]) -> str:
    """What the full run ran on."""
    versions = full_run["versions"]
    return (
        f"Full run: {full_run['date']}, {full_run['cpu']}, {full_run['cores']} cores, "
        f"{full_run['system']}, Python {full_run['python']}, NumPy {versions['numpy']}, "
        f"PyTorch {versions['torch']}."
    )


def versions(full_run: dict[str, Any]) -> str:
    """Name and version, in this build, of what a page's numbers depend on."""
    packages = sorted(full_run["versions"], key=str.lower)
    rows = [("Python", platform.python_version()), *((name, version(name)) for name in packages)]
    return table(("package", "version"), rows)


def gpu(results: dict[str, Any]) -> str:
    """Fractions of the copy bandwidth, or that nobody has measured them."""
    if not results:
        return (
            "Not measured: no run of `benchmarks/gpu.py` has been stored, and nothing in this book "
            "claims a speed on a GPU. Every page runs unchanged without one."
        )
    rows = (
        (
            run["task"],
            f"{run['seq_len']} × {run['d_model']}",
            f"{run['fraction_of_copy_bandwidth']:.0%}",
        )
        for run in results["runs"]
    )
    measured = f"{results['device']}, PyTorch {results['torch']}, {results['date']}:"
    head = ("task", "positions × width", "share of the copy bandwidth")
    return f"{measured}\n\n{table(head, rows)}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("book-status", BookStatus)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
