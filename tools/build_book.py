"""Execute the notebooks and build the site in _build/html. Does nothing when nothing changed.

With --stored, after nbval, pages of checks are not executed: they are taken as they are stored.
"""

import hashlib
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the rest runs where nothing is installed yet
    from jupyter_cache.base import JupyterCacheAbstract

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "book" / "_ext"))
from repository import branch, repository_url  # noqa: E402  (it stands with the site's extensions)

BUILD = ROOT / "_build"
SITE = BUILD / "html"
INDEX = SITE / "index.html"
CACHE = BUILD / ".jupyter_cache"
MOST_SECONDS = 120  # of a cell

# What the execution of a notebook depends on beside the notebook itself, and what the site does.
EXECUTION_INPUTS = (
    "pe_lib",
    "book/data",
    "benchmarks",
    "requirements.txt",
    "constraints.txt",
)
SITE_INPUTS = (*EXECUTION_INPUTS, "book", "_config.yml", "_toc.yml", "tools/build_book.py")


def main() -> None:
    site_state, site_stamp = f"{fingerprint(SITE_INPUTS)} {addresses()}", BUILD / "site-inputs"
    if INDEX.exists() and read(site_stamp) == f"{site_state} {files_in_site()}":
        print("Nothing changed since the last build.")
    else:
        site_stamp.unlink(missing_ok=True)
        drop_stale_cache()
        notebooks = sorted((ROOT / "book").rglob("[!.]*.ipynb"))
        if "--stored" in sys.argv[1:]:
            take_stored(path for path in notebooks if path.parent.name == "checks")
        execute(notebooks)
        build()
        site_stamp.write_text(f"{site_state} {files_in_site()}")
    print(f"The book is at {INDEX}")


def build() -> None:
    """Run Jupyter Book with every warning an error."""
    if SITE.exists():
        shutil.rmtree(SITE)
    command = [str(Path(sys.executable).parent / "jupyter-book"), "build", ".", "--all", "-W", "-n"]
    code = subprocess.run([*command, "--keep-going"], cwd=ROOT, check=False).returncode
    if code or not INDEX.exists():
        sys.exit("The book was not built: the first error or warning above says why.")


def execute(notebooks: Iterable[Path]) -> "JupyterCacheAbstract":
    """The cache, with every notebook that was not in it run, one on each processor at a time."""
    from jupyter_cache import get_cache
    from jupyter_cache.executors import load_executor

    # The pages' matrices are small: several threads would mostly wait for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    cache = get_cache(str(CACHE))
    names = [cache.add_nb_to_project(str(path)).uri for path in notebooks]
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)  # it tells which notebook is run, and of a failure which cell
    executor = load_executor("local-parallel", cache, logger)
    done = executor.run_and_cache(filter_uris=names, timeout=MOST_SECONDS)
    if failed := done.excepted + done.errored:
        listed = ", ".join(os.path.relpath(name, ROOT) for name in failed)
        sys.exit(f"Not executed: {listed}. The error above says which cell failed, and why.")
    return cache


def take_stored(notebooks: Iterable[Path]) -> None:
    """Put into the cache what pages of checks store: nbval has just compared it with a run. Of a
    live figure, which chapters have, only a still is stored: they are executed."""
    from jupyter_cache import get_cache

    cache = get_cache(str(CACHE))
    for path in notebooks:
        cache.cache_notebook_file(str(path), check_validity=False, overwrite=True)


def drop_stale_cache() -> None:
    """Keep executed notebooks only as long as what they depend on stays as it is."""
    state, stamp = fingerprint(EXECUTION_INPUTS), BUILD / "execution-inputs"
    if CACHE.exists() and not (read(stamp) == state and cache_is_sound()):
        shutil.rmtree(CACHE)
    BUILD.mkdir(exist_ok=True)
    stamp.write_text(state)


def cache_is_sound() -> bool:
    """Whether every executed notebook that the cache lists is there: a crash may tear the cache."""
    listed = f"{(CACHE / 'global.db').as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(listed, uri=True)) as database:
            keys = [key for (key,) in database.execute("SELECT hashkey FROM nbcache")]
    except sqlite3.DatabaseError:
        return False
    return all((CACHE / "executed" / key / "base.ipynb").is_file() for key in keys)


def files_in_site() -> int:
    """How many files the site has: one that lost some is built anew. `make pdf` may add its own."""
    return sum(path.is_file() and path.suffix != ".pdf" for path in SITE.rglob("*"))


def addresses() -> str:
    """Where the buttons and the canonical links lead: a checkout may get another remote."""
    return f"{repository_url()} {branch()} {os.environ.get('BOOK_URL', '')}"


def fingerprint(inputs: Iterable[str]) -> str:
    """A hash of the names and the contents of all files under the inputs."""
    digest = hashlib.sha256()
    for path in sorted({file for name in inputs for file in files_under(ROOT / name)}):
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def files_under(path: Path) -> Iterator[Path]:
    """The file itself, or every file of a folder but for caches and editors' leftovers."""
    if path.is_file():
        yield path
    for file in path.rglob("*"):
        parts = file.relative_to(path).parts
        if file.is_file() and not any(p == "__pycache__" or p.startswith(".") for p in parts):
            yield file


def read(stamp: Path) -> str:
    return stamp.read_text() if stamp.exists() else ""


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again: finished notebooks are kept.")
    except OSError as error:
        sys.exit(f"{error}\nThe book was not built: its folder must be writable, and have room.")
