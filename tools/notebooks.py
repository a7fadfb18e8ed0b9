"""Execute the book's notebooks in place and store them in one normal form.

    python tools/notebooks.py                     all of them
    python tools/notebooks.py book/03_*.ipynb     some of them

The normal form keeps what a reader sees and drops what differs from run to run: metadata of
editors, timings, states and numbers of widgets.
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
KEPT_CELL_METADATA = ("checks", "claims", "mystnb", "tags")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def main() -> None:
    named = [Path(argument) for argument in sys.argv[1:]]
    for path in named or sorted((ROOT / "book").glob("*.ipynb")):
        started = time.perf_counter()
        notebook = nbformat.read(path, as_version=4)
        execute(notebook, path.parent)
        normalise(notebook)
        nbformat.write(notebook, path)
        print(f"{time.perf_counter() - started:6.1f} s  {path.name}", flush=True)


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Run every cell in a fresh kernel; a cell that raises leaves the file as it was."""
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()


def normalise(notebook: NotebookNode) -> None:
    """Keep the source, the outputs and the metadata that the book reads."""
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:03d}"
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        )
        if cell.cell_type == "code":
            cell.outputs = merge_streams(cell.outputs)
        for output in cell.get("outputs", []):
            output.pop("transient", None)
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
                output.metadata = NotebookNode()


def merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join what was printed in several parts: where it is cut is a matter of timing."""
    merged: list[NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last is not None and output.output_type == "stream" and last.get("name") == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


if __name__ == "__main__":
    main()
