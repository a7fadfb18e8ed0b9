"""What the search knows: of the pages that are in the book, and of no others."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from website.extensions.search_page import ADDRESS
from website.finish import search_index
from website.finish.site import Site


def test_a_page_that_is_removed_is_no_longer_found(tmp_path: Path) -> None:
    """An incremental build reads some pages again, and keeps what it knows of the others."""
    index = tmp_path / ADDRESS
    index.parent.mkdir()
    entry = {"said": "", "title": "", "places": []}
    stored = json.dumps({"book/kept": entry, "book/removed": entry})
    index.write_text(f"{search_index.START}{stored}{search_index.END}", encoding="utf-8")
    app: Any = SimpleNamespace(env=SimpleNamespace(found_docs={"book/kept"}))
    search_page = tmp_path / "search.html"
    site = Site(app, tmp_path, {search_page: f'data-index="{ADDRESS}"'})
    search_index.write(site)
    assert list(search_index.known_pages(index)) == ["book/kept"]
    assert "?v=" in site.pages[search_page]
