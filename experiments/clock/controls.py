"""The controls of `hands.py` for the sizes of table that are trained, made once and stored."""

import json

from experiments.clock.hands import CONTROLS, KINDS, fastest_of
from experiments.clock.results import CONTROLS_FILE as FILE
from experiments.common import made

LENGTHS, WIDTH = (48, 128, 256), 96


def store_controls() -> None:
    """The fastest plane in each kind of control table that meets each criterion, unless stored."""
    if FILE.exists():
        return
    periods = {
        str(length): {kind: fastest_of(kind, length, WIDTH) for kind in KINDS} for length in LENGTHS
    }
    stored = {"width": WIDTH, "tables_of_each_kind": CONTROLS, "periods": periods, "made": made()}
    FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
