"""The figures of a page that has no number are counted from 1, on each such page.

Sphinx counts those of all such pages in one row, so the first figure of a page would be the ninth.
"""

import copy
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def count_from_one(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number the figures of the pages that have no number themselves.

    In a numbered chapter, Sphinx gives a figure the number of the chapter and its own, (3, 2). On
    a page without a number it gives its own number alone, and goes on from the page before.
    """
    env.fignumbers_of_sphinx = copy.deepcopy(env.toc_fignumbers)  # type: ignore[attr-defined]
    for numbers in env.toc_fignumbers.values():
        figures: dict[str, Any] = numbers.get("figure", {})
        if not any(len(number) > 1 for number in figures.values()):
            numbers["figure"] = {name: (count,) for count, name in enumerate(figures, start=1)}
    return []


def restore(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Give Sphinx its own numbers back before it counts again. It compares the two, and would write
    every page anew whose numbers are not as it left them."""
    env.toc_fignumbers = getattr(env, "fignumbers_of_sphinx", env.toc_fignumbers)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-before-read-docs", restore)
    app.connect("env-get-updated", count_from_one, priority=900)  # after Sphinx has counted
    return {"parallel_read_safe": True, "parallel_write_safe": True}
