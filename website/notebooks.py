"""Execute the book's notebooks in place and store them in one normal form.

    python website/notebooks.py                     all of them
    python website/notebooks.py book/rotation.ipynb some of them

The normal form keeps what a reader sees and drops what differs from run to run: metadata of
editors, timings, states and numbers of widgets. The build takes what was executed here, and does
not execute it again.
"""

import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id

from website.build import execute, notebooks_of_the_book, one_sentence_at_the_end

ROOT = Path(__file__).resolve().parent.parent

KEPT_CELL_METADATA = ("checks", "claims", "folklore", "jupyter", "mystnb", "tags")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


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
    name_cells(notebook)
    for cell in notebook.cells:
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        )
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
                output.metadata = NotebookNode()


def name_cells(notebook: NotebookNode) -> None:
    """Give a cell without an id, or with that of a cell above it, an id of its own. The others keep
    theirs, so that a cell that is inserted changes no other."""
    taken: set[str] = set()
    for cell in notebook.cells:
        if cell.get("id", "") in taken | {""}:
            cell.id = generate_corpus_id()
        taken.add(cell.id)


if __name__ == "__main__":
    main()
