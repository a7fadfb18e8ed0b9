"""Every link within the site leads somewhere, anchors included."""

import functools
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from site_under_test import SITE

WRITTEN = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


@functools.cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(), "html.parser")


@functools.cache
def anchors(path: Path) -> set[str]:
    return {str(element["id"]) for element in parsed(path).select("[id]")}


def addresses(page: BeautifulSoup) -> list[str]:
    """All that the page points at or loads."""
    links = [str(element["href"]) for element in page.select("[href]")]
    sources = [str(element["src"]) for element in page.select("[src]")]
    return links + sources


def test_pages_were_written() -> None:
    assert WRITTEN


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(SITE)))
def test_links_resolve(path: Path) -> None:
    dead = []
    for address in addresses(parsed(path)):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        inside = parts.fragment and target.suffix == ".html" and target.is_file()
        if not target.is_file() or (inside and unquote(parts.fragment) not in anchors(target)):
            dead.append(address)
    assert dead == []
