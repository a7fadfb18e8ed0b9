"""Put the formulas in their places, and write the style sheet that draws them."""

from website.extensions.formulas import FORMULAS, PLACES, STYLE_SHEET, style_sheet
from website.finish.site import Site


def insert(site: Site) -> None:
    """Put each formula in the place that holds its number."""
    for path, page in site.pages.items():
        site.pages[path] = PLACES.sub(lambda place: FORMULAS[int(place[1])], page)
    (site.folder / "_static" / STYLE_SHEET).write_text(style_sheet(), encoding="utf-8")
