"""The workflows are valid, pin what they use, and may do no more than they must."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import run_tests
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# The jobs that may write, and what.
WRITERS = {
    ("book", "deploy"): {"pages": "write", "id-token": "write"},
    ("newest", "newest"): {"contents": "read", "issues": "write"},
}


def jobs_of(path: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return jobs


def test_workflows_are_valid_and_safe() -> None:
    """They follow their schema, actions are pinned by commit, no script is put together from what
    others write, and no credentials are left behind."""
    command = [str(Path(sys.executable).parent / "zizmor"), "--offline", "--strict-collection"]
    subprocess.run([*command, *WORKFLOWS], check=True)


def test_an_action_has_one_version_everywhere() -> None:
    used = {
        line for path in WORKFLOWS for line in re.findall(r"uses: (.+)$", path.read_text(), re.M)
    }
    assert len({line.partition("@")[0] for line in used}) == len(used) > 0


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_permissions_are_few(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    for name, job in jobs_of(path).items():
        granted = job.get("permissions", {})
        if "write" in granted.values():
            assert granted == WRITERS[path.stem, name]
        assert job["timeout-minutes"] <= 60


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
    texts = "\n".join(path.read_text() for path in WORKFLOWS)
    lines = re.findall(r"tools/run_tests\.py (.+)$", texts, re.M)
    named = {name for line in lines for name in shlex.split(line)}
    assert named == set(run_tests.CHECKS)
