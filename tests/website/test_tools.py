"""What `make` does on a machine or in a folder that is not as it should be."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import pytest

from website import build_book, install, notebooks, preview, run_tests, stopping


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the repository, and what is built in it."""
    build = tmp_path / "_build"
    places = {"ROOT": tmp_path, "BUILD": build, "SITE": build / "html", "CACHE": build / "cache"}
    for name, place in places.items():
        monkeypatch.setattr(build_book, name, place)
    for name in ("book", "pe_lib"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_old_python_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "VENV", None)  # nothing is installed where it goes on
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    with pytest.raises(SystemExit, match=r"3\.11 or newer is needed.*make book PYTHON="):
        install.main()


PIP_FAILS = """#!/bin/sh
echo 'WARNING: a warning' >&2
echo '{reason}' >&2
exit 1
"""


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("ERROR: ResolutionImpossible: for help visit a page", "run `make constraints`"),
        ("ERROR: Could not find a version that satisfies numpy==9", "needs the network"),
        ("ERROR: No space left on device", "room on the disk"),
    ],
)
def test_where_pip_fails_its_reason_is_named_and_what_helps(
    reason: str,
    remedy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    python = tmp_path / "python"
    python.write_text(PIP_FAILS.format(reason=reason), encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(install, "PYTHON", python)
    with pytest.raises(SystemExit) as ended:
        install.pip("install", "numpy")
    assert reason in str(ended.value)
    assert remedy in str(ended.value)
    assert "a warning" not in str(ended.value)
    assert "WARNING: a warning" in capfd.readouterr().err  # shown as pip says it


def test_an_environment_is_used_in_the_folder_where_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its programs name this folder, so in a copy or under a new name it would run the old code."""

    def look_in(folder: Path) -> None:
        monkeypatch.setattr(install, "VENV", folder / ".venv")
        monkeypatch.setattr(install, "PYTHON", folder / ".venv" / "bin" / "python")

    here, there = tmp_path / "here", tmp_path / "another folder"
    look_in(here)
    install.make_environment()
    assert install.is_usable()
    here.rename(there)
    look_in(there)
    assert not install.is_usable()
    install.make_environment()
    assert install.is_usable()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "Creating",
        "Replacing",
    ]


def make(*arguments: str) -> str:
    """What make prints. The make that runs the tests leaves it no settings in the environment."""
    alone = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    command = ["make", *arguments]
    return subprocess.check_output(command, cwd=install.ROOT, env=alone, text=True)


def test_new_constraints_are_found_in_an_environment_without_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A raised version contradicts the old constraints, so nothing could be installed first."""
    steps = make("--dry-run", "constraints").splitlines()
    assert [step.partition(" ")[2] for step in steps] == [
        "website/install.py --bare",
        "website/constraints.py",
    ]
    made: list[str] = []
    monkeypatch.setattr(sys, "argv", ["install.py", "--bare"])
    monkeypatch.setattr(install, "make_environment", lambda: made.append("environment"))
    monkeypatch.setattr(install, "pip", pytest.fail)
    install.main()
    assert made == ["environment"]


def test_constraints_are_made_in_a_command_of_their_own() -> None:
    """make installs once in a run, so what comes later in it would use the old versions."""
    text = (install.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = re.findall(r"\bmake ([a-z -]*\bconstraints\b[a-z -]*)", text)
    assert [command.split() for command in commands] == [["constraints"]]


@pytest.mark.parametrize(
    ("npm", "said"),
    [("/usr/bin/npm", "npm has not fetched html-validate"), (None, "There is no npm")],
)
def test_the_tests_go_on_without_html_validate_and_say_why(
    npm: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is optional: npm may be there and the network not."""
    fails = SimpleNamespace(returncode=1)
    monkeypatch.setattr(install, "HTML_VALIDATE_PROGRAM", tmp_path / "html-validate")
    monkeypatch.setattr(shutil, "which", lambda name: npm)
    monkeypatch.setattr(subprocess, "run", lambda *_, **options: fails)
    install.install_html_validate()
    assert said in capsys.readouterr().out
    assert next(run_tests.left_out()).startswith(said)


def test_make_runs_one_step_at_a_time(tmp_path: Path) -> None:
    """Also where it is told to run several: two installations in one folder would disturb it."""
    log = tmp_path / "log"
    python = tmp_path / "python"
    steps = f"#!/bin/sh\necho begin >> {log}\nsleep 0.2\necho end >> {log}\n"
    python.write_text(steps, encoding="utf-8")
    python.chmod(0o755)
    make("--jobs", "pdf", f"PYTHON={python}", f"BIN={tmp_path}")
    noted = log.read_text(encoding="utf-8").split()
    assert len(noted) > 6
    assert noted == ["begin", "end"] * (len(noted) // 2)


def test_help_lists_every_documented_command() -> None:
    """On any system: not every sed takes the sign for a tab."""
    makefile = (install.ROOT / "Makefile").read_text(encoding="utf-8")
    documented = re.findall(r"^([a-z-]+):.*## (.+)$", makefile, re.MULTILINE)
    assert [tuple(line.split(maxsplit=1)) for line in make("help").splitlines()] == documented
    assert r"\t" not in makefile


def interrupt(*arguments: Any, **options: Any) -> Any:
    """What a step does in which Ctrl+C is typed."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("tool", "step", "said"),
    [
        (install, "install_packages", "The same command goes on where the installation stopped"),
        (build_book, "execute", "The same command begins again"),
        (notebooks, "store", "The same command begins again"),
    ],
)
def test_ctrl_c_ends_a_tool_in_one_sentence(
    tool: ModuleType, step: str, said: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, step, interrupt)
    monkeypatch.setattr(sys, "argv", ["tool"])
    with pytest.raises(SystemExit, match=f"^Stopped. {said}"):
        tool.main()


@pytest.mark.parametrize("why", [errno.EACCES, errno.EROFS], ids=["no right", "read-only disk"])
def test_a_folder_that_may_not_be_written_is_named(
    why: int, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(why, "refused", "some/_build")

    monkeypatch.setattr(build_book, "execute", refuse)
    with pytest.raises(
        SystemExit, match=r"You may not write some/_build\. .* into a folder of your"
    ):
        build_book.main()


@pytest.mark.parametrize("why", [KeyboardInterrupt(), OSError(errno.EACCES, "refused", "a.ipynb")])
def test_no_tool_says_that_nothing_has_changed(why: BaseException) -> None:
    """`make notebooks` stores one page after the other."""
    with pytest.raises(SystemExit) as ended, build_book.one_sentence_at_the_end():
        raise why
    assert "as they were" not in str(ended.value)
    assert "othing was changed" not in str(ended.value)


def test_other_errors_are_shown_whole(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build_book, "execute", fail)
    with pytest.raises(OSError, match="No space left"):
        build_book.main()


def test_ctrl_c_ends_the_processes_that_run_notebooks(tmp_path: Path) -> None:
    """A terminal sends it to every process of its group."""
    build, kernel = start_build(tmp_path)
    os.killpg(build.pid, signal.SIGINT)
    _, said = build.communicate(timeout=60)
    assert build.returncode == 1
    assert stopping.STOPPED in said
    assert "Traceback" not in said
    wait_for(lambda: not is_running(kernel))


def test_processes_that_run_notebooks_end_with_the_build(tmp_path: Path) -> None:
    """Even where it could not end them, because it was killed."""
    build, kernel = start_build(tmp_path)
    build.kill()
    build.communicate(timeout=60)  # its stderr ends when the last process that holds it does
    wait_for(lambda: not is_running(kernel))


def test_what_a_process_that_runs_notebooks_starts_is_left_alone() -> None:
    """It is no such process, and neither is what is started when the notebooks have run."""
    code = """
import os
import time
from website import stopping

def code_of_child(work):
    child = os.fork()
    if child == 0:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def work():
    time.sleep(0.5)
    return 7

with stopping.ended_by_ctrl_c():
    started = code_of_child(lambda: code_of_child(work))
group = os.getpgrp()
apart = code_of_child(lambda: os.getpgrp() != group)
print(started, apart)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["7", "0"]


def start_build(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A build that runs a notebook of five minutes, and the process of its kernel."""
    begun = folder / "begun"
    lines = f"import os, time\nopen({str(begun)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)"
    page = write_page(folder, "page.ipynb", lines)
    code = f"""
import multiprocessing
from pathlib import Path
from website import build_book
multiprocessing.set_start_method("forkserver")  # as Python 3.14 does by itself
build_book.ROOT = build_book.BUILD = Path({str(folder)!r})
build_book.CACHE = build_book.ROOT / "cache"
build_book.execute([Path({str(page)!r})])
"""
    build = subprocess.Popen(
        [sys.executable, "-c", code],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: begun.exists() and begun.read_text(encoding="utf-8") != "")
    return build, int(begun.read_text(encoding="utf-8"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait up to a minute, because a busy machine is no fault of the tool."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen within a minute")


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_the_tests_with_what_was_found_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, command: list[str]) -> tuple[bool, float]:
        return interrupt() if name == "types" else (True, 1.0)

    monkeypatch.setattr(run_tests, "run", run)
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "style", "types", "book"])
    with pytest.raises(SystemExit) as ended:
        run_tests.main()
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "Stopped in the check 'types'" in said
    assert "1 passed, 0 failed, 2 not run" in said


@pytest.mark.parametrize(
    ("named", "run"),
    [(["style", "book", "site"], ["style", "book"]), (["site"], ["site"])],
    ids=["after the build", "alone"],
)
def test_a_site_that_was_not_built_is_not_tested(
    named: list[str],
    run: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its many failures, or those of an older site, would hide the one that matters."""
    tried = []

    def fail_to_build(name: str, command: list[str]) -> tuple[bool, float]:
        tried.append(name)
        return name != "book", 1.0

    monkeypatch.setattr(run_tests, "run", fail_to_build)
    monkeypatch.setattr(sys, "argv", ["run_tests.py", *named])
    with pytest.raises(SystemExit) as ended:
        run_tests.main()
    said = capsys.readouterr().out
    assert tried == run
    assert ended.value.code == int("book" in named)
    assert ("site: the book was not built" in said) == ("book" in named)
    assert ("1 passed, 1 failed, 1 not run" in said) == ("book" in named)


@pytest.mark.parametrize(
    ("changed", "called_for"),
    [
        ("pe_lib/torch.py", {*run_tests.CHECKS}),
        ("constraints.txt", {*run_tests.CHECKS}),
        ("tests/requirements.txt", {"library"}),
        ("book/rotation.ipynb", {"style", "format", "library", "notebooks", "book", "site"}),
        ("book/ruff.toml", {"style", "format", "library", "book", "site"}),
        ("website/extensions/ruff.toml", {"style", "format", "library", "book", "site"}),
        ("tests/nbval_sanitize.cfg", {"library", "notebooks"}),
        ("book/glossary.md", {"library", "book", "site"}),
        ("README.md", {"library"}),
        ("tests/site/contrast.js", {"book", "site"}),
    ],
)
def test_a_changed_file_calls_for_the_checks_that_read_it(
    changed: str, called_for: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(command: list[str], **options: Any) -> str:
        return f"{changed}\n" if "diff" in command else ""

    monkeypatch.setattr(subprocess, "check_output", git)
    assert set(run_tests.called_for()) == called_for


def test_without_git_the_checks_have_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "no-repository")
    with pytest.raises(SystemExit, match=r"git does not say .* Name the checks instead: style, "):
        run_tests.called_for()


def test_a_site_is_built_once_until_something_changes(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build() -> None:
        build_book.SITE.mkdir(parents=True, exist_ok=True)
        (build_book.SITE / "index.html").touch()
        built.append("site")
        if (repository / "book" / "wrong.md").exists():
            sys.exit("a warning")

    monkeypatch.setattr(build_book, "build", build)
    monkeypatch.setattr(build_book, "execute", lambda notebooks: None)
    files = ["book/a.md", "website/assets/book.css", "pe_lib/numpy.py", "pe_book/kit.js", "_toc.yml"]
    for count, name in enumerate([*files, "a/fork"], start=1):
        if name in files:
            write(repository / name)
        else:
            monkeypatch.setenv("GITHUB_REPOSITORY", name)
        build_book.main()
        build_book.main()
        assert len(built) == count, name
    (repository / "book" / "wrong.md").touch()
    with pytest.raises(SystemExit):
        build_book.main()
    (repository / "book" / "wrong.md").unlink()
    build_book.main()
    assert len(built) == count + 2


@pytest.mark.parametrize(
    ("name", "runs_again"),
    [
        ("pe_lib/torch.py", True),
        ("pe_book/live/clock.py", True),
        ("experiments/rank.py", True),
        ("experiments/results/rank.json", True),
        ("book/data/minilm/extract.npz", True),
        ("requirements.txt", True),
        ("pe_lib/README.md", False),
        ("pe_book/live/kit.css", False),
        ("pe_book/live/clock.js", False),
        ("website/assets/book.css", False),
        ("book/data/minilm/LICENSE", False),
        ("book/data/claims.yml", False),
        ("experiments/README.md", False),
        ("pe_lib/__pycache__/torch.py", False),
    ],
)
def test_only_what_a_notebook_reads_runs_it_again(
    name: str, runs_again: bool, repository: Path
) -> None:
    before = build_book.fingerprint(build_book.EXECUTION_INPUTS)
    write(repository / name)
    assert (build_book.fingerprint(build_book.EXECUTION_INPUTS) != before) == runs_again


def write(path: Path) -> None:
    """An empty file, in a folder that is made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def write_page(folder: Path, name: str, code: str) -> Path:
    cell = nbformat.v4.new_code_cell(code)
    path = folder / name
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def test_a_page_is_run_beside_its_data_and_again_when_the_library_changes(
    repository: Path,
) -> None:
    page = write_page(repository / "book", "page.ipynb", 'open("runs", "a").write("x")')
    for runs in ("x", "xx"):
        for _ in range(2):
            build_book.execute([page])
            assert (repository / "book" / "runs").read_text(encoding="utf-8") == runs
        (repository / "pe_lib" / "numpy.py").touch()
    build_book.execute([page], afresh=True)
    assert (repository / "book" / "runs").read_text(encoding="utf-8") == "xxx"


def test_what_a_cell_prints_in_parts_is_stored_as_one() -> None:
    """Where the parts are cut is a matter of timing, and a page stored twice is the same file."""

    def store(*printed: tuple[str, str]) -> str:
        """The stored form of a page whose cell has printed these texts to these streams."""
        cell = nbformat.v4.new_code_cell("print(1, 2)")
        cell.outputs = [
            nbformat.v4.new_output("stream", name=stream, text=text) for stream, text in printed
        ]
        page = nbformat.v4.new_notebook(cells=[cell])
        notebooks.normalise(page)
        return str(nbformat.writes(page))

    whole = store(("stdout", "1 2\n"), ("stderr", "beware"), ("stdout", "3"))
    parts = store(("stdout", "1 "), ("stdout", "2\n"), ("stderr", "beware"), ("stdout", "3"))
    assert parts == whole
    assert whole.count('"stream"') == 3


@pytest.mark.parametrize(
    ("tool", "step"),
    [
        (build_book, build_book.build_if_changed),
        (preview, preview.serve),
        (notebooks, notebooks.main),
    ],
    ids=["book", "preview", "notebooks"],
)
def test_what_jupyterlab_keeps_of_a_page_is_not_run(
    tool: ModuleType, step: Callable[[], None], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its copies lie in a hidden folder, and what a page reads does not lie beside them."""
    pages = ["book/01.ipynb", "book/checks/01.ipynb"]
    hidden = [
        "book/.ipynb_checkpoints/01-checkpoint.ipynb",
        "book/checks/.ipynb_checkpoints/01-checkpoint.ipynb",
        "book/checks/.~01.ipynb",
    ]
    for name in (*pages, *hidden):
        write(repository / name)
    run: list[Path] = []

    def note(paths: list[Path]) -> None:
        run.extend(paths)
        sys.exit("noted")

    monkeypatch.setattr(tool, "ROOT", repository)
    monkeypatch.setattr(tool, "store" if tool is notebooks else "execute", note)
    monkeypatch.setattr(preview, "listening", lambda: None)
    monkeypatch.setattr(sys, "argv", ["tool"])
    with pytest.raises(SystemExit, match="noted"):
        step()
    assert [path.relative_to(repository).as_posix() for path in run] == pages


@pytest.mark.parametrize("name", ["book/mistyped.ipynb", "book/a.md", "../elsewhere.ipynb"])
def test_a_mistyped_path_is_named_before_anything_is_run(
    name: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "book" / "a.md").touch()
    (repository.parent / "elsewhere.ipynb").touch()
    monkeypatch.setattr(notebooks, "ROOT", repository)
    monkeypatch.setattr(notebooks, "execute", pytest.fail)
    monkeypatch.setattr(sys, "argv", ["notebooks.py", str(repository / name)])
    with pytest.raises(SystemExit, match=rf"{name} is no notebook of this book"):
        notebooks.main()


def test_a_failure_is_named(repository: Path) -> None:
    page = write_page(repository / "book", "page.ipynb", "1 / 0")
    with pytest.raises(SystemExit, match=r"Not executed: book/page\.ipynb\."):
        build_book.execute([page])


def test_a_failure_leaves_the_outputs_of_other_pages_joined(repository: Path) -> None:
    """The next build takes them from the cache, where their parts would be lines of their own."""
    whole = "import time\nprint('one', end=' ', flush=True)\ntime.sleep(0.5)\nprint('line')"
    page = write_page(repository / "book", "page.ipynb", whole)
    wrong = write_page(repository / "book", "wrong.ipynb", "1 / 0")
    with pytest.raises(SystemExit, match=r"Not executed: book/wrong\.ipynb\."):
        build_book.execute([page, wrong])
    wrong.unlink()
    _, shown = build_book.execute([page]).merge_match_into_notebook(nbformat.read(page, 4))
    assert [output.text for output in shown.cells[0].outputs] == ["one line\n"]
