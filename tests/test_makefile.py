"""The commands of the Makefile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from website import install


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
    text = (install.ROOT / "MAINTAINING.md").read_text(encoding="utf-8")
    commands = re.findall(r"\bmake ([a-z -]*\bconstraints\b[a-z -]*)", text)
    assert [command.split() for command in commands] == [["constraints"]]


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
