"""Execute the notebooks and build the site in _build/html. Does nothing when nothing changed.

python website/build.py             the whole book
python website/build.py --changed   the pages whose sources have changed, beside the others
"""

import errno
import hashlib
import os
import re
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from jupyter_book.sphinx import build_sphinx
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor
from nbformat import NotebookNode

from website.repository import branch, repository_url, site_address

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
SITE = BUILD / "html"
DOCTREES = BUILD / ".doctrees"
CACHE = BUILD / ".jupyter_cache"
MOST_SECONDS = 120  # of a cell
STOPPED = "Stopped. The same command begins again."
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
    "experiments/**/*.json*",
    "experiments/**/*.npz",
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
    "website/**/*",
)


class NotExecuted(SystemExit):
    """A notebook has failed. This ends every tool but the preview, which waits for a change."""


class NotBuilt(SystemExit):
    """The site was not built. This ends every tool but the preview, which waits for a change."""


def main() -> None:
    with one_sentence_at_the_end():
        if sys.argv[1:] == ["--changed"]:
            execute(notebooks_of_the_book())
            build(whole=False)
        else:
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


def build(*, whole: bool = True, strict: bool = True) -> None:
    """Run Jupyter Book, with every warning an error where it is strict.

    Not the whole book means the pages whose sources have changed since the last build. The next
    `make book` then builds all of it, because other pages may show a title that has changed.
    """
    (BUILD / "site-inputs").unlink(missing_ok=True)
    if whole:
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.rmtree(DOCTREES, ignore_errors=True)
    before = times_of_doctrees()
    try:
        result = build_sphinx(
            ROOT,
            SITE,
            path_config=ROOT / "_config.yml",
            noconfig=True,  # there is no conf.py
            doctreedir=DOCTREES,
            confoverrides={"latex_individualpages": False},
            warningiserror=strict,
            keep_going=True,
            quiet=not whole,
        )
    except Exception:  # in the settings, which Jupyter Book reads before Sphinx starts
        traceback.print_exc()
        result = 1
    if isinstance(result, KeyboardInterrupt):  # Sphinx gives it back like an error
        raise result
    if result != 0:
        # Let the next build read these pages again, and so say again what is wrong with them.
        for doctree, _ in times_of_doctrees().items() - before.items():
            doctree.unlink()
        raise NotBuilt("The book was not built: the first error or warning above says why.")


def times_of_doctrees() -> dict[Path, int]:
    """When Sphinx has read each page, by what it keeps of it."""
    return {path: path.stat().st_mtime_ns for path in DOCTREES.rglob("*.doctree")}


def execute(notebooks: Iterable[Path], *, afresh: bool = False) -> JupyterCacheAbstract:
    """Run each notebook that is not in the cache, or all of them afresh, and return the cache.

    The cache is kept as long as the inputs of the execution stay as they are. What nbval has run
    with these inputs is taken into it.
    """
    state, stamp = fingerprint(EXECUTION_INPUTS), BUILD / "execution-inputs"
    if read(stamp) != state:
        shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    # While notebooks run there is no stamp. After a crash, which may leave the cache half-written,
    # the next run therefore finds none and deletes the cache.
    stamp.unlink(missing_ok=True)
    cache = get_cache(str(CACHE))
    records = {path: cache.add_nb_to_project(str(path)) for path in notebooks}
    if afresh:
        cached = (cache.get_cached_project_nb(one.uri) for one in records.values())
        for record in filter(None, cached):
            cache.remove_cache(record.pk)
    else:
        take_received(not_in(cache, records), received(state), cache)
    missing = not_in(cache, records)
    failed = run_notebooks(missing, cache)
    stamp.write_text(state, encoding="utf-8")
    if failed:
        listed = ", ".join(os.path.relpath(path, ROOT) for path in failed)
        raise NotExecuted(
            f"Not executed: {listed}. The error above says which cell failed, and why."
        )
    if missing:
        print_memory()
    return cache


def not_in(cache: JupyterCacheAbstract, records: dict[Path, Any]) -> list[Path]:
    """The notebooks of the project that have to run."""
    return [path for path, one in records.items() if not cache.get_cached_project_nb(one.uri)]


def received(state: str) -> Path:
    """Where website/received.py keeps what nbval runs, by the state of the execution's inputs."""
    return BUILD / "received" / state


def take_received(notebooks: Iterable[Path], kept: Path, cache: JupyterCacheAbstract) -> None:
    """Put what nbval has run into the cache, where it is found if its cells are the same."""
    for path in notebooks:
        file = kept / path.relative_to(ROOT)
        if file.exists():
            notebook = nbformat.read(file, as_version=4)
            seconds = notebook.metadata.pop("seconds")
            bundle = CacheBundleIn(notebook, path, data={"execution_seconds": seconds})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def run_notebooks(paths: list[Path], cache: JupyterCacheAbstract) -> list[Path]:
    """Run notebooks, one on each processor at a time, and return those that failed."""
    # The pages' matrices are small: several threads would mostly wait for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running: dict[Future[tuple[NotebookNode, float]], Path] = {
            pool.submit(run_notebook, path): path for path in paths
        }
        try:
            for done in as_completed(running):
                path = running[done]
                try:
                    notebook, seconds = done.result()
                except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                    print(f"{os.path.relpath(path, ROOT)}: {error}", file=sys.stderr, flush=True)
                    failed.append(path)
                    continue
                bundle = CacheBundleIn(notebook, path, data={"execution_seconds": seconds})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
                print(f"{seconds:6.1f} s  {os.path.relpath(path, ROOT)}", flush=True)
        except KeyboardInterrupt:
            # To wait for the pages that run would take as long as they do. Their kernels end by
            # themselves when this process is gone.
            print(STOPPED, file=sys.stderr, flush=True)
            os._exit(1)
    return failed


def run_notebook(path: Path) -> tuple[NotebookNode, float]:
    """Run a notebook beside its data, in a kernel of its own, and say how many seconds it took.

    What a cell has printed in parts is joined: where the parts are cut is a matter of timing.
    """
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    started = time.perf_counter()
    nbclient.execute(
        notebook,
        cwd=str(path.parent),
        timeout=MOST_SECONDS,
        record_timing=False,  # times in its metadata would make a cell another one for the cache
        extra_arguments=["--log-level=ERROR"],  # else each kernel warns that it is not encrypted
    )
    seconds = time.perf_counter() - started
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    return notebook, seconds


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
