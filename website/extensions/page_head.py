"""What search engines and shared links show of a page, and the address of the site.

The address is that of tools/repository.py. Where it is not known, what needs an absolute address is
left out: the sitemap, the canonical link and the shared picture (templates/layout.html).
"""

import functools
import textwrap
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.osutil import relative_uri
from tools.repository import site_address

LONGEST_DESCRIPTION = 200  # what the common search engines show
DESCRIPTIONS = Path(__file__).resolve().parent.parent / "data" / "descriptions.yml"


def set_address(app: Sphinx, config: Config) -> None:
    """Sphinx writes the canonical link of each page from this."""
    config.html_baseurl = site_address()


def add_metadata(app: Sphinx, document: nodes.document, page: str) -> None:
    """Describe the page."""
    said = describe(page, document)
    document.insert(0, nodes.meta(name="description", content=said))
    document.insert(0, nodes.meta(property="og:description", content=said))


@functools.cache
def descriptions() -> dict[str, str]:
    """What is said of a page that is listed."""
    listed: dict[str, str] = yaml.safe_load(DESCRIPTIONS.read_text(encoding="utf-8"))
    return listed


def describe(page: str, document: nodes.document) -> str:
    """What is said of a page: its description; else its first paragraph of text without
    mathematics, cut at a word; else its title."""
    if page in descriptions():
        return descriptions()[page]
    for paragraph in document.findall(nodes.paragraph):
        running = isinstance(paragraph.parent, nodes.section) and len(paragraph.astext()) > 40
        if running and not any(paragraph.findall(nodes.math)):
            return textwrap.shorten(paragraph.astext(), LONGEST_DESCRIPTION, placeholder=" …")
    title = next(iter(document.findall(nodes.title)), None)
    return title.astext() if title is not None else ""


def write_redirects(app: Sphinx, exception: Exception | None) -> None:
    """Leave a page at each old address that leads to the new one (`moved` in _config.yml).

    They are written here and not by Sphinx, which would make the contents and the header of each.
    Who shares the address of the site shares one of them: each introduces the page it leads to.
    """
    if exception is not None or app.builder.format != "html":
        return
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    for old, new in app.config.html_context.get("moved", {}).items():
        if new not in app.env.titles:
            message = (
                f"`moved` in _config.yml leads from {old} to {new}, but there is no page {new}."
            )
            raise ExtensionError(message)
        address, icon = f"{old}.html", "_static/favicon.svg"
        context = {
            "language": app.config.language,
            "docstitle": app.config.html_title,
            "target": relative_uri(address, f"{new}.html"),
            "icon": relative_uri(address, icon),
            "own": app.env.titles[new].astext(),
            "description": describe(new, app.env.get_doctree(new)),
            "html_baseurl": app.config.html_baseurl,
            "pageurl": f"{app.config.html_baseurl}{new}.html",
        }
        page = app.builder.templates.render("redirect.html", context)
        Path(app.outdir, address).parent.mkdir(parents=True, exist_ok=True)
        Path(app.outdir, address).write_text(page, encoding="utf-8")


def write_sitemap(app: Sphinx, exception: Exception | None) -> None:
    """List the pages for search engines, where the address of the site is known."""
    address = app.config.html_baseurl
    if exception is not None or app.builder.format != "html" or not address:
        return
    pages = (f"<url><loc>{address}{page}.html</loc></url>" for page in sorted(app.env.found_docs))
    start = '<?xml version="1.0" encoding="UTF-8"?>\n'
    urls = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(pages)}</urlset>'
    Path(app.outdir, "sitemap.xml").write_text(f"{start}{urls}\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", set_address)
    app.connect("doctree-resolved", add_metadata)
    app.connect("build-finished", write_redirects)
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
