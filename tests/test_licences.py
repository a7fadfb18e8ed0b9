"""LICENSES.md names what others made, as it lies here."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "book" / "_assets" / "vendor"
ROWS = {
    cells[0]: cells[1:]
    for cells in re.findall(
        r"^\| `(book/[^`]+)` \| (.+?) \| (.+?) \| (.+?) \|$",
        (ROOT / "LICENSES.md").read_text(),
        re.M,
    )
}


def test_every_folder_of_others_work_is_listed_and_no_other() -> None:
    """A folder of others' work is one that holds a licence, and everything under vendor."""
    licensed = {path.parent for path in (ROOT / "book").rglob("LICENSE*")}
    assert {path.relative_to(ROOT).as_posix() for path in licensed} == set(ROWS)
    assert {path for path in VENDOR.iterdir() if path.is_dir()} <= licensed


def test_versions_and_licences_are_those_of_the_manifest() -> None:
    for package in json.loads((VENDOR / "manifest.json").read_text()):
        _, version, licence = ROWS[f"book/_assets/vendor/{package['folder']}"]
        assert (version, licence) == (package["version"], package["licence"])
    for model in ("minilm", "smollm2"):
        provenance = json.loads((ROOT / "book" / "data" / model / "provenance.json").read_text())
        _, version, licence = ROWS[f"book/data/{model}"]
        assert version == provenance["version"]
        assert provenance["licence"].startswith(licence)


def test_contributors_are_told_of_rooms_and_commands_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:book|tests|tools|\.github|benchmarks)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for command in re.findall(r"`make ([a-z -]+)`", text):
        assert set(command.split()) <= targets, command
