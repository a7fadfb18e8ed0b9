"""What the page of folklore is filled with, and where its link "run it" leads.

The entries stand in book/data/folklore.yml, whose first lines say what each field is. The cell that
decides an entry names it in its metadata (``folklore: [near-orthogonal]``), as it names claims, and
links_to_checks.py gives it the anchor ``folklore-near-orthogonal``.
"""

from typing import Any

import yaml

from website.page_measures import BOOK

PAGE = "book/folklore"
DATA = BOOK / "data" / "folklore.yml"
# The verdicts, and the verdict of the ledger whose colour each has.
VERDICTS = {
    "true": "true",
    "incomplete": "true-with-conditions",
    "half true": "imprecise",
    "wrong reason": "imprecise",
    "not here": "imprecise",
    "false": "false",
    "unknown": "unknown",
}


def folklore() -> dict[str, Any]:
    """The groups in their order, each with its entries, and what nobody knows."""
    data = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    groups = {group["id"]: group | {"entries": []} for group in data["groups"]}
    for entry in data["entries"]:
        groups[entry["group"]]["entries"].append(entry | {"colour": VERDICTS[entry["verdict"]]})
    return {"groups": list(groups.values()), "unknown": data["unknown"]}
