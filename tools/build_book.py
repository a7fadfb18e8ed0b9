"""Execute the notebooks and build the site in _build/html. Does nothing when nothing changed."""

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import JupyterCacheAbstract
from jupyter_cache.executors import load_executor

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "book" / "_ext"))
from repository import branch, repository_url  # noqa: E402  (it stands with the site's extensions)

BUILD = ROOT / "_build"
SITE = BUILD / "html"
CACHE = BUILD / ".jupyter_cache"
MOST_SECONDS = 120  # of a cell

# What the execution of a notebook depends on beside the notebook itself, and what the site does.
EXECUTION_INPUTS = ("pe_lib", "book/data", "benchmarks", "requirements.txt", "constraints.txt")
SITE_INPUTS = (*EXECUTION_INPUTS, "book", "_config.yml", "_toc.yml", "tools/build_book.py")


def main() -> None:
    index, stamp = SITE / "index.html", BUILD / "site-inputs"
    # The buttons and the canonical links follow the remote, and the address of the site.
    addresses = f"{repository_url()} {branch()} {os.environ.get('BOOK_URL', '')}"
    state = f"{fingerprint(SITE_INPUTS)} {addresses}"
    if index.exists() and read(stamp) == state:
        print("Nothing changed since the last build.")
    else:
        stamp.unlink(missing_ok=True)
        execute(sorted((ROOT / "book").rglob("[!.]*.ipynb")))
        build()
        stamp.write_text(state)
    print(f"The book is at {index}")


def build() -> None:
    """Run Jupyter Book with every warning an error."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [str(Path(sys.executable).parent / "jupyter-book"), "build", ".", "--all", "-W", "-n"]
    if subprocess.run([*command, "--keep-going"], cwd=ROOT, check=False).returncode:
        sys.exit("The book was not built: the first error or warning above says why.")


def execute(notebooks: Iterable[Path]) -> JupyterCacheAbstract:
    """The cache, with every notebook that was not in it run, one on each processor at a time.

    It is kept as long as what they depend on stays as it is.
    """
    state, stamp = fingerprint(EXECUTION_INPUTS), BUILD / "execution-inputs"
    if read(stamp) != state:
        shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)  # a crash may tear the cache: then it is dropped the next time
    # The pages' matrices are small: several threads would mostly wait for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    cache = get_cache(str(CACHE))
    names = [cache.add_nb_to_project(str(path)).uri for path in notebooks]
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)  # it tells which notebook is run, and of a failure which cell
    executor = load_executor("local-parallel", cache, logger)
    done = executor.run_and_cache(filter_uris=names, timeout=MOST_SECONDS)
    if done.errored:  # two kernels that start at once at times choose the same port
        done = executor.run_and_cache(filter_uris=names, timeout=MOST_SECONDS)
    stamp.write_text(state)
    if failed := done.excepted + done.errored:
        listed = ", ".join(os.path.relpath(name, ROOT) for name in failed)
        sys.exit(f"Not executed: {listed}. The error above says which cell failed, and why.")
    return cache


def fingerprint(inputs: Iterable[str]) -> str:
    """A hash of the names and the contents of all files under the inputs, but for caches and
    editors' leftovers."""
    digest = hashlib.sha256()
    for path in sorted(
        path for name in inputs for path in (ROOT / name, *(ROOT / name).rglob("*"))
    ):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and not re.search(r"(^|/)(\.|__pycache__/)", name):
            digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def read(stamp: Path) -> str:
    return stamp.read_text() if stamp.exists() else ""


if __name__ == "__main__":
    main()
