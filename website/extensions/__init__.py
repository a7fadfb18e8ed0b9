"""What changes a page while Sphinx reads and writes it: one extension a file.

What is done to the finished pages stands in website/finish.
"""

from sphinx.application import Sphinx

EXTENSIONS = (
    "launch_buttons",
    "data_pages",
    "links_to_checks",
    "finding",
    "figure_numbers",
    "search_page",
    "live_figures",
    "docstrings",
    "formulas",
    "page_head",
)


def setup(app: Sphinx) -> dict[str, bool]:
    for name in EXTENSIONS:
        app.setup_extension(f"website.extensions.{name}")
    return {"parallel_read_safe": True, "parallel_write_safe": False}
