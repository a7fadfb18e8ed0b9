"""Read the rows of results that lie beside a module. Needs no PyTorch."""

import json
from pathlib import Path
from typing import Any

Run = dict[str, Any]  # the settings of a run, and what was measured


def rows_beside(module: str, name: str = "results.jsonl") -> list[Run]:
    """All rows of a file of results in the folder of a module, given as its ``__file__``."""
    file = Path(module).with_name(name)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
