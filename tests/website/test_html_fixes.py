"""The fixes of the HTML: one that no page needs is noticed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import html_fixes
import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError


def bold_is_strong(page: BeautifulSoup) -> None:
    for element in page.select("b"):
        element.name = "strong"


def site(*, only_changed_pages: bool) -> Any:
    return SimpleNamespace(
        builder=SimpleNamespace(format="html"),
        config=SimpleNamespace(only_changed_pages=only_changed_pages),
    )


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two pages that have been written, and one fix for all pages."""
    written = [tmp_path / name for name in ("a.html", "b.html")]
    for page in written:
        page.write_text("<p>A page</p>", encoding="utf-8")
    monkeypatch.setattr(html_fixes, "WRITTEN_PAGES", set(written))
    monkeypatch.setattr(html_fixes, "FIXES", (bold_is_strong,))
    monkeypatch.setattr(html_fixes, "FIXES_WITH_FILES", ())
    return written


def test_a_fix_that_no_page_needs_fails_the_build(pages: list[Path]) -> None:
    """The theme has another name for what it looks for, perhaps."""
    with pytest.raises(ExtensionError, match=r"nothing to fix: bold_is_strong\."):
        html_fixes.fix_pages(site(only_changed_pages=False), None)


@pytest.mark.parametrize("needs_it", [0, 1])
def test_a_fix_that_one_page_needs_is_in_use(needs_it: int, pages: list[Path]) -> None:
    pages[needs_it].write_text("<b>A page</b>", encoding="utf-8")
    html_fixes.fix_pages(site(only_changed_pages=False), None)
    assert pages[needs_it].read_text(encoding="utf-8") == "<strong>A page</strong>"


def test_the_few_pages_of_a_preview_need_not_need_every_fix(pages: list[Path]) -> None:
    html_fixes.fix_pages(site(only_changed_pages=True), None)
    assert pages[0].read_text(encoding="utf-8") == "<p>A page</p>"
