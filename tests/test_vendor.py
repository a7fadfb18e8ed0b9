"""What the site serves of others' work is what the manifest says, licences included."""

import json
import re

import formulas
import pytest
from vendor import MANIFEST, VENDOR, checksums

PACKAGES = json.loads(MANIFEST.read_text())


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_files_have_their_checksums(package: dict) -> None:
    assert checksums(VENDOR / package["folder"]) == package["sha256"]


def test_nothing_else_lies_there() -> None:
    known = {package["folder"] for package in PACKAGES} | {"manifest.json"}
    assert {path.name for path in VENDOR.iterdir()} == known


def test_formulas_are_set_by_the_parts_of_mathjax_that_are_there() -> None:
    assert "<mjx-mi" in formulas.FORMULAS[formulas.set_formula("x", False)]
    for wrong in ("{x", r"\nosuchname"):
        assert "data-mjx-error=" in formulas.FORMULAS[formulas.set_formula(wrong, False)]
    addresses = re.findall(r'url\("(.+?)"\)', formulas.style_sheet())
    fonts = {address for address in addresses if not address.startswith("data:")}
    assert len(fonts) >= 20
    assert all((VENDOR.parent / font).is_file() for font in fonts)
