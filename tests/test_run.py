"""`tests/run.py`: which checks it runs, and how it sums them up."""

import subprocess
import sys
from typing import Any

import pytest

from tests import run


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


