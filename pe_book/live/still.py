"""The still of a live figure: what its own scripts draw at a state, without a browser.

The scripts run in V8 (mini-racer). They ask for the page only once a reader moves something, so two
empty stand-ins for it are enough to draw. The browser's functions ``btoa`` and ``atob``, which
write and read bytes in base 64 and which V8 lacks, are written out.
"""

import atexit
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from py_mini_racer import MiniRacer

from pe_book.plots import STYLE_ALONE

FOLDER = Path(__file__).parent
KIT = ("draw", "light", "kit")
OF_A_SENTENCE = ("attention", "exchange")  # the kinds that need sentence.js
WITHOUT_A_PAGE = """
var window = { addEventListener() {} };
var document = { querySelectorAll: () => [] };
var DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function btoa(bytes) {
  let text = "";
  for (let k = 0; k < bytes.length; k += 3) {
    const [a, b, c] = [0, 1, 2].map((n) => bytes.charCodeAt(k + n) || 0);
    const digits = [a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63];
    const kept = Math.min(bytes.length - k, 3) + 1;
    text += digits.map((digit, n) => (n < kept ? DIGITS[digit] : "=")).join("");
  }
  return text;
}
function atob(text) {
  const bytes = [];
  for (let k = 0; k < text.length; k += 4) {
    const [a, b, c, d] = [0, 1, 2, 3].map((n) => DIGITS.indexOf(text[k + n]));
    bytes.push((a << 2) | (b >> 4));
    if (c >= 0) bytes.push(((b & 15) << 4) | (c >> 2));
    if (d >= 0) bytes.push(((c & 3) << 6) | d);
  }
  return bytes.map((byte) => String.fromCharCode(byte)).join("");
}
"""
DRAW = """(kind, data, state) => {
  const spec = peLive.kinds[kind](data);
  return peLive.html(spec, peLive.allowAll(spec, state, peLive.defaults(spec)));
}"""
DECLARED = """(kind) => {
  const { title, controls } = peLive.kinds[kind]({});
  return JSON.stringify({ title, controls });
}"""

WHERE_LIVE = "Live in JupyterLab with anywidget, and on the book's site."
WIDE_PICTURE = re.compile(r"<svg [^>]*live-picture--wide.*?</svg>", re.DOTALL)
PICTURE_OF_FRAMES = re.compile(r"<svg .*</svg>", re.DOTALL)
PICTURE_RULES = re.compile(r"/\* -+ The picture.*?\*/(.*?)/\* -+ The box", re.DOTALL)
COLOUR = re.compile(r"var\(--[\w-]+, ([^()]*)\)")


def module(kind: str) -> str:
    """The kit and the script of a kind, as the one text that anywidget takes."""
    return scripts(kind) + "export default { render: peLive.render };\n"


def scripts(kind: str) -> str:
    return text_of(*KIT, *files_of(kind))


def text_of(*names: str) -> str:
    return "".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in names)


def files_of(kind: str) -> list[str]:
    """The files of a kind beside the kit: what it shares, its data if it has some, its script."""
    shared = ["sentence"] if kind in OF_A_SENTENCE else []
    data = f"data/{kind}"
    return [*shared, data, kind] if (FOLDER / f"{data}.js").is_file() else [*shared, kind]


@cache
def engine() -> MiniRacer:
    """V8 with the kit."""
    racer = MiniRacer()
    atexit.register(racer.close)  # else its threads may still run when Python ends
    racer.eval(WITHOUT_A_PAGE + text_of(*KIT))
    return racer


@cache
def load(kind: str) -> None:
    """Let V8 know a kind."""
    engine().eval(text_of(*files_of(kind)))


def declared(kind: str) -> dict[str, Any]:
    """What the script of a kind declares: its ``title`` and its ``controls``, without functions."""
    load(kind)
    spec: dict[str, Any] = json.loads(str(engine().eval(f"({DECLARED})({json.dumps(kind)})")))
    return spec


def content_of_box(kind: str, state: dict[str, Any], data: dict[str, Any]) -> str:
    """What stands below the question before anything moves: controls, picture, sentence."""
    call = f"({DRAW})({json.dumps(kind)}, {json.dumps(data)}, {json.dumps(state)})"
    load(kind)
    return str(engine().eval(call))


def box(kind: str, question: str, state: dict[str, Any], data: dict[str, Any]) -> str:
    """A figure of the site, as HTML: its question, its still, and what the script needs."""
    given = html.escape(json.dumps(state))
    asked = f'<p class="live__question">{html.escape(question)}</p>' if question else ""
    held = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    script = f'<script type="application/json">{held}</script>' if data else ""
    return (
        f'<div class="live" data-figure="{kind}" data-state="{given}">'
        f"{asked}{content_of_box(kind, state, data)}{script}</div>"
    )


def picture(kind: str, state: dict[str, Any], data: dict[str, Any]) -> str:
    """The still alone, as one SVG element that brings its style."""
    drawn = content_of_box(kind, state, data)
    if kind == "frames":
        return picture_of_frames(drawn)
    found = WIDE_PICTURE.search(drawn)
    assert found is not None, "every kind draws a wide picture"
    return with_note(found[0])


def picture_of_frames(drawn: str) -> str:
    """Frames are drawings of Matplotlib: they need their style and no note."""
    found = PICTURE_OF_FRAMES.search(drawn)
    assert found is not None, "every frame is an SVG element"
    return found[0].replace(' role="img"', f' style="{STYLE_ALONE}" role="img"', 1)


def with_note(svg: str) -> str:
    """A computed picture with its style, a white ground, and a line that says where it moves."""
    size = re.search(r'viewBox="0 0 (\d+) (\d+)" width="\d+" height="\d+"', svg)
    assert size is not None, "kit.js writes the size of each picture so"
    width, height = int(size[1]), int(size[2]) + 28
    head = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    ground = f'<rect width="{width}" height="{height}" style="fill:#fff"></rect>'
    note = f'<text class="muted" x="4" y="{height - 10}">{html.escape(WHERE_LIVE, False)}</text>'
    style = f"<style>{style_of_pictures()}</style>"
    drawn = svg.replace(size[0], head).replace("</svg>", note + "</svg>")
    return drawn.replace(">", ">" + style + ground, 1)


@cache
def style_of_pictures() -> str:
    """The rules of kit.css that draw a picture, with colours in place of variables."""
    found = PICTURE_RULES.search((FOLDER / "kit.css").read_text(encoding="utf-8"))
    assert found is not None, "kit.css marks the rules of the picture by a comment"
    return re.sub(r"\s+", " ", COLOUR.sub(r"\1", found[1])).strip()
