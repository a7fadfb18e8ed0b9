"""Set the plain formulas of pe_lib's docstrings: ω_ix with an index, base^(−2i/d_model) raised.

A docstring is read in a terminal first, so its formulas are plain text; the page can do better. The
code of an example stays as it is.
"""

import re
from typing import Any

from sphinx.application import Sphinx

INDEX = re.compile(r"([ωΣW])_([a-z0-9])")
POWER = re.compile(r"\^\(((?:[^()]|\([^()]*\))*)\)")  # with no more than one level of parentheses


def set_formulas(
    app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Lower what stands after _ and raise what stands in ^( ), in the lines that are no code."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            raised = POWER.sub(r"\\ :sup:`\1`", line)
            lines[number] = INDEX.sub(r"\1\\ :sub:`\2`\\ ", raised)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", set_formulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
