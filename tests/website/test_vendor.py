"""`make vendor`: what it fetches, and what is there when it fails."""

import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from website import vendor

PACKAGE = ("tool", "tool", "1.0", "MIT")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of others' work, which holds one file of an older release, and one package."""
    place = tmp_path / "vendor"
    place.mkdir()
    (place / "older").write_text("older", encoding="utf-8")
    monkeypatch.setattr(vendor, "VENDOR", place)
    monkeypatch.setattr(vendor, "MANIFEST", place / "manifest.json")
    monkeypatch.setattr(vendor, "PACKAGES", (PACKAGE,))
    monkeypatch.setattr(vendor, "FILES", {"tool": ("lib/*.js",)})
    monkeypatch.setattr(vendor, "lighten_fonts", lambda folder: None)
    return place


def serve(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `npm pack` bring a package with these files, or fail where there is none."""

    def pack(command: list[str], *, cwd: str, check: bool, **options: Any) -> None:
        if not names:
            raise subprocess.CalledProcessError(1, command)
        with tarfile.open(Path(cwd) / "tool-1.0.tgz", "w:gz") as archive:
            for name in names:
                archive.add(__file__, f"package/{name}")

    monkeypatch.setattr(subprocess, "run", pack)


def files_in(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_the_wanted_files_replace_the_older_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(["LICENSE", "lib/tool.js", "lib/tool.css"], monkeypatch)
    vendor.main()
    assert files_in(folder) == ["manifest.json", "tool/LICENSE", "tool/tool.js"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "npm could not fetch tool@1.0"),
        (["LICENSE", "source/tool.js"], r"tool@1\.0 has no file lib/\*\.js"),
        (["lib/tool.js"], r"tool@1\.0 has no file LICENSE\*"),
    ],
    ids=["no network", "a file has moved", "no licence"],
)
def test_what_is_there_stays_where_something_is_missing(
    names: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(names, monkeypatch)
    with pytest.raises(SystemExit, match=said):
        vendor.main()
    assert files_in(folder) == ["older"]
