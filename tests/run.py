"""Run every check, then sum up. Exits with 1 where one of them failed.

python tests/run.py                    all of them
python tests/run.py library notebooks  some of them, by name
python tests/run.py --changed          those that the files you changed call for
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from website.install import why_html_is_not_validated
from website.repository import is_clone

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TWO_AT_ONCE = ["pytest", "-q", "-n", "2"]
SANITIZE = "tests/nbval_sanitize.cfg"
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", SANITIZE]
# Files that call for a check when they change. constraints.txt has the versions of ruff and mypy.
PYTHON_FILES = r".*\.py|pyproject\.toml|constraints\.txt"
STYLE = rf"{PYTHON_FILES}|.*\.ipynb|.*/ruff\.toml"
EXECUTION = (
    r"(pe_lib|pe_book|experiments|benchmarks|book/data)/.*|book/.*\.ipynb"
    r"|(requirements|constraints)\.txt"
)
SITE = rf"{EXECUTION}|(book|tests/site)/.*|_(config|toc)\.yml|website/.*"

# Each check's command, and the files that call for it when they change.
CHECKS = {
    "style": (["ruff", "check", "."], STYLE),
    "format": (["ruff", "format", "--check", "."], STYLE),
    "types": (["mypy", "pe_lib", "pe_book", "tests", "website"], PYTHON_FILES),
    "types in benchmarks": (["mypy", "benchmarks", "experiments"], PYTHON_FILES),
    "library": (
        [*TWO_AT_ONCE, "--doctest-modules", "--ignore", "tests/site", "pe_lib", "pe_book", "tests"],
        r"(?!tests/site/).*",
    ),
    "notebooks": ([*TWO_AT_ONCE, "--dist", "loadfile", *NBVAL, "book"], rf"{EXECUTION}|{SANITIZE}"),
    "book": ([sys.executable, "website/build.py"], SITE),
    "site": ([*TWO_AT_ONCE, "tests/site"], SITE),
}


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # the workers share the cores
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    named = sys.argv[1:] or list(CHECKS)
    chosen = called_for() if named == ["--changed"] else named
    if unknown := set(chosen) - set(CHECKS):
        sys.exit(f"There is no check {min(unknown)!r}. There are: {', '.join(CHECKS)}.")
    results: dict[str, tuple[bool, float]] = {}
    try:
        for name in chosen:
            if not (name == "site" and book_failed(results)):
                results[name] = run(name, CHECKS[name][0])
    except KeyboardInterrupt:
        print(f"\nStopped in the check {name!r}. The ones before it:")
    print()
    for name, (passed, seconds) in results.items():
        print(f"  {'passed' if passed else 'FAILED'}  {seconds:6.1f} s  {name}")
    if "site" in chosen and "site" not in results and book_failed(results):
        print("  not run            site: the book was not built")
    print(*left_out(), sep="\n")
    failed = sum(not passed for passed, _ in results.values())
    left = len(chosen) - len(results)
    not_run = f", {left} not run" if left else ""
    print(f"{len(results) - failed} passed, {failed} failed{not_run}")
    sys.exit(1 if failed or left else 0)


def book_failed(results: dict[str, tuple[bool, float]]) -> bool:
    """Whether the book was to be built and was not. The site is then an older one, or missing."""
    passed, _ = results.get("book", (True, 0.0))
    return not passed


def called_for() -> list[str]:
    """The checks that the files changed since the last commit call for, new ones included."""
    commands = ["diff", "--name-only", "HEAD"], ["ls-files", "-o", "--exclude-standard"]
    options: dict[str, Any] = {"cwd": ROOT, "text": True, "stderr": subprocess.DEVNULL}
    try:
        listed = [subprocess.check_output(["git", *one], **options) for one in commands]
    except (OSError, subprocess.CalledProcessError):
        sys.exit(
            "git does not say which files have changed; it has to be installed, and the folder has "
            f"to be a clone. Name the checks instead: {', '.join(CHECKS)}."
        )
    files = "".join(listed).splitlines()
    return [
        name
        for name, (_, pattern) in CHECKS.items()
        if any(re.fullmatch(pattern, file) for file in files)
    ]


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
