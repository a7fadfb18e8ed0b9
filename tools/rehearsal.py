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
import time
import urllib.error
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from lab import Seen, serve_lab, visit

ROOT = Path(__file__).resolve().parent.parent
REPO2DOCKER = "jupyter-repo2docker==2026.4.0"
PYTORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
INSTALL_STEP = re.compile(
    r"^COPY [^\n]*src/ \$\{REPO_DIR\}/$.*^RUN (\$\{KERNEL_PYTHON_PREFIX\}/bin/pip install .*?)$",
    re.MULTILINE | re.DOTALL,
)
LOCKED = re.compile(r"/([A-Za-z][^/]*)-([^/-]+)-[^/-]+\.(?:conda|tar\.bz2)")
MOST_MEMORY = 1000  # MB of a kernel: Binder guarantees 1 GB


def main() -> None:
    started = time.perf_counter()
    book = ROOT / "book"
    notebooks = [book / "tour.ipynb", *sorted(book.glob("[0-9][0-9]_*.ipynb"))[2::4]]
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        image = Image(Path(folder))
        image.build()
        print(f"The environment stands after {time.perf_counter() - started:.0f} s.", flush=True)
        names = [f"book/{path.name}" for path in notebooks]
        with serve_lab(image.python.parent, image.tree) as url, ProcessPoolExecutor(2) as pool:
            seen = list(pool.map(functools.partial(look_at, url), names))
    failed = sum(report(one) for one in seen)
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    print(f"{len(seen) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not seen else 0)


def look_at(url: str, path: str) -> Seen:
    """A visit to a notebook, or two: at times JupyterLab itself loses a drawing."""
    seen = visit(url, path, patience=30)
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
        f"  {seen.boxes} theorems and proofs, {seen.controls} controls  {seen.path}"
    )
    for line in wrong:
        print(f"          {line}")
    return bool(wrong)


class Image:
    """A folder with what an image of Binder holds: the repository and a Python environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "repository"
        self.prefix = folder / "environment"
        self.python = self.prefix / "bin" / "python"

    def build(self) -> None:
        copy_tree(self.tree)
        with ThreadPoolExecutor() as pool:
            environment = pool.submit(self.make_environment)
            step, base = self.ask_repo2docker()
            environment.result()
        print(f"Bringing what repo2docker brings: {' '.join(base)}", flush=True)
        constraints = str(self.folder / "base-constraints.txt")
        run([str(self.python), "-m", "pip", "install", "-q", "-c", constraints, *base])
        self.use_wheels_within_reach()
        print(f"RUN {step}", flush=True)
        step = step.replace("--no-cache-dir ", "")
        run(["bash", "-c", step], KERNEL_PYTHON_PREFIX=str(self.prefix), cwd=self.tree)
        run([str(self.python), "-c", "import pe_lib.torch, pe_lib.book.live"], cwd=self.folder)
        print(f"site-packages: {self.megabytes()} MB", flush=True)

    def ask_repo2docker(self) -> tuple[str, list[str]]:
        """The install step of the Dockerfile, and the packages that stand before it.

        The lock file beside them becomes a file of constraints.
        """
        tool = self.folder / "repo2docker"
        run([sys.executable, "-m", "pip", "install", "-q", "--target", str(tool), REPO2DOCKER])
        command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
        apart = os.environ | {"PYTHONPATH": str(tool)}
        done = subprocess.run(
            command, cwd=self.tree, env=apart, capture_output=True, text=True, check=False
        )
        printed = done.stdout + done.stderr
        step = INSTALL_STEP.search(printed)
        wanted = (self.tree / "binder" / "runtime.txt").read_text().strip().replace("-", "=")
        if done.returncode or step is None or f"conda environment for {wanted}" not in printed:
            sys.exit(f"repo2docker printed no Dockerfile as expected:\n{printed}")
        packs = tool / "repo2docker" / "buildpacks" / "conda"
        version = wanted.removeprefix("python=")
        lock = (packs / f"environment.py-{version}-linux-64.lock").read_text()
        pins = "\n".join(f"{name}=={version}" for name, version in LOCKED.findall(lock))
        (self.folder / "base-constraints.txt").write_text(pins)
        listed = (packs / f"environment.py-{version}.yml").read_text()
        names = re.findall(r"^- ((?:ipy|jupyter|notebook)[\w-]*)", listed, re.MULTILINE)
        return step[1], [name.removesuffix("-singleuser") for name in names]

    def make_environment(self) -> None:
        """A clean environment of Binder's Python, or of this one where that is not here."""
        wanted = (self.tree / "binder" / "runtime.txt").read_text().strip().replace("-", "")
        python = shutil.which(wanted) or sys.executable
        print(f"{wanted} is wanted, {python} is taken", flush=True)
        run([python, "-m", "venv", str(self.prefix)])

    def use_wheels_within_reach(self) -> None:
        """Where PyTorch's own index cannot be reached, ask only those that pip knows, and say so.

        They may lack the build for processors alone; then the plain one of the same version serves.
        """
        if is_reached(f"{PYTORCH_CPU_WHEELS}/torch/"):
            return
        requirements = self.tree / "binder" / "requirements.txt"
        text = requirements.read_text().replace(f"--extra-index-url {PYTORCH_CPU_WHEELS}\n", "")
        (torch,) = re.findall(r"^torch==\S+", text, re.MULTILINE)
        probe = [str(self.python), "-m", "pip", "install", "-q", "--dry-run", "--no-deps", torch]
        if subprocess.run(probe, capture_output=True, check=False).returncode:
            text = text.replace(torch, torch.removesuffix("+cpu"))
        requirements.write_text(text)
        (taken,) = re.findall(r"^torch==\S+", text, re.MULTILINE)
        print(f"PyTorch's index of CPU wheels is out of reach: {taken} from pip's own indexes.")

    def megabytes(self) -> int:
        """The size of what is installed, without bytecode."""
        packages = self.prefix / "lib"
        files = (path for path in packages.rglob("*") if "__pycache__" not in path.parts)
        return sum(path.lstat().st_size for path in files if path.is_file()) // 10**6


def copy_tree(folder: Path) -> None:
    """The files of the repository as git has them, or all but what is built where there is none."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "_build", "__pycache__"))
        return
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def is_reached(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=10).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


def run(command: list[str], cwd: Path | None = None, **variables: str) -> None:
    """Run a command, quietly unless it fails."""
    # Bytecode is written when a module is first imported, not for all of them.
    environment = os.environ | {"PIP_NO_COMPILE": "1", "PIP_PROGRESS_BAR": "off", **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
