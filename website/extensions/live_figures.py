"""Live figures on the site: the box with its still, and the scripts of the kinds that a page shows.

A figure's output in a notebook holds the view of a widget; its traits lie in the state of the
widgets. Here the view is replaced by the box of pe_book.live. The box holds its still, which is
drawn now and is in its final place before any script runs. The widgets' state leaves the page.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from pe_book import live
from pe_book.live.still import KIT, files_of

VIEW = "application/vnd.jupyter.widget-view+json"
MODEL = re.compile(r'"model_id": "(\w+)"')
COMMENTS = re.compile(r"^ *(?://[^\n]*|/\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
AT_THE_END = re.compile(r" +// [^\n\"'`]*$", re.MULTILINE)  # of a line, and surely in no text
BOX = re.compile(r'<div class="live" data-figure="(\w+)"')


def place_figures(app: Sphinx, document: nodes.document) -> None:
    """Put the box of each live figure in the place of its widget view, and note its symbols."""
    models = take_models(app.env)
    for view in list(document.findall(nodes.container)):
        if view.get("mime_type") == VIEW and (found := MODEL.search(view.astext())):
            traits = models[found[1]]["state"]
            view.parent.replace_self(nodes.raw("", box_of(traits), format="html"))
    # For formulas.py, which marks them.
    app.env.metadata[app.env.docname]["symbols"] = symbols_of(document)


def symbols_of(document: nodes.document) -> dict[str, str]:
    """The symbols that the figures of a page show. The landing page brings its box along."""
    boxes = (kind for raw in document.findall(nodes.raw) for kind in BOX.findall(raw.astext()))
    return {symbol: part for kind in boxes for symbol, part in live.KINDS[kind].symbols.items()}


def box_of(traits: dict[str, Any]) -> str:
    """The box of a figure, from the traits that its widget has stored."""
    kind = traits["figure"]
    names = [
        name for name in live.KINDS[kind].controls() if name in traits
    ]  # older than its script?
    state = {name: traits[name] for name in names}
    return live.box(kind, traits["question"], state, traits["data"])


def take_models(env: BuildEnvironment) -> dict[str, Any]:
    """The models of a page's widgets, by name; they are taken away from what the page loads."""
    pages: dict[str, Any] = getattr(env, "nb_metadata", {})
    files = pages.get(env.docname, {}).get("js_files", {})
    _, state = files.get("ipywidgets_state", (None, {"body": "{}"}))
    for name in [name for name in files if name.startswith("ipywidgets_")]:
        del files[name]
    models: dict[str, Any] = json.loads(state["body"]).get("state", {})
    return models


def load_kinds(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """A page loads the kit and the kinds that it shows, and a page without figures nothing."""
    kinds = sorted(set(BOX.findall(context.get("body", ""))))
    if not kinds:
        return
    for name in (*KIT, *(name for kind in kinds for name in files_of(kind))):
        app.add_js_file(f"live/{name}.js", loading_method="defer", priority=300)
    app.add_js_file("live/ties.js", loading_method="defer", priority=310)
    if "data-face=" in context["body"]:
        app.add_js_file("live/margin.js", loading_method="defer", priority=310)
    app.add_css_file("live/kit.css", priority=900)


def copy_files(app: Sphinx) -> None:
    """The scripts and the style sheet, as they lie beside the figures."""
    target = Path(app.outdir) / "_static" / "live"
    for path in live.FOLDER.rglob("*.js"):
        copy = target / path.relative_to(live.FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(without_comments(path.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copy(live.FOLDER / "kit.css", target)


def without_comments(script: str) -> str:
    """A script without its comments: a fifth of what is sent."""
    return AT_THE_END.sub("", COMMENTS.sub("", script))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy_files)
    app.connect("doctree-read", place_figures)
    app.connect("html-page-context", load_kinds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
