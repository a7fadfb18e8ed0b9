"""Draw the stills of the live figures anew, in a browser, with their own scripts.

    make stills

A still is what the kit writes below a figure's question at the state to begin with. There is one of
each kind as it begins by itself, and one of each state that a page of the book asks for. Notebooks
hold the picture of a still in their outputs: `make stills` runs them next.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "site"))

from site_under_test import start_browser  # noqa: E402

from pe_lib.book import live  # noqa: E402

KINDS = [kind for kind in live.KINDS if kind != "frames"]
SHOWN = re.compile(r"Live figure: (\w+)\(([^()]*)\)")  # in the outputs of a notebook
GIVEN = re.compile(r"(\w+) *= *([^,\s]+)")
DRAW = """([kind, state]) => {
  const spec = peLive.kinds[kind]({});
  return peLive.html(spec, peLive.allowAll(spec, state, peLive.defaults(spec)));
}"""


def main() -> None:
    for path in live.STILLS.glob("*.html"):
        path.unlink()
    live.STILLS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = start_browser(playwright)
        for name, text in draw_stills(browser):
            (live.STILLS / f"{name}.html").write_text(text)
            print(f"{len(text):7d}  {name}")
        browser.close()


def draw_stills(browser: Browser) -> Iterator[tuple[str, str]]:
    """Name and text of every still, as the scripts draw them now."""
    page = browser.new_page()
    for name in (*live.KIT, *KINDS):
        page.add_script_tag(path=live.FOLDER / f"{name}.js")
    for kind in KINDS:
        yield kind, page.evaluate(DRAW, [kind, {}])
    texts = [path.read_text() for path in (ROOT / "book").rglob("*.ipynb")]
    for kind, given in sorted({figure for text in texts for figure in SHOWN.findall(text)}):
        if kind in KINDS:
            state = {key: json.loads(value) for key, value in GIVEN.findall(given)}
            yield live.still_name(kind, state), page.evaluate(DRAW, [kind, state])
    page.close()


if __name__ == "__main__":
    main()
