"""A Chromium for the tests, the PDF and the measurements.

    python website/browser.py     make sure that this machine has a browser

`make test` runs this once, before the tests, because two tests that install a browser at the same
time get in each other's way. Whatever runs later only starts the browser and installs nothing.
"""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

from playwright.sync_api import Browser, Error, Locator, Playwright, expect, sync_playwright

# The names under which systems install Chromium. The first is Chromium without windows, which opens
# a page in half the time. Playwright itself knows where Chrome lies.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser")
ADVICE = (
    "No browser was found, and none could be installed. Where a message above names missing "
    "libraries or dependencies, type `sudo .venv/bin/playwright install-deps chromium`. Else type "
    "`.venv/bin/playwright install chromium`, or install Chromium or Chrome with your system's "
    "package manager (on Debian: `sudo apt-get install chromium`). Then run the same command again."
)
ADVICE_ON_PLAYWRIGHT = (
    "It drives the browser for the tests of the site by a program of its own, which needs a "
    "library of the system. The message above names it. For libatomic.so.1 type "
    "`sudo apt-get install libatomic1` on Debian and Ubuntu, or `sudo dnf install libatomic` on "
    "Fedora. Then run the same command again."
)
NO_GPU = "--disable-gpu"  # all drawing is then the processor's, without an emulated GPU between
# Chromium without windows does not know its network, and would then fetch pictures that are 3,000
# pixels away. As elsewhere these are 1,250.
AS_ON_4G = "--blink-settings=lazyLoadingImageMarginPxUnknown=1250"
NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"

PICTURES = """(figure) => [...figure.querySelectorAll(".live__picture > svg")]
  .filter((picture) => picture.checkVisibility()).map((picture) => picture.outerHTML)"""


# ---- A browser


def main() -> None:
    """Bring a browser where none starts, and say what to type where that fails."""
    with ExitStack() as stack:
        try:
            playwright = stack.enter_context(sync_playwright())
        except Exception as failure:  # Playwright has no narrower one for this
            sys.exit(f"Playwright does not start: {failure}\n\n{ADVICE_ON_PLAYWRIGHT}")
        for bring in (download, install_with_apt_get):
            if starts_a_browser(playwright):
                return
            bring()
        start_browser(playwright)  # where none starts now either, it says why


def starts_a_browser(playwright: Playwright) -> bool:
    """Whether this machine has a browser that starts."""
    try:
        launch(playwright)
    except NoBrowser:
        return False
    return True


def start_browser(playwright: Playwright) -> Browser:
    """A browser that reaches no other host than this one."""
    try:
        return launch(playwright)
    except NoBrowser as failure:
        sys.exit(f"{failure}\n\n{ADVICE}")


class NoBrowser(Exception):
    """No browser of this machine starts. The text says of each that was tried why not."""


def launch(playwright: Playwright) -> Browser:
    """Start the first browser of this machine that starts.

    Playwright's own comes first. That a program has a browser's name is not enough: Ubuntu's
    ``chromium-browser`` may only print how to install one.
    """
    reasons = []
    own: dict[str, Any] = {}
    installed = [{"executable_path": path} for path in map(shutil.which, CHROMIUM) if path]
    for which in (own, *installed, {"channel": "chrome"}):
        try:
            return playwright.chromium.launch(**which, args=[NO_OTHER_HOST, NO_GPU, AS_ON_4G])
        except Error as error:
            name = " ".join(which.values()) or "Playwright's own Chromium"
            reasons.append(f"{name}: {error.message}")
    raise NoBrowser("\n\n".join(reasons))


def download() -> None:
    """Let Playwright download its own Chromium."""
    print("No browser was found. Playwright downloads Chromium, about 170 MB.", flush=True)
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"Playwright could not download it:\n{done.stdout}{done.stderr}", flush=True)


def install_with_apt_get() -> None:
    """Install the system's Chromium, where this system has apt-get and the user may use it: the one
    without windows, or where there is none, as on Ubuntu, the whole."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if not (is_root and shutil.which("apt-get")):
        return
    print("apt-get installs Chromium.", flush=True)
    apt_get("update")
    for name in CHROMIUM[:2]:
        if apt_get("install", "--yes", name):
            return


def apt_get(*step: str) -> bool:
    """Whether apt-get did it. What is missing it says itself, on the stream of errors."""
    unattended = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "--quiet", "--quiet", *step]
    done = subprocess.run(command, env=unattended, stdout=subprocess.DEVNULL, check=False)
    return done.returncode == 0


# ---- A live figure on a page


def move(figure: Locator) -> None:
    """A key on any control of a live figure, and a press of any choice, changes its picture."""
    expect(figure).to_have_attribute("data-live", "")
    for control in figure.locator("input:enabled").all():
        before = picture_of(figure)
        is_at_the_end = control.input_value() == control.get_attribute("max")
        control.press("ArrowLeft" if is_at_the_end else "ArrowRight")
        assert picture_of(figure) != before, "a key did not move the picture"
        told = figure.locator(".live__value").all_inner_texts()
        assert control.get_attribute("aria-valuetext") in told
    for choice in figure.locator('[data-set][aria-pressed="false"]').all():
        before = picture_of(figure)
        choice.press("Enter")
        assert picture_of(figure) != before, "a button did not move the picture"


def picture_of(figure: Locator) -> str:
    """The picture that a live figure shows at the width of its page."""
    pictures: list[str] = figure.evaluate(PICTURES)
    assert len(pictures) == 1, "one picture is for wide screens, one for narrow ones"
    return pictures[0]


if __name__ == "__main__":
    main()
