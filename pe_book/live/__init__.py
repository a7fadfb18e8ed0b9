"""Live figures: drawn and moved in the browser, in notebooks and on the site.

A kind of figure is one script, which draws and computes: ``clock.js``. Here a line makes the
function that notebooks call, with the controls that the script declares. All kinds share one kit
(``draw.js``, ``light.js``, ``kit.js``, ``kit.css``) and one base class (``figure.py``).

A figure left as the last value of a cell shows. In a running notebook it is a widget (anywidget):
``figure.x`` is the value of its control now, ``figure.x = 5`` moves it, and ``figure.observe`` and
``ipywidgets.link`` work on it. The built site runs the same scripts without a kernel. Where nothing
runs at all, the figure's still is shown: the same drawing, made by the same scripts (``still.py``).
"""

from pe_book.live.figure import KINDS as KINDS
from pe_book.live.figure import kind
from pe_book.live.frames import frames as frames
from pe_book.live.frames import frames2 as frames2
from pe_book.live.still import FOLDER as FOLDER
from pe_book.live.still import box as box

POSITIONS = {
    r"\mathrm{PE}(x+\Delta x)": "after",
    r"\mathrm{PE}(x)": "x",
    r"T(\Delta x)": "matrix",
    r"\Delta x": "step",
    "x": "x",
}
attention = kind("attention")
byte = kind("byte")
clock = kind("clock", POSITIONS)
companion = kind("companion")
crank = kind("crank")
digits = kind("digits")
exchange = kind("exchange")
formats = kind("formats")
orbit = kind("orbit")
rope = kind("rope", {"m-n": "offset", "m": "m", "n": "n"})
similarity = kind("similarity", {r"K(\Delta)": "score", r"\Delta": "offset"})
subspaces = kind("subspaces", {"U": "words", "V": "positions"})
table = kind("table", POSITIONS)

__all__ = [*KINDS, "frames2"]
