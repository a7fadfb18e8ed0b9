"""The ties between chapters, their checks and the ledger.

A cell of a checks page names in its metadata the theorems that it tries (``checks: [thm-shift]``)
and the claims of the sources that it decides (``claims: [A31]``). It gets the anchors
``check-thm-shift`` and ``claim-a31``, and a line above it that leads to the theorem and to the row
of the ledger. Under the theorem, in the chapter, a line leads to the cell.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from ledger import PAGE as LEDGER
from ledger import reference_to_anchor

CHECKS = "book/checks"


class MarkCells(SphinxTransform):
    """Say above a cell what it checks and decides, and anchor it."""

    default_priority = 200  # before MyST resolves the links within a page, at 879

    def apply(self, **kwargs: Any) -> None:
        anchored: set[str] = set()
        for cell in list(self.document.findall(nodes.container)):
            metadata = cell.get("cell_metadata", {})
            checks, claims = metadata.get("checks", []), metadata.get("claims", [])
            if not checks and not claims:
                continue
            cell["classes"] += ["checks-theorem"] * bool(checks) + ["decides-claims"] * bool(claims)
            mark = nodes.paragraph(classes=["cell-mark"])
            page = self.env.docname
            if checks:
                theorems = [reference_to(label, page) for label in checks]
                mark += listing("Checks ", theorems, "checked")
            if claims:
                noun = "claim" if len(claims) == 1 else "claims"
                rows = [reference_to_anchor(one, LEDGER, one.lower(), page) for one in claims]
                mark += listing(f"Decides {noun} ", rows, "decided")
            names = [f"check-{label}" for label in checks if label not in anchored]
            names += [f"claim-{claim.lower()}" for claim in claims if claim not in anchored]
            anchored.update(checks, claims)
            mark["ids"], mark["names"] = list(names), list(names)
            self.document.note_explicit_target(mark)
            # Before the cell, because myst-nb folds a cell by the order of what is in it.
            cell.parent.insert(cell.parent.index(cell), mark)


class LeadToChecks(SphinxTransform):
    """Write under each theorem that it was checked by running, and where."""

    default_priority = 200

    def apply(self, **kwargs: Any) -> None:
        checked = self.env.checked_theorems  # type: ignore[attr-defined]
        for theorem in list(
            self.document.findall(lambda node: "label" in getattr(node, "attributes", {}))
        ):
            if page := checked.get(theorem["label"]):
                self.env.note_dependency(f"{page}.ipynb")
                link = reference_to_anchor(
                    "Checked by running", page, f"check-{theorem['label']}", self.env.docname
                )
                theorem += nodes.paragraph("", "", link, classes=["checked-by-running"])


def listing(said: str, links: Sequence[nodes.Node], kind: str) -> nodes.inline:
    """Some words, and links with commas between them."""
    listed = nodes.inline("", said, classes=[kind])
    for number, link in enumerate(links):
        listed += [nodes.Text(", ")] * bool(number)
        listed += link
    return listed


def reference_to(label: str, page: str) -> nodes.Element:
    """A link to a numbered theorem."""
    reference: nodes.Element = pending_xref(
        "", refdomain="prf", reftype="ref", reftarget=label, refexplicit=False, refdoc=page
    )
    reference += nodes.inline("", label)
    return reference


def find_checks(app: Sphinx) -> None:
    """Note for each theorem the page that checks it."""
    app.env.checked_theorems = {  # type: ignore[attr-defined]
        label: f"{CHECKS}/{path.stem}"
        for path in sorted((Path(app.srcdir) / CHECKS).glob("*.ipynb"))
        for cell in json.loads(path.read_text())["cells"]
        for label in cell["metadata"].get("checks", [])
    }


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(MarkCells)
    app.add_transform(LeadToChecks)
    app.connect("builder-inited", find_checks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
