"""The server of the built site, which the tests of the site and the measurements use."""

import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from website import built_site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "404.html").write_text("<p>No such page</p>", encoding="utf-8")
    monkeypatch.setattr(built_site, "SITE", tmp_path)
    return tmp_path


def serve_and_fail() -> None:
    with built_site.serve():
        raise ZeroDivisionError


def test_the_server_ends_with_what_it_is_for_also_where_that_fails(site: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        serve_and_fail()
    assert threading.active_count() == before


@pytest.mark.parametrize("address", ["nothing", "folder/nothing.svg"])
def test_an_unknown_address_shows_the_page_that_says_so(address: str, site: Path) -> None:
    """As a page, whatever the address ends in: a browser would download it otherwise."""
    with built_site.serve() as url, pytest.raises(HTTPError) as answer:
        urlopen(url + address)
    assert answer.value.code == 404
    assert answer.value.headers["Content-Type"] == "text/html"
