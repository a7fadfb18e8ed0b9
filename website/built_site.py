"""The built site: its folder, its pages, and a server for it on this machine."""

import functools
import gzip
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from website.contents import chapters_in, pages_in

ROOT = Path(__file__).resolve().parent.parent
SITE = Path(os.environ.get("BOOK_HTML", ROOT / "_build" / "html")).resolve()
DRAWN_FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.DOTALL)
# The size and the address of each file that a page has loaded from a server, as it was sent.
SIZES_OF_FILES = """() => performance.getEntries()
  .filter((entry) => "encodedBodySize" in entry && entry.name.startsWith("http"))
  .map((entry) => [entry.encodedBodySize, entry.name])"""


def chapters() -> list[str]:
    """The chapters, in the order of the contents."""
    return [f"{name}.html" for name in chapters_in()]


PAGES = [f"{name}.html" for name in pages_in()]


@functools.cache
def parsed(path: Path) -> BeautifulSoup:
    """A page of the site without its drawn formulas, which are most of it."""
    return BeautifulSoup(DRAWN_FORMULA.sub("", path.read_text(encoding="utf-8")), "html.parser")


@contextmanager
def serve() -> Iterator[str]:
    """A server of the site, at the address given back."""
    handler = functools.partial(_Handler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class _Handler(SimpleHTTPRequestHandler):
    """Sends what a usual server sends: files compressed, and 404.html for an unknown address."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        known = path.is_file()
        path = path if known else SITE / "404.html"
        body = gzip.compress(path.read_bytes(), compresslevel=6)
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # a test that has seen enough closes its page
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
