"""Appendix D shows all that pe_lib offers: each name with an example, and its formulas set."""

import importlib
import inspect
from types import ModuleType

import pytest
from bs4 import Tag
from site_under_test import SITE, parsed

MODULES = [
    importlib.import_module(f"pe_lib.{name}")
    for name in ("numpy", "torch", "book.plots", "book.live")
]


def public_names(module: ModuleType) -> list[str]:
    """What the module says it offers, else the functions that it defines."""
    return getattr(module, "__all__", None) or [
        name
        for name, thing in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and thing.__module__ == module.__name__
    ]


def said_of(full_name: str) -> Tag:
    """What the page says of a name, below its signature."""
    (description,) = parsed(SITE / "book" / "d_api.html").select(f'dt[id="{full_name}"] + dd')
    return description


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_name_has_an_example(module: ModuleType) -> None:
    for name in public_names(module):
        assert said_of(f"{module.__name__}.{name}").select(":scope > .doctest .gp"), name


def test_formulas_are_set() -> None:
    """An index stands low, an exponent high, and no mark of plain text is left in the prose."""
    description = said_of("pe_lib.numpy.frequencies")
    assert description.select("sub")[0].get_text() == "i"
    assert description.select("sup")[0].get_text() == "−2i/d_model"
    said = "".join(paragraph.get_text() for paragraph in description.select("p"))
    assert "ω_" not in said
    assert "^(" not in said
