"""The controls of `hands.py` for the sizes of table that are trained, made once and stored."""

import json
from pathlib import Path

from experiments.clock.hands import CONTROLS, KINDS, fastest_of
from experiments.common import made

FILE = Path(__file__).parent / "controls.json"
LENGTHS, WIDTH = (48, 128, 256), 96


def store_controls() -> None:
    """The shortest period of a coherent plane in each kind of control table, unless stored."""
    if FILE.exists():
        return
    periods = {
        str(length): {kind: fastest_of(kind, length, WIDTH) for kind in KINDS} for length in LENGTHS
    }
    stored = {"width": WIDTH, "tables_of_each_kind": CONTROLS, "periods": periods, "made": made()}
    FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def fastest_control(length: int) -> float:
    """The period below which a coherent plane of a table of this length counts as a hand."""
    periods = json.loads(FILE.read_text(encoding="utf-8"))["periods"]
    if str(length) not in periods:
        raise ValueError(f"length must be one of {', '.join(periods)}, got {length}")
    return float(min(period for period in periods[str(length)].values() if period is not None))
