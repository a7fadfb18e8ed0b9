"""Appendix D shows all that pe_lib offers: each name with its signature and an example."""

import functools
import importlib
import inspect
from types import ModuleType

import pytest
from bs4 import Tag
from site_under_test import SITE, parsed

MODULES = [importlib.import_module(f"pe_lib.{name}") for name in ("numpy", "torch", "book.plots")]


def public_names(module: ModuleType) -> list[str]:
    """What the module says it offers, else the functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    ]


NAMES = [(module, name) for module in MODULES for name in public_names(module)]
every_name = pytest.mark.parametrize(
    ("module", "name"), NAMES, ids=[f"{module.__name__}.{name}" for module, name in NAMES]
)


@functools.cache
def entry(full_name: str) -> tuple[Tag, Tag]:
    """The signature of a name on the page, and what is said of it."""
    signature = parsed(SITE / "book" / "d_api.html").find("dt", id=full_name)
    assert isinstance(signature, Tag), f"{full_name} is not on the page"
    description = signature.find_next_sibling("dd")
    assert isinstance(description, Tag)
    return signature, description


def test_there_are_names() -> None:
    assert {"rotate", "RotaryPositionalEncoding", "heat_map"} <= {name for _, name in NAMES}


@every_name
def test_signature_is_on_the_page(module: ModuleType, name: str) -> None:
    shown, _ = entry(f"{module.__name__}.{name}")
    names = [part.get_text() for part in shown.select(".sig-param > .n:first-child")]
    parameters = inspect.signature(getattr(module, name)).parameters
    assert names == list(parameters)
    defaults = [p for p in parameters.values() if p.default is not inspect.Parameter.empty]
    assert len(shown.select(".default_value")) == len(defaults)


@every_name
def test_example_is_on_the_page(module: ModuleType, name: str) -> None:
    _, description = entry(f"{module.__name__}.{name}")
    assert description.find("p")
    assert description.select(":scope > .doctest .gp")


def test_formulas_are_set() -> None:
    """An index stands low, an exponent high, and no mark of plain text is left in the prose."""
    _, description = entry("pe_lib.numpy.frequencies")
    assert [index.get_text() for index in description.select("sub")][:1] == ["i"]
    assert [power.get_text() for power in description.select("sup")][:1] == ["−2i/d_model"]
    for mark in ("ω_", "^("):
        assert mark not in "".join(paragraph.get_text() for paragraph in description.select("p"))
