"""The dark twins of still figures."""

from pathlib import Path
from typing import Any

from website.finish import dark_figures
from website.finish.site import Site

NAME = "0" * 64


def test_each_figure_gets_a_twin_beside_it(tmp_path: Path) -> None:
    (tmp_path / "_images").mkdir()
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    (tmp_path / "_images" / f"{NAME}.svg").write_text(drawing, encoding="utf-8")
    app: Any = None
    page = tmp_path / "page.html"
    site = Site(app, tmp_path, {page: f'<img src="_images/{NAME}.svg"/>'})
    dark_figures.show_twins(site)
    assert site.pages[page].count("only-light") == site.pages[page].count("only-dark") == 1
    assert (tmp_path / "_images" / f"{NAME}-dark.svg").exists()
