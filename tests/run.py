"""Run every check, then sum up. Exits with 1 where one of them failed.

python tests/run.py                    all of them, but for the visits by phone
python tests/run.py library notebooks  some of them, by name

`make check` (tests/check.py) runs those that a change touches.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from website.install import why_html_is_not_validated
from website.repository import is_clone

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TWO_AT_ONCE = ["pytest", "-q", "-n", "2"]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval_sanitize.cfg"]
KEEP = ["-p", "website.received"]  # for the build, which would run the notebooks again
PHONES = "site by phone"

CHECKS = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy", "pe_lib", "pe_book", "tests", "website"],
    "types in benchmarks": ["mypy", "benchmarks", "experiments"],
    "library": [
        *TWO_AT_ONCE,
        *("--doctest-modules", "--ignore", "tests/site", "pe_lib", "pe_book", "tests"),
    ],
    "notebooks": [*TWO_AT_ONCE, "--dist", "loadfile", *NBVAL, *KEEP, "book"],
    "book": [sys.executable, "website/build.py"],
    "site": [*TWO_AT_ONCE, "-m", "not phone", "tests/site"],
    PHONES: [*TWO_AT_ONCE, "-m", "phone", "tests/site"],
}


def main() -> None:
    set_environment()
    chosen = sys.argv[1:] or [name for name in CHECKS if name != PHONES]
    if unknown := set(chosen) - set(CHECKS):
        sys.exit(f"There is no check {min(unknown)!r}. There are: {', '.join(CHECKS)}.")
    results: dict[str, tuple[bool, float]] = {}
    try:
        for name in chosen:
            if not (name.startswith("site") and book_failed(results)):
                results[name] = run(name, CHECKS[name])
    except KeyboardInterrupt:
        print(f"\nStopped in the check {name!r}. The ones before it:")
    print()
    for name, (passed, seconds) in results.items():
        print(f"  {'passed' if passed else 'FAILED'}  {seconds:6.1f} s  {name}")
    if book_failed(results):
        print("  not run            site: the book was not built")
    print(*left_out(), sep="\n")
    failed = sum(not passed for passed, _ in results.values())
    left = len(chosen) - len(results)
    not_run = f", {left} not run" if left else ""
    print(f"{len(results) - failed} passed, {failed} failed{not_run}")
    sys.exit(1 if failed or left else 0)


def set_environment() -> None:
    """The workers share the cores, and find the programs of this environment."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"


def book_failed(results: dict[str, tuple[bool, float]]) -> bool:
    """Whether the book was to be built and was not. The site is then an older one, or missing."""
    passed, _ = results.get("book", (True, 0.0))
    return not passed


def left_out() -> Iterator[str]:
    """What the checks leave out because this machine lacks a program, and what to install."""
    if reason := why_html_is_not_validated():
        yield reason
    if not (shutil.which("c++") or shutil.which("g++")):
        yield (
            "There is no C++ compiler, so what torch.compile generates is not run, only its "
            "graphs. Install g++ to have that checked too."
        )
    if not is_clone():
        yield (
            "git cannot list the files of this folder, so some rules for all files are not "
            "checked. Install git and clone the repository to have that checked too."
        )


def run(name: str, command: list[str]) -> tuple[bool, float]:
    print(f"\n== {name}: {' '.join(command)}", flush=True)
    started = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    return code == 0, time.perf_counter() - started


if __name__ == "__main__":
    main()
