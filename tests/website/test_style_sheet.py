"""The one style sheet of the site: what it keeps, what it drops, and what it refuses to join."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tinycss2
from sphinx.errors import ExtensionError

from website.finish import style_sheet
from website.finish.site import Site


def used(rules: str, *words: str) -> str:
    """The rules that a site with these words keeps, without white space."""
    parsed = tinycss2.parse_stylesheet(rules, skip_comments=True, skip_whitespace=True)
    kept = (style_sheet.used_part(rule, set(words)) for rule in parsed)
    return "".join("".join(kept).split())


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (".here { a: b }", ".here{a:b}"),
        (".gone { a: b }", ""),
        ("#gone { a: b }", ""),
        (".gone, .here { a: b }", ".here{a:b}"),
        ("p.here > .gone { a: b }", ""),
        ("mjx-gone > p { a: b }", ""),
        ("p:first-child::before { a: b }", "p:first-child::before{a:b}"),
        ("p:not(.gone) { a: b }", "p:not(.gone){a:b}"),
        ("@media print { .gone { a: b } .here { a: b } }", "@mediaprint{.here{a:b}}"),
        ("@media print { .gone { a: b } }", ""),
        ("@font-face { font-family: gone }", "@font-face{font-family:gone}"),
        ("p { a: b; .gone & { c: d } }", "p{a:b;.gone&{c:d}}"),
    ],
)
def test_rules_for_absent_classes_are_dropped(rules: str, kept: str) -> None:
    assert used(rules, "here") == kept


def test_addresses_and_imports_lead_from_the_new_place(tmp_path: Path) -> None:
    folder = tmp_path / "_static" / "styles"
    folder.mkdir(parents=True)
    (tmp_path / "_static" / "basic.css").write_text('a { b: url("file.png") }', encoding="utf-8")
    (folder / "theme.css").write_text(
        '@import "../basic.css"; i { b: url(../fonts/f.woff2) } u { b: url("data:x") }',
        encoding="utf-8",
    )
    rules = "".join(style_sheet.rules_of(folder / "theme.css", tmp_path, set()))
    assert 'url("file.png")' in rules
    assert 'url("fonts/f.woff2")' in rules
    assert "data:x" in rules


def test_pages_must_agree_on_the_order() -> None:
    assert style_sheet.in_one_order([["b"], ["a", "b", "c"], ["a", "c"]]) == ["a", "b", "c"]
    with pytest.raises(ExtensionError, match="later rules win"):
        style_sheet.in_one_order([["a", "b", "c"], ["c", "a"]])


def test_a_page_that_is_built_again_gets_its_rules_and_leaves_the_others_theirs(
    tmp_path: Path,
) -> None:
    """The one sheet changes its name with its rules, so the pages that were not built ask anew."""
    static = tmp_path / "_static"
    static.mkdir()
    (static / "book.css").write_text(
        ".old { a: b } .new { a: b } .find { a: b } .gone { a: b }", "utf-8"
    )
    link = '<link href="_static/book.css" rel="stylesheet"/>'
    env = SimpleNamespace(found_docs={"one", "two"})
    app: Any = SimpleNamespace(env=env, doctreedir=str(tmp_path))
    texts = dict.fromkeys(("one", "two"), f'{link}<p class="old">')
    texts["search"] = f'{link}<p class="find">'
    for built in (texts, {"two": f'{link}<p class="new">'}):
        site = Site(
            app, tmp_path, {tmp_path / f"{name}.html": text for name, text in built.items()}
        )
        style_sheet.join(site)
        for path, text in site.pages.items():
            path.write_text(text, encoding="utf-8")
    rules = (static / "site.css").read_text(encoding="utf-8")
    assert "".join(rules.split()) == ".old{a:b}.new{a:b}.find{a:b}"
    pages = [(tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in texts]
    assert len({re.findall(r"site\.css\?v=(\w+)", page)[0] for page in pages}) == 1
    assert not any("book.css" in page for page in pages)


@pytest.mark.parametrize("file", ["website/assets/book.css", "pe_book/live/kit.css"])
def test_lines_below_words_are_set_part_by_part(file: str) -> None:
    """Safari knows `text-decoration` with one word only, and drops a rule that has more."""
    text = (Path(__file__).parent.parent.parent / file).read_text(encoding="utf-8")
    values = re.findall(r"text-decoration:\s*([^;}]+)", text)
    assert "text-decoration-line: underline" in text
    assert [value for value in values if " " in value.strip()] == []
