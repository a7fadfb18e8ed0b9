"""What all live figures have in common: their scripts, their controls as traits, their output."""

import inspect
import itertools
import math
import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import anywidget
import traitlets

from pe_book.live import still


class Number(traitlets.TraitType[Any, Any]):
    """The value of a control: a finite number. A whole number stays an ``int``."""

    info_text = "a finite real number"

    def validate(self, obj: Any, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            self.error(obj, value)
        return int(value) if isinstance(value, Integral) else float(value)


class Text(traitlets.TraitType[str, str]):
    """The value of a control that the picture sets: a text that fits a pattern."""

    def __init__(self, value: str, pattern: str) -> None:
        super().__init__(value)
        self.pattern = pattern
        self.info_text = f"a text that fits {pattern}"

    def validate(self, obj: Any, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            self.error(obj, value)
        return value


class LiveFigure(anywidget.AnyWidget):
    """A figure whose controls are traits that Python and the browser share.

    A subclass, which `kind` makes, has the name of its script and one synchronised trait for each
    control of the script, of the same name.
    """

    kind: ClassVar[str]
    symbols: ClassVar[dict[str, str]] = {}  # TeX of a symbol, and the part of the figure it lights
    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    figure = traitlets.Unicode().tag(sync=True)
    question = traitlets.Unicode().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    def __init__(
        self, *, question: str, data: dict[str, Any] | None = None, **controls: Any
    ) -> None:
        self.shown = controls
        super().__init__(
            _esm=still.module(self.kind),
            _css=(still.FOLDER / "kit.css").read_text(encoding="utf-8"),
            figure=self.kind,
            question=question,
            data=data or {},
            **controls,
        )

    @classmethod
    def controls(cls) -> list[str]:
        """The names of the traits that are controls."""
        return list(cls.class_traits(control=True))

    @property
    def state(self) -> dict[str, Any]:
        """The values of all controls now."""
        return {name: getattr(self, name) for name in self.controls()}

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)}" for name in self.shown)
        return f"Live figure: {self.kind}({given})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live view, its still, and a line of text."""
        widget = super()._repr_mimebundle_(**kwargs)
        # Where no notebook is running, anywidget gives nothing.
        bundle, metadata = widget if isinstance(widget, tuple) else (widget or {}, {})
        drawn = still.picture(self.kind, self.state, self.data)
        return bundle | {"text/plain": repr(self), "image/svg+xml": drawn}, metadata


Make = Callable[..., Any]  # makes a figure, whose traits no type checker knows
KINDS: dict[str, type[LiveFigure]] = {}


def kind(name: str, symbols: dict[str, str] | None = None) -> Make:
    """The function that makes the figures of a script, with the controls that the script declares.

    ``symbols`` are TeX of symbols, each with the part of the figure that it lights.
    """
    spec = still.declared(name)
    controls: dict[str, dict[str, Any]] = spec["controls"]
    traits = {key: trait_of(control) for key, control in controls.items()}
    body = {"kind": name, "symbols": symbols or {}, **traits}
    KINDS[name] = type(name.capitalize(), (LiveFigure,), body)
    signature = signature_of(controls)

    def figure(*values: Any, **named: Any) -> LiveFigure:
        given = signature.bind(*values, **named).arguments
        return KINDS[name](question=given.pop("question", ""), **given)

    figure.__name__ = figure.__qualname__ = name
    figure.__module__ = "pe_book.live"
    figure.__signature__ = signature  # type: ignore[attr-defined]
    figure.__doc__ = documentation(name, spec["title"], controls)
    return figure


def trait_of(control: dict[str, Any]) -> "traitlets.TraitType[Any, Any]":
    """A synchronised trait for a control of a script, with the value to begin with."""
    value = control["value"]
    trait: traitlets.TraitType[Any, Any]
    if "choices" in control:
        trait = traitlets.Enum([choice for choice, _ in control["choices"]], default_value=value)
    elif "pattern" in control:
        trait = Text(value, control["pattern"])
    else:
        trait = Number(value)
    return trait.tag(sync=True, control=True)


def signature_of(controls: dict[str, dict[str, Any]]) -> inspect.Signature:
    """Each control by its place or its name, and a question by its name."""
    by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(key, by_place, default=control["value"])
        for key, control in controls.items()
    ]
    return inspect.Signature([*parameters, inspect.Parameter("question", by_name, default="")])


def documentation(name: str, title: str, controls: dict[str, dict[str, Any]]) -> str:
    """The title of a figure, the first comment of its script, its controls and an example."""
    comment = itertools.takewhile(
        lambda line: line.startswith("//"), still.text_of(name).split("\n")
    )
    about = " ".join(line.removeprefix("//").strip() for line in comment)
    rows = "".join(f"\n{key}\n    {described(control)}" for key, control in controls.items())
    first = next(iter(controls))
    return f"""{title}.

{about}

Parameters
----------{rows}
question
    What the reader should answer before moving anything.

Examples
--------
>>> {name}().{first}
{controls[first]["value"]!r}
"""


def described(control: dict[str, Any]) -> str:
    """What a control is, what it may be, and what it begins with."""
    if "choices" in control:
        return f"{control['label']}: " + " or ".join(repr(value) for value, _ in control["choices"])
    if "pattern" in control:
        return f"{control['label']}: a text like ``{control['value']}``"
    return f"{control['label']}, from {control['min']} to {control['max']}"
