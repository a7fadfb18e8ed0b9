"""JupyterLab in an environment of its own, and a visit to a notebook in it by a real browser."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "site"))

from site_under_test import PICTURES, nudge, start_browser

PATIENCE = 240  # seconds for one step on a busy machine
TOKEN = "rehearsal"

# JupyterLab draws the cells that are near the screen.
IS_READY = """() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  return Boolean(panel?.context?.isReady && panel.content?.widgets?.length
                 && panel.sessionContext?.session?.kernel);
}"""
# Looks at each cell with a theorem, a proof or a displayed equation until it is drawn as one.
DRAWN = """async (patience) => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const complaints = [];
  let boxes = 0;
  for (const [number, cell] of notebook.widgets.entries()) {
    const source = cell.model.sharedModel.getSource();
    const wanted = source.match(/^:::+\\{prf:\\w+\\}/gm) ?? [];
    const display = /^\\s*\\$\\$/m.test(source);
    if (cell.model.type !== "markdown" || !(wanted.length || display)) continue;
    boxes += wanted.length;
    const state = () => {
      const drawn = cell.node.querySelector(".myst");
      const text = drawn?.textContent ?? "";
      if (!text) return "nothing is drawn";
      if (/:::|\\{prf:|\\$\\$/.test(text)) return "markup is shown as it is written";
      if (drawn.querySelector(".katex-error")) return "an equation is not understood";
      if (display && !drawn.querySelector(".katex-display")) return "no equation is drawn";
      const found = drawn.querySelectorAll(".myst-proof").length;
      if (found < wanted.length) return `${found} boxes for ${wanted.length} theorems and proofs`;
      return "";
    };
    const end = Date.now() + 1000 * patience;
    let wrong = "not looked at";
    while (wrong && Date.now() < end) {
      // Far from the screen and back, where a drawing was lost.
      if (wrong !== "not looked at") await notebook.scrollToItem(0);
      await notebook.scrollToItem(number);
      for (let waited = 0; (wrong = state()) && waited < 50; waited++) await pause(100);
    }
    if (wrong) complaints.push(`cell ${number + 1}: ${wrong}`);
  }
  return { boxes, complaints };
}"""
RUN_ALL = """async (patience) => {
  const run = async () => {
    await window.jupyterapp.shell.currentWidget.sessionContext.ready;
    await window.jupyterapp.commands.execute("notebook:run-all-cells");
  };
  const tired = (_, reject) => setTimeout(() => reject(Error("still running")), 1000 * patience);
  await Promise.race([run(), new Promise(tired)]);
}"""
OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter((cell) => cell.model.type === "code")
  .map((cell) => ({ count: cell.model.executionCount, outputs: cell.model.outputs.toJSON() }))"""
# The place among all cells of the cell with this live figure, once it is drawn.
SCROLL_TO_FIGURE = """async (which) => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const live = "application/vnd.jupyter.widget-view+json";
  const cells = notebook.widgets.filter((cell) => cell.model.type === "code"
    && cell.model.outputs.toJSON().some((output) => live in (output.data ?? {})));
  const place = notebook.widgets.indexOf(cells[which]);
  await notebook.scrollToItem(place);
  return cells[which].node.querySelector(".live[data-live]") ? place : 0;
}"""


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
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "PYTHON", "VIRTUAL_ENV"))
    }
    with TemporaryDirectory(prefix="lab-") as home, (Path(home) / "log").open("w+") as log:
        runtime = Path(home) / "runtime"
        own = {"HOME": home, "JUPYTER_RUNTIME_DIR": str(runtime)}
        own |= {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
        command = [str(commands / "jupyter"), "lab", "--no-browser", "--allow-root"]
        command += ["--ip=127.0.0.1", "--port=0", f"--IdentityProvider.token={TOKEN}"]
        command += ["--LabApp.expose_app_in_browser=True"]
        server = subprocess.Popen(
            command, cwd=folder, env=kept | own, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield wait_for_address(server, runtime, Path(home) / "log")
        finally:
            server.terminate()
            server.wait(PATIENCE)


def wait_for_address(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Where the server answers, as soon as it does."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                url = str(json.loads(file.read_text())["url"])
                ask(url, "api/status")
            except (ValueError, OSError):
                continue  # half written, or not answering yet
            return url
        time.sleep(0.2)
    sys.exit(f"JupyterLab did not start:\n{log.read_text()}")


def visit(url: str, path: str, patience: int = PATIENCE) -> Seen:
    """Open a notebook, look at it, run all its cells and move its live figures.

    ``patience`` is how many seconds a cell may take to be drawn, and all of them three times that
    to run.
    """
    started, seen = time.perf_counter(), Seen(path)
    with sync_playwright() as playwright, start_browser(playwright) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        try:
            # In a workspace of its own, because two are open at a time.
            page.goto(f"{url}lab/workspaces/{Path(path).stem}/tree/{path}?reset&token={TOKEN}")
            page.wait_for_function(IS_READY)
            drawn = page.evaluate(DRAWN, patience)
            seen.boxes = drawn["boxes"]
            seen.complaints += drawn["complaints"]
            page.evaluate(RUN_ALL, min(PATIENCE, 3 * patience))
            judge_outputs(page, seen)
            move_figures(page, seen)
        except Error as error:
            seen.complaints.append(str(error))
    for session in json.loads(ask(url, "api/sessions")):
        if session["path"] == path:
            seen.megabytes = peak_memory(session["kernel"]["id"])
            ask(url, f"api/sessions/{session['id']}", "DELETE")
    seen.seconds = time.perf_counter() - started
    print(f"  seen {path}", flush=True)
    return seen


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
    live = "application/vnd.jupyter.widget-view+json"
    outputs = [output for cell in page.evaluate(OUTPUTS) for output in cell["outputs"]]
    for which in range(sum(live in output.get("data", {}) for output in outputs)):
        place = page.wait_for_function(SCROLL_TO_FIGURE, arg=which, polling=500).json_value()
        figure = page.locator(f'[data-windowed-list-index="{place}"] .live')
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
        try:
            if kernel in (process / "cmdline").read_text():
                status = dict(
                    line.split(":", 1) for line in (process / "status").read_text().splitlines()
                )
                return int(status["VmHWM"].split()[0]) * 1024 // 10**6
        except OSError:
            continue  # it has ended
    return 0
