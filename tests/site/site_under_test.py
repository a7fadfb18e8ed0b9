"""The built site, a server for it, a browser, and a visit to one of its pages."""

import functools
import gzip
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Playwright, Request, expect

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = Path(os.environ.get("BOOK_HTML", ROOT / "_build" / "html")).resolve()

CONTENTS = (ROOT / "_toc.yml").read_text()
PAGES = [f"{name}.html" for name in re.findall(r"\b(?:root|file): (\S+)", CONTENTS)]
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.DOTALL)

# How a reader looks at a page.
DESK: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}
PHONE: dict[str, Any] = {"color_scheme": "dark", "viewport": {"width": 390, "height": 900}}

# Of each file that a page has loaded from a server, as it was sent.
SIZES = """() => performance.getEntries()
  .filter((one) => "encodedBodySize" in one && one.name.startsWith("http"))
  .map((one) => [one.encodedBodySize, one.name])"""
PICTURES = """(figure) => [...figure.querySelectorAll(".live__picture > svg")]
  .filter((one) => one.checkVisibility()).map((one) => one.outerHTML)"""


@functools.cache
def parsed(path: Path) -> BeautifulSoup:
    """A page of the site without what is drawn of its formulas, which is most of it."""
    return BeautifulSoup(FORMULA.sub("", path.read_text(encoding="utf-8")), "html.parser")


class _Handler(SimpleHTTPRequestHandler):
    """Sends what a usual server sends: compressed, and a page of its own for what is not there."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        known = path.is_file()
        body = gzip.compress((path if known else SITE / "404.html").read_bytes(), compresslevel=6)
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # a test that has seen enough closes its page
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve() -> Iterator[str]:
    """A server of the site on this machine, at the address given back."""
    handler = functools.partial(_Handler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def start_browser(playwright: Playwright) -> Browser:
    """Playwright's own Chromium, else the system's; one is installed where there is none. It
    reaches no other host."""
    own = Path(playwright.chromium.executable_path).exists()
    path = None if own else shutil.which("chromium")
    if not own and path is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)
    only_here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
    return playwright.chromium.launch(executable_path=path, args=[only_here])


@contextmanager
def visit(browser: Browser, address: str, **setting: Any) -> Iterator[Page]:
    """Open a page and wait until its fonts stand. It must not complain while it is open: by an
    error or a warning of its console, or by asking another host."""
    complaints: list[str] = []

    def note_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.text} {message.location}")

    def note_failure(request: Request) -> None:
        if request.failure == "net::ERR_NAME_NOT_RESOLVED":
            complaints.append(f"another host: {request.url}")

    # Without motion, a page has scrolled when it says so.
    with browser.new_page(reduced_motion="reduce", **(DESK | setting)) as page:
        page.on("console", note_message)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("requestfailed", note_failure)
        page.goto(address)
        page.evaluate("document.fonts.ready.then(() => null)")
        yield page
        assert not complaints, complaints


def move(figure: Locator) -> None:
    """A key on any control of a live figure, and a press of any choice, changes its picture."""
    expect(figure).to_have_attribute("data-live", "")
    for control in figure.locator("input:enabled").all():
        before = shown(figure)
        last = control.input_value() == control.get_attribute("max")
        control.press("ArrowLeft" if last else "ArrowRight")
        assert shown(figure) != before, "a key did not move the picture"
        said = figure.locator(".live__value").all_inner_texts()
        assert control.get_attribute("aria-valuetext") in said
    for choice in figure.locator('[data-set][aria-pressed="false"]').all():
        before = shown(figure)
        choice.press("Enter")
        assert shown(figure) != before, "a button did not move the picture"


def shown(figure: Locator) -> str:
    """The picture that a live figure shows."""
    pictures: list[str] = figure.evaluate(PICTURES)
    assert len(pictures) == 1, "one picture is for wide screens, one for narrow ones"
    return pictures[0]
