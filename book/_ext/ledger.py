"""The ledger of the sources: its tables, and links between a claim and the cell that decides it.

``{claims} A`` shows every claim of source A with its verdict, from ``book/data/claims.yml``;
``{verdict-counts}`` counts the verdicts of all sources. A row has the anchor ``a31``, the cell that
decides it ``claim-a31`` (see notebook_pages.py), and each links to the other.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

DATA, PAGE, SCRIPT = "book/data/claims.yml", "book/a_sources", "ledger.js"
VERDICTS = ("true", "true with conditions", "imprecise", "false")


class Claim(NamedTuple):
    """What a source says, and what was found."""

    id: str
    lines: str
    says: str
    verdict: str
    right: str
    decided_in: str


class Source(NamedTuple):
    """One of the explanations, named as it names itself."""

    title: str
    by: str
    claims: list[Claim]


def read_ledger(path: Path) -> dict[str, Source]:
    """The sources and their claims, by letter."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    claims = [Claim(**entry) for entry in data["claims"]]
    return {
        letter: Source(**names, claims=[claim for claim in claims if claim.id[0] == letter])
        for letter, names in data["sources"].items()
    }


def count(claims: Iterable[Claim]) -> list[int]:
    """How many claims have each verdict, in the order of VERDICTS."""
    found = Counter(claim.verdict for claim in claims)
    return [found[verdict] for verdict in VERDICTS]


def tell(claims: Sequence[Claim]) -> str:
    """The numbers of the verdicts in words."""
    *most, last = (f"{n} {verdict}" for n, verdict in zip(count(claims), VERDICTS, strict=True))
    return f"{', '.join(most)} and {last}"


class LedgerDirective(SphinxDirective):
    """What the two directives share."""

    def read(self) -> dict[str, Source]:
        self.env.note_dependency(DATA)
        return read_ledger(Path(self.env.srcdir) / DATA)

    def parse(self, text: str) -> nodes.paragraph:
        """A paragraph of MyST: mathematics, code and emphasis."""
        parsed, _ = self.state.inline_text(text, self.lineno)
        return nodes.paragraph("", "", *parsed)


class ClaimsDirective(LedgerDirective):
    """One source: its name, the directive's own text, and a table of its claims."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        source = self.read()[self.arguments[0]]
        title = nodes.inline("", source.title, classes=["ledger-title"])
        name = nodes.paragraph("", "", title, classes=["ledger-source"])
        name += nodes.Text(f", {source.by}. {len(source.claims)} claims: {tell(source.claims)}.")
        said = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, said)
        head = ["claim", "what it says", "verdict", "what is right"]
        rows = [self.row(claim) for claim in source.claims]
        return [name, *said.children, table(head, rows, "ledger")]

    def row(self, claim: Claim) -> nodes.row:
        anchor = claim.id.lower()
        name = nodes.paragraph()
        name += nodes.reference("", claim.id, refid=anchor, internal=True)
        noun = "line" if claim.lines.isdigit() else "lines"
        name += nodes.inline("", f" {noun} {claim.lines}", classes=["ledger-lines"])
        verdict = nodes.paragraph("", "", badge(claim.verdict), nodes.Text(" "))
        verdict += reference_to_cell(claim, self.env.docname)
        row = row_of([name, self.parse(claim.says), verdict, self.parse(claim.right)])
        row["ids"] = [anchor]
        return row


class VerdictCountsDirective(LedgerDirective):
    """How many claims of each source have each verdict."""

    def run(self) -> list[nodes.Node]:
        sources = self.read()
        everything = [claim for source in sources.values() for claim in source.claims]
        rows = [self.row(letter, source.claims) for letter, source in sources.items()]
        rows.append(self.row("all", everything))
        sentence = f"The five sources make {len(everything)} claims: {tell(everything)}."
        head = ["source", *map(badge, VERDICTS), "claims", "as shares"]
        return [nodes.paragraph("", sentence), table(head, rows, "ledger-counts")]

    def row(self, name: str, claims: Sequence[Claim]) -> nodes.row:
        numbers = [*count(claims), len(claims)]
        return row_of(map(paragraph, [name, *map(str, numbers), bar(count(claims))]))


def bar(counts: Sequence[int]) -> nodes.raw:
    """The numbers of a row once more, as lengths side by side."""
    parts, start = [], 0
    for verdict, number in zip(VERDICTS, counts, strict=True):
        parts.append(f'<rect class="{style(verdict)}" x="{start}" width="{number}" height="1"/>')
        start += number
    shape = f'viewBox="0 0 {start} 1" preserveAspectRatio="none"'
    picture = f'<svg class="ledger-bar" {shape} aria-hidden="true">{"".join(parts)}</svg>'
    return nodes.raw("", picture, format="html")


def style(verdict: str) -> str:
    """The class of a verdict's badge and of its part of a bar."""
    return f"verdict-{verdict.replace(' ', '-')}"


def badge(verdict: str) -> nodes.inline:
    return nodes.inline("", verdict, classes=["verdict", style(verdict)])


def paragraph(content: str | nodes.Node) -> nodes.paragraph:
    return nodes.paragraph("", "", nodes.Text(content) if isinstance(content, str) else content)


def row_of(cells: Iterable[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", cell) for cell in cells))


def table(head: Sequence[str | nodes.Node], rows: Sequence[nodes.row], name: str) -> nodes.table:
    """A table whose first column names its rows."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1, stub=int(number == 0)) for number in range(len(head))]
    group += nodes.thead("", row_of(map(paragraph, head)))
    group += nodes.tbody("", *rows)
    return nodes.table("", group, classes=["colwidths-auto", name])


def reference_to_cell(claim: Claim, page: str) -> pending_xref:
    """A link from a row to the cell that decides it, named for those who hear it alone."""
    text = nodes.inline()
    text += nodes.inline(
        "", f"the cell that decides {claim.id}, in the ", classes=["visually-hidden"]
    )
    text += nodes.Text(f"checks of {int(claim.decided_in[:2])}")
    page_of_cell = f"book/checks/{claim.decided_in}"
    return reference_to_anchor(text, page_of_cell, f"claim-{claim.id.lower()}", page)


def reference_to_anchor(
    text: str | nodes.Node, target: str, anchor: str, page: str
) -> pending_xref:
    """A link from a page to an anchor of another."""
    content = nodes.Text(text) if isinstance(text, str) else text
    place = {"page": target, "anchor": anchor}
    return pending_xref("", content, reftype="ledger", reftarget=anchor, refdoc=page, **place)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """Turn the links above into addresses. The tests of the site follow each of them."""
    if node["reftype"] != "ledger":
        return None
    return make_refnode(app.builder, node["refdoc"], node["page"], node["anchor"], content)


def add_script(app: Sphinx, page: str, *context: Any) -> None:
    """The filter, on the ledger's page alone."""
    if page == PAGE:
        app.add_js_file(SCRIPT, loading_method="defer")


def name_rows(app: Sphinx, document: nodes.document) -> None:
    """Let a page link to a claim as to a heading: ``[A34](a_sources.md#a34)``."""
    if app.env.docname == PAGE:
        slugs = app.env.metadata[PAGE].setdefault("myst_slugs", {})
        for row in document.findall(nodes.row):
            slugs |= {anchor: (0, anchor, anchor.upper()) for anchor in row["ids"]}


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("claims", ClaimsDirective)
    app.add_directive("verdict-counts", VerdictCountsDirective)
    app.connect("doctree-read", name_rows)
    app.connect("missing-reference", resolve)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
