"""What the pages "RoPE by family" and "Rotary conventions" are filled with.

The families come from the table that pe_lib carries, which a script reads off the code of the
installed transformers; the conventions from book/data/rope_conventions.yml, whose lines
tests/lib/test_serving.py runs. Nothing of either is written on the pages themselves.
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import yaml

from pe_lib.rope import RotarySettings, rotary_settings
from pe_lib.rope.families import Family, version
from pe_lib.rope.families import families as known_families
from website.page_measures import BOOK

FAMILIES, CONVENTIONS_PAGE = "book/rope_families", "book/rope_conventions"
# How the pairs are dealt to the axes of a position.
AXES = {
    "sections": "in blocks of",
    "interleaved": "in turns, of",
    "alternate": "in turns, of",
    "ernie": "height and width in turns, then time:",
}
CONVENTIONS = BOOK / "data" / "rope_conventions.yml"


def families() -> dict[str, Any]:
    """``rows``, one for each family of text models; ``transformers``, the version that was read;
    and the numbers that the page states.

    A row names the larger models, of images and text, whose text model the family is, as ``also``.
    """
    known = known_families()
    larger = defaultdict(list)
    for name, family in known.items():
        if "text" in family:
            larger[family["text"]].append(name)
    rows = [
        row(name, family, larger[name]) for name, family in known.items() if "text" not in family
    ]
    layouts = [(each["layout"], each["written"]) for each in rows]
    return {
        "rows": rows,
        "transformers": version(),
        "names": len(rows) + sum(len(each["also"]) for each in rows),
        "split": sum(pair == ("split", "split") for pair in layouts),
        "interleaved": sum(pair == ("interleaved", "interleaved") for pair in layouts),
        "rewritten": sum(a != b for a, b in layouts),
    }


def row(name: str, family: Family, also: list[str]) -> dict[str, Any]:
    """One family, in the words of the page."""
    settings = defaults(name, family)
    return {
        "name": name,
        "also": sorted(also),
        "layout": family["layout"],
        "written": family.get("layout_out", family["layout"]),
        "backward": family.get("direction", 1) == -1,
        "part": part(family, settings),
        "axes": axes(family),
        "base": bases(family),
        "unturned": unturned(family, settings),
        "beside": beside(name, family, settings),
    }


def needed(family: Family) -> str | None:
    """The field without which the models of a family turn nothing, if there is one."""
    effects = family.get("switches", {})
    return next((name for name, effect in effects.items() if effect.get("false") == "none"), None)


def defaults(name: str, family: Family) -> RotarySettings | None:
    """What a file with nothing but its model_type says, and that it turns; None where that is too
    little."""
    field = needed(family)
    try:
        return rotary_settings({"model_type": name} | ({} if field is None else {field: True}))
    except ValueError:
        return None


def parameters(family: Family) -> dict[str | None, Mapping[str, Any]]:
    """The family's default rope parameters, for each kind of layer or under None for all."""
    given = family.get("defaults", {}).get("rope_parameters") or {}
    nested = {kind: value for kind, value in given.items() if isinstance(value, Mapping)}
    return dict(nested) if nested else {None: given}


def part(family: Family, settings: RotarySettings | None) -> str:
    """How much of a head turns: "all", "1/4", or a part that the model keeps apart."""
    if family.get("width") == "qk_rope_head_dim":
        return "a part of its own, `qk_rope_head_dim` wide"
    if settings is not None and settings.kinds:
        shares = {Fraction(kind.rotary_dim, kind.head_dim) for kind in settings.kinds}
    else:
        given = parameters(family).values()
        factors = [each.get("partial_rotary_factor") for each in given]
        shares = {Fraction(each or 1).limit_denominator(64) for each in factors}
    words = " or ".join("all" if share == 1 else str(share) for share in sorted(shares))
    return f"{words}, the last entries" if family.get("last") else words


def axes(family: Family) -> str:
    """How the pairs are dealt to the axes of a position; empty where there is one axis."""
    rule, sections = family.get("axes"), family.get("sections")
    if rule is None:
        return ""
    how = AXES.get(rule, "of")
    numbers = ", ".join(map(str, sections)) if sections else "`mrope_section`"
    return f"axes {how} {numbers}"


def bases(family: Family) -> str:
    """The base, and a scaling, of each kind of layer."""
    found: dict[str, list[str]] = {}
    for kind, given in parameters(family).items():
        if given.get("rope_theta") is None:
            continue
        text = f"{given['rope_theta']:,.0f}"
        scaling = given.get("rope_type") or given.get("type")
        if scaling not in (None, "default", "mrope"):
            factor = given.get("factor")
            text += f", {scaling}" + (f" ×{factor:g}" if factor else "")
        found.setdefault(text, []).append((kind or "").removesuffix("_attention"))
    if len(found) == 1:
        return next(iter(found))
    return (
        "; ".join(f"{text} ({', '.join(kinds)})" for text, kinds in found.items()) or "in the file"
    )


def unturned(family: Family, settings: RotarySettings | None) -> str:
    """Which layers leave the rotation out, by the rule of the code."""
    rule, field = family.get("unturned", {}), needed(family)
    if "types" in rule:
        kinds = " and ".join(each.replace("_", " ") for each in rule["types"])
        if field is not None:
            return f"all, or with `{field}` {kinds}"
        return f"{kinds}, or as `{rule['list']}` says" if "list" in rule else kinds
    if settings is None or None not in settings.layers:
        return "none" if "list" not in rule else f"as `{rule['list']}` says"
    still = [index for index, layer in enumerate(settings.layers) if layer is None]
    step = still[0] + 1
    every = list(range(still[0], len(settings.layers), step)) == still
    words = f"every {step}th" if every and step > 1 else f"{len(still)} of {len(settings.layers)}"
    return f"{words}, as `{rule['list']}` says" if "list" in rule else words


def beside(name: str, family: Family, settings: RotarySettings | None) -> str:
    """What is done to queries, keys or scores and is not rotation, but for a plain 1/√width."""
    if settings is not None:
        said = settings.not_rotation
        field = family.get("norms_field")
        if field is not None:
            norms = rotary_settings({"model_type": name, field: True}).not_rotation[0]
            said = (f"{norms} where `{field}` is true", *(each for each in said if each != norms))
        usual = {f"softmax scale 1/√{kind.head_dim}" for kind in settings.kinds}
        usual |= {" and ".join(sorted(usual)).replace(" and softmax scale", " and")}
        return "; ".join(each for each in said if each not in usual)
    norms = ", ".join(family.get("norms", ()))
    return norms and f"{norms} {'after' if family.get('norms_after') else 'before'} it"


def conventions() -> dict[str, Any]:
    """The lines of the table of conventions, in its order."""
    lines = yaml.safe_load(CONVENTIONS.read_text(encoding="utf-8"))
    return {"lines": lines, "run": sum(line["status"] == "run" for line in lines)}
