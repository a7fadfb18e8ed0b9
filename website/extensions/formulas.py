"""Set the formulas while the site is built, so that a page comes with its mathematics in it.

MathJax runs here, in V8 as mini-racer brings it, and not in the reader's browser: a page needs no
script for its formulas, nothing moves when they appear, and nobody waits for them. Beside what is
drawn stands MathML, for the voices that read it. While Sphinx writes a page, a mark holds the place
of each formula; the finished page gets the formulas (website/finish/formulas.py).
"""

import atexit
import functools
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.domains.math import MathDomain
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

VENDOR = Path(__file__).resolve().parent.parent / "assets" / "vendor" / "mathjax"
PARTS = (
    "core",
    "adaptors/liteDOM",
    "input/tex",
    "[tex]/html",  # \class, for the symbols that a live figure shows
    "output/chtml",
    "a11y/assistive-mml",
)
STYLE_SHEET, FONTS = "formulas.css", "mathjax/output/chtml/fonts/woff-v2"
START = """\
const sources = SOURCES;
var MathJax = {
  loader: { load: PARTS, paths: { mathjax: "." }, require: (name) => {
    if (!(name.slice(2) in sources)) throw Error(`website/vendor.py does not fetch ${name}`);
    (0, eval)(sources[name.slice(2)]);
  } },
  tex: { packages: { "[-]": ["noundefined"], "[+]": ["html"] } },  // an unknown name is an error
  chtml: { fontURL: "FONTS", adaptiveCSS: false },
  startup: { typeset: false },
};"""
MATHML = ' xmlns="http://www.w3.org/1998/Math/MathML"'
USE = """\
const { adaptor } = MathJax.startup;
const setFormula = (tex, display) => adaptor.outerHTML(MathJax.tex2chtml(tex, { display }));
const styleSheet = () => adaptor.textContent(MathJax.chtmlStylesheet());"""

PLACE = '<mjx-container data-set="{}"></mjx-container>'
PLACES = re.compile(PLACE.format(r"(\d+)"))
FORMULAS: list[str] = []  # as HTML, by their number


@functools.cache
def mathjax() -> MiniRacer:
    """MathJax, started when the first formula asks for it."""
    js = MiniRacer()
    atexit.register(js.close)  # without this the interpreter may hang at exit
    sources = {
        path.relative_to(VENDOR).as_posix(): path.read_text(encoding="utf-8")
        for path in VENDOR.rglob("*.js")
    }
    settings = {
        "SOURCES": json.dumps(sources),
        "PARTS": json.dumps(PARTS),
        "FONTS": f"vendor/{FONTS}",
    }
    # Each text ends in a value that can cross over to Python.
    js.eval(re.sub("SOURCES|PARTS|FONTS", lambda name: settings[name[0]], START) + "0")
    js.eval(sources["startup.js"] + ";0")
    js.eval(USE + "0")
    return js


@functools.cache
def set_formula(tex: str, display: bool) -> int:
    """The number of a formula that has been set."""
    formula = str(mathjax().call("setFormula", tex, display))
    for for_browsers in (' unselectable="on"', ' style="position: relative;"', MATHML):
        formula = formula.replace(for_browsers, "")
    FORMULAS.append(formula)
    return len(FORMULAS) - 1


def with_classes(tex: str, symbols: dict[str, str]) -> str:
    """The same formula with a class around each symbol that a live figure of the page shows.

    Longer symbols come first, so that PE(x) is marked as a whole and not its x alone. Words and
    names of environments are no symbols.
    """
    if not symbols:
        return tex
    longest_first = sorted(symbols, key=len, reverse=True)
    names = "|".join(
        re.escape(name) if name.startswith("\\") else rf"(?<![\\a-zA-Z]){re.escape(name)}"
        for name in longest_first
    )
    words = r"\\(?:text|begin|end|operatorname|label)\{[^}]*\}"
    symbol = re.compile(rf"{words}|(?P<symbol>{names})(?![a-zA-Z])")
    return symbol.sub(lambda match: with_class(match, symbols), tex)


def with_class(match: re.Match[str], symbols: dict[str, str]) -> str:
    """A symbol with the class of the part that shows it, or what is no symbol, as it is."""
    symbol = match["symbol"]
    return rf"{{\class{{tie tie-{symbols[symbol]}}}{{{symbol}}}}}" if symbol else match[0]


def place_for(node: nodes.Element, tex: str, symbols: dict[str, str], display: bool = False) -> str:
    """Set a formula, and return the mark that holds its place until the page is finished.

    A formula that MathJax does not understand is a warning.
    """
    number = set_formula(with_classes(tex, symbols), display)
    if "data-mjx-error" in FORMULAS[number]:
        # Perhaps the formula is right, and a class stands where TeX takes a single sign. So it is
        # set once more, without the classes that mark the symbols of live figures.
        number = set_formula(tex, display)
    if problem := re.search(r'data-mjx-error="([^"]*)"', FORMULAS[number]):
        logger.warning("%s: %s", html.unescape(problem[1]), tex.strip(), location=node)
    return PLACE.format(number)


