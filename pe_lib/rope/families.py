"""What a family's code does that its ``config.json`` does not say: the layout above all.

``families.json`` is written by a script of this project's repository, which lets the doctor look at
the code of every family in an installed transformers; a test holds it against that code. Nothing in
it is guessed: a ``model_type`` that is not there is unknown.
"""

import functools
import json
from importlib import resources
from typing import Any, Final

Family = dict[str, Any]
FILE: Final = "families.json"


class UnknownFamily(ValueError):
    """A ``model_type`` that the table does not have."""

    def __init__(self, model_type: Any) -> None:
        super().__init__(
            f"model_type must be a family of the table, {len(families())} of transformers "
            f"{version()}, got {model_type!r}: its layout is not known, and not guessed, if it "
            "rotates at all. To find it out, give its rotation to pe_lib.doctor.examine; then pass "
            "family= to rotary_settings: the name of a family that shares its code, or "
            '{"layout": "split"} or {"layout": "interleaved"}'
        )


@functools.cache
def _table() -> dict[str, Any]:
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def version() -> str:
    """The version of transformers whose code was read."""
    return str(_table()["transformers"])


def families() -> dict[str, Family]:
    """For each ``model_type`` what its code does.

    A family is a dictionary with some of these keys:

    ``layout``, ``layout_out``, ``direction``
        Which entries of an input make a pair, and which of an output: "split" or "interleaved"; and
        1, or −1 for pairs that turn the other way.
    ``width``
        Which width of the configuration the rotation is given: "head_dim", "hidden_size" (divided
        by the number of heads), "qk_rope_head_dim" or "global_head_dim" (of full attention).
    ``rotary_dim``
        Which field says how much turns, if it is not ``partial_rotary_factor``.
    ``last``
        True where the last entries of the width turn and not the first.
    ``unturned``
        Which layers do not turn: ``{"types": […]}`` names kinds of layers, ``{"list": field}`` a
        field with 0 for such a layer; with both, the names count where a file has no list. With
        ``"unless_null": field``, all turn if the file has a null there.
    ``bases``
        The field with a base for each layer, 0 where it does not turn.
    ``scaled``
        The field that lists the layers whose frequencies are scaled; the others have the base.
    ``axes``
        How the axes of a position are dealt to the pairs: "sections", "interleaved", "ernie".
    ``norms``, ``norms_after``, ``norms_plain``
        The norms of queries and keys; True where they come after the rotation; True where they have
        no weight for each entry, so that nothing of them changes with the layout.
    ``norms_field``
        The field that must be true for these norms to be there, if there is one.
    ``names``
        Where a field has another name in this family.
    ``defaults``
        The fields that a file may leave out, as the family's class has them.
    ``further``
        The layouts of further functions that turn something else in the same layers.
    ``scale``, ``scale_share``
        A softmax scale that no field says; or of which share of the width it is one over the root.
    ``soft_cap``
        The field that caps scores, where the code uses it.
    ``older_names``
        The older names of a base and of a part that the code reads.
    ``older_rotary_dim``
        The field of older files that says how much turns, where ``partial_rotary_factor`` does not.
    ``kinds``
        By which rule kinds are dealt to layers: a ``cycle`` that is repeated, from the first layer
        or, with ``from_end``, back from the last; and the kinds that stand ``first`` and ``last``.
    ``intervals``
        Fields that say how often full attention comes in the cycle: at its "start" or "end".
    ``numbers``
        Of older files the field with a number for each layer, and which kind each number means.
    ``plain_yarn``
        True where a yarn of an older file multiplies nothing, unless it says so.
    ``flat``
        Of a family with parameters for each kind of layer: which kinds take a field of an older
        file, such as ``rope_theta``.
    ``unread``
        Fields of older files that this family's class does not read.
    ``switches``
        Fields that change the layout: for a value of the field "split", "interleaved", or "none"
        where nothing turns.
    ``text``
        Instead of all this: the ``model_type`` of the text model within a larger model.
    ``read``
        "model" if a model was built and watched, "function" if only its rotation was called.
    """
    return dict(_table()["families"])


def family_of(model_type: Any) -> Family:
    """The family of a ``model_type``, or `UnknownFamily`."""
    known = _table()["families"]
    if not isinstance(model_type, str) or model_type not in known:
        raise UnknownFamily(model_type)
    family: Family = known[model_type]
    return family
