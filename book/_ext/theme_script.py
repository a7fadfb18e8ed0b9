"""The theme's script without one of its parts.

When a page has loaded, and after each change of it, the theme reads the size of every box that may
scroll, and writes into each whether the keyboard can reach it. Each writing makes the browser set
the page again before the next reading: on a slow phone this holds chapter 3 for half a second. The
book's own script does the same work with observers (watchWide in book.js).
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SCRIPT = Path("_static/scripts/pydata-sphinx-theme.js")
START = '"complete"===document.readyState?I():window.addEventListener("load",I)'
INSTEAD = "/* watchWide of book.js does this */0"


def leave_out_watching(app: Sphinx, exception: Exception | None) -> None:
    """Let the theme's script end before it starts to watch the boxes."""
    if exception is not None or app.builder.format != "html":
        return
    path = Path(app.outdir) / SCRIPT
    text = path.read_text(encoding="utf-8")
    if INSTEAD in text:  # copied by a build before
        return
    if text.count(START) != 1:
        raise ExtensionError(f"{SCRIPT} does not contain {START}. Is the theme another version?")
    path.write_text(text.replace(START, INSTEAD), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", leave_out_watching)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
