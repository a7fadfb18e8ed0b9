"""What the page "What does this model's RoPE do?" is filled with.

The table of families goes with the page, and so do the examples of book/data/inspector.yml. What
the page says of the first example is made while the site is built, by the page's own scripts in V8
(mini-racer): whoever has no scripts reads that.
"""

import atexit
import html
import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from py_mini_racer import MiniRacer

import pe_lib.rope
from pe_lib.rope.families import FILE as FAMILY_FILE
from website.page_measures import BOOK

PAGE = "book/inspector"
EXAMPLES = BOOK / "data" / "inspector.yml"
FAMILY_TABLE = Path(pe_lib.rope.__file__).with_name(FAMILY_FILE)
ASSETS = Path(__file__).resolve().parent.parent / "assets"
SCRIPTS = ("rope_settings.js", "inspector.js")
ANSWER = "(text, length) => inspector.view(text, length).html"


def inspector() -> dict[str, Any]:
    """``families`` and ``examples``, texts of JSON that stand in the page, and its first answer."""
    examples = {
        each["name"]: {"config": each["config"], "length": each["length"]}
        for each in yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    }
    first = next(iter(examples.values()))
    return {
        "families": in_a_page(table()),
        "examples": in_a_page(json.dumps(examples, ensure_ascii=False)),
        "names": list(examples),
        "length": first["length"],
        "config": html.escape(first["config"]).replace("\n", "&#10;"),  # one block of HTML
        "answer": str(engine().call("answer", first["config"], first["length"])).replace(
            "\n", "&#10;"
        ),
    }


def table() -> str:
    """The families, on one line without spaces."""
    known = json.loads(FAMILY_TABLE.read_text(encoding="utf-8"))
    return json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def in_a_page(text: str) -> str:
    """JSON as it may stand in a script of a page."""
    return text.replace("</", "<\\/")


@cache
def engine() -> MiniRacer:
    """V8 with the scripts of the page and the table of families."""
    racer = MiniRacer()
    atexit.register(racer.close)  # else its threads may still run when Python ends
    for name in SCRIPTS:
        racer.eval((ASSETS / name).read_text(encoding="utf-8") + ";0")
    racer.eval(f"inspector.useTable({json.dumps(table())}); const answer = {ANSWER};0")
    return racer
