"""Appendix D shows all that pe_lib offers: each name with its signature and an example."""

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


def entry(full_name: str) -> tuple[Tag, Tag]:
    """The signature of a name on the page, and what is said of it."""
    signature = parsed(SITE / "book" / "d_api.html").find("dt", id=full_name)
    assert isinstance(signature, Tag), f"{full_name} is not on the page"
    description = signature.find_next_sibling("dd")
    assert isinstance(description, Tag)
    return signature, description


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_name_has_its_parameters_and_an_example(module: ModuleType) -> None:
    for name in public_names(module):
        signature, description = entry(f"{module.__name__}.{name}")
        shown = [part.get_text() for part in signature.select(".sig-param > .n:first-child")]
        assert shown == list(inspect.signature(getattr(module, name)).parameters)
        assert description.select(":scope > p")
        assert description.select(":scope > .doctest .gp"), name


def test_formulas_are_set() -> None:
    """An index stands low, an exponent high, and no mark of plain text is left in the prose."""
    _, description = entry("pe_lib.numpy.frequencies")
    assert description.select("sub")[0].get_text() == "i"
    assert description.select("sup")[0].get_text() == "−2i/d_model"
    said = "".join(paragraph.get_text() for paragraph in description.select("p"))
    assert "ω_" not in said
    assert "^(" not in said
