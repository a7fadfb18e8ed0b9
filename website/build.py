"""Execute the notebooks and build the site in _build/html. Does nothing when nothing changed."""

import errno
import hashlib
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract
from jupyter_cache.cache.db import NbCacheRecord
from jupyter_cache.executors import load_executor
from jupyter_cache.executors.base import ExecutorRunResult
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

from tools.repository import branch, repository_url, site_address
from tools.stopping import STOPPED, ended_by_ctrl_c

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
SITE = BUILD / "html"
CACHE = BUILD / ".jupyter_cache"
MOST_SECONDS = 120  # of a cell
NOT_WRITABLE = (
    "Copy the book into a folder of your own, or ask for the right to write there. Then run the "
    "same command again."
)

# What the execution of a notebook depends on, beside the notebook itself. Scripts and style sheets
# are not among it: the site takes them as they are.
EXECUTION_INPUTS = (
    "pe_lib/**/*.py",
    "pe_book/**/*.py",
    "experiments/**/*.py",
    "experiments/results/**/*",
    "benchmarks/results/*",
    "book/data/**/*.npz",
    "book/data/**/*.json",
    "requirements.txt",
    "constraints.txt",
)
# What the site depends on.
SITE_INPUTS = (
    *EXECUTION_INPUTS,
    "book/**/*",
    "pe_book/**/*",
    "_config.yml",
    "_toc.yml",
    "tools/build_book.py",
    "tools/page_measures.py",
)


class NotExecuted(SystemExit):
    """A notebook has failed. This ends every tool but the preview, which waits for a change."""


def main() -> None:
    with one_sentence_at_the_end():
        build_if_changed()


@contextmanager
def one_sentence_at_the_end() -> Iterator[None]:
    """Say in a sentence, and not in a trace, that the user or a missing permission ended a tool."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        sys.exit(f"You may not write {error.filename}. {NOT_WRITABLE}")


def build_if_changed() -> None:
    """Run the notebooks and build the site, unless the site is that of the files as they are."""
    index, stamp = SITE / "index.html", BUILD / "site-inputs"
    # The buttons and the canonical links follow the remote, and the address of the site.
    addresses = f"{repository_url()} {branch()} {site_address()}"
    state = f"{fingerprint(SITE_INPUTS)} {addresses}"
    if index.exists() and read(stamp) == state:
        print("Nothing changed since the last build.")
    else:
        stamp.unlink(missing_ok=True)
        execute(notebooks_of_the_book())
        build()
        stamp.write_text(state, encoding="utf-8")
    print(f"The book is at {index}")


def notebooks_of_the_book() -> list[Path]:
    """The pages that run. What JupyterLab keeps of them in hidden folders is not among them."""
    book = ROOT / "book"
    return [path for path in sorted(book.rglob("*.ipynb")) if not is_hidden(path.relative_to(book))]


def is_hidden(path: Path) -> bool:
    """Whether the name of a file, or of a folder that it is in, begins with a dot."""
    return any(part.startswith(".") for part in path.parts)


def build() -> None:
    """Run Jupyter Book with every warning an error."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [str(Path(sys.executable).parent / "jupyter-book"), "build", ".", "--all", "-W", "-n"]
    if subprocess.run([*command, "--keep-going"], cwd=ROOT, check=False).returncode:
        sys.exit("The book was not built: the first error or warning above says why.")


def execute(notebooks: Iterable[Path], *, afresh: bool = False) -> JupyterCacheAbstract:
    """Run each notebook that is not in the cache, or all of them afresh, and return the cache.

    The cache is kept as long as the inputs of the execution stay as they are.
    """
    state, stamp = fingerprint(EXECUTION_INPUTS), BUILD / "execution-inputs"
    if read(stamp) != state:
        shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    # While notebooks run there is no stamp. After a crash, which may leave the cache half-written,
    # the next run therefore finds none and deletes the cache.
    stamp.unlink(missing_ok=True)
    cache = get_cache(str(CACHE))
    names = [cache.add_nb_to_project(str(path)).uri for path in notebooks]
    if afresh:
        for record in filter(None, map(cache.get_cached_project_nb, names)):
            cache.remove_cache(record.pk)
    run = run_notebooks(cache, names)
    stamp.write_text(state, encoding="utf-8")
    for record in filter(None, map(cache.get_cached_project_nb, run.succeeded)):
        print(f"{record.data['execution_seconds']:6.1f} s  {os.path.relpath(record.uri, ROOT)}")
        join_outputs(cache, record)
    if failed := run.excepted + run.errored:
        listed = ", ".join(os.path.relpath(name, ROOT) for name in failed)
        raise NotExecuted(
            f"Not executed: {listed}. The error above says which cell failed, and why."
        )
    if run.succeeded:
        print_memory()
    return cache


def run_notebooks(cache: JupyterCacheAbstract, names: list[str]) -> ExecutorRunResult:
    """Run the named notebooks that the cache does not hold, one on each processor at a time."""
    # The pages' matrices are small: several threads would mostly wait for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)  # it tells which notebook is run, and of a failure which cell
    if sys.platform == "linux":  # `stopping` and `print_memory` need it; Python 3.14 asks for it
        multiprocessing.set_start_method("fork", force=True)
    executor = load_executor("local-parallel", cache, logger)
    with ended_by_ctrl_c():
        run = executor.run_and_cache(filter_uris=names, timeout=MOST_SECONDS)
        if run.errored:  # two kernels that start at once at times choose the same port
            before = run.succeeded
            run = executor.run_and_cache(filter_uris=names, timeout=MOST_SECONDS)
            run.succeeded = before + run.succeeded
    return run


def join_outputs(cache: JupyterCacheAbstract, record: NbCacheRecord) -> None:
    """Join what a cell has printed in parts. Where the parts are cut is a matter of timing."""
    notebook = cache.get_cache_bundle(record.pk).nb
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    joined = CacheBundleIn(notebook, record.uri, data=record.data)
    cache.cache_notebook_bundle(joined, check_validity=False, overwrite=True)


def print_memory() -> None:
    """Tell the most memory that a kernel of this build has taken, where the system knows it."""
    if sys.platform == "linux":
        import resource

        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(f"The largest kernel took {peak / 1e6:.0f} MB of memory; Binder guarantees 1000.")


def fingerprint(inputs: Iterable[str]) -> str:
    """A hash of the names and the contents of the files that these patterns match.

    Caches and the leftovers of editors, whose names begin with a dot, do not count.
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in inputs for path in ROOT.glob(pattern)}):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and not re.search(r"(^|/)(\.|__pycache__/)", name):
            digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def read(stamp: Path) -> str:
    return stamp.read_text(encoding="utf-8") if stamp.exists() else ""


if __name__ == "__main__":
    main()
