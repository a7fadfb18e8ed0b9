"""JupyterLab in an environment of its own, and a visit to a notebook in it by a real browser."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Error, Page, expect
from site_under_test import move

PATIENCE = 240_000  # milliseconds for one step on a busy machine
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
# The cells of text in which a theorem, a proof or an equation is missing or not understood.
WRONG = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter((cell) => cell.model.type === "markdown")
  .map((cell) => [cell.model.sharedModel.getSource(), cell.node.querySelector(".myst")])
  .filter(([source, drawn]) =>
    !drawn?.textContent || /:::|\\{prf:|\\$\\$/.test(drawn.textContent)
    || drawn.querySelector(".katex-error")
    || drawn.querySelectorAll(".katex-display").length < /^\\s*\\$\\$/m.test(source)
    || drawn.querySelectorAll(".myst-proof").length
       < (source.match(/^:::+\\{prf:\\w+\\}/gm) ?? []).length)
  .map(([source]) => source)"""
RUN_ALL = """async () => {
  const { content, sessionContext } = window.jupyterapp.shell.currentWidget;
  await sessionContext.ready;
  await window.jupyterapp.commands.execute("notebook:run-all-cells");
  return content.widgets.map((cell) => cell.model.toJSON())
    .filter((cell) => cell.cell_type === "code");
}"""
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.id"
SHUT_DOWN = "window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"


@contextmanager
def serve_lab(commands: Path, folder: Path) -> Iterator[str]:
    """JupyterLab of an environment, serving a folder at the address given back."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = free.getsockname()
    with TemporaryDirectory(prefix="lab-") as home, Path(home, "log").open("w") as log:
        settings = Path(home) / SETTINGS
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(DRAW_ALL))
        own = {"HOME": home, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
        command = [str(commands / "jupyter"), "lab", "--no-browser", "--allow-root"]
        command += ["--ip=127.0.0.1", f"--port={place[1]}", f"--IdentityProvider.token={TOKEN}"]
        command += ["--LabApp.expose_app_in_browser=True"]
        with subprocess.Popen(command, cwd=folder, env=own, stdout=log, stderr=log) as server:
            try:
                while server.poll() is None:
                    with suppress(OSError), socket.create_connection(place):
                        break
                    time.sleep(0.2)
                else:
                    sys.exit(f"JupyterLab did not start:\n{Path(log.name).read_text()}")
                yield f"http://127.0.0.1:{place[1]}/"
            finally:
                server.terminate()


def visit(browser: Browser, url: str, path: str) -> int:
    """Open a notebook, look at its text, run all its cells and move its live figures.

    Gives the megabytes that its kernel took.
    """
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.set_default_timeout(PATIENCE)
        page.goto(f"{url}lab/tree/{path}?reset&token={TOKEN}")
        page.wait_for_function(IS_READY)
        with suppress(Error):  # there is time to draw it, and then to say what is not
            page.wait_for_function(f"() => ({WRONG})().length === 0", timeout=60_000)
        try:
            wrong = page.evaluate(WRONG)
            assert not wrong, wrong
            run(page)
            return peak_memory(page.evaluate(KERNEL))
        finally:
            page.evaluate(SHUT_DOWN)


def run(page: Page) -> None:
    """Every cell has run, in order, without an error or a word on stderr, and the figures move."""
    cells = page.evaluate(RUN_ALL)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    for output in outputs:
        assert output["output_type"] != "error", output
        assert output.get("name") != "stderr", output
    figures = page.locator(".live[data-live]")
    views = [output for output in outputs if VIEW in output.get("data", {})]
    expect(figures).to_have_count(len(views), timeout=PATIENCE)
    for figure in figures.all():
        move(figure)


def peak_memory(kernel: str) -> int:
    """The high-water mark in MB of the process that has this kernel's connection file."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if kernel in (process / "cmdline").read_text():
                _, _, peak = (process / "status").read_text().partition("VmHWM:")
                return int(peak.split()[0]) * 1024 // 10**6
    raise LookupError(f"No process has the kernel {kernel}")
