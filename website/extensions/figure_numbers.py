"""The figures of a page that has no number are counted from 1, on each such page.

Sphinx counts those of all such pages in one row, so the first figure of a page would be the ninth.
"""

from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def count_from_one(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number the figures of the pages that have no number themselves.

    In a numbered chapter, Sphinx gives a figure the number of the chapter and its own, (3, 2). On
    a page without a number it gives its own number alone, and goes on from the page before.
    """
    for numbers in env.toc_fignumbers.values():
        figures: dict[str, Any] = numbers.get("figure", {})
        if not any(len(number) > 1 for number in figures.values()):
            numbers["figure"] = {name: (count,) for count, name in enumerate(figures, start=1)}
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-get-updated", count_from_one, priority=900)  # after Sphinx has counted
    return {"parallel_read_safe": True, "parallel_write_safe": True}
