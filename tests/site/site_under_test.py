"""The built site, a server for it, a browser, and what a visit to one of its pages shows."""

import functools
import gzip
import mimetypes
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bs4 import BeautifulSoup
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Playwright,
    Request,
    Response,
)

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = Path(os.environ.get("BOOK_HTML", ROOT / "_build" / "html")).resolve()

# A page that asks for another host gets no answer.
FLAGS = ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",)
SYSTEM_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = (
    "No Chromium was found and none could be installed: run `playwright install --with-deps "
    "chromium`, or install your system's package of Chromium."
)
# Resolves once the page stands, or after a while where something in it is dead.
SETTLED = """async () => {
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  await document.fonts.ready;
  const dead = () => document.querySelector(".live:not([data-live])");
  for (let waited = 0; dead() && waited < 100; waited++) await pause(100);
}"""
PICTURES = """(figure) => [...figure.querySelectorAll(".live__picture > svg")]
  .filter((one) => one.checkVisibility()).map((one) => one.outerHTML)"""


class Setting(NamedTuple):
    """How a reader looks at a page."""

    scheme: Literal["light", "dark"]
    width: int


DESK, PHONE = Setting("light", 1280), Setting("dark", 390)

CONTENTS = (ROOT / "_toc.yml").read_text()
PAGES = [f"{name}.html" for name in re.findall(r"\b(?:root|file): (\S+)", CONTENTS)]
ALL_PAGES = [*PAGES, "search.html", "404.html"]
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.DOTALL)


@functools.cache
def parsed(path: Path) -> BeautifulSoup:
    """A page of the site without what is drawn of its formulas, which is most of it."""
    return BeautifulSoup(FORMULA.sub("", path.read_text(encoding="utf-8")), "html.parser")


def shown(figure: Locator) -> str:
    """The picture that a live figure shows."""
    pictures: list[str] = figure.evaluate(PICTURES)
    assert len(pictures) == 1
    return pictures[0]


def nudge(control: Locator) -> None:
    """Move a range by a key, whichever way it can go."""
    last = control.input_value() == control.get_attribute("max")
    control.press("ArrowLeft" if last else "ArrowRight")


@dataclass
class Visit:
    """A page that has been opened, what there is to complain of, and the sizes of its files."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)


class _Handler(SimpleHTTPRequestHandler):
    """Sends what a usual server sends: text compressed, fonts and pictures as they are."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        known = path.is_file()
        body, headers = _answer(path if known else SITE / "404.html")
        self.send_response(200 if known else 404)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # a test that has seen enough closes its page
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@functools.cache
def _answer(path: Path) -> tuple[bytes, dict[str, str]]:
    """What is sent of a file, and what is said of it."""
    body, headers = path.read_bytes(), {}
    if path.suffix not in (".woff2", ".png"):
        body, headers = gzip.compress(body, compresslevel=6), {"Content-Encoding": "gzip"}
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return body, headers | {"Content-Type": kind, "Content-Length": str(len(body))}


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A server of a folder on this machine, at the address given back."""
    handler = functools.partial(_Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def start_browser(playwright: Playwright) -> Browser:
    """Playwright's own Chromium or the system's; one is installed where there is none."""
    browser = _launch(playwright)
    if browser is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
        browser = _launch(playwright)
    if browser is None:
        raise RuntimeError(NO_BROWSER)
    return browser


def _launch(playwright: Playwright) -> Browser | None:
    on_the_system = (shutil.which(name) for name in SYSTEM_BROWSERS)
    for executable in (None, *(path for path in on_the_system if path)):
        with suppress(Error):
            return playwright.chromium.launch(executable_path=executable, args=FLAGS)
    return None


@contextmanager
def visit(
    browser: Browser, address: str, setting: Setting = DESK, *, first: str = "", **options: Any
) -> Iterator[Visit]:
    """Open a page with every other host out of reach, and wait until it stands.

    ``first`` is a script that runs before those of the page.
    """
    context = browser.new_context(
        viewport={"width": setting.width, "height": 900},
        color_scheme=setting.scheme,
        reduced_motion="reduce",  # so that a page has scrolled when it says so
        **options,
    )
    with context, context.new_page() as page:
        seen = Visit(page)
        _watch(seen, address)
        page.add_init_script(first)
        page.goto(address)
        if options.get("java_script_enabled", True):
            page.evaluate(SETTLED)
        yield seen


def _watch(seen: Visit, address: str) -> None:
    """Note what the page asks for, and each error and warning of its console."""
    own = ("/".join(address.split("/")[:3]), "data:", "blob:")

    def note_request(request: Request) -> None:
        if not request.url.startswith(own):
            seen.complaints.append(f"another host: {request.url}")

    def note_response(response: Response) -> None:
        if response.ok and response.url.startswith("http"):
            seen.sizes[response.url] = int(response.headers["content-length"])

    def note_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            seen.complaints.append(f"{message.type}: {message.text} {message.location}")

    seen.page.on("request", note_request)
    seen.page.on("response", note_response)
    seen.page.on("console", note_message)
    seen.page.on("pageerror", lambda error: seen.complaints.append(f"uncaught: {error}"))
