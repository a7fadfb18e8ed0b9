"""Check what a change touches, two checks at a time, and say what is left to `make test`.

python tests/check.py             what differs from the branch that a change goes to
python tests/check.py FILE …      as if these files had changed

A changed file is checked for its style and its types, and the test of its name is run. A changed
page is built alone, beside what is built already, and visited as at a desk and as by phone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.run import NBVAL, ROOT, set_environment

# The rooms of the code, and where the tests of each lie.
ROOMS = {
    "pe_lib": "tests/lib",
    "pe_book": "tests/pages",
    "experiments": "tests/experiments",
    "website": "tests/website",
}
A_CHAPTER = "book/rotation.html"  # which shows what most pages do
BUILD = [sys.executable, "website/build.py", "--changed"]
PYTEST = ["pytest", "-q", "--no-header"]
# Where one of these has changed, Sphinx would have to read every page again.
BUILDS_ANEW = ("_config.yml", "_toc.yml", "website/extensions/", "website/finish/")
TEXT_TESTS = "tests/pages"


@dataclass
class Plan:
    """The commands of two lanes, each of which runs one after the other, by their names."""

    code: dict[str, list[str]] = field(default_factory=dict)
    site: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def main() -> None:
    set_environment()
    started = time.perf_counter()
    plan = plan_for(sys.argv[1:] or changed_files())
    with ThreadPoolExecutor(2) as lanes:
        passed = all([*lanes.map(run_lane, (plan.site, plan.code))])
    print(f"\n{time.perf_counter() - started:.0f} s. Left to `make test`:", *plan.left, sep="\n  ")
    sys.exit(not passed)


def changed_files() -> list[str]:
    """The files that differ from the commit that a change began at, committed or not."""
    return git("diff", "--name-only", "--diff-filter=d", beginning()) + git(
        "ls-files", "--others", "--exclude-standard"
    )


def beginning() -> str:
    """The commit at which this branch left the one that its changes go to: the default branch of
    the repository that was cloned, or else the upstream branch. Without either, the last commit."""
    for target in ("origin/HEAD", "@{upstream}"):
        if common := git("merge-base", "HEAD", target):
            return common[0]
    return "HEAD"


def git(*arguments: str) -> list[str]:
    """The lines that a command of git prints, or none where it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        sys.exit("There is no git to say what has changed. Name the files, or use `make test`.")
    return done.stdout.splitlines() if done.returncode == 0 else []


def plan_for(files: Iterable[str]) -> Plan:
    """What to run where these files have changed."""
    files = list(files)
    if not files:
        sys.exit("Nothing has changed. To check what was committed before, name the files.")
    plan = Plan()
    check_code([name for name in files if name.endswith((".py", ".ipynb"))], plan)
    check_pages([name for name in files if name.startswith("book/")], plan)
    tests = dict.fromkeys(test for name in files for test in tests_of(name))
    if code_tests := [test for test in tests if not test.startswith("tests/site/")]:
        plan.code[f"tests of {', '.join(code_tests)}"] = [*PYTEST, *code_tests]
    check_site(files, plan)
    plan.left.append("all other tests and pages, and other notebooks that the code of a file is in")
    return plan


def check_code(files: list[str], plan: Plan) -> None:
    """Style of all, and types of all that is no notebook."""
    if files:
        plan.code["style"] = ["ruff", "check", *files]
        plan.code["format"] = ["ruff", "format", "--check", *files]
    if modules := [name for name in files if name.endswith(".py")]:
        plan.code["types"] = ["mypy", *modules]
        documented = [name for name in modules if name.startswith(("pe_lib/", "pe_book/"))]
        if documented:
            plan.code["examples"] = [*PYTEST, "--doctest-modules", *documented]


def check_pages(files: list[str], plan: Plan) -> None:
    """The text of every page, and the notebooks whose code or outputs have changed."""
    if files:
        plan.code["text"] = [*PYTEST, TEXT_TESTS, "--ignore", "tests/pages/test_figures.py"]
    if notebooks := [name for name in files if name.endswith(".ipynb") and code_has_changed(name)]:
        plan.code["notebooks"] = [*PYTEST, *NBVAL, *notebooks]


def code_has_changed(name: str) -> bool:
    """Whether a notebook differs in more than its prose from where the change began."""
    stored = "\n".join(git("show", f"{beginning()}:{name}"))
    now = (ROOT / name).read_text(encoding="utf-8")
    return not stored or code_cells(stored) != code_cells(now)


def code_cells(text: str) -> list[dict[str, object]]:
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def tests_of(name: str) -> Iterator[str]:
    """The tests that mirror a file; a changed test is its own."""
    path = Path(name)
    if name.startswith("tests/"):
        if path.name.startswith("test_"):
            yield name
        return
    room, *folders = path.parts[:-1] or ("",)
    if room in ROOMS and path.suffix == ".py":
        stem = path.stem.strip("_")
        for mirrored in ("_".join([*folders, stem]), stem, *folders):
            found = sorted((ROOT / ROOMS[room]).rglob(f"test_{mirrored}.py"))
            if found:
                yield from (one.relative_to(ROOT).as_posix() for one in found)
                return


def check_site(files: list[str], plan: Plan) -> None:
    """Build the pages that have changed, and visit them; or one chapter, where a style sheet, a
    script or a template has changed."""
    if anew := [name for name in files if name.startswith(BUILDS_ANEW)]:
        plan.left.append(f"the site, because of {', '.join(anew)}")
        return
    pages = [str(Path(name).with_suffix(".html")) for name in files if is_page(name)]
    if not pages and any(name.startswith(("website/", "pe_book/live/")) for name in files):
        pages = [A_CHAPTER]
    tests = [test for name in files for test in tests_of(name) if test.startswith("tests/site/")]
    if not (pages or tests):
        return
    plan.site["build"] = BUILD
    for page in pages:
        tests.append(f"tests/site/test_pages.py::test_file[{page}]")
        settings = ["desk"] if "/checks/" in page else ["desk", "phone"]
        tests += [f"tests/site/test_pages.py::test_visit[{page}-{one}]" for one in settings]
    plan.site["site"] = [*PYTEST, *tests]


def is_page(name: str) -> bool:
    return name.startswith("book/") and name.endswith((".ipynb", ".md"))


def run_lane(commands: dict[str, list[str]]) -> bool:
    """Run the commands of a lane. One that fails is shown whole, and does not stop those after it,
    but for the build, without which there is nothing to visit."""
    passed = True
    for name, command in commands.items():
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        result = "passed" if done.returncode == 0 else "FAILED"
        output = "" if done.returncode == 0 else f"\n{done.stdout}{done.stderr}"
        print(f"  {result}  {seconds:5.1f} s  {name}{output}", flush=True)
        passed &= done.returncode == 0
        if name == "build" and not passed:
            break
    return passed


if __name__ == "__main__":
    main()
