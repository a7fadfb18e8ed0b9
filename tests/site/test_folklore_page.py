"""The page of folklore: a card for each entry, and a way from it to the cell that decides it."""

import re

import yaml

from website.built_site import ROOT, SITE, parsed
from website.extensions import folklore

PAGE = SITE / "book" / "folklore.html"
DATA = yaml.safe_load((ROOT / "book" / "data" / "folklore.yml").read_text(encoding="utf-8"))


def test_each_entry_has_a_card_with_its_verdict_and_its_grade() -> None:
    cards = {str(card["id"]): card for card in parsed(PAGE).select(".folklore")}
    expected = [entry["id"] for group in DATA["groups"] for entry in entries_of(group["id"])]
    assert list(cards) == expected + [one["id"] for one in DATA["unknown"]]
    for entry in DATA["entries"]:
        card = cards[entry["id"]]
        assert card.select(".verdict")[0].text == entry["verdict"]
        assert card.select(".grade")[0].text == entry["grade"]
        colour = f"verdict-{folklore.VERDICTS[entry['verdict']]}"
        assert colour in card.select(".verdict")[0].get_attribute_list("class")
        is_quoted = "“" in card.select(".folklore__quote")[0].text[:1]
        assert is_quoted == ("paraphrase" not in entry)


def entries_of(group: str) -> list[dict[str, str]]:
    return [entry for entry in DATA["entries"] if entry["group"] == group]


def test_run_it_leads_to_the_deciding_cell() -> None:
    """To an anchor of the page that the entry names, above a cell of code."""
    for entry in DATA["entries"]:
        (link,) = parsed(PAGE).select(f"[id='{entry['id']}'] .folklore__grade a")
        address = f"{entry['cell']}.html#folklore-{entry['id']}"
        assert link["href"] == address
        page = parsed((PAGE.parent / entry["cell"]).with_suffix(".html"))
        anchor = page.select_one(f"[id='folklore-{entry['id']}']")
        assert anchor is not None
        cell = anchor if anchor.select(".cell_input") else anchor.find_next(class_="cell")
        assert cell is not None
        assert cell.find(class_=re.compile("cell_input")) is not None
