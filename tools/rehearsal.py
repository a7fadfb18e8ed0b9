"""The dress rehearsal of the launch button: what Binder installs, looked at in a browser.

    make rehearsal

repo2docker prints the Dockerfile that Binder would build. Its step for this book is run in a clean
virtual environment on top of what repo2docker brings itself: JupyterLab and JupyterHub at the
versions of its own lock file, and pip may take what it has. Then JupyterLab opens the tour
and three chapters, as the launch button does; that the others run, `make test` shows.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from lab import Seen, serve_lab, visit

ROOT = Path(__file__).resolve().parent.parent
BUILT = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info")
REPO2DOCKER = "jupyter-repo2docker==2026.4.0"
PYTORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
INSTALL_STEP = re.compile(
    r"^COPY [^\n]*src/ \$\{REPO_DIR\}/$.*^RUN (\$\{KERNEL_PYTHON_PREFIX\}/bin/pip install .*?)$",
    re.MULTILINE | re.DOTALL,
)
LOCKED = re.compile(r"/([A-Za-z][^/]*)-([^/-]+)-[^/-]+\.(?:conda|tar\.bz2)")
MOST_MEMORY = 1000  # MB of a kernel: Binder guarantees 1 GB


def main() -> None:
    notebooks = ["tour.ipynb", *sorted(path.name for path in ROOT.glob("book/[01]*.ipynb"))[2::4]]
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        tree, environment = Path(folder) / "repository", Path(folder) / "environment"
        shutil.copytree(ROOT, tree, ignore=BUILT)
        install(tree, environment)
        names = [f"book/{name}" for name in notebooks]
        with serve_lab(environment / "bin", tree) as url, ProcessPoolExecutor(2) as pool:
            failed = sum(map(report, pool.map(functools.partial(look_at, url), names)))
    print(f"\n{len(names) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def look_at(url: str, path: str) -> Seen:
    """A visit to a notebook, or two: at times JupyterLab itself loses a drawing."""
    seen = visit(url, path)
    if not seen.complaints:
        return seen
    print("  looked at again:", *seen.complaints, sep="\n          ", flush=True)
    return visit(url, path)


def report(seen: Seen) -> bool:
    """Print what was seen of a notebook, and say whether something was wrong."""
    wrong = list(seen.complaints)
    if not 0 < seen.megabytes < MOST_MEMORY:
        wrong.append(f"the kernel took {seen.megabytes} MB of the {MOST_MEMORY} that it may")
    print(
        f"  {'FAILED' if wrong else 'passed'}  {seen.seconds:5.1f} s  {seen.megabytes:4d} MB"
        f"  {seen.boxes} theorems and proofs, {seen.controls} controls  {seen.path}",
        *wrong,
        sep="\n          ",
        flush=True,
    )
    return bool(wrong)


def install(tree: Path, environment: Path) -> None:
    """Make the environment that an image of Binder holds for this repository."""
    wanted = (tree / "binder" / "runtime.txt").read_text().strip()
    python = shutil.which(wanted.replace("-", "")) or sys.executable
    print(f"{wanted} is wanted, {python} is taken", flush=True)
    run([python, "-m", "venv", str(environment)])
    tool = tree.with_name("repo2docker")
    run([sys.executable, "-m", "pip", "install", "-q", "--target", str(tool), REPO2DOCKER])
    step = install_step(tree, tool)
    base = brought_by(tool, wanted.removeprefix("python-"))
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "-q"]
    print(f"Bringing what repo2docker brings: {' '.join(base)}", flush=True)
    run([*pip, "-c", str(tool / "constraints.txt"), *base])
    use_wheels_within_reach(tree / "binder" / "requirements.txt")
    print(f"RUN {step}", flush=True)
    step = step.replace("--no-cache-dir ", "")
    run(["bash", "-c", step], KERNEL_PYTHON_PREFIX=str(environment), cwd=tree)
    files = (path for path in environment.rglob("*") if "__pycache__" not in path.parts)
    size = sum(path.lstat().st_size for path in files if path.is_file())
    print(f"environment: {size // 10**6} MB", flush=True)


def install_step(tree: Path, tool: Path) -> str:
    """The step of the Dockerfile that installs this book."""
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
    printed = run(command, cwd=tree, PYTHONPATH=str(tool))
    step = INSTALL_STEP.search(printed)
    if step is None:
        sys.exit(f"repo2docker printed no Dockerfile as expected:\n{printed}")
    return step[1]


def brought_by(tool: Path, version: str) -> list[str]:
    """The packages that repo2docker brings for a Python; its lock becomes a file of constraints."""
    packs = tool / "repo2docker" / "buildpacks" / "conda"
    lock = (packs / f"environment.py-{version}-linux-64.lock").read_text()
    pins = "\n".join(f"{name}=={version}" for name, version in LOCKED.findall(lock))
    (tool / "constraints.txt").write_text(pins)
    listed = (packs / f"environment.py-{version}.yml").read_text()
    names = re.findall(r"^- ((?:ipy|jupyter|notebook)[\w-]*)", listed, re.MULTILINE)
    return [name.removesuffix("-singleuser") for name in names]


def use_wheels_within_reach(requirements: Path) -> None:
    """Where PyTorch's own index cannot be reached, take what pip's own indexes have."""
    try:
        urllib.request.urlopen(f"{PYTORCH_CPU_WHEELS}/torch/", timeout=10).close()
    except OSError:
        print("PyTorch's index of CPU wheels is out of reach: pip's own indexes are asked.")
        text = requirements.read_text().replace("+cpu", "")
        requirements.write_text(text.replace(f"--extra-index-url {PYTORCH_CPU_WHEELS}\n", ""))


def run(command: list[str], cwd: Path | None = None, **variables: str) -> str:
    """What a command prints; where it fails, that is told and all ends."""
    # Bytecode is written when a module is first imported, not for all of them.
    environment = os.environ | {"PIP_NO_COMPILE": "1", "PIP_PROGRESS_BAR": "off", **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
