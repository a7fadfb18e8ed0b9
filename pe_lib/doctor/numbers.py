"""Numbers in words."""

from collections.abc import Iterable, Sequence
from typing import Any


def whole(value: Any) -> str:
    return f"{int(value):,}"


def number(value: float) -> str:
    """A number in at most six digits, with commas for thousands."""
    rounded = float(f"{value:.6g}")
    if abs(rounded) >= 1e15 or (rounded != 0 and abs(rounded) < 1e-4):
        return f"{rounded:.4g}"
    return f"{rounded:,.0f}" if rounded == round(rounded) else f"{rounded:,g}"


def entries_of(start: int, width: int) -> str:
    return f"{start}–{start + width - 1}"


def spans(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] as "0–2, 5"."""
    parts: list[list[int]] = []
    for each in numbers:
        if parts and each == parts[-1][-1] + 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    shown = [f"{p[0]}–{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts[:4]]
    return ", ".join(shown) + (", …" if len(parts) > 4 else "")


def listed(values: Iterable[Any]) -> str:
    numbers = [str(each) for each in values]
    return ", ".join(numbers[:8]) + (", …" if len(numbers) > 8 else "")
