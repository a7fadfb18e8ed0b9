"""Install the book as Binder does, and run one chapter in JupyterLab.

    make binder

A clean environment gets what binder/requirements.txt asks for, and the JupyterLab that Binder
brings along. A browser then opens the chapter as the launch button does, runs all its cells and
moves its live figures. The image itself is built in a workflow, by repo2docker, which needs Docker.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from website.browser import move, start_browser
from website.install import AS_THEY_ARE

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = "book/checks/rotation.ipynb"  # it has theorems, and a figure that Python follows
NOT_SOURCES = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info")
THEOREM = re.compile(r"^\s*\":::+\{prf:\w+\}", re.MULTILINE)
LIVE_VIEW = "application/vnd.jupyter.widget-view+json"
PATIENCE = 240_000  # milliseconds for one step on a busy machine
MOST_SECONDS_TO_START = 240  # of JupyterLab, on a busy machine
TOKEN = "binder"
# JupyterLab draws every cell, however far from the screen it is.
SETTINGS = ".jupyter/lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
DRAW_ALL_CELLS = {"windowingMode": "none"}

IS_READY = """() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  return Boolean(panel?.context?.isReady && panel.content?.widgets?.length
                 && panel.sessionContext?.session?.kernel);
}"""
RUN_ALL_CELLS = """async () => {
  const { content, sessionContext } = window.jupyterapp.shell.currentWidget;
  await sessionContext.ready;
  await window.jupyterapp.commands.execute("notebook:run-all-cells");
  return content.widgets.map((cell) => cell.model.toJSON())
    .filter((cell) => cell.cell_type === "code");
}"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="binder-") as folder:
        checkout, environment = Path(folder) / "checkout", Path(folder) / "environment"
        shutil.copytree(ROOT, checkout, ignore=NOT_SOURCES)
        install(checkout, environment)
        with (
            serve_jupyterlab(environment / "bin", checkout) as url,
            sync_playwright() as playwright,
            start_browser(playwright) as browser,
        ):
            try:
                try_chapter(browser, url)
            except (AssertionError, Error) as error:  # at times JupyterLab itself loses a drawing
                print(f"Opened once more, because of: {error}", flush=True)
                try_chapter(browser, url)
    print(f"{CHAPTER} runs in the JupyterLab of Binder's environment, and its figures move.")


def install(checkout: Path, environment: Path) -> None:
    """Make the environment that Binder's image holds for this book."""
    wanted = (checkout / "binder" / "runtime.txt").read_text(encoding="utf-8").strip()
    python = shutil.which(wanted.replace("-", "")) or sys.executable
    print(f"Binder takes {wanted}; this trial takes {python}.", flush=True)
    if subprocess.run([python, "-m", "venv", environment], check=False).returncode:
        sys.exit("The environment was not made; Python says why above.")
    # An index out of reach would otherwise be asked six times for each package.
    quick = os.environ | {"PIP_RETRIES": "1", "PIP_QUIET": "1"}
    pip = [str(environment / "bin" / "pip"), "install", AS_THEY_ARE]
    brought_along = ["jupyterlab", "-c", "constraints.txt"]
    for packages in (brought_along, ["-r", "binder/requirements.txt"]):
        print("pip install", *packages, flush=True)
        if subprocess.run([*pip, *packages], cwd=checkout, env=quick, check=False).returncode:
            sys.exit("What Binder installs was not installed; pip says why above.")


@contextmanager
def serve_jupyterlab(commands: Path, folder: Path) -> Iterator[str]:
    """The JupyterLab of an environment, serving a folder at the address given back."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = free.getsockname()
    command = [str(commands / "jupyter"), "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [f"--port={place[1]}", f"--IdentityProvider.token={TOKEN}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    with tempfile.TemporaryDirectory(prefix="jupyterlab-") as home:
        settings = Path(home) / SETTINGS
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(DRAW_ALL_CELLS), encoding="utf-8")
        own = {"HOME": home, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
        log = Path(home, "log")
        with (
            log.open("w", encoding="utf-8") as written,
            subprocess.Popen(command, cwd=folder, env=own, stdout=written, stderr=written) as lab,
        ):
            try:
                wait_for(place, lab, log)
                yield f"http://127.0.0.1:{place[1]}/"
            finally:
                lab.terminate()


def wait_for(place: tuple[str, int], server: subprocess.Popen[bytes], log: Path) -> None:
    """Return as soon as the server answers. Stop where it has ended, or takes too long."""
    end = time.monotonic() + MOST_SECONDS_TO_START
    while server.poll() is None and time.monotonic() < end:
        with suppress(OSError), socket.create_connection(place):
            return
        time.sleep(0.2)
    how = f"within {MOST_SECONDS_TO_START} s" if server.poll() is None else "and has ended"
    sys.exit(f"JupyterLab did not start {how}:\n{log.read_text(encoding='utf-8')}")


def try_chapter(browser: Browser, url: str) -> None:
    """Open the chapter: its theorems are drawn, its cells run, and its live figures move."""
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.set_default_timeout(PATIENCE)
        page.goto(f"{url}lab/tree/{CHAPTER}?reset&token={TOKEN}")
        page.wait_for_function(IS_READY)
        theorems = len(THEOREM.findall((ROOT / CHAPTER).read_text(encoding="utf-8")))
        assert theorems > 0
        expect(page.locator(".myst-proof")).to_have_count(theorems, timeout=60_000)
        expect(page.locator(".katex-error")).to_have_count(0)
        run_cells(page)


def run_cells(page: Page) -> None:
    """Every cell runs, in order, without an error or a word on stderr; the live figures move."""
    cells = page.evaluate(RUN_ALL_CELLS)
    outputs = [output for cell in cells for output in cell["outputs"]]
    for output in outputs:
        assert output["output_type"] != "error", output
        assert output.get("name") != "stderr", output
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    views = [output for output in outputs if LIVE_VIEW in output.get("data", {})]
    figures = page.locator(".live[data-live]")
    expect(figures).to_have_count(len(views), timeout=PATIENCE)
    assert views
    for figure in figures.all():
        move(figure)
    follow(page)


def follow(page: Page) -> None:
    """Python follows the last figure of the page: what the cell below it shows changes."""
    figure = page.locator(".live[data-live]").last
    cell = page.locator(".jp-CodeCell").filter(has=figure)
    below = cell.locator("xpath=following-sibling::*[contains(@class, 'jp-CodeCell')][1]")
    output = below.locator(".jp-OutputArea-output pre").first
    shown = output.inner_text()
    figure.locator('[data-set][aria-pressed="false"]').first.press("Enter")
    expect(output).not_to_have_text(shown)


if __name__ == "__main__":
    main()
