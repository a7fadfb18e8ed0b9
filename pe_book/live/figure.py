"""What all live figures have in common: their scripts, their controls as traits, their output."""

import math
import re
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

    A subclass names its kind, which is the name of its script, and declares one synchronised trait
    for each control of the script, of the same name.
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


def control(value: float) -> Number:
    """A trait for a control that is a range, with the value to begin with."""
    return Number(value).tag(sync=True, control=True)


def choice(value: str, *others: str) -> "traitlets.Enum[Any]":
    """A trait for a control that is a row of buttons, with the value to begin with first."""
    return traitlets.Enum((value, *others), default_value=value).tag(sync=True, control=True)


def text(value: str, pattern: str) -> Text:
    """A trait for a control that is set in the picture, with the value to begin with."""
    return Text(value, pattern).tag(sync=True, control=True)
