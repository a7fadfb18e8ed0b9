"""The fixes of the HTML: one that no page needs is noticed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from website.finish import html_fixes

PAGES = (Path("a.html"), Path("b.html"))


def bold_is_strong(page: BeautifulSoup) -> None:
    for element in page.select("b"):
        element.name = "strong"


@pytest.fixture(autouse=True)
def _one_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_fixes, "FIXES", (bold_is_strong,))
    monkeypatch.setattr(html_fixes, "FIXES_WITH_FILES", ())
    monkeypatch.setattr(html_fixes, "FIXES_OF_CODE", ())


def site(*, is_whole: bool, **texts: str) -> Any:
    """A site of two pages that need no fix, but for the texts given by the name of a page."""
    pages = {page: texts.get(page.stem, "<p>A page</p>") for page in PAGES}
    return SimpleNamespace(pages=pages, is_whole=is_whole)


def test_a_fix_that_no_page_needs_fails_the_build() -> None:
    """The theme has another name for what it looks for, perhaps."""
    with pytest.raises(ExtensionError, match="bold_is_strong"):
        html_fixes.fix_pages(site(is_whole=True))


@pytest.mark.parametrize("page", PAGES)
def test_a_fix_that_one_page_needs_is_in_use(page: Path) -> None:
    built = site(is_whole=True, **{page.stem: "<b>A page</b>"})
    html_fixes.fix_pages(built)
    assert built.pages[page] == "<strong>A page</strong>"


def test_the_few_pages_of_an_incremental_build_need_not_need_every_fix() -> None:
    built = site(is_whole=False)
    html_fixes.fix_pages(built)
    assert built.pages == site(is_whole=False).pages


def shout(code: str) -> str:
    return code.upper()


def test_a_fix_of_code_that_no_page_needs_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_fixes, "FIXES", ())
    monkeypatch.setattr(html_fixes, "FIXES_OF_CODE", (shout,))
    with pytest.raises(ExtensionError, match="shout"):
        html_fixes.fix_pages(site(is_whole=True, a="<pre>X = 1</pre>"))
    needs = site(is_whole=True, a="<pre>X = 1</pre>", b="<pre>y = 1</pre>")
    html_fixes.fix_pages(needs)
    assert needs.pages[PAGES[1]] == "<pre>Y = 1</pre>"


def test_code_comes_back_with_its_marks_but_for_those_of_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside a fix, and in its place."""
    monkeypatch.setattr(html_fixes, "FIXES_OF_CODE", (html_fixes.leave_names_plain,))
    code = '<span class="nb">print</span><span class="p">(</span><span class="s2">"&lt;%d'
    text = f"<p>a</p><pre>{code}</span></pre><b>b</b><pre>x'</pre>"
    fixed = html_fixes.fix(text, Path(), set())
    shown = '<span class="nb">print</span>(<span class="s2">"&lt;%d</span>'
    assert fixed == f"<p>a</p><pre>{shown}</pre><strong>b</strong><pre>x'</pre>"


def test_korean_in_code_is_marked_as_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_fixes, "FIXES", (html_fixes.name_languages,))
    fixed = html_fixes.fix('<pre><span class="c1"># 위치</span></pre>', Path(), set())
    assert fixed == '<pre><span class="c1"># <span lang="ko">위치</span></span></pre>'


def table(heads: list[str], *rows: list[str], look: str = "") -> BeautifulSoup:
    head, *body = (
        "".join(f"<{name}>{text}</{name}>" for text in row)
        for name, row in (("th", heads), *(("td", row) for row in rows))
    )
    text = (
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody>"
    )
    page = f'<div class="bd-article"><table class="{look}">{text}</table></div>'
    found = BeautifulSoup(page, "html.parser", multi_valued_attributes=None)  # as fix_parsed does
    html_fixes.stack_on_phones(found)
    return found


def test_a_table_of_sentences_names_its_columns_in_each_row() -> None:
    found = table(["what", "why", "how"], ["a", "b" * 50, "c" * 50], ["d", "", "e"], look="table")
    assert found.table is not None
    assert found.table["class"] == "table stacked"
    names = [cell.get("data-name") for cell in found.select("tbody td")]
    assert names == ["what", "why", "how"] * 2


def test_a_column_without_a_heading_has_none_in_the_rows() -> None:
    found = table(["", "why"], ["a", "b" * 90])
    assert [cell.get("data-name") for cell in found.select("tbody td")] == [None, "why"]


@pytest.mark.parametrize(
    ("rows", "look"),
    [
        ([["1", "2.50"], ["2", "3.75"]], ""),
        ([["a" * 50, "b" * 50]], "families filterable table"),
        ([["a" * 50, "b" * 50]], "ledger table"),
        ([["a" * 50, "b" * 50], ["a cell alone" * 9]], ""),
    ],
)
def test_other_tables_stay(rows: list[list[str]], look: str) -> None:
    assert not table(["what", "why"], *rows, look=look).select(".stacked, [data-name]")


def test_a_long_call_in_a_table_may_break_between_its_parts() -> None:
    calls = ("pe.Rotary.from_config(x)(batch,base=10_000.0)", "pe.rotate(x, by=2.5)")
    cells = "".join(f"<td><code>{call}</code></td>" for call in calls)
    page = BeautifulSoup(f'<div class="bd-article"><table>{cells}</table></div>', "html.parser")
    html_fixes.break_long_calls(page)
    long, short = (code.decode_contents() for code in page.select("code"))
    assert long.split("<wbr/>") == ["pe.", "Rotary.", "from_config(", "x)(batch,base=10_000.0)"]
    assert short == calls[1]
