"""The dress rehearsal of the launch button: what Binder installs, looked at in a browser.

    make rehearsal

repo2docker prints the Dockerfile that Binder would build. Its step for this book is run in a clean
virtual environment on top of what repo2docker brings itself: JupyterLab and JupyterHub at the
versions of its own lock file, and pip may take what it has. Then JupyterLab opens the tour
and three chapters, as the launch button does; that the others run, `make test` shows.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Error, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "site"))

from lab_under_test import serve_lab, visit  # noqa: E402
from site_under_test import start_browser  # noqa: E402

BUILT = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info")
REPO2DOCKER = "jupyter-repo2docker==2026.4.0"
INSTALL_STEP = re.compile(r"^RUN (\$\{KERNEL_PYTHON_PREFIX\}/bin/pip install .*)$", re.MULTILINE)
LOCKED = re.compile(r"/([A-Za-z][^/]*)-([^/-]+)-[^/-]+\.(?:conda|tar\.bz2)")
MOST_MEMORY = 1000  # MB of a kernel: Binder guarantees 1 GB


def main() -> None:
    chapters = sorted(path.name for path in ROOT.glob("book/[01]*.ipynb"))[2::4]
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        tree, environment = Path(folder) / "repository", Path(folder) / "environment"
        shutil.copytree(ROOT, tree, ignore=BUILT)
        install(tree, environment)
        with (
            serve_lab(environment / "bin", tree) as url,
            sync_playwright() as playwright,
            start_browser(playwright) as browser,
        ):
            for name in ["tour.ipynb", *chapters]:
                started = time.perf_counter()
                megabytes = look_at(browser, url, f"book/{name}")
                seconds = time.perf_counter() - started
                print(f"  {seconds:5.1f} s  {megabytes:4d} MB  {name}", flush=True)
                assert megabytes < MOST_MEMORY


def look_at(browser: Browser, url: str, path: str) -> int:
    """A visit to a notebook, or two: at times JupyterLab itself loses a drawing."""
    try:
        return visit(browser, url, path)
    except (AssertionError, Error) as error:
        print(f"  looked at again: {error}", flush=True)
        return visit(browser, url, path)


def install(tree: Path, environment: Path) -> None:
    """Make the environment that an image of Binder holds for this repository."""
    os.environ |= {
        "KERNEL_PYTHON_PREFIX": str(environment),
        "PIP_NO_COMPILE": "1",  # bytecode is written when a module is imported, not for all of them
        "PIP_QUIET": "1",
        "PIP_RETRIES": "1",  # an index out of reach would be asked six times for each package
    }
    wanted = (tree / "binder" / "runtime.txt").read_text().strip()
    python = shutil.which(wanted.replace("-", "")) or sys.executable
    print(f"{wanted} is wanted, {python} is taken", flush=True)
    subprocess.run([python, "-m", "venv", environment], check=True)
    tool = tree.with_name("repo2docker")
    pip = [sys.executable, "-m", "pip", "install", "--target", str(tool), REPO2DOCKER]
    subprocess.run(pip, check=True)
    step = install_step(tree, tool)
    base = brought_by(tool, wanted.removeprefix("python-"))
    print(f"Bringing what repo2docker brings: {' '.join(base)}", flush=True)
    pip = [str(environment / "bin" / "pip"), "install", "-c", str(tool / "constraints.txt"), *base]
    subprocess.run(pip, check=True)
    print(f"RUN {step}", flush=True)
    subprocess.run(["bash", "-c", step.replace("--no-cache-dir ", "")], cwd=tree, check=True)


def install_step(tree: Path, tool: Path) -> str:
    """The step of the Dockerfile that installs this book."""
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
    own = os.environ | {"PYTHONPATH": str(tool)}
    printed = subprocess.check_output(
        command, cwd=tree, env=own, stderr=subprocess.STDOUT, text=True
    )
    (step,) = INSTALL_STEP.findall(printed)
    return str(step)


def brought_by(tool: Path, version: str) -> list[str]:
    """The packages that repo2docker brings for a Python; its lock becomes a file of constraints."""
    packs = tool / "repo2docker" / "buildpacks" / "conda"
    lock = (packs / f"environment.py-{version}-linux-64.lock").read_text()
    pins = "\n".join(f"{name}=={version}" for name, version in LOCKED.findall(lock))
    (tool / "constraints.txt").write_text(pins)
    listed = (packs / f"environment.py-{version}.yml").read_text()
    names = re.findall(r"^- ((?:ipy|jupyter|notebook)[\w-]*)", listed, re.MULTILINE)
    return [name.removesuffix("-singleuser") for name in names]


if __name__ == "__main__":
    main()
