"""`make check`: what a changed file calls for."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import check


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("pe_lib/torch/_cache.py", ["tests/lib/test_torch_cache.py"]),
        ("pe_lib/doctor/trials.py", ["tests/lib/test_doctor.py"]),
        ("website/finish/style_sheet.py", ["tests/website/test_style_sheet.py"]),
        ("website/build.py", ["tests/website/test_build.py"]),
        ("tests/pages/test_data.py", ["tests/pages/test_data.py"]),
        ("tests/pages/page_text.py", []),
        ("README.md", []),
    ],
)
def test_the_test_of_a_file_has_its_name(changed: str, tests: list[str]) -> None:
    assert [*check.tests_of(changed)] == tests


def test_a_page_is_built_alone_and_visited() -> None:
    plan = check.plan_for(["book/glossary.md"])
    assert plan.site["build"] == check.BUILD
    named = [test.partition("::")[2] for test in plan.site["site"] if "::" in test]
    page = "book/glossary.html"
    assert named == [f"test_file[{page}]", f"test_visit[{page}-desk]", f"test_visit[{page}-phone]"]
    assert "text" in plan.code
    assert "types" not in plan.code


def test_code_is_checked_for_style_and_types_and_by_its_examples() -> None:
    plan = check.plan_for(["pe_lib/numpy.py"])
    assert list(plan.code)[:4] == ["style", "format", "types", "examples"]
    assert plan.site == {}


def test_what_every_page_would_have_to_be_read_again_for_is_left() -> None:
    plan = check.plan_for(["website/extensions/formulas.py", "book/glossary.md"])
    assert plan.site == {}
    assert "website/extensions/formulas.py" in " ".join(plan.left)


def page(**changed: str) -> str:
    """A notebook of two cells."""
    texts = {"markdown": "words", "code": "1 + 1"} | changed
    cells = [{"cell_type": name, "source": source} for name, source in texts.items()]
    return json.dumps({"cells": cells}, indent=1)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a repository that holds one page, on a branch of its own."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    git(there, "init", "--initial-branch=main")
    (there / "page.ipynb").write_text(page(), encoding="utf-8")
    commit(there)
    git(tmp_path, "clone", str(there), str(here))
    git(here, "checkout", "-b", "mine")
    monkeypatch.setattr(check, "ROOT", here)
    return here


def git(folder: Path, *arguments: str) -> None:
    names = ["-c", "user.name=A reader", "-c", "user.email=reader@example.org"]
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--message", "A change")


@pytest.mark.parametrize("committed", [False, True], ids=["not committed", "committed"])
@pytest.mark.parametrize("upstream", [False, True], ids=["no upstream", "upstream"])
@pytest.mark.parametrize(("kind", "again"), [("markdown", False), ("code", True)])
def test_a_notebook_runs_again_where_its_code_has_changed(
    clone: Path, kind: str, again: bool, upstream: bool, committed: bool
) -> None:
    """A commit changes nothing of what there is to check, nor does a branch without upstream."""
    if upstream:
        git(clone, "branch", "--set-upstream-to=origin/main")
    (clone / "page.ipynb").write_text(page(**{kind: "new"}), encoding="utf-8")
    if committed:
        commit(clone)
    assert check.changed_files() == ["page.ipynb"]
    assert check.code_has_changed("page.ipynb") == again


def test_a_new_notebook_is_run(clone: Path) -> None:
    (clone / "new.ipynb").write_text(page(), encoding="utf-8")
    assert check.changed_files() == ["new.ipynb"]
    assert check.code_has_changed("new.ipynb")


def test_without_another_repository_the_last_commit_is_what_counts(clone: Path) -> None:
    git(clone, "remote", "remove", "origin")
    assert check.changed_files() == []
    (clone / "page.ipynb").write_text(page(code="new"), encoding="utf-8")
    assert check.changed_files() == ["page.ipynb"]
    assert check.code_has_changed("page.ipynb")


def test_a_lane_stops_where_the_site_is_not_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any other check that fails does not stop those after it."""
    assert not check.run_lane({"style": ["false"], "types": ["true"]})
    assert "passed" in capsys.readouterr().out
    assert not check.run_lane({"build": ["false"], "site": ["true"]})
    assert "passed" not in capsys.readouterr().out
