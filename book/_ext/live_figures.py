"""Keep the first picture of a slider in the page, for readers without scripts and for printers.

A slider's output holds the live widget and an SVG picture of its first frame; myst-nb would choose
the widget alone. Here the picture is put before it, and the style sheet hides the picture once the
widget has drawn itself.
"""

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

WIDGET_VIEW, PICTURE = "application/vnd.jupyter.widget-view+json", "image/svg+xml"


class KeepFirstFrame(SphinxPostTransform):
    """Put the picture of a bundle before the live view of the same bundle."""

    default_priority = 3  # before myst-nb selects one of the bundle's members, at 4
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for bundle in list(self.document.findall(_is_bundle)):
            members = {member["mime_type"]: member for member in bundle.children}
            if WIDGET_VIEW in members and PICTURE in members:
                still = nodes.container(classes=["live-figure__still"])
                still += members[PICTURE].children
                for image in still.findall(nodes.image):
                    image["alt"] = label_of(Path(self.app.srcdir) / image["uri"])
                live = nodes.container(classes=["live-figure"])
                live += [still, *members[WIDGET_VIEW].children]
                members[WIDGET_VIEW].children = []
                members[WIDGET_VIEW] += live


def _is_bundle(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle"


def label_of(picture: Path) -> str:
    """The text alternative that an SVG file carries."""
    label = re.search(r'aria-label=(?:"([^"]*)"|\'([^\']*)\')', picture.read_text())
    return html.unescape(label[1] or label[2]) if label else ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(KeepFirstFrame)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
