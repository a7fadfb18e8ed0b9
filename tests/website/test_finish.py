"""The finishing steps: in their order, each page written once, and none left half-finished."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from website import finish
from website.finish.site import Site


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page that Sphinx has just written."""
    path = tmp_path / "page.html"
    path.write_text("raw", encoding="utf-8")
    monkeypatch.setattr(finish, "_written", {path})
    return path


def app_of(folder: Path) -> Any:
    return SimpleNamespace(outdir=str(folder), builder=SimpleNamespace(format="html"))


def test_steps_run_in_their_order(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(name: str) -> Any:
        def add(site: Site) -> None:
            site.pages[page] += f", {name}"

        return add

    monkeypatch.setattr(finish, "STEPS", (step("one"), step("two")))
    finish.finish(app_of(page.parent), None)
    assert page.read_text(encoding="utf-8") == "raw, one, two"


def test_what_is_not_finished_is_written_again_by_the_next_build(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would pass for finished, because Sphinx leaves alone what it has written."""

    def fail(site: Site) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(finish, "STEPS", (fail,))
    with pytest.raises(ZeroDivisionError):
        finish.finish(app_of(page.parent), None)
    assert not page.exists()


def test_pages_of_a_build_that_broke_off_are_not_taken_for_finished(page: Path) -> None:
    finish.finish(app_of(page.parent), ValueError("in Sphinx"))
    assert not page.exists()