# What a formula is read by, to find where a line may end in it.
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
OPENS = re.compile(r"\\(?:left|begin|lvert|lVert|lfloor|lceil|langle|\{)$|[({\[]$")
CLOSES = re.compile(r"\\(?:right|end|rvert|rVert|rfloor|rceil|rangle|\})$|[)}\]]$")
RELATIONS = ("=", r"\approx", r"\le", r"\leq", r"\ge", r"\geq", r"\equiv", r"\propto")
SPACES = (r"\quad", r"\qquad")
BARS = ("|", r"\|")
ROWS = (r"\\", "&")
LONG = 55  # letters of TeX of a piece, from which on it may be broken before its pluses, too


def clauses_of(tex: str) -> list[list[str]]:
    """The clauses of a formula of one line, between its wide spaces, each in its pieces.

    A narrow screen breaks the formula between clauses, and a clause that it cannot hold between
    pieces: these begin at a relation outside of all brackets, and where they would be long at a
    plus. A formula of several rows is one piece.
    """
    if any(token in ROWS for token, is_outside in tokens_of(tex) if is_outside):
        return [[tex]]
    return [
        [
            piece
            for part in split_before(clause, RELATIONS)
            for piece in (split_before(part, ("+",)) if len(part) > LONG else [part])
        ]
        for clause in split_before(tex, SPACES)
    ]


def split_before(tex: str, signs: tuple[str, ...]) -> list[str]:
    """The parts of a formula, each of which but the first begins with one of these signs, or stood
    behind it where it is a space."""
    parts = [""]
    for token, is_outside in tokens_of(tex):
        if is_outside and token in signs and parts[-1].strip(" {}"):
            parts.append("{}")  # a sign keeps the space before it
        parts[-1] += "" if is_outside and token in SPACES else token
    return [part for part in parts if part.strip(" {}")]


def tokens_of(tex: str) -> Iterator[tuple[str, bool]]:
    """The commands and signs of a formula, each with whether it stands outside of all brackets."""
    depth, in_bars, is_named = 0, False, False
    for token in TOKEN.findall(tex):
        if not is_named:  # a bracket that \\left or \\right names has been counted with it
            depth += bool(OPENS.match(token)) - bool(CLOSES.match(token))
            in_bars ^= not depth and token in BARS
        is_named = token in (r"\left", r"\right")
        yield token, not depth and not in_bars


def symbols_of(writer: Any) -> dict[str, str]:
    """The symbols that the live figures of the page show (live_figures.py)."""
    builder = writer.builder
    symbols: dict[str, str] = builder.env.metadata[builder.current_docname].get("symbols", {})
    return symbols


def visit_math(writer: Any, node: nodes.math) -> None:
    formula = place_for(node, node.astext(), symbols_of(writer))
    writer.body.append(writer.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    writer.body.append(f"{formula}</span>")
    raise nodes.SkipNode


def visit_displayed_math(writer: Any, node: nodes.math_block) -> None:
    tex = node.astext()
    clauses = [[tex]] if node["number"] else clauses_of(tex)
    if clauses != [[tex]]:
        writer.body.append(writer.starttag(node, "div", "", CLASS="math-line"))
        for clause in clauses:
            marks = (place_for(node, rf"\displaystyle {one}", symbols_of(writer)) for one in clause)
            pieces = (f'<span class="math notranslate nohighlight">{mark}</span>' for mark in marks)
            writer.body.append(f"<span>{''.join(pieces)}</span>")
        writer.body.append("</div>\n")
        raise nodes.SkipNode
    if r"\\" in tex and not node["nowrap"]:
        tex = rf"\begin{{split}}{tex}\end{{split}}"  # several lines are aligned, as Sphinx does
    formula = place_for(node, tex, symbols_of(writer), display=True)
    writer.body.append(writer.starttag(node, "div", "", CLASS="math notranslate nohighlight"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(f"{formula}</div>\n")
    raise nodes.SkipNode


def add_style_sheet(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """The rules, where there are formulas."""
    domain = app.env.get_domain("math")
    if isinstance(domain, MathDomain) and domain.has_equations(page):
        app.add_css_file(STYLE_SHEET)


def style_sheet() -> str:
    """MathJax's rules for all signs, with the fonts of the site. The site keeps those it uses."""
    rules = str(mathjax().call("styleSheet"))
    return rules.replace('.woff")', '.woff2")').replace('"woff"', '"woff2"')


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("set_when_built", (visit_math, None), (visit_displayed_math, None))
    app.connect("html-page-context", add_style_sheet)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
