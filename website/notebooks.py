"""Execute the book's notebooks in place and store them in one normal form.

    python tools/notebooks.py                     all of them
    python tools/notebooks.py book/03_*.ipynb     some of them

The normal form keeps what a reader sees and drops what differs from run to run: metadata of
editors, timings, states and numbers of widgets. It has one cell that serves Colab alone. The build
takes what was executed here, and does not execute it again.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor
from nbformat import NotebookNode

from tools.build_book import execute, notebooks_of_the_book, one_sentence_at_the_end
from tools.repository import repository_url

ROOT = Path(__file__).resolve().parent.parent

KEPT_CELL_METADATA = ("cellView", "checks", "claims", "jupyter", "mystnb", "tags")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# Colab opens a notebook without its repository. Its server knows the address that was opened, so a
# fork brings its own library; a copy kept in Drive has none, and takes the one that is named here.
# The repository is cloned into a folder "book", so its own folder of that name is book/book there.
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
    sys.path.append(str(Path("book").resolve()))
    os.chdir("book/FOLDER")"""
# Folded in JupyterLab and on Colab, left out of the site.
COLAB_METADATA = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["remove-cell"]}


def main() -> None:
    paths = [notebook_at(argument) for argument in sys.argv[1:]] or notebooks_of_the_book()
    with one_sentence_at_the_end():
        store(paths)


def notebook_at(argument: str) -> Path:
    """The path of a notebook that was named; the end of the program where it is none."""
    path = Path(argument).resolve()
    if path.suffix != ".ipynb" or not path.is_file() or not path.is_relative_to(ROOT):
        sys.exit(f"{argument} is no notebook of this book.")
    return path


def store(paths: list[Path]) -> None:
    """Execute these notebooks and store them."""
    cache = execute(paths, afresh=True)
    for path in paths:
        _, executed = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
        normalise(executed)
        nbformat.write(executed, path)


def serve_colab(notebook: NotebookNode, address: str, folder: Path = Path("book")) -> None:
    """Put the cell for Colab below the opening.

    Where the address of the repository is not known, the cell keeps the one that it names.
    """
    first_line = COLAB_CELL.partition("\n")[0]
    there = [cell for cell in notebook.cells if cell.source.startswith(first_line)]
    if there:
        # It is changed, and not replaced by another, so that its id and its outputs stay: a page
        # that fails is then stored as it was.
        cell = there[0]
    else:
        cell = nbformat.v4.new_code_cell()
        notebook.cells.insert(1, cell)
    named = re.search(r'^ +repository = "(.*)"$', cell.source, re.MULTILINE)
    if named and not address:
        address = named[1]
    source = COLAB_CELL.replace("ROOT", "/".join(".." for _ in folder.parts))
    cell.source = source.replace("FOLDER", folder.as_posix()).replace("REPOSITORY", address)
    cell.metadata = NotebookNode(COLAB_METADATA)


def normalise(notebook: NotebookNode) -> None:
    """Keep the source, the outputs and the metadata that the book reads.

    What a cell has printed in parts is joined: where the parts are cut is a matter of timing.
    """
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    described = {k: v for k, v in notebook.metadata.items() if k == "description"}
    notebook.metadata = NotebookNode(
        **described,
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        )
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
                output.metadata = NotebookNode()


if __name__ == "__main__":
    main()
