"""Fetch what the site serves besides its own files, from npm, into book/_assets/vendor.

    make vendor

Needs npm on the path, for `npm pack` alone: nothing of a package is run; and pip's brotli, to write
fonts. The manifest written beside the files names each package, its version and licence, and the
checksum of every file; a test compares it with what lies in the folder.
"""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from fontTools import subset

VENDOR = Path(__file__).resolve().parent.parent / "book" / "_assets" / "vendor"
MANIFEST = VENDOR / "manifest.json"


@dataclass(frozen=True)
class Package:
    """A package of npm and the files that the site needs of it."""

    folder: str
    name: str
    version: str
    licence: str
    files: tuple[str, ...]
    strip: str = ""
    """The leading folder that the copies leave out."""


PACKAGES = (
    Package(
        "mathjax",
        "mathjax",
        "3.2.2",
        "Apache-2.0",
        (
            # The parts that book/_ext/formulas.py runs when the site is built, and the fonts.
            "LICENSE",
            "es5/startup.js",
            "es5/core.js",
            "es5/adaptors/liteDOM.js",
            "es5/input/tex.js",
            "es5/output/chtml.js",
            "es5/output/chtml/fonts/tex.js",
            "es5/output/chtml/fonts/woff-v2/*.woff",
            "es5/a11y/assistive-mml.js",
        ),
        strip="es5/",
    ),
    Package(
        "source-serif",
        "@fontsource/source-serif-4",
        "5.3.1",
        "OFL-1.1",
        (
            "LICENSE",
            "files/source-serif-4-latin-[46]00-normal.woff2",
            "files/source-serif-4-latin-400-italic.woff2",
            "files/source-serif-4-greek-400-normal.woff2",
        ),
        strip="files/",
    ),
    Package(
        "icons",
        "@fortawesome/fontawesome-free",
        "6.5.2",  # the release whose names and code points the theme's style sheet uses
        "OFL-1.1 AND CC-BY-4.0",
        ("LICENSE.txt", "webfonts/fa-solid-900.ttf"),
        strip="webfonts/",
    ),
)

# The icons of the theme that the book shows, by their names. The theme's own three fonts
# and its script hold two thousand more, in 0.8 MB.
ICONS = """
angle-down angle-left angle-right arrow-up bars bell check chevron-down chevron-right
circle-check circle-exclamation circle-half-stroke circle-info circle-xmark code download
expand file file-lines file-pdf house lightbulb list magnifying-glass magnifying-glass-minus
moon outdent pencil play rocket share sun triangle-exclamation up-right-from-square
"""

# Of the two hundred signs of MathJax's heaviest font, the capitals of sets and those in common use.
# A browser takes a sign that is not among them from the reader's system.
AMS_SIGNS = (*range(ord("A"), ord("Z") + 1), *map(ord, "kℏ∄∅∤≜≲≳⩽⩾⊨⋅■□▲△▼▽◊★✓"))


def main() -> None:
    shutil.rmtree(VENDOR, ignore_errors=True)
    for package in PACKAGES:
        fetch(package)
        print(f"{package.name} {package.version}", flush=True)
    keep(VENDOR / "icons" / "fa-solid-900.ttf", "icons.woff2", glyphs=ICONS.split())
    for font in VENDOR.glob("mathjax/**/*.woff"):
        keep(font, f"{font.stem}.woff2", AMS_SIGNS if "AMS" in font.stem else None)
    MANIFEST.write_text(json.dumps(manifest(), indent=1) + "\n")


def fetch(package: Package) -> None:
    """Copy the wanted files of a package into its folder."""
    for name, content in members(package):
        if any(fnmatch(name, pattern) for pattern in package.files):
            target = VENDOR / package.folder / name.removeprefix(package.strip)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def members(package: Package) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in a package's archive."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is not None:
                    yield member.name.removeprefix("package/"), file.read()


def keep(
    font_file: Path, name: str, signs: Iterable[int] | None = None, glyphs: Iterable[str] = ()
) -> None:
    """Replace a font by a lighter one of another name: without hints, or with some signs only."""
    options = subset.Options(flavor="woff2", layout_features=[], name_IDs=[0, 1, 2, 13, 14])
    options.drop_tables += ["FFTM"]  # an editor's time stamps
    options.hinting = options.recalc_timestamp = False
    with subset.load_font(io.BytesIO(font_file.read_bytes()), options) as font:
        subsetter = subset.Subsetter(options)
        every_sign = () if glyphs else font.getBestCmap()
        subsetter.populate(unicodes=signs or every_sign, glyphs=glyphs)
        subsetter.subset(font)
        subset.save_font(font, font_file.with_name(name), options)
    font_file.unlink()


def manifest() -> list[dict[str, object]]:
    """What lies in the folder, and where it came from."""
    return [
        {
            "folder": package.folder,
            "name": package.name,
            "version": package.version,
            "licence": package.licence,
            "sha256": checksums(VENDOR / package.folder),
        }
        for package in PACKAGES
    ]


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file under a folder."""
    return {
        str(path.relative_to(folder).as_posix()): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


if __name__ == "__main__":
    main()
