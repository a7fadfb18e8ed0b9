"""Run every check, then sum up. Exits with 1 where one of them failed.

python tools/run_tests.py                    all of them
python tools/run_tests.py library notebooks  some of them, by name
python tools/run_tests.py --changed          what the files that you changed call for
python tools/run_tests.py --changed main     the same, since another commit
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TWO_AT_ONCE = ["pytest", "-q", "-n", "2"]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval_sanitize.cfg"]

# Each check's command, and what it looks at.
CHECKS: dict[str, tuple[list[str], list[str]]] = {
    "style": (["ruff", "check"], ["."]),
    "format": (["ruff", "format", "--check"], ["."]),
    "types": (["mypy"], ["pe_lib", "tests", "tools", "book/_ext"]),
    "types in benchmarks": (["mypy"], ["benchmarks"]),
    "library": (
        [*TWO_AT_ONCE, "--doctest-modules", "--ignore", "tests/site"],
        ["pe_lib", "tests"],
    ),
    "notebooks": ([*TWO_AT_ONCE, "--dist", "loadfile", *NBVAL], ["book"]),
    "book": ([sys.executable, "tools/build_book.py"], []),
    "site": (TWO_AT_ONCE, ["tests/site"]),
}
OF_PAGES = [
    f"tests/test_{name}.py"
    for name in ("notebooks", "ledger", "plain_rendering", "glossary", "cheat_sheet", "repository")
]
# What a changed file calls for, by its name: a check, and of it these targets; "" is the file
# itself, and none at all the whole check.
CALLS: list[tuple[str, str, list[str]]] = [
    (r".*\.(py|ipynb)", "style", [""]),
    (r".*\.(py|ipynb)", "format", [""]),
    (r"(pe_lib|tests|tools|book/_ext)/.*\.py", "types", []),
    (r"benchmarks/.*\.py", "types in benchmarks", []),
    (r"tests/test_\w+\.py", "library", [""]),
    (r"book/.*\.(md|ipynb|yml)", "library", OF_PAGES),
    (r"book/.*\.ipynb", "notebooks", [""]),
    (r"tests/site/test_\w+\.py", "site", [""]),
    (r"book/(checks/)?\w+\.(md|ipynb)", "site", ["tests/site", "-k", "PAGE"]),
    (r"(pe_lib|book/data)/.*|(requirements|constraints)\.txt|pyproject\.toml", "library", []),
    (r"(pe_lib|book/data)/.*|(requirements|constraints)\.txt", "notebooks", []),
    (r"tests/(backends|oracle|prose|contract)\.py|(tools|book/_ext)/.*|\.github/.*", "library", []),
    (r"tests/site/(conftest|site_\w+)\.py|(pe_lib|book/_\w+)/.*|_(config|toc)\.yml", "site", []),
]


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # the workers share the cores
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    if sys.argv[1:2] == ["--changed"]:
        targets = called_for(changed_since(*sys.argv[2:3]))
        if "site" in targets:
            targets = {"book": [], **targets}
    else:
        chosen = sys.argv[1:] or list(CHECKS)
        if unknown := set(chosen) - set(CHECKS):
            sys.exit(f"There is no check {min(unknown)!r}. There are: {', '.join(CHECKS)}.")
        targets = {name: CHECKS[name][1] for name in chosen}
    results: dict[str, tuple[bool, float]] = {}
    for name, what in targets.items():
        # What nbval has just compared with a run need not be run again to build the book.
        compared = name == "book" and results.get("notebooks", (False,))[0]
        results[name] = run(name, [*CHECKS[name][0], *what, *["--stored"] * compared])
    print()
    for name, (passed, seconds) in results.items():
        print(f"  {'passed' if passed else 'FAILED'}  {seconds:6.1f} s  {name}")
    failed = sum(not passed for passed, _ in results.values())
    print(f"\n{len(results) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def changed_since(commit: str = "HEAD") -> list[str]:
    """The files that differ from a commit and are still there, new ones included."""
    listed = ["git", "diff", "--name-only", commit], ["git", "ls-files", "-o", "--exclude-standard"]
    outputs = (subprocess.check_output(one, cwd=ROOT, text=True) for one in listed)
    names = sorted({name for output in outputs for name in output.splitlines()})
    return [name for name in names if (ROOT / name).is_file()]


def called_for(files: list[str]) -> dict[str, list[str]]:
    """The checks that these files call for, in their order, and what each is to look at."""
    targets: dict[str, list[str]] = {}
    whole: set[str] = set()
    for file in files:
        for pattern, check, what in CALLS:
            if re.fullmatch(pattern, file):
                whole |= set() if what else {check}
                found = targets.setdefault(check, [])
                page = Path(file).stem
                found += [one.replace("PAGE", page) or file for one in what]
    for check, found in targets.items():
        pages = [found[place + 1] for place, one in enumerate(found) if one == "-k"]
        plain = dict.fromkeys(one for one in found if one != "-k" and one not in pages)
        only_pages = pages and list(plain) == ["tests/site"]
        targets[check] = [*plain, *(["-k", " or ".join(pages)] if only_pages else [])]
    return {
        name: everything if name in whole else targets[name]
        for name, (_, everything) in CHECKS.items()
        if name in targets
    }


def run(name: str, command: list[str]) -> tuple[bool, float]:
    print(f"\n== {name}: {' '.join(command)}", flush=True)
    started = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    return code in (0, 5), time.perf_counter() - started  # 5: no test has the name of the page


if __name__ == "__main__":
    main()
