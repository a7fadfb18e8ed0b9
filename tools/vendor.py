"""Fetch what the site serves besides its own files, from npm, into book/_assets/vendor.

    make vendor

Needs npm on the path, for `npm pack` alone: nothing of a package is run; and pip's brotli, to write
fonts. The manifest written beside the files names each package, its version and licence, and the
checksum of every file; a test compares it with what lies in the folder.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset

VENDOR = Path(__file__).resolve().parent.parent / "book" / "_assets" / "vendor"
MANIFEST = VENDOR / "manifest.json"


# Folder, name on npm, version and licence of each package, and the files that the site needs of it:
# they lose the folder that they all stand in.
PACKAGES = (
    (
        ("mathjax", "mathjax", "3.2.2", "Apache-2.0"),
        # The parts that book/_ext/formulas.py runs when the site is built, and the fonts.
        "es5/",
        (
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
    ),
    (
        ("source-serif", "@fontsource/source-serif-4", "5.3.1", "OFL-1.1"),
        "files/",
        (
            "LICENSE",
            "files/source-serif-4-latin-[46]00-normal.woff2",
            "files/source-serif-4-latin-400-italic.woff2",
            "files/source-serif-4-greek-400-normal.woff2",
        ),
    ),
    (
        # The release whose names and code points the theme's style sheet uses.
        ("icons", "@fortawesome/fontawesome-free", "6.5.2", "OFL-1.1 AND CC-BY-4.0"),
        "webfonts/",
        ("LICENSE.txt", "webfonts/fa-solid-900.ttf"),
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
    for (folder, name, version, _), strip, files in PACKAGES:
        fetch(f"{name}@{version}", VENDOR / folder, strip, files)
        print(f"{name} {version}", flush=True)
    keep(VENDOR / "icons" / "fa-solid-900.ttf", "icons.woff2", glyphs=ICONS.split())
    for font in VENDOR.glob("mathjax/**/*.woff"):
        keep(font, f"{font.stem}.woff2", AMS_SIGNS if "AMS" in font.stem else None)
    MANIFEST.write_text(json.dumps(manifest(), indent=1) + "\n")


def fetch(package: str, target: Path, strip: str, files: Iterable[str]) -> None:
    """Copy the wanted files of a package into its folder."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        (archive,) = Path(folder).glob("*.tgz")
        shutil.unpack_archive(archive, folder, filter="data")
        for path in (path for pattern in files for path in Path(folder, "package").glob(pattern)):
            name = path.relative_to(folder).as_posix().removeprefix("package/").removeprefix(strip)
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / name)


def keep(
    font_file: Path, name: str, signs: Iterable[int] | None = None, glyphs: Iterable[str] = ()
) -> None:
    """Replace a font by a lighter one of another name: without hints, or with some signs only."""
    options = subset.Options(flavor="woff2", layout_features=[], name_IDs=[0, 1, 2, 13, 14])
    options.drop_tables += ["FFTM"]  # an editor's time stamps
    options.hinting = options.recalc_timestamp = False
    with subset.load_font(str(font_file), options) as font:
        subsetter = subset.Subsetter(options)
        every_sign = () if glyphs else font.getBestCmap()
        subsetter.populate(unicodes=signs or every_sign, glyphs=glyphs)
        subsetter.subset(font)
        subset.save_font(font, font_file.with_name(name), options)
    font_file.unlink()


def manifest() -> list[dict[str, object]]:
    """What lies in the folder, and where it came from."""
    keys = ("folder", "name", "version", "licence")
    return [
        {**dict(zip(keys, named, strict=True)), "sha256": checksums(VENDOR / named[0])}
        for named, _, _ in PACKAGES
    ]


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file under a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


if __name__ == "__main__":
    main()
