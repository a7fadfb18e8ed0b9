"""What the book adds to myst-nb's pages: anchors of deciding cells, and run times.

A code cell whose metadata names claims of the sources (``claims: [A31]``) gets the anchor
``claim-a31``, so that a verdict can point at the cell that decides it. One whose metadata names
theorems (``checks: [thm-shift]``) is marked as their check. A line above either says so, and links
to the theorem or to the row of the claim in the ledger of the sources.
"""

from collections.abc import Sequence
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from ledger import reference_to_row
from status import run_times

logger = logging.getLogger(__name__)


class MarkCells(SphinxTransform):
    """Mark the cells that check a theorem or decide claims, and anchor each claim."""

    default_priority = 200  # before MyST resolves the links within a page, at 879

    def apply(self, **kwargs: Any) -> None:
        anchored: set[str] = set()
        for cell in list(self.document.findall(nodes.container)):
            metadata = cell.get("cell_metadata", {})
            checks, claims = metadata.get("checks", []), metadata.get("claims", [])
            if not checks and not claims:
                continue
            cell["classes"] += ["checks-theorem"] * bool(checks) + ["decides-claims"] * bool(claims)
            mark = self.mark(checks, claims)
            names = [name for claim in claims if (name := f"claim-{claim.lower()}") not in anchored]
            if names:
                anchored.update(names)
                mark["ids"], mark["names"] = list(names), list(names)
                self.document.note_explicit_target(mark)
            # Before the cell, because myst-nb folds a cell by the order of what is in it.
            cell.parent.insert(cell.parent.index(cell), mark)

    def mark(self, checks: Sequence[str], claims: Sequence[str]) -> nodes.paragraph:
        """The line above a cell that says what it is for."""
        mark = nodes.paragraph(classes=["cell-mark"])
        if checks:
            said = nodes.inline("", "Checked by this cell: ", classes=["checked"])
            for number, label in enumerate(checks):
                said += [nodes.Text(", ")] * bool(number)
                said += reference_to(label, self.env.docname)
            mark += said
        if claims:
            noun = "claim" if len(claims) == 1 else "claims"
            said = nodes.inline("", f"Decides {noun} ", classes=["decided"])
            for number, claim in enumerate(claims):
                said += [nodes.Text(", ")] * bool(number)
                said += reference_to_row(claim, self.env.docname)
            mark += said
        return mark


def reference_to(label: str, page: str) -> nodes.Element:
    """A link to a numbered theorem."""
    reference: nodes.Element = pending_xref(
        "", refdomain="prf", reftype="ref", reftarget=label, refexplicit=False, refdoc=page
    )
    reference += nodes.inline("", label)
    return reference


def report_run_times(app: Sphinx, exception: Exception | None) -> None:
    """Say how long each notebook ran."""
    if exception is not None or app.env is None:
        return
    times = run_times(app.env)
    if times:
        logger.info("Run time of each notebook:")
        for name, seconds in times.items():
            logger.info(f"  {seconds:6.1f} s  {name}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(MarkCells)
    app.connect("build-finished", report_run_times)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
