"""The fields of a configuration that say how queries and keys are turned, and what each may be.

Their names are those of ``config.rope_parameters`` in transformers 5, which are also those of
``rope_scaling`` in a ``config.json``.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from pe_lib import _checks as check


class RopeParameters(TypedDict, total=False):
    """The fields of a configuration's ``rope_parameters``. None, a file's null, leaves one out."""

    rope_type: str | None
    type: str | None  # the older name of rope_type
    rope_theta: float | None
    partial_rotary_factor: float | None
    factor: float | None
    original_max_position_embeddings: int | None
    low_freq_factor: float | None
    high_freq_factor: float | None
    beta_fast: float | None
    beta_slow: float | None
    attention_factor: float | None
    mscale: float | None
    mscale_all_dim: float | None
    truncate: bool | None
    short_factor: Sequence[float] | None
    long_factor: Sequence[float] | None
    max_position_embeddings: int | None
    # These say something other than frequencies: which position turns a pair, a temperature of the
    # queries that grows with the position, whether a model was trained after it was scaled. What a
    # caller does with them is in the docstring of `rotary_frequencies`.
    mrope_section: Sequence[int] | None
    mrope_interleaved: bool | None
    llama_4_scaling_beta: float | None
    finetuned: bool | None


AT_LEAST = {
    "mscale": 0,
    "mscale_all_dim": 0,
    "factor": 1,
}  # the others: above 0, rope_theta above 1
LENGTHS = {"seq_len": 1, "max_position_embeddings": 1, "original_max_position_embeddings": 2}
DIVISORS = ("short_factor", "long_factor")
# For a rope_type, what an old file may have as its "type" beside it.
OLDER_TYPES = {"longrope": ("su", "yarn"), "default": ("mrope",), "mrope": ("default",)}
OF_EVERY_TYPE = ("rope_theta", "partial_rotary_factor", *LENGTHS)
NOT_FREQUENCIES = ("mrope_section", "mrope_interleaved", "llama_4_scaling_beta", "finetuned")


def check_names(fields: RopeParameters) -> None:
    known = RopeParameters.__annotations__
    for name, value in fields.items():
        if name not in known and isinstance(value, dict):
            whole = name in ("rope_parameters", "rope_scaling")
            given = f"**{name}" if whole else f"**rope_parameters[{name!r}]"
            what = "the fields themselves" if whole else "the fields of one kind of layer"
            raise TypeError(f"{what} must be given, as in {given}, got a dict named {name!r}")
    for name in fields:
        if name in known:
            continue
        names = ", ".join(["seq_len", *known])
        raise TypeError(f"{name!r} is no field of rope_parameters: allowed are {names}")


def rope_type_of(fields: dict[str, Any], known: Collection[str]) -> str:
    """The type that ``rope_type`` and ``type``, its older name, say; both are taken out of the
    fields. Both may be there: transformers keeps the ``type`` of an old file beside the
    ``rope_type`` that it makes of it."""
    rope_type, older = fields.pop("rope_type", None), fields.pop("type", None)
    if rope_type is None and older is None:
        scaling = [name for name in fields if name not in OF_EVERY_TYPE]
        if scaling:
            raise ValueError(
                f"rope_type must be given beside {scaling[0]}, which 'default', the type without "
                f"one, does not use: one of {', '.join(map(repr, known))}; got None"
            )
        return "default"
    if rope_type is None:
        named = "longrope" if older == "su" else older
        check.choice("type", named, tuple(known))
        return str(named)
    check.choice("rope_type", rope_type, tuple(known))
    if older is not None and older != rope_type and older not in OLDER_TYPES.get(rope_type, ()):
        raise ValueError(
            "rope_type and type, its older name, must say the same or one of them be left out, "
            f"got rope_type {rope_type!r} and type {older!r}"
        )
    return str(rope_type)


def checked(name: str, value: Any) -> Any:
    """The value of a field in its plain form."""
    if name in ("rope_type", "type"):
        return value
    if name in LENGTHS:
        whole = isinstance(value, float) and value.is_integer()
        if whole and name != "seq_len":  # files have 32768.0
            value = int(value)
        return check.integer(name, value, at_least=LENGTHS[name])
    if name == "truncate":
        return check.true_or_false(name, value)
    if name in DIVISORS:
        return _divisors(name, value)
    if name in AT_LEAST:
        return _number(name, value, at_least=AT_LEAST[name])
    number = _number(name, value, above=1 if name == "rope_theta" else 0)
    if name == "partial_rotary_factor" and number > 1:
        raise ValueError(f"partial_rotary_factor must be at most 1, got {value!r}")
    return number


def allowed(name: str) -> str:
    """What a field may be, in words, for each field that some scaling needs."""
    if name in LENGTHS:
        return f"an integer of at least {LENGTHS[name]}"
    if name in DIVISORS:
        return "a list of positive numbers, one for each pair that turns"
    if name in AT_LEAST:
        return f"a number of at least {AT_LEAST[name]}"
    if name == "rope_theta":
        return "a number greater than 1, which an older config.json has beside its rope_scaling"
    return "a number greater than 0"


def _divisors(name: str, values: Any) -> NDArray[np.float64]:
    if not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name} must be a list of positive numbers, got {check.brief(values)}")
    return np.array([_number(f"each number in {name}", each, above=0) for each in values])


def _number(
    name: str, value: Any, *, at_least: float = -math.inf, above: float = -math.inf
) -> float:
    number = check.real(name, value)
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    if number <= above:
        raise ValueError(f"{name} must be greater than {above}, got {value!r}")
    return number


def rotary_dim_of(head_dim: int, partial_rotary_factor: float) -> int:
    rotary_dim = int(head_dim * partial_rotary_factor)
    if rotary_dim == 0 or rotary_dim % 2:
        raise ValueError(
            "partial_rotary_factor must leave a positive even number of entries that turn, "
            f"got {partial_rotary_factor} of head_dim = {head_dim}, which are {rotary_dim}"
        )
    return rotary_dim
