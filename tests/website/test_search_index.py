"""What the search knows: of the pages that are in the book, and of no others."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from website.extensions.search_page import ADDRESS, VERSION
from website.finish import search_index
from website.finish.site import Site


def test_a_page_that_is_removed_is_no_longer_found(tmp_path: Path) -> None:
    """An incremental build reads some pages again, and keeps what it knows of the others."""
    index = tmp_path / ADDRESS
    index.parent.mkdir()
    entry = {"title": "", "places": []}
    stored = json.dumps({"book/kept": entry, "book/removed": entry})
    index.write_text(f"{search_index.START}{stored}{search_index.END}", encoding="utf-8")
    app: Any = SimpleNamespace(env=SimpleNamespace(found_docs={"book/kept"}))
    site = Site(app, tmp_path, {})
    search_index.write(site)
    assert list(search_index.known_pages(index)) == ["book/kept"]


def test_words_that_the_script_skips_are_not_kept() -> None:
    """Its list stands in the script. A question word is worth little, and yet looked for."""
    kept = search_index.other_words([], ["Its rows have turned. How? From 1.0 on, please."])
    assert kept == "how rows turned"
    assert "please" in search_index.EMPTY_WORDS


def test_pages_ask_for_the_search_as_it_is(tmp_path: Path) -> None:
    """Their version of it is another where the index or a script is another."""
    folder = (tmp_path / ADDRESS).parent
    folder.mkdir()
    app: Any = SimpleNamespace(env=SimpleNamespace(found_docs=set()))
    asked: list[str] = []
    for script in ("first", "second", "second"):
        (folder / "search_field.js").write_text(script, encoding="utf-8")
        site = Site(app, tmp_path, {tmp_path / "page.html": f"search.js?v={VERSION}"})
        search_index.write(site)
        asked += site.pages.values()
    assert asked[0] != asked[1] == asked[2]
    assert not [text for text in asked if VERSION in text]
