"""Read the rows of results that lie beside a module. Needs no PyTorch."""

import json
from pathlib import Path
from typing import Any

Run = dict[str, Any]  # the settings of a run, and what was measured


def rows_beside(module: str) -> list[Run]:
    """All rows of the `results.jsonl` in the folder of a module, given as its ``__file__``."""
    file = Path(module).with_name("results.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
