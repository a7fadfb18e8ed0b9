"""The contents of the book, as _toc.yml has them: its pages and its chapters, in their order."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CONTENTS = ROOT / "_toc.yml"


def pages_in(contents: Path = CONTENTS) -> list[str]:
    """The pages, such as "book/tour"."""
    return list(_files_in(yaml.safe_load(contents.read_text(encoding="utf-8"))))


def chapters_in(contents: Path = CONTENTS) -> list[str]:
    """The chapters: the notebooks in the parts that are numbered."""
    parts = yaml.safe_load(contents.read_text(encoding="utf-8"))["parts"]
    names = _files_in([part for part in parts if part["numbered"]])
    return [name for name in names if (contents.parent / f"{name}.ipynb").exists()]


def _files_in(part: Any) -> Iterator[str]:
    """What `root` and `file` name in a part of the contents, and in the parts inside it."""
    if isinstance(part, list):
        for entry in part:
            yield from _files_in(entry)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("root", "file"):
                yield value
            else:
                yield from _files_in(value)
