"""The ties between chapters, their checks and the ledger, written into a page before MyST reads it.

A cell of a checks page names in its metadata the theorems that it tries (``checks: [thm-shift]``)
and the claims of the sources that it decides (``claims: [A31]``). It gets the anchors
``check-thm-shift`` and ``claim-a31``, and a line above it that leads to the theorem and to the row
of the ledger. Under the theorem, in the chapter, a line leads to the cell. A cell of any page may
decide a piece of folklore (``folklore: [near-orthogonal]``), and gets an anchor for it.

A cell whose output follows a live figure carries the tag ``in-a-kernel``. The site has no kernel,
so a line below such cells says what they do in a running notebook.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from sphinx.application import Sphinx

THEOREM = re.compile(
    r"^(:{3,})\{prf:(?:theorem|proposition|lemma|corollary)\}.*?\n:label: (\S+)\n.*?(?=^\1$)",
    re.MULTILINE | re.DOTALL,
)
BOOK = Path(__file__).resolve().parent.parent.parent / "book"
IN_A_KERNEL = """\
{.in-a-kernel}
This page shows the first state. In a running notebook, it follows the hand that you move.
"""
CHECKED = "{}\n{{.checked-by-running}}\n[Tried with numbers on the page of checks](#check-{})\n"


def write_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the lines of a page of checks, or of a chapter."""
    path = BOOK.parent / f"{page}.ipynb"
    if not path.exists():
        return
    notebook = nbformat.reads(source[0], as_version=4)
    if path.parent.name == "checks":
        notebook.cells = list(with_marks(notebook.cells))
    else:
        if (BOOK / "checks" / path.name).exists():
            for cell in notebook.cells:
                cell.source = THEOREM.sub(
                    lambda theorem: CHECKED.format(theorem[0], theorem[2]), cell.source
                )
        notebook.cells = list(with_notes(with_anchors(notebook.cells)))
    source[0] = nbformat.writes(notebook)


def with_marks(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    """The cells, and before each cell that checks or decides something a line that says so.

    Several cells may check one theorem. The theorem links to the first of them, so that one gets
    the anchor.
    """
    anchored: set[str] = set()
    for cell in cells:
        checks, claims, entries = (
            cell.metadata.get(kind, []) for kind in ("checks", "claims", "folklore")
        )
        names = [f"check-{label}" for label in checks]
        names += [f"claim-{claim.lower()}" for claim in claims]
        names += [f"folklore-{entry}" for entry in entries]
        if names:
            anchors = [f"({name})=\n" for name in names if name not in anchored]
            anchored.update(names)
            mark = "".join(anchors) + "{.cell-mark}\n" + mark_of(checks, claims, entries)
            yield nbformat.v4.new_markdown_cell(mark)
        yield cell


def with_anchors(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    """The cells of a chapter, and an anchor before each that decides a piece of folklore."""
    for cell in cells:
        for entry in cell.metadata.get("folklore", []):
            yield nbformat.v4.new_markdown_cell(f"(folklore-{entry})=")
        yield cell


def with_notes(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    """The cells, and after those that follow a figure a line that says so."""
    cells = list(cells)
    following = [*cells[1:], nbformat.v4.new_markdown_cell()]
    for cell, after in zip(cells, following, strict=True):
        yield cell
        if follows(cell) and not follows(after):
            yield nbformat.v4.new_markdown_cell(IN_A_KERNEL)


def follows(cell: NotebookNode) -> bool:
    return "in-a-kernel" in cell.metadata.get("tags", [])


def mark_of(checks: list[str], claims: list[str], entries: list[str]) -> str:
    """What a cell checks and decides, with links."""
    theorems = ", ".join(f"{{prf:ref}}`{label}`" for label in checks)
    rows = ", ".join(f"[{claim}](../sources.md#{claim.lower()})" for claim in claims)
    cards = ", ".join(f"[{entry.replace('-', ' ')}](#{entry})" for entry in entries)
    text = f'<span class="checked">Checks {theorems}</span>' if checks else ""
    if claims:
        noun = "claim" if len(claims) == 1 else "claims"
        text += f'<span class="decided">Decides {noun} {rows}</span>'
    if entries:
        text += f'<span class="decided">Decides folklore: {cards}</span>'
    return text


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", write_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
