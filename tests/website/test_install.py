"""`website/install.py` on a machine or in a folder that is not as it should be."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from website import install


def test_old_python_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "VENV", None)  # nothing is installed where it goes on
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    with pytest.raises(SystemExit, match="make book PYTHON="):
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


@pytest.mark.parametrize(
    ("npm", "remedy"),
    [("/usr/bin/npm", "make test"), (None, "Node.js")],
)
def test_the_tests_go_on_without_html_validate_and_say_why(
    npm: str | None,
    remedy: str,
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
    shown = capsys.readouterr().out
    assert remedy in shown
    assert "not validated" in shown
    assert install.why_html_is_not_validated() in shown
