"""What search engines and shared links show of a page, and the address of the site.

The address is that of website/repository.py. Where it is not known, what needs an absolute address
is left out: the sitemap, the canonical link and the shared picture (website/templates/layout.html).
"""

import textwrap
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

from website.cards import SENTENCES, card_of, cards
from website.repository import site_address

LONGEST_DESCRIPTION = 200  # what the common search engines show
FRONT_DOOR = "index"  # the address of the site itself, which leads on to the landing page


def set_address(app: Sphinx, config: Config) -> None:
    """Sphinx writes the canonical link of each page from this."""
    config.html_baseurl = site_address()


def read_cards_anew(app: Sphinx, config: Config) -> None:
    """The preview builds many times, and sentences may have changed since the last."""
    cards.cache_clear()


def add_metadata(app: Sphinx, document: nodes.document, page: str) -> None:
    """Describe the page."""
    text = describe(page, app.env, document)
    document.insert(0, nodes.meta(name="description", content=text))
    document.insert(0, nodes.meta(property="og:description", content=text))


def describe(page: str, env: BuildEnvironment, document: nodes.document | None = None) -> str:
    """The description in a page's own metadata; else its first paragraph of text without
    mathematics, cut at a word; else its title."""
    if description := env.metadata[page].get("description"):
        return str(description)
    document = document or env.get_doctree(page)
    for paragraph in document.findall(nodes.paragraph):
        running = isinstance(paragraph.parent, nodes.section) and len(paragraph.astext()) > 40
        if running and not any(paragraph.findall(nodes.math)):
            return textwrap.shorten(paragraph.astext(), LONGEST_DESCRIPTION, placeholder=" …")
    title = next(iter(document.findall(nodes.title)), None)
    return title.astext() if title is not None else ""


def read_card(app: Sphinx, page: str, _: list[str]) -> None:
    """Build a page again when the sentences of the cards change."""
    if page.removeprefix("book/") in cards():
        app.env.note_dependency(str(SENTENCES))


def introduce(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Give each page its card. The address of the site introduces the landing page to whoever
    shares it."""
    context["card"] = card_of(page)
    if page == FRONT_DOOR:
        landing = app.config.root_doc
        context["own"] = app.env.titles[landing].astext()
        context["description"] = describe(landing, app.env)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", set_address)
    app.connect("config-inited", read_cards_anew)
    app.connect("source-read", read_card)
    app.connect("doctree-resolved", add_metadata)
    app.connect("html-page-context", introduce)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
