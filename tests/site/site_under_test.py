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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    Playwright,
    Request,
    Response,
)

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = Path(os.environ.get("BOOK_HTML", ROOT / "_build" / "html")).resolve()

# A root user has no sandbox of Chromium's, and the rest keeps it from calling home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SYSTEM_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = (
    "No Chromium was found and none could be installed: run `playwright install --with-deps "
    "chromium`, or install your system's package of Chromium."
)
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
# Resolves once the page stands, or after a while where something in it is dead.
SETTLED = """async () => {
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  await document.fonts.ready;
  const dead = () => document.querySelector(".live:not([data-live])");
  for (let waited = 0; dead() && waited < 100; waited++) await pause(100);
}"""
# Marks one element for each look of a text, its colour, size and weight on the same grounds, and
# leaves out what axe would look through for long: the parts of formulas, and code that looks like
# other code.
PREPARE = """() => {
  document.querySelectorAll("mjx-math, mjx-assistive-mml")
    .forEach((part) => part.replaceChildren(part.matches("mjx-math") ? "" : "formula"));
  const looks = new Map();
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  for (const text of document.body.querySelectorAll("*")) {
    if (!hasText(text) || !text.checkVisibility()) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(text);
    const look = [color, fontSize, fontWeight];
    for (let around = text; around; around = around.parentElement) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(around);
      const ground = [backgroundColor, backgroundImage, opacity, filter].join();
      if (ground !== "rgba(0, 0, 0, 0),none,1,none") look.push(ground);
    }
    looks.set(look.join("|"), text);
  }
  for (const text of looks.values()) text.dataset.look = "";
  for (const code of document.querySelectorAll("pre:not(:has([data-look]))"))
    code.textContent = code.textContent;
}"""
RUN_AXE = """(rules) => {
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-look]" }] });
  return axe.run({ runOnly: rules, resultTypes: ["violations"], preload: false })
    .then((found) => found.violations);
}"""
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


PICTURES = """(figure) => [...figure.querySelectorAll(".live__picture > svg")]
  .filter((one) => one.checkVisibility()).map((one) => one.outerHTML)"""


class Setting(NamedTuple):
    """How a reader looks at a page."""

    scheme: Literal["light", "dark"]
    width: int


DESK, PHONE = Setting("light", 1280), Setting("dark", 390)


def pages_in(contents: Any) -> Iterator[str]:
    """The addresses, within the site, of the pages that a part of the table of contents names."""
    if isinstance(contents, dict):
        named = [contents[key] for key in ("root", "file") if key in contents]
        yield from (f"{name}.html" for name in named)
        yield from pages_in([value for value in contents.values() if isinstance(value, list)])
    elif isinstance(contents, list):
        for part in contents:
            yield from pages_in(part)


PAGES = list(pages_in(yaml.safe_load((ROOT / "_toc.yml").read_text())))
ALL_PAGES = [*PAGES, "search.html", "404.html"]
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.DOTALL)


@functools.cache
def parsed(path: Path) -> BeautifulSoup:
    """A page of the site without what is drawn of its formulas, which is most of it."""
    return BeautifulSoup(FORMULA.sub("", path.read_text(encoding="utf-8")), "html.parser")


def figures_of(name: str) -> int:
    """How many live figures the source of a page in the book shows."""
    path = ROOT / "book" / Path(name).with_suffix(".ipynb")
    if path.exists():
        return len(re.findall(r'"Live figure: ', path.read_text()))
    path = path.with_suffix(".md")
    return len(re.findall(r"^`{3}\{live\}", path.read_text(), re.M)) if path.exists() else 0


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
    """A page that has been opened, and what it asked for and complained of."""

    page: Page
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def axe(self) -> list[str]:
        """The violations of accessibility that axe finds, one line each.

        Contrast is measured at one text of each look. The page is of no use afterwards.
        """
        self.page.evaluate(PREPARE)
        self.page.evaluate(AXE)
        found = self.page.evaluate(RUN_AXE, AXE_RULES)
        return [
            f"{violation['id']}: {node['html'][:150]}"
            for violation in found
            for node in violation["nodes"]
        ]


class _Handler(SimpleHTTPRequestHandler):
    """Sends what a usual server sends: text compressed, fonts and pictures as they are."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        known = path.is_file()
        body, kind = _answer(path if known else Path(self.directory) / "404.html")
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if not path.suffix.startswith((".woff", ".png")):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with suppress(ConnectionError):  # a test that has seen enough closes its page
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@functools.cache
def _answer(path: Path) -> tuple[bytes, str]:
    """What is sent of a file, and its kind."""
    body = path.read_bytes()
    if not path.suffix.startswith((".woff", ".png")):
        body = gzip.compress(body, compresslevel=6)
    return body, mimetypes.guess_type(path.name)[0] or "application/octet-stream"


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A server of a folder on this machine, at the address given back."""
    handler: Callable[..., SimpleHTTPRequestHandler] = functools.partial(
        _Handler, directory=str(folder)
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def start_browser(playwright: Playwright) -> Browser:
    """Playwright's own Chromium or the system's; one is installed where there is none."""
    browser = _launch(playwright)
    for command in () if browser else _installations():
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if browser := _launch(playwright):
            break
    if browser is None:
        raise RuntimeError(NO_BROWSER)
    return browser


def _launch(playwright: Playwright) -> Browser | None:
    on_the_system = (shutil.which(name) for name in SYSTEM_BROWSERS)
    for executable in (None, *(path for path in on_the_system if path)):
        try:
            return playwright.chromium.launch(executable_path=executable, args=FLAGS)
        except Error:
            continue
    return None


def _installations() -> Iterator[list[str]]:
    yield [sys.executable, "-m", "playwright", "install", "chromium"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield [sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"]
        if shutil.which("apt-get"):
            yield ["apt-get", "install", "-y", "-qq", "chromium"]


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
    try:
        seen = Visit(context.new_page())
        _watch(context, seen, address)
        if first:
            seen.page.add_init_script(first)
        seen.page.goto(address)
        if options.get("java_script_enabled", True):
            seen.page.evaluate(SETTLED)
        yield seen
    finally:
        context.close()


def _watch(context: BrowserContext, seen: Visit, address: str) -> None:
    scheme_and_host = "/".join(address.split("/")[:3])

    def is_foreign(request: Request) -> bool:
        return not request.url.startswith((scheme_and_host, "data:", "blob:"))

    def note_request(request: Request) -> None:
        if is_foreign(request):
            seen.foreign.append(request.url)

    def note_response(response: Response) -> None:
        if response.ok and not response.url.startswith(("data:", "blob:", "file:")):
            seen.sizes[response.url] = int(response.headers["content-length"])

    context.route(
        "**/*", lambda route: route.abort() if is_foreign(route.request) else route.continue_()
    )
    seen.page.on("request", note_request)
    seen.page.on("response", note_response)
    seen.page.on(
        "console",
        lambda message: (
            seen.complaints.append(f"{message.type}: {message.text} {message.location}")
            if message.type in ("error", "warning")
            else None
        ),
    )
    seen.page.on("pageerror", lambda error: seen.complaints.append(f"uncaught: {error}"))
