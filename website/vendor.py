"""Fetch what the site serves besides its own files, from npm, into website/assets/vendor.

    make vendor

Needs npm on the path, for `npm pack` alone: nothing of a package is run; and pip's brotli, to write
fonts. The manifest written beside the files names each package, its version and licence, and the
checksum of every file; a test compares it with what lies in the folder.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fontTools import subset

VENDOR = Path(__file__).resolve().parent.parent / "website" / "assets" / "vendor"
MANIFEST = VENDOR / "manifest.json"

# Folder, name on npm, version and licence of each package.
PACKAGES = (
    ("mathjax", "mathjax", "3.2.2", "Apache-2.0"),
    ("source-serif", "@fontsource/source-serif-4", "5.3.1", "OFL-1.1"),
    # The release whose names and code points the theme's style sheet uses.
    ("icons", "@fortawesome/fontawesome-free", "6.5.2", "OFL-1.1 AND CC-BY-4.0"),
)
# The files that the site needs of each, beside its licence. A file loses the first folder of its
# path: es5/core.js is copied to mathjax/core.js.
FILES = {
    "mathjax": (
        # The parts that website/extensions/formulas.py runs when the site is built, and the fonts.
        "es5/startup.js",
        "es5/core.js",
        "es5/adaptors/liteDOM.js",
        "es5/input/tex.js",
        "es5/input/tex/extensions/html.js",
        "es5/output/chtml.js",
        "es5/output/chtml/fonts/tex.js",
        "es5/output/chtml/fonts/woff-v2/*.woff",
        "es5/a11y/assistive-mml.js",
    ),
    "source-serif": (
        "files/source-serif-4-latin-[46]00-normal.woff2",
        "files/source-serif-4-latin-400-italic.woff2",
        "files/source-serif-4-greek-400-normal.woff2",
    ),
    "icons": ("webfonts/fa-solid-900.ttf",),
}

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
EVERY_SIGN = range(0x110000)


def main() -> None:
    # What is there is replaced once everything has been fetched.
    with tempfile.TemporaryDirectory() as place:
        fetched = Path(place, "vendor")
        for folder, name, version, _ in PACKAGES:
            fetch(f"{name}@{version}", FILES[folder], fetched / folder)
            print(f"{name} {version}", flush=True)
        lighten_fonts(fetched)
        shutil.rmtree(VENDOR, ignore_errors=True)
        shutil.copytree(fetched, VENDOR)
    write_manifest()


def fetch(package: str, patterns: Iterable[str], folder: Path) -> None:
    """Copy the licence of a package and the files that match the patterns into a folder."""
    with tempfile.TemporaryDirectory() as place:
        command = ["npm", "pack", "--silent", package]
        try:
            subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"npm could not fetch {package}: {error}. What was there is still there.")
        (archive,) = Path(place).glob("*.tgz")
        # Python before 3.11.4, Debian 12's for one, knows no filters of what an archive may do.
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        shutil.unpack_archive(archive, place, **safely)
        unpacked = Path(place, "package")
        for pattern in ("LICENSE*", *patterns):
            found = list(unpacked.glob(pattern))
            if not found:
                sys.exit(f"{package} has no file {pattern}. What was there is still there.")
            for path in found:
                parts = path.relative_to(unpacked).parts
                copy = folder.joinpath(*(parts[1:] or parts))  # a licence is in no folder
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)


def lighten_fonts(folder: Path) -> None:
    """Keep of the icons those that the book shows, and compress the fonts of MathJax."""
    keep(folder / "icons" / "fa-solid-900.ttf", "icons.woff2", glyphs=ICONS.split())
    for font in folder.glob("mathjax/**/*.woff"):
        signs = AMS_SIGNS if "AMS" in font.stem else EVERY_SIGN
        keep(font, f"{font.stem}.woff2", unicodes=signs)


def write_manifest() -> None:
    """Write the version, the licence and the checksums of what was fetched."""
    keys = ("folder", "name", "version", "licence")
    manifest = [
        {**dict(zip(keys, package, strict=True)), "sha256": checksums(VENDOR / package[0])}
        for package in PACKAGES
    ]
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def keep(font_file: Path, name: str, **signs: Iterable[int | str]) -> None:
    """Replace a font by a lighter one of another name.

    It has the given signs alone (``glyphs`` by their names, or ``unicodes`` by their code points),
    and none of the hints for screens of few pixels.
    """
    options = subset.Options(flavor="woff2", layout_features=[], name_IDs=[0, 1, 2, 13, 14])
    options.drop_tables += ["FFTM"]  # an editor's time stamps
    options.hinting = options.recalc_timestamp = False
    with subset.load_font(str(font_file), options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(**signs)
        subsetter.subset(font)
        subset.save_font(font, font_file.with_name(name), options)
    font_file.unlink()


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file under a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


if __name__ == "__main__":
    main()
