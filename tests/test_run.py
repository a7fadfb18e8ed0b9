"""`tests/run.py`: which checks it runs, and how it sums them up."""

import sys

import pytest

from tests import run as run_checks


def test_ctrl_c_ends_the_tests_with_what_was_found_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, command: list[str]) -> tuple[bool, float]:
        if name == "types":
            raise KeyboardInterrupt
        return True, 1.0

    monkeypatch.setattr(run_checks, "run", run)
    monkeypatch.setattr(sys, "argv", ["run.py", "style", "types", "book"])
    with pytest.raises(SystemExit) as ended:
        run_checks.main()
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

    monkeypatch.setattr(run_checks, "run", fail_to_build)
    monkeypatch.setattr(sys, "argv", ["run.py", *named])
    with pytest.raises(SystemExit) as ended:
        run_checks.main()
    said = capsys.readouterr().out
    assert tried == run
    assert ended.value.code == int("book" in named)
    assert ("site: the book was not built" in said) == ("book" in named)
    assert ("1 passed, 1 failed, 1 not run" in said) == ("book" in named)
