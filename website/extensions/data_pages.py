"""Pages that are filled with data: ledger, folklore, tables of RoPE, and the landing page.

Each is a template of Jinja, which is rendered before MyST reads it. The claims of the ledger stand
in book/data/claims.yml. The landing page asks for its live figure, for the minutes of pages, and
for the address of the repository, which is empty where none is known.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sphinx.application import Sphinx

from pe_book import live
from website.extensions.folklore import DATA as FOLKLORE_DATA
from website.extensions.folklore import PAGE as FOLKLORE
from website.extensions.folklore import folklore
from website.extensions.inspector import ASSETS, EXAMPLES, FAMILY_TABLE, SCRIPTS, inspector
from website.extensions.inspector import PAGE as INSPECTOR
from website.extensions.rope_tables import (
    CONVENTIONS,
    CONVENTIONS_PAGE,
    FAMILIES,
    conventions,
    families,
)
from website.page_measures import BOOK, minutes
from website.repository import repository_url

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
JINJA = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined)
KOREAN = "book/korean"
LEDGER, CLAIMS = "book/sources", BOOK / "data" / "claims.yml"
VERDICTS = ("true", "true with conditions", "imprecise", "false")


def ledger() -> dict[str, Any]:
    """What the page of the ledger is filled with.

    ``sources`` has an entry for each source, by its letter: what the source is, its claims, and how
    many of them have each verdict. The entry "all" has the claims of all sources. ``repository`` is
    the address of the repository.
    """
    data = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    sources = {letter: named | {"claims": []} for letter, named in data["sources"].items()}
    for claim in data["claims"]:
        sources[claim["id"][0]]["claims"].append(claim)
    sources["all"] = {"claims": data["claims"]}
    for source in sources.values():
        found = Counter(claim["verdict"] for claim in source["claims"])
        source["verdicts"] = {verdict: found[verdict] for verdict in VERDICTS}
    return {"sources": sources, "repository": repository_url()}


PAGES = {
    "book/index": lambda: {
        "box": live.box,
        "minutes": minutes,
        "repository": repository_url(),
    },
    LEDGER: ledger,
    FOLKLORE: folklore,
    FAMILIES: families,
    CONVENTIONS_PAGE: conventions,
    INSPECTOR: inspector,
}
DEPENDENCIES = {
    LEDGER: (CLAIMS, TEMPLATES / "ledger.md"),
    FOLKLORE: (FOLKLORE_DATA, TEMPLATES / "folklore.md"),
    FAMILIES: (FAMILY_TABLE, TEMPLATES / "rope_tables.md"),
    CONVENTIONS_PAGE: (CONVENTIONS, TEMPLATES / "rope_tables.md"),
    INSPECTOR: (
        EXAMPLES,
        FAMILY_TABLE,
        TEMPLATES / "inspector.html",
        *(ASSETS / name for name in SCRIPTS),
    ),
}


def fill_in(app: Sphinx, page: str, source: list[str]) -> None:
    """Render a page with its data, from which it is to be built again when that changes."""
    if page in PAGES:
        source[0] = JINJA.from_string(source[0]).render(PAGES[page]())
        for path in DEPENDENCIES.get(page, ()):
            app.env.note_dependency(str(path))


def name_claims(app: Sphinx, document: nodes.document) -> None:
    """Let a page link to a claim as to a heading: ``[A34](sources.md#a34)``."""
    if app.env.docname == LEDGER:
        slugs = app.env.metadata[LEDGER].setdefault("myst_slugs", {})
        for claim in ledger()["sources"]["all"]["claims"]:
            slugs[claim["id"].lower()] = (0, claim["id"].lower(), claim["id"])


def name_summaries(app: Sphinx, document: nodes.document) -> None:
    """Let a page link to its summary in Korean as to a heading: ``korean.md#ko-rope``."""
    if app.env.docname == KOREAN:
        slugs = app.env.metadata[KOREAN].setdefault("myst_slugs", {})
        for name, anchor in document.nameids.items():
            if name.startswith("ko-"):
                slugs[name] = (0, anchor, name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", fill_in)
    app.connect("doctree-read", name_claims)
    app.connect("doctree-read", name_summaries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
