"""The figures of a page that has no number are counted from 1, on each such page.

Sphinx counts those of all such pages in one row, so the first figure of an appendix would be the
ninth. An appendix with a letter puts the letter before the number, as chapters put theirs.
"""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

APPENDIX = re.compile(r"Appendix ([A-Z])\.")


def count_from_one(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number the figures of the pages that have no number themselves.

    In a numbered chapter, Sphinx gives a figure the number of the chapter and its own, (3, 2). On
    a page without a number it gives its own number alone, and goes on from the page before.
    """
    for page, numbers in env.toc_fignumbers.items():
        figures: dict[str, Any] = numbers.get("figure", {})
        if not figures or any(len(number) > 1 for number in figures.values()):
            continue
        appendix = APPENDIX.match(env.titles[page].astext())
        letter: Any = appendix.groups() if appendix else ()
        numbers["figure"] = {name: (*letter, count) for count, name in enumerate(figures, start=1)}
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-get-updated", count_from_one, priority=900)  # after Sphinx has counted
    return {"parallel_read_safe": True, "parallel_write_safe": True}
