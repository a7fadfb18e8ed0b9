"""Live figures: drawn and moved in the browser, in notebooks and on the site.

Each kind of figure is two files of one name beside each other: ``clock.py`` says what a notebook
calls and which values Python can read and set, ``clock.js`` draws and computes. All kinds share one
kit (``draw.js``, ``light.js``, ``kit.js``, ``kit.css``) and one base class (``figure.py``).

A figure left as the last value of a cell shows. In a running notebook it is a widget (anywidget):
``figure.x`` is the value of its control now, ``figure.x = 5`` moves it, and ``figure.observe`` and
``ipywidgets.link`` work on it. The built site runs the same scripts without a kernel. Where nothing
runs at all, the figure's still is shown: the same drawing, made by the same scripts (``still.py``).
"""

from pe_book.live.clock import Clock, clock
from pe_book.live.crank import Crank, crank
from pe_book.live.exchange import Exchange, exchange
from pe_book.live.figure import LiveFigure
from pe_book.live.formats import Formats, formats
from pe_book.live.frames import Frames, frames, frames2
from pe_book.live.orbit import Orbit, orbit
from pe_book.live.rope import Rope, rope
from pe_book.live.similarity import Similarity, similarity
from pe_book.live.still import FOLDER as FOLDER
from pe_book.live.still import box as box
from pe_book.live.subspaces import Subspaces, subspaces
from pe_book.live.table import Table, table

__all__ = [
    "clock",
    "crank",
    "exchange",
    "formats",
    "frames",
    "frames2",
    "orbit",
    "rope",
    "similarity",
    "subspaces",
    "table",
]

KINDS: dict[str, type[LiveFigure]] = {
    figure.kind: figure
    for figure in (
        Clock,
        Crank,
        Exchange,
        Formats,
        Frames,
        Orbit,
        Rope,
        Similarity,
        Subspaces,
        Table,
    )
}
