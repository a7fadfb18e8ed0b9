"""What the search finds, in which order, and what it says where it cannot read the pages.

Sphinx's own search is kept. Its index leaves out what no reader searches for: folded source, and
what cells have drawn or printed. A scorer puts the page first that answers a known query
(book/data/search_words.yml), and pages of checks after the chapters. From a folder on a disk a
browser may not read the pages that are found, so their descriptions stand in for quotations.
What the search page shows of a hit is made in book/_assets/search.js.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from page_head import describe

WORDS = Path(__file__).resolve().parent.parent / "data" / "search_words.yml"
SCORER = """\
// Written by book/_ext/search_pages.py.
const KNOWN = {known};
const DESCRIPTIONS = {descriptions};
const TERMS = {terms};
const stemmed = (text) => {{
  const words = splitQuery(text.toLowerCase()).filter((word) => !stopwords.includes(word));
  return words.map((word) => new Stemmer().stemWord(word));
}};
const asked = new Set();
// How many words has the longest known query of a page that is part of what was asked?
const answers = (page) => {{
  const queries = (KNOWN[page] ?? []).map(stemmed);
  const known = queries.filter((words) => words.every((word) => asked.has(word)));
  return Math.max(0, ...known.map((words) => words.length));
}};
const partly = (page) => (KNOWN[page] ?? []).flatMap(stemmed).some((word) => asked.has(word));
var Scorer = {{
  score: (result) => {{
    const [page, , , , score] = result;
    const query = new URLSearchParams(location.search).get("q") ?? "";
    if (!asked.size) stemmed(query).forEach((word) => asked.add(word));
    if (location.protocol === "file:") result[3] ??= DESCRIPTIONS[page] ?? null;
    if (page.startsWith("book/checks/")) return score - 50;
    return score + 200 * answers(page) + (partly(page) ? 20 : 0);
  }},
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {{ 0: 15, 1: 5, 2: -5 }},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
}};
"""


def known_words() -> dict[str, list[str]]:
    """The known queries of each page, in lower case."""
    words: dict[str, list[str]] = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    return {page: [str(word).lower() for word in listed] for page, listed in words.items()}


def add_known_words(app: Sphinx, document: nodes.document, page: str) -> None:
    """Let the index of a page hold the words of its known queries."""
    if words := known_words().get(page):
        each = dict.fromkeys(re.findall(r"\w+", " ".join(words)))
        document.insert(0, nodes.meta(name="keywords", content=", ".join(each)))


def write_scorer(app: Sphinx, env: BuildEnvironment) -> None:
    """Write the scorer before the index asks for it."""
    if app.builder.format != "html":
        return
    descriptions = {page: describe(page, env.get_doctree(page)) for page in env.all_docs}
    scorer = SCORER.format(
        known=json.dumps(known_words(), ensure_ascii=False),
        descriptions=json.dumps(descriptions, ensure_ascii=False),
        terms=json.dumps(glossary_terms(env), ensure_ascii=False),
    )
    path = Path(app.doctreedir) / "scorer.js"
    path.write_text(scorer, encoding="utf-8")
    app.config.html_search_scorer = str(path)


def glossary_terms(env: BuildEnvironment) -> dict[str, str]:
    """The terms of the glossary, by the anchor at which each one stands."""
    objects = env.get_domain("std").get_objects()
    return {f"#{anchor}": name for _, name, kind, _, anchor, _ in objects if kind == "term"}


def load_script(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """What the search page does beyond Sphinx."""
    if page == "search":
        app.add_js_file("search.js", loading_method="defer", priority=410)


def index_prose(app: Sphinx) -> None:
    """Give the index each page without its folded source and its outputs."""
    if app.builder.format == "html":
        builder: Any = app.builder
        builder.index_page = without_cells(builder.index_page)


def without_cells(
    index_page: Callable[[str, nodes.document, str], None],
) -> Callable[[str, nodes.document, str], None]:
    def index(page: str, document: nodes.document, title: str) -> None:
        prose = document.deepcopy()
        for cell in list(prose.findall(nodes.container)):
            silent = "cell_output" in cell["classes"] or "tag_hide-input" in cell["classes"]
            if silent and cell.parent is not None:
                cell.parent.remove(cell)
        index_page(page, prose, title)

    return index


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", index_prose)
    app.connect("env-check-consistency", write_scorer)
    app.connect("doctree-resolved", add_known_words)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
