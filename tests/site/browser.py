"""A visit to a page of the built site, as a reader makes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

# How a reader looks at a page.
DESK: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}
PHONE: dict[str, Any] = {"color_scheme": "dark", "viewport": {"width": 390, "height": 900}}
# Wait for three frames. The scripts that watch the sizes of boxes have then run.
SETTLE = """async () => {
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}"""


@contextmanager
def visit(browser: Browser, address: str, **setting: Any) -> Iterator[Page]:
    """Open a page and wait for its fonts.

    While it is open, the page must not complain: neither by an error or a warning in its console,
    nor by asking another host for something.
    """
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
