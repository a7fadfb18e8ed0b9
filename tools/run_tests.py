"""Run every check, then sum up. Exits with 1 where one of them failed.

python tools/run_tests.py                    all of them
python tools/run_tests.py library notebooks  some of them, by name
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy", "pe_lib", "tests", "tools", "book/_ext"],
    "types in benchmarks": ["mypy", "benchmarks"],
    "types in notebooks": ["nbqa", "mypy", "book"],
    "library": [
        "pytest",
        "-q",
        "-n",
        "2",
        "--doctest-modules",
        "pe_lib",
        "tests",
        "--ignore",
        "tests/site",
    ],
    "notebooks": [
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "book",
        "--nbval",
        "--nbval-current-env",
        "--nbval-sanitize-with",
        "tests/nbval_sanitize.cfg",
    ],
    "site": ["pytest", "-q", "-n", "2", "--dist", "loadgroup", "tests/site"],
}


def main() -> None:
    chosen = sys.argv[1:] or list(CHECKS)
    if unknown := set(chosen) - set(CHECKS):
        sys.exit(f"There is no check {min(unknown)!r}. There are: {', '.join(CHECKS)}.")
    os.environ["OMP_NUM_THREADS"] = "1"  # the workers share the cores
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    results = {name: run(name, CHECKS[name]) for name in chosen}
    print()
    for name, (passed, seconds) in results.items():
        print(f"  {'passed' if passed else 'FAILED'}  {seconds:6.1f} s  {name}")
    failed = sum(not passed for passed, _ in results.values())
    print(f"\n{len(results) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def run(name: str, command: list[str]) -> tuple[bool, float]:
    print(f"\n== {name}: {' '.join(command)}", flush=True)
    started = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    return code == 0, time.perf_counter() - started


if __name__ == "__main__":
    main()
