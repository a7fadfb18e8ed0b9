"""One browser and one server for all tests of the built site."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from website.browser import start_browser
from website.built_site import SITE, serve

# Some tests are listed page by page, and without a page there is nothing to list.
if not SITE.is_dir():
    raise pytest.UsageError(f"There is no built site at {SITE}: run `make book` first.")
expect.set_options(timeout=30_000)  # milliseconds: a busy machine is no fault of the site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = start_browser(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with serve() as address:
        yield address
