"""JupyterLab in an environment of its own, and a visit to a notebook in it by a real browser."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "site"))

from site_under_test import PICTURES, nudge, start_browser

PATIENCE = 240  # seconds for one step on a busy machine
TOKEN = "rehearsal"
VIEW = "application/vnd.jupyter.widget-view+json"
# Every cell is drawn, however far from the screen it is.
SETTINGS = ".jupyter/lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
DRAW_ALL = {"windowingMode": "none"}

IS_READY = """() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  return Boolean(panel?.context?.isReady && panel.content?.widgets?.length
                 && panel.sessionContext?.session?.kernel);
}"""
# What is wrong with a cell of text, its theorems, proofs and displayed equations.
WRONG = """() => window.jupyterapp.shell.currentWidget.content.widgets.flatMap((cell, place) => {
  if (cell.model.type !== "markdown") return [];
  const source = cell.model.sharedModel.getSource();
  const boxes = (source.match(/^:::+\\{prf:\\w+\\}/gm) ?? []).length;
  const drawn = cell.node.querySelector(".myst") ?? document.createElement("div");
  const count = (selector) => drawn.querySelectorAll(selector).length;
  const found = {
    "nothing is drawn": !drawn.textContent,
    "markup is shown as it is written": /:::|\\{prf:|\\$\\$/.test(drawn.textContent),
    "an equation is not understood": count(".katex-error"),
    "no equation is drawn": /^\\s*\\$\\$/m.test(source) && !count(".katex-display"),
    [`not all of ${boxes} theorems and proofs are drawn`]: count(".myst-proof") < boxes,
  };
  const said = Object.keys(found).filter((what) => found[what]);
  return said.map((what) => `cell ${place + 1}: ${what}`);
})"""
RUN_ALL = """async () => {
  await window.jupyterapp.shell.currentWidget.sessionContext.ready;
  await window.jupyterapp.commands.execute("notebook:run-all-cells");
}"""
OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter((cell) => cell.model.type === "code")
  .map((cell) => ({ count: cell.model.executionCount, outputs: cell.model.outputs.toJSON() }))"""


@dataclass
class Seen:
    """What a visit to a notebook showed."""

    path: str
    seconds: float = 0
    megabytes: int = 0
    boxes: int = 0
    controls: int = 0
    complaints: list[str] = field(default_factory=list)


@contextmanager
def serve_lab(commands: Path, folder: Path) -> Iterator[str]:
    """JupyterLab of an environment, serving a folder at the address given back."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with TemporaryDirectory(prefix="lab-") as home, Path(home, "log").open("w+") as log:
        settings = Path(home) / SETTINGS
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(DRAW_ALL))
        own = {"HOME": home, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
        command = [str(commands / "jupyter"), "lab", "--no-browser", "--allow-root"]
        command += ["--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
        command += ["--LabApp.expose_app_in_browser=True"]
        server = subprocess.Popen(command, cwd=folder, env=own, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/"
            if not answers(server, url):
                sys.exit(f"JupyterLab did not start:\n{Path(log.name).read_text()}")
            yield url
        finally:
            server.terminate()
            server.wait(PATIENCE)


def answers(server: subprocess.Popen[bytes], url: str) -> bool:
    """Whether a server answers before it ends or patience does."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError):
            return bool(ask(url, "api/status"))
        time.sleep(0.2)
    return False


def visit(url: str, path: str) -> Seen:
    """Open a notebook, look at it, run all its cells and move its live figures."""
    started, seen = time.perf_counter(), Seen(path)
    with sync_playwright() as playwright, start_browser(playwright) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        try:
            # In a workspace of its own, because two are open at a time.
            page.goto(f"{url}lab/workspaces/{Path(path).stem}/tree/{path}?reset&token={TOKEN}")
            page.wait_for_function(IS_READY)
            seen.complaints += wrong_cells(page)
            seen.boxes = page.locator(".myst-proof").count()
            page.evaluate(RUN_ALL)
            judge_outputs(page, seen)
            move_figures(page, seen)
        except Error as error:
            seen.complaints.append(str(error))
    for session in json.loads(ask(url, "api/sessions")):
        if session["path"] == path:
            seen.megabytes = peak_memory(session["kernel"]["id"])
            ask(url, f"api/sessions/{session['id']}", "DELETE")
    seen.seconds = time.perf_counter() - started
    return seen


def wrong_cells(page: Page) -> list[str]:
    """What is still wrong with the text when there was time to draw it."""
    with suppress(Error):
        page.wait_for_function(f"() => ({WRONG})().length === 0", timeout=60_000)
    return list(page.evaluate(WRONG))


def judge_outputs(page: Page, seen: Seen) -> None:
    """Every cell has run, in order, without an error or a word on stderr."""
    cells: list[dict[str, Any]] = page.evaluate(OUTPUTS)
    if [cell["count"] for cell in cells] != list(range(1, len(cells) + 1)):
        seen.complaints.append(f"cells ran as {[cell['count'] for cell in cells]}")
    for cell in cells:
        for output in cell["outputs"]:
            if output["output_type"] == "error" or output.get("name") == "stderr":
                told = output.get("evalue") or output.get("text")
                seen.complaints.append(f"[{cell['count']}] {told}")


def move_figures(page: Page, seen: Seen) -> None:
    """A step of every range, and a press of every choice, shows another picture."""
    outputs = [output for cell in page.evaluate(OUTPUTS) for output in cell["outputs"]]
    figures = page.locator(".live[data-live]")
    for which in range(sum(VIEW in output.get("data", {}) for output in outputs)):
        figure = figures.nth(which)
        figure.wait_for()
        ranges = figure.locator("input:enabled").all()
        for control in [*ranges, *figure.locator('[aria-pressed="false"][data-set]').all()]:
            before = figure.evaluate(PICTURES)
            if control in ranges:
                nudge(control)
            else:
                control.press("Enter")
            end = time.monotonic() + PATIENCE
            while (after := figure.evaluate(PICTURES)) == before and time.monotonic() < end:
                page.wait_for_timeout(100)
            seen.controls += 1
            if after == before or len(after) != 1:
                seen.complaints.append(f"control {seen.controls} shows {len(after)} pictures")


def ask(url: str, address: str, method: str = "GET") -> bytes:
    """What JupyterLab's server answers."""
    headers = {"Authorization": f"token {TOKEN}"}
    request = urllib.request.Request(url + address, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return bytes(answer.read())


def peak_memory(kernel: str) -> int:
    """The high-water mark in MB of the process that has this kernel's connection file."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if kernel in (process / "cmdline").read_text():
                _, _, peak = (process / "status").read_text().partition("VmHWM:")
                return int(peak.split()[0]) * 1024 // 10**6
    return 0
