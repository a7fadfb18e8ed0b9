"""The build: what it runs again, and how it ends where something is not as it should be."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

from website import build as builder
from website import install, notebooks, preview


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the repository, and what is built in it."""
    built = tmp_path / "_build"
    places = {"ROOT": tmp_path, "BUILD": built, "SITE": built / "html", "CACHE": built / "cache"}
    places["DOCTREES"] = built / "doctrees"
    for name, place in places.items():
        monkeypatch.setattr(builder, name, place)
    for name in ("book", "pe_lib"):
        (tmp_path / name).mkdir()
    return tmp_path


# ---- How it ends


def interrupt(*arguments: Any, **options: Any) -> Any:
    """What a step does in which Ctrl+C is typed."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("tool", "step"),
    [(install, "install_packages"), (builder, "execute"), (notebooks, "store")],
    ids=["install", "build", "notebooks"],
)
def test_ctrl_c_ends_a_tool_in_one_sentence(
    tool: ModuleType, step: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, step, interrupt)
    monkeypatch.setattr(sys, "argv", ["tool"])
    with pytest.raises(SystemExit, match=r"[Tt]he same command"):
        tool.main()


@pytest.mark.parametrize("why", [errno.EACCES, errno.EROFS], ids=["no right", "read-only disk"])
def test_a_folder_that_may_not_be_written_is_named(
    why: int, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(why, "refused", "some/_build")

    monkeypatch.setattr(builder, "execute", refuse)
    with pytest.raises(SystemExit, match="some/_build"):
        builder.main()


def test_other_errors_are_shown_whole(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(builder, "execute", fail)
    with pytest.raises(OSError, match="No space left"):
        builder.main()


def test_ctrl_c_ends_the_build_and_its_kernels(tmp_path: Path) -> None:
    """A terminal sends it to every process of its group."""
    build, kernel = start_build(tmp_path)
    os.killpg(build.pid, signal.SIGINT)
    _, errors = build.communicate(timeout=60)
    assert build.returncode == 1
    assert builder.STOPPED in errors
    assert "Traceback" not in errors
    wait_for(lambda: not is_running(kernel))


def test_kernels_end_with_a_build_that_is_killed(tmp_path: Path) -> None:
    build, kernel = start_build(tmp_path)
    build.kill()
    build.communicate(timeout=60)
    wait_for(lambda: not is_running(kernel))


def start_build(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A build that runs a notebook of five minutes, and the process of its kernel."""
    begun = folder / "begun"
    lines = f"import os, time\nopen({str(begun)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)"
    page = write_page(folder, "page.ipynb", lines)
    # Tests that a script runs in the background inherit that Ctrl+C is ignored.
    code = f"""
import signal
from pathlib import Path
from website import build
signal.signal(signal.SIGINT, signal.default_int_handler)
build.ROOT = build.BUILD = Path({str(folder)!r})
build.CACHE = build.ROOT / "cache"
build.execute([Path({str(page)!r})])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=builder.ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: begun.exists() and begun.read_text(encoding="utf-8") != "")
    return process, int(begun.read_text(encoding="utf-8"))


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


# ---- What it runs again


def test_a_site_is_built_once_until_something_changes(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build() -> None:
        builder.SITE.mkdir(parents=True, exist_ok=True)
        (builder.SITE / "index.html").touch()
        (builder.BUILD / "site-inputs").unlink(missing_ok=True)
        built.append("site")
        if (repository / "book" / "wrong.md").exists():
            sys.exit("a warning")

    monkeypatch.setattr(builder, "build", build)
    monkeypatch.setattr(builder, "execute", lambda notebooks: None)
    files = ["book/a.md", "website/assets/book.css", "pe_lib/numpy.py", "pe_book/kit.js"]
    files += ["website/finish/site.py", "_toc.yml"]
    for count, name in enumerate([*files, "a/fork"], start=1):
        if name in files:
            write(repository / name)
        else:
            monkeypatch.setenv("GITHUB_REPOSITORY", name)
        builder.main()
        builder.main()
        assert len(built) == count, name
    (repository / "book" / "wrong.md").touch()
    with pytest.raises(SystemExit):
        builder.main()
    (repository / "book" / "wrong.md").unlink()
    builder.main()
    assert len(built) == count + 2


# ---- How Jupyter Book is called


@pytest.mark.parametrize("result", [ValueError("a page"), 1], ids=["an error", "a bad status"])
def test_a_build_that_fails_is_said_again_by_the_next(
    result: Exception | int, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sphinx would not read a page again that has not changed, and so not warn again."""
    old, new = (builder.DOCTREES / "book" / name for name in ("old.doctree", "new.doctree"))
    write(old)
    os.utime(old, (1, 1))

    def sphinx(*_: Any, **options: Any) -> Exception | int:
        new.touch()
        return result

    monkeypatch.setattr(builder, "build_sphinx", sphinx)
    with pytest.raises(builder.NotBuilt):
        builder.build(whole=False)
    assert old.exists()
    assert not new.exists()


def test_half_written_settings_fail_like_a_page(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jupyter Book reads them before Sphinx starts, and raises its error."""

    def refuse(*_: Any, **options: Any) -> None:
        raise ValueError("no such setting")

    monkeypatch.setattr(builder, "build_sphinx", refuse)
    with pytest.raises(builder.NotBuilt):
        builder.build()
    assert "no such setting" in capsys.readouterr().err


def test_ctrl_c_within_sphinx_ends_the_build(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sphinx gives it back like an error."""
    monkeypatch.setattr(builder, "build_sphinx", lambda *_, **options: KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        builder.build()


# ---- What runs a notebook again


@pytest.mark.parametrize(
    ("name", "runs_again"),
    [
        ("pe_lib/torch.py", True),
        ("pe_book/live/figure.py", True),
        ("experiments/rank/__init__.py", True),
        ("experiments/rank/results.jsonl", True),
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
    before = builder.fingerprint(builder.EXECUTION_INPUTS)
    write(repository / name)
    assert (builder.fingerprint(builder.EXECUTION_INPUTS) != before) == runs_again


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
            builder.execute([page])
            assert (repository / "book" / "runs").read_text(encoding="utf-8") == runs
        (repository / "pe_lib" / "numpy.py").touch()
    builder.execute([page], afresh=True)
    assert (repository / "book" / "runs").read_text(encoding="utf-8") == "xxx"


@pytest.mark.parametrize(
    ("tool", "step"),
    [
        (builder, builder.build_if_changed),
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


def test_a_failure_is_named(repository: Path) -> None:
    page = write_page(repository / "book", "page.ipynb", "1 / 0")
    with pytest.raises(SystemExit, match=r"Not executed: book/page\.ipynb\."):
        builder.execute([page])


def test_a_failure_leaves_the_outputs_of_other_pages_joined(repository: Path) -> None:
    """The next build takes them from the cache, where their parts would be lines of their own."""
    whole = "import time\nprint('one', end=' ', flush=True)\ntime.sleep(0.5)\nprint('line')"
    page = write_page(repository / "book", "page.ipynb", whole)
    wrong = write_page(repository / "book", "wrong.ipynb", "1 / 0")
    with pytest.raises(SystemExit, match=r"Not executed: book/wrong\.ipynb\."):
        builder.execute([page, wrong])
    wrong.unlink()
    _, shown = builder.execute([page]).merge_match_into_notebook(nbformat.read(page, 4))
    assert [output.text for output in shown.cells[0].outputs] == ["one line\n"]
