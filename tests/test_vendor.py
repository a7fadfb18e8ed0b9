"""What the site serves of others' work is what the manifest says, licences included."""

import hashlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "book" / "_assets" / "vendor"
PACKAGES = json.loads((VENDOR / "manifest.json").read_text())

every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])


@every_package
def test_files_have_their_checksums(package: dict) -> None:
    folder = VENDOR / package["folder"]
    there = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert there == package["sha256"]


@every_package
def test_package_names_version_and_licence(package: dict) -> None:
    assert package["version"][0].isdigit()
    assert package["licence"]
    assert any(name.startswith("LICENSE") for name in package["sha256"])


def test_nothing_else_lies_there() -> None:
    known = {package["folder"] for package in PACKAGES} | {"manifest.json"}
    assert {path.name for path in VENDOR.iterdir()} == known


def test_the_page_loads_the_parts_of_mathjax_that_are_there() -> None:
    config = (ROOT / "_config.yml").read_text()
    for part in ("core", "input/tex", "output/chtml", "a11y/assistive-mml"):
        assert part in config
        assert (VENDOR / "mathjax" / f"{part}.js").is_file()
