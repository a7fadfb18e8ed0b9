"""Serve the book on this machine, and build a page again as soon as its source changes.

    make preview

The settings are those of the book (_config.yml). A notebook is run again only where its code has
changed. A browser that shows a page loads it again when it has been built. Warnings are printed and
stop nothing here; `make book` treats them as errors.
"""

import errno
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from website.build import (
    ROOT,
    SITE,
    NotBuilt,
    NotExecuted,
    build,
    execute,
    notebooks_of_the_book,
    one_sentence_at_the_end,
)

ADDRESS = ("127.0.0.1", 8000)
WATCHED = (
    "_config.yml",
    "_toc.yml",
    "book/**/*",
    "pe_book/**/*",
    "pe_lib/**/*.py",
    "website/**/*",
    "experiments/**/*.py",
    "experiments/**/*.json*",
)
SECONDS_BETWEEN_LOOKS = 0.3
# The page asks for the number of the last build, and loads itself again when that has changed.
RELOAD = b"""<script>
  let built;
  setInterval(async () => {
    const now = await (await fetch("/last-build")).text();
    if (built && built !== now) location.reload();
    built = now;
  }, 500);
</script>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves the site, with a script in each page that loads it again after a build."""

    # The number of the last build. A process that is started again must not give a number twice, so
    # it begins with the time.
    last_build = time.time_ns()

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if self.path == "/last-build":
            self.answer(str(Handler.last_build).encode(), "text/plain")
        elif path.suffix == ".html" and path.is_file():
            self.answer(path.read_bytes() + RELOAD, "text/html; charset=utf-8")
        else:
            super().do_GET()

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def main() -> None:
    with one_sentence_at_the_end(), suppress(KeyboardInterrupt):
        serve()


def serve() -> None:
    """Serve the book until Ctrl+C, and build again what changes."""
    server = listening()
    seen = times_of_changes()
    try:
        execute(notebooks_of_the_book())
        build(whole=False, strict=False)
    except (NotExecuted, NotBuilt) as failure:
        print(failure, "The preview waits for the next change.", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"The book is at http://{ADDRESS[0]}:{ADDRESS[1]}/book/index.html. Ctrl+C ends this.")
    while True:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        now = times_of_changes()
        if changed := {path for path, _ in now.items() ^ seen.items()}:
            seen = now
            build_again(changed)


def listening() -> ThreadingHTTPServer:
    """The server, before anything is built: of two previews the second says so at once."""
    try:
        return ThreadingHTTPServer(ADDRESS, partial(Handler, directory=str(SITE)))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit(
            f"Another program uses port {ADDRESS[1]}, perhaps a `make preview` in another window. "
            "Stop it there with Ctrl+C, and run the command again."
        )


def build_again(changed: set[Path]) -> None:
    """Build what has changed, and say how long it took.

    This process has read the Python code as it was, and has run the notebooks with the results of
    the experiments as they were. Where one of these has changed, it starts itself again.
    """
    print("Changed:", *sorted(str(path.relative_to(ROOT)) for path in changed), flush=True)
    if any(path.suffix == ".py" or ROOT / "experiments" in path.parents for path in changed):
        if not can_start_again(changed):
            print("Not started again: the error above says why. The next change is tried.")
            return
        os.execv(sys.executable, [sys.executable, *sys.argv])
    started = time.perf_counter()
    try:
        build(whole=False, strict=False)
    except NotBuilt as failure:
        print(failure, flush=True)
        return
    Handler.last_build += 1
    print(f"Built in {time.perf_counter() - started:.1f} s", flush=True)


def can_start_again(changed: set[Path]) -> bool:
    """Whether Python can read the changed code, and import this program. It prints why not.

    An editor may have saved half a line, and a process that ended with it would not come back.
    """
    files = [str(path) for path in changed if path.suffix == ".py" and path.exists()]
    checks = [["-m", "py_compile", file] for file in files] + [["-c", "import website.preview"]]
    return all(
        subprocess.run([sys.executable, *check], cwd=ROOT, check=False).returncode == 0
        for check in checks
    )


def times_of_changes() -> dict[Path, float]:
    """When each source was changed last."""
    paths = (path for pattern in WATCHED for path in ROOT.glob(pattern))
    return {
        path: path.stat().st_mtime
        for path in paths
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)
    }


if __name__ == "__main__":
    main()
