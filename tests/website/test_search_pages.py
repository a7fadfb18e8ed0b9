"""What the search knows: of the pages that are in the book, and of no others."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import search_pages


def index_of(*pages: str) -> str:
    read = {page: {"said": "", "title": "", "places": []} for page in pages}
    return f"{search_pages.START}{json.dumps(read)}{search_pages.END}"


def test_a_page_that_is_removed_is_no_longer_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preview builds some pages again, and keeps what it knows of the others."""
    index = tmp_path / search_pages.ADDRESS
    index.parent.mkdir()
    index.write_text(index_of("book/kept", "book/removed"), encoding="utf-8")
    (tmp_path / "search.html").touch()
    monkeypatch.setattr(search_pages, "WRITTEN_PAGES", set())
    app: Any = SimpleNamespace(
        outdir=tmp_path,
        builder=SimpleNamespace(format="html"),
        env=SimpleNamespace(found_docs={"book/kept"}),
    )
    search_pages.write_index(app, None)
    text = index.read_text(encoding="utf-8")
    pages = json.loads(text.removeprefix(search_pages.START).removesuffix(search_pages.END))
    assert list(pages) == ["book/kept"]
