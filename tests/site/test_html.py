"""The pages are valid HTML."""

import collections
import os
import shutil
import subprocess
from pathlib import Path

import html5lib
import pytest
from bs4 import BeautifulSoup
from site_under_test import SITE

HTML_VALIDATE = "html-validate@10.17.0"
WRITTEN = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)

every_file = pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(SITE)))


@every_file
def test_html_is_well_formed(path: Path) -> None:
    """The standard's own parser meets no error, and no anchor stands twice."""
    text = path.read_text()
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(text)
    assert [(place, code) for place, code, _ in parser.errors] == []
    names = [str(element["id"]) for element in BeautifulSoup(text, "html.parser").select("[id]")]
    assert [name for name, count in collections.Counter(names).items() if count > 1] == []


def test_html_is_valid() -> None:
    """html-validate's recommended rules, a superset of its standard ones, find nothing.

    It comes by npm, where there is npm. One rule is off: Sphinx's search wants role="main" on the
    main element. Another is as the standard has it: an anchor may hold the dots of a Python name.
    """
    npx = shutil.which("npx")
    if npx is None:
        assert not os.environ.get("CI"), "CI needs Node.js, for html-validate"
        pytest.skip("html-validate needs Node.js; the test above needs Python alone")
    rules = Path(__file__).with_name("htmlvalidate.json")
    command = [
        npx,
        "--yes",
        HTML_VALIDATE,
        "--config",
        str(rules),
        "--max-warnings",
        "0",
        *map(str, WRITTEN),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "npm error" in done.stderr and not os.environ.get("CI"):
        pytest.skip("html-validate could not be fetched; the test above needs no network")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
