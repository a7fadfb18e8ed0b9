"""The workflows are valid, pin what they use, and may do no more than they must."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_repository import ROOT, load

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# The jobs that may write, and what.
WRITERS = {
    ("book", "deploy"): {"pages": "write", "id-token": "write"},
    ("newest", "newest"): {"contents": "read", "issues": "write"},
}

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs_of(path: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return jobs


def steps_of(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs_of(path).values() for step in job["steps"]]


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} >= {"book", "newest", "links"}


def test_workflows_follow_their_schema() -> None:
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run(
        [sys.executable, *command, *WORKFLOWS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@every_workflow
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (.+)$", path.read_text(), re.M)
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_an_action_has_one_version_everywhere() -> None:
    used = {
        line for path in WORKFLOWS for line in re.findall(r"uses: (.+)$", path.read_text(), re.M)
    }
    assert len({line.partition("@")[0] for line in used}) == len(used)


@every_workflow
def test_permissions_are_few(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    for name, job in jobs_of(path).items():
        granted = job.get("permissions", {})
        if "write" in granted.values():
            assert granted == WRITERS[path.stem, name]
        assert job["timeout-minutes"] <= 60


@every_workflow
def test_no_script_is_put_together_from_what_others_write(path: Path) -> None:
    """A title or a branch's name within ``${{ }}`` of a script would be run as a part of it."""
    assert not [step["run"] for step in steps_of(path) if "${{" in step.get("run", "")]


@every_workflow
def test_checkout_leaves_no_credentials(path: Path) -> None:
    for step in steps_of(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_every_supported_python_is_tested() -> None:
    matrix = jobs_of(ROOT / ".github" / "workflows" / "book.yml")["test"]["strategy"]["matrix"]
    oldest = re.findall(r'requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text())
    assert matrix["python"][0] == oldest[0]
    assert len(matrix["python"]) >= 3


def test_only_the_default_branch_is_published() -> None:
    book = jobs_of(ROOT / ".github" / "workflows" / "book.yml")
    steps = {step.get("id", step.get("name")): step for step in book["build"]["steps"]}
    assert "github.event.repository.default_branch" in steps["pages"]["if"]
    assert "github.event_name != 'pull_request'" in steps["pages"]["if"]
    assert steps["artifact"]["if"] == "steps.pages.outcome == 'success'"
    assert book["deploy"]["if"] == "needs.build.outputs.published == 'true'"
    assert set(book["deploy"]["needs"]) == {"test", "oldest", "build"}


def test_every_check_runs_and_no_other_is_named() -> None:
    commands = "\n".join(step.get("run", "") for path in WORKFLOWS for step in steps_of(path))
    lines = re.findall(r"tools/run_tests\.py (.+)$", commands, re.M)
    named = {name for line in lines for name in shlex.split(line)}
    assert named == set(load("tools/run_tests.py").CHECKS)
