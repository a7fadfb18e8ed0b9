"""Execute the book's notebooks in place and store them in one normal form.

    python tools/notebooks.py                     all of them
    python tools/notebooks.py book/03_*.ipynb     some of them

The normal form keeps what a reader sees and drops what differs from run to run: metadata of
editors, timings, states and numbers of widgets. It has one cell that serves Colab alone. A notebook
that the build has executed, or another of these commands, is not executed again.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "book" / "_ext"), str(ROOT / "tools")]

from build_book import execute  # noqa: E402
from repository import repository_url  # noqa: E402  (it stands with the site's extensions)

KEPT_CELL_METADATA = ("cellView", "checks", "claims", "jupyter", "mystnb", "tags")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# Colab opens a notebook without its repository. Its server knows the address that was opened, so a
# fork brings its own library; a copy kept in Drive has none, and takes the one that is named here.
COLAB_CELL = """\
# @title Colab only: fetch the library and the data that this page reads
import sys
from pathlib import Path

if "google.colab" in sys.modules and not Path("ROOT/pe_lib").is_dir():
    import os
    import re
    from subprocess import getoutput
    from urllib.parse import unquote

    repository = "REPOSITORY"
    sessions = "$COLAB_JUPYTER_IP:$KMP_TARGET_PORT/api/sessions"
    opened = unquote(getoutput(f"curl -s {sessions}"))
    if page := re.search("https://github.com/[^/]+/[^/]+", opened):
        repository = page[0]
    clone = f"git clone -q --depth 1 '{repository}' book"
    print(getoutput(f"test -d book || {clone}"))
    print(getoutput("pip install -q './book[book]'"))
    os.chdir("book/FOLDER")"""
# Folded in JupyterLab and on Colab, left out of the site.
COLAB_METADATA = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["remove-cell"]}


def main() -> None:
    named = [Path(argument) for argument in sys.argv[1:]]
    paths = [path.resolve() for path in named or sorted((ROOT / "book").rglob("*.ipynb"))]
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        serve_colab(notebook, repository_url(), path.parent.relative_to(ROOT))
        nbformat.write(notebook, path)
    cache = execute(paths)
    for path in paths:
        _, executed = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
        normalise(executed)
        nbformat.write(executed, path)


def serve_colab(notebook: NotebookNode, address: str, folder: Path = Path("book")) -> None:
    """Put the cell for Colab below the opening; it keeps its repository where none is given."""
    if notebook.cells[1].source.startswith(COLAB_CELL.partition("\n")[0]):
        found = re.search(r'^ +repository = "(.*)"$', notebook.cells.pop(1).source, re.MULTILINE)
        address = address or (found[1] if found else "")
    source = COLAB_CELL.replace("ROOT", "/".join(".." for _ in folder.parts))
    source = source.replace("FOLDER", folder.as_posix())
    cell = nbformat.v4.new_code_cell(source.replace("REPOSITORY", address))
    cell.metadata = NotebookNode(COLAB_METADATA)
    notebook.cells.insert(1, cell)


def normalise(notebook: NotebookNode) -> None:
    """Keep the source, the outputs and the metadata that the book reads."""
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    # What was printed in several parts is joined: where it is cut is a matter of timing.
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:03d}"
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        )
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
                output.metadata = NotebookNode()


if __name__ == "__main__":
    main()
