"""From a ``config.json`` to what each layer of the model turns by, without transformers.

A configuration says frequencies, part and factor, under names that have changed over the years. It
does not say the layout, nor which layers leave the rotation out where that is the code's habit:
those come from the table of `families`. What is multiplied, normalised or scaled beside the
rotation is listed as `RotarySettings.not_rotation`, since code that ports the rotation has to do it
elsewhere.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pe_lib import _checks as check
from pe_lib._checks import Layout
from pe_lib.rope.families import Family, UnknownFamily, families, family_of
from pe_lib.rope.fields import NOT_FREQUENCIES, OF_EVERY_TYPE, checked
from pe_lib.rope.scalings import SCALINGS, factor_or_ratio, fields_of, rotary_frequencies

Fields = dict[str, Any]

# Where the text model of a larger one has its fields, in the order in which they are looked up.
PARTS = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config",
    "talker_config",
    "decoder",
)
# Older names, of many families, of fields that are read here.
OLDER = {
    "rope_scaling": "rope_parameters",
    "rotary_pct": "partial_rotary_factor",
    "rotary_emb_base": "rope_theta",
    "rotary_base": "rope_theta",
}
# Bases of one kind of layer, which stand beside rope_theta in older files.
OLDER_BASES = {
    "rope_local_base_freq": "sliding_attention",
    "local_rope_theta": "sliding_attention",
    "swa_rope_theta": "sliding_attention",
    "global_rope_theta": "full_attention",
    "compress_rope_theta": "compress",
}
# Fields about positions that a file may have, and those of them that this module reads. The others
# are listed as unread: the model's code may give them a meaning that is not known here.
ABOUT_ROTATION = re.compile(r"rope|rotary|alibi|nope_|position_embedding")
READ = {
    *("rope_parameters", "rope_theta", "partial_rotary_factor", "qk_rope_head_dim"),
    *("qk_nope_head_dim", "no_rope_layers", "no_rope_layer_interval", "max_position_embeddings"),
    *("original_max_position_embeddings", *OLDER, *OLDER_BASES),
}
# Values of such a field that change nothing.
HARMLESS = (None, False, "rope", "rotary", "rotary_emb")
# Fields of a size: where the file leaves one out, `RotarySettings.sources` says so.
SIZES = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "head_dim", "qk_rope_head_dim"),
    "max_position_embeddings",
)
# What a file of a model says of its heads and layers that a layout alone does not answer for.
MORE_THAN_A_LAYOUT = ("qk_rope_head_dim", "no_rope_layers", "no_rope_layer_interval")


# No head is as wide, and the frequencies of a slip of a billion would take for ever.
WIDEST = 65_536
# What ``sources`` says of the layers of a family whose function alone was watched.
LAYERS_NOT_KNOWN = "not known: of this family the function alone was watched"
# What is left of rope parameters in a layer that is not scaled.
UNSCALED = ("rope_theta", "partial_rotary_factor")
# Kinds of layers that have no attention, and so nothing to turn.
WITHOUT_ATTENTION = ("conv", "linear_attention", "mamba", "mamba2", "recurrent")


class ConfigurationError(ValueError):
    """A configuration that cannot be read; the message says which field, and what is allowed."""


@dataclass(frozen=True)
class LayerRotation:
    """What one layer turns its queries and keys by.

    Attributes
    ----------
    head_dim
        The width of the vectors that the rotation is given: of a whole head, or of the part that
        turns where a model keeps it apart (DeepSeek's ``qk_rope_head_dim``).
    rotary_dim, rotary_start
        How many entries turn, from which.
    layout, layout_out
        Which entries of an input, and of an output, make a pair: "split" or "interleaved".
    frequencies
        In radians a position, float64, one for each pair; 0 for a pair that stands still.
    attention_factor
        Multiplies cosines and sines, so a score by its square.
    direction
        1 for (x₁, x₂) ↦ (x₁cos − x₂sin, x₁sin + x₂cos), −1 for the other way.
    pair_axes
        For each pair the axis of a position that turns it, or None if positions have one axis.
    base, rope_type, rope_parameters
        What the frequencies were computed from.
    """

    head_dim: int
    rotary_dim: int
    layout: Layout
    layout_out: Layout
    frequencies: tuple[float, ...]
    attention_factor: float = 1.0
    direction: int = 1
    rotary_start: int = 0
    pair_axes: tuple[int, ...] | None = None
    base: float | None = None
    rope_type: str | None = None
    rope_parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class RotarySettings:
    """What `rotary_settings` reads: one entry a layer, and what is not rotation.

    Attributes
    ----------
    model_type
        The family whose layout was taken.
    layers
        A `LayerRotation` for each layer, or None where nothing turns. Equal entries are one object.
    not_rotation
        Sentences: what the model does to queries, keys or scores beside the rotation.
    sources
        For a name of a setting where it was read: a field, the family's default, or its code.
    ignored
        Fields about RoPE that the file has and the model's code, with this ``rope_type``, does not
        use.
    unread
        Fields about positions that the file has and that are not read here: what the model's code
        makes of them is not known.
    """

    model_type: str
    layers: tuple[LayerRotation | None, ...]
    not_rotation: tuple[str, ...]
    sources: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[LayerRotation, ...]:
        """The different rotations, in the order of the layers."""
        return tuple(each for each in dict.fromkeys(self.layers) if each is not None)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, as ``python -m pe_lib --json`` prints them.

        ``layers`` has for each layer the index of its entry in ``kinds``, or None."""
        kinds = self.kinds
        numbers = {each: index for index, each in enumerate(kinds)}
        plain = []
        for kind in kinds:
            fields = asdict(kind)
            fields["frequencies"] = list(kind.frequencies)
            fields["pair_axes"] = None if kind.pair_axes is None else list(kind.pair_axes)
            fields["rope_parameters"] = {k: _thawed(value) for k, value in kind.rope_parameters}
            plain.append(fields)
        return {
            "model_type": self.model_type,
            "kinds": plain,
            "layers": [None if each is None else numbers[each] for each in self.layers],
            "not_rotation": list(self.not_rotation),
            "sources": dict(self.sources),
            "ignored": list(self.ignored),
            "unread": list(self.unread),
        }


def rotary_settings(
    config: Any, seq_len: int | None = None, *, family: Family | str | None = None
) -> RotarySettings:
    """What each layer of a model turns by, read from its configuration.

    Parameters
    ----------
    config
        The path of a ``config.json``, its text (which begins with ``{``), a dictionary, or an
        object with ``to_dict()``, as transformers has. Fields of new and of old files are read, and
        those of the text model within a larger one. `RotarySettings` come back as they are.
    seq_len
        The longest text that the frequencies will serve. Only ``"dynamic"`` and ``"longrope"``
        depend on it; None means a text no longer than those that the model was first trained for.
    family
        What the code of the model does, for a ``model_type`` that is not in the table of
        `families`: the name of a family of the table whose code it shares, as "deepseek_v3" for
        Kimi K2, or at least ``{"layout": "split"}`` or ``{"layout": "interleaved"}``.

    Returns
    -------
    RotarySettings

    Raises
    ------
    ConfigurationError
        A ``ValueError``, if the file is missing, is not JSON, lacks a field or contradicts itself.
    UnknownFamily
        A ``ValueError``, if the layout of the ``model_type`` is not known. It is never guessed.

    Examples
    --------
    >>> settings = rotary_settings(
    ...     {"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2, "rope_theta": 500_000}
    ... )
    >>> len(settings.layers), settings.layers[0].layout, settings.layers[0].base
    (2, 'split', 500000.0)
    """
    if isinstance(config, RotarySettings):
        if seq_len is not None or family is not None:
            raise ConfigurationError(
                "seq_len and family must be left out where config is RotarySettings, which have "
                "been read already"
            )
        return config
    given = text_model(loaded(config))
    if "kinds" in given and "layers" in given:
        raise ConfigurationError(
            "config must be a config.json, got the answer of `python -m pe_lib --json`, which has "
            "been read already"
        )
    known = _family(given, family)
    if "text" in known:  # a flat file of a larger model, as Qwen2-VL's
        given = given | {"model_type": known["text"]}
        known = family_of(known["text"])
    if known.get("layout") not in check.LAYOUTS:
        raise UnknownFamily(given.get("model_type"))
    length = None if seq_len is None else check.integer("seq_len", seq_len, at_least=1)
    try:
        shared = family if isinstance(family, str) else None
        return _Reader(given, known, length, shared).settings()
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{given.get('model_type')!r}: {error}") from error


# ---- The file


def _family(given: Fields, family: Family | str | None) -> Family:
    """What is known of the code: the record of the table, or what the caller says of another."""
    model_type = given.get("model_type")
    if family is None:
        return family_of(model_type)
    if isinstance(family, str):
        if family not in families():
            raise ConfigurationError(
                "family must be the name of a family of the table, or a dictionary such as "
                f'{{"layout": "split"}}, got {check.brief(family)}'
            )
        return family_of(family)
    if not isinstance(family, Mapping):
        raise TypeError(
            "family must be the name of a family of the table, or a dictionary such as "
            f'{{"layout": "split"}}, got {check.brief(family)}'
        )
    if "text" not in family and family.get("layout") not in check.LAYOUTS:
        raise ConfigurationError(
            f"family['layout'] must be 'split' or 'interleaved', got {family.get('layout')!r}"
        )
    if "read" not in family and "text" not in family:  # a layout from the caller, and little else
        if model_type in families():
            raise ConfigurationError(
                f"family must be left out: the table knows the code of {model_type!r}, and more of "
                f"it than {check.brief(dict(family))}"
            )
        unanswered = [name for name in MORE_THAN_A_LAYOUT if given.get(name) is not None]
        if unanswered:
            raise ConfigurationError(
                f"family must be the name of a family of the table whose code {model_type!r} "
                f"shares: its file has {unanswered[0]}, for which a layout alone does not answer"
            )
    return dict(family)


def loaded(config: Any) -> Fields:
    """The fields, whatever they came in."""
    if isinstance(config, Mapping):
        return dict(config)
    if hasattr(config, "to_dict"):
        return dict(config.to_dict())
    if isinstance(config, str) and config.lstrip().startswith("{"):
        return _parsed(config, "the text")
    if not isinstance(config, str | PathLike):
        raise TypeError(
            "config must be the path of a config.json, its text, or a dictionary, got "
            f"{check.brief(config)}"
        )
    path = Path(config)
    if path.is_dir():
        path = path / "config.json"
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except FileNotFoundError:
        raise ConfigurationError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    return _parsed(text, str(path))


def _parsed(text: str, source: str) -> Fields:
    try:
        fields = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{source} is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ConfigurationError(
            f"{source} must be a JSON object with a field model_type, got {check.brief(fields)}"
        )
    return fields


def text_model(fields: Fields) -> Fields:
    """The fields of the text model, if this is a larger model that has one."""
    for name in PARTS:
        part = fields.get(name)
        if isinstance(part, Mapping):
            inner = text_model(dict(part))
            if inner.get("model_type") is None:  # old files of larger models leave it out
                own = family_of(fields.get("model_type"))
                inner["model_type"] = own.get("text", fields.get("model_type"))
            return inner
    return fields


def _frozen(value: Any) -> Any:
    """The value with tuples for its lists, so that it can be part of a key."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    """The value with lists again."""
    return list(map(_thawed, value)) if isinstance(value, tuple) else value


def _of_kinds(parameters: Mapping[str, Any]) -> Fields:
    """Of rope parameters those that belong to a kind of layers each."""
    return {
        kind: value
        for kind, value in parameters.items()
        if isinstance(value, Mapping) or (value is None and kind.endswith("attention"))
    }


def reads(family: Family, older: str) -> bool:
    """Whether the code of a family reads a field by an older name; of a family of the caller's this
    is taken for granted."""
    return "read" not in family or older == "rope_scaling" or older in family.get("older_names", ())


def _unread(given: Fields, family: Family) -> Iterator[str]:
    """The fields about positions that nothing here reads, also those one level deeper."""
    known = {*READ, *family.get("switches", {}), *family.get("names", {}).values()}
    known |= {family.get("bases"), family.get("scaled"), family.get("unturned", {}).get("list")}
    known |= {family.get("width"), family.get("rotary_dim"), family.get("older_rotary_dim")}
    known |= set(family.get("defaults", {})) | {"rotary_dim"}  # which `fields` may add itself
    known -= {older for older in OLDER if not reads(family, older)}
    for name, value in given.items():
        if name in ("attn_config", "attention_config") and isinstance(value, Mapping):
            yield from (
                f"{name}.{inner}"
                for inner, own in value.items()
                if ABOUT_ROTATION.search(inner) and own not in HARMLESS
            )
        elif ABOUT_ROTATION.search(name) and name not in known and value not in HARMLESS:
            yield name


def _without_part(fields: Fields | None) -> Fields | None:
    """The fields of a kind of layers, or its null, without the part that turns."""
    if fields is None:
        return None
    return {name: value for name, value in fields.items() if name != "partial_rotary_factor"}


def _whole(value: Any) -> Any:
    """Files have 32768.0 for a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _width(name: str, value: Any) -> int:
    width = check.even(name, value)
    if width > WIDEST:
        raise ConfigurationError(f"{name} must be at most {WIDEST:,}, got {width:,}")
    return width


# ---- One configuration


class _Reader:
    """One configuration beside what is known of its family."""

    def __init__(
        self, given: Fields, family: Family, seq_len: int | None, shared: str | None = None
    ) -> None:
        self.family, self.seq_len = family, seq_len
        stored = "read" in family  # and not a layout alone, from the caller
        self.sources: dict[str, str] = {
            "layout": "the code of the family" if stored else "the caller"
        }
        self.ignored: set[str] = set()
        self.unread = set(_unread(given, family))
        own: dict[str, str] = family.get("names", {})
        alone = all(given.get(name) is None for name in ("rope_parameters", "rope_scaling"))
        self.ignored |= {n for n in family.get("unread", ()) if alone and given.get(n) is not None}
        fields = {
            name: value
            for name, value in given.items()
            if value is not None and name not in self.ignored
        }
        for name, other in own.items():
            if other in fields:
                fields.setdefault(name, fields[other])
        for older, name in OLDER.items():
            if older in fields and reads(family, older):
                fields.setdefault(name, fields[older])
        self.given = fields
        self.nulls = {name for name, value in given.items() if value is None}
        self.model_type = str(given.get("model_type"))
        self.shared = shared or self.model_type  # the family whose code and defaults these are

    def field(self, name: str) -> Any:
        """A field of the file, or the family's default; None if neither has it."""
        if name in self.given:
            return self.given[name]
        default = self.family.get("defaults", {}).get(name)
        if default is not None and name in SIZES:
            self.sources[name] = f"the default of {self.shared}"
        return default

    def integer(self, name: str, *, at_least: int = 1) -> int:
        value = self.field(name)
        if value is None:
            raise ConfigurationError(
                f"{name} must be given: an integer of at least {at_least}; the file has none, and "
                f"{self.model_type!r} has no default"
            )
        return check.integer(name, _whole(value), at_least=at_least)

    def settings(self) -> RotarySettings:
        kinds = self.kinds_of_layers()
        parameters = self.parameters()
        unturned = self.unturned(kinds)
        bases, scaled = self.bases(len(kinds)), self.scaled(len(kinds))
        made: dict[tuple[Any, ...], LayerRotation | None] = {}
        layers: list[LayerRotation | None] = []
        for index, kind in enumerate(kinds):
            if index in unturned:
                layers.append(None)
                continue
            key = kind, self.width(kind, index), bases[index], index in scaled
            if key not in made:
                made[key] = self.rotation(*key, parameters)
            layers.append(made[key])
        unique: dict[LayerRotation, LayerRotation] = {}
        shared = tuple(None if each is None else unique.setdefault(each, each) for each in layers)
        return RotarySettings(
            self.model_type,
            shared,
            tuple(self.not_rotation(kinds)),
            tuple(self.sources.items()),
            tuple(sorted(self.ignored)),
            tuple(sorted(self.unread)),
        )

    # ---- Layers

    def kinds_of_layers(self) -> list[str | None]:
        """For each layer its kind, such as "sliding_attention"; None where there is but one."""
        count = self.integer("num_hidden_layers")
        if count > 100_000:
            raise ConfigurationError(f"num_hidden_layers must be at most 100,000, got {count:,}")
        field = "layer_types" if "layer_types" in self.given else "layers_block_type"
        kinds = self.given.get(field)
        if kinds is not None:
            if not isinstance(kinds, list | tuple) or not all(isinstance(k, str) for k in kinds):
                raise ConfigurationError(
                    f"{field} must be a list of names, got {check.brief(kinds)}"
                )
            if len(kinds) != count:
                raise ConfigurationError(
                    f"{field} must have one name for each of num_hidden_layers = {count} layers, "
                    f"got {len(kinds)}"
                )
            return list(kinds)
        numbers = self.kinds_of_numbers(count)
        if numbers is not None:
            return numbers
        return self.kinds_of_the_class(count)

    def kinds_of_the_class(self, count: int) -> list[str | None]:
        """The kinds of layers where a file does not list them, as the family's class deals them."""
        rule = self.family.get("kinds")
        if rule is None:
            return [None] * count
        cycle: list[str | None] = self.interval(rule["cycle"]) or rule["cycle"]
        if cycle is rule["cycle"]:
            self.sources["layers"] = f"the default of {self.shared}"
        origin = count if rule.get("from_end") else 0
        kinds = [cycle[(i - origin) % len(cycle)] for i in range(count)]
        first, last = rule.get("first", []), rule.get("last", [])
        kinds[: len(first)] = first[:count]
        if last:
            kinds[-len(last) :] = last
        return kinds

    def interval(self, default: list[str]) -> list[str | None] | None:
        """What is repeated where a field says how often full attention comes."""
        for name, where in self.family.get("intervals", {}).items():
            if name in self.given:
                step = self.integer(name)
                if step > WIDEST:
                    raise ConfigurationError(f"{name} must be at most {WIDEST:,}, got {step:,}")
                full = default[0 if where == "start" else -1]
                other = next((kind for kind in default if kind != full), "sliding_attention")
                others: list[str | None] = [other] * (step - 1)
                return [full, *others] if where == "start" else [*others, full]
        return None

    def kinds_of_numbers(self, count: int) -> list[str | None] | None:
        """The kinds of layers, if an older file has a number for each, as DeepSeek-V4's has."""
        for name, meaning in self.family.get("numbers", {}).items():
            if name in self.given:
                # There may be more, of layers that predict further tokens.
                numbers = [str(each) for each in self.of_layers(name, count, may_be_longer=True)]
                for number in numbers:
                    check.choice(f"each number in {name}", number, tuple(meaning))
                return [meaning[number] for number in numbers]
        return None

    def unturned(self, kinds: list[str | None]) -> set[int]:
        """The layers that leave the rotation out."""
        if self.switched() == "none":
            return set(range(len(kinds)))
        rule = self.family.get("unturned", {})
        if self.family.get("read") == "function":
            self.sources["layers"] = LAYERS_NOT_KNOWN
            return {i for i, kind in enumerate(kinds) if kind in WITHOUT_ATTENTION}
        field = rule.get("list")
        if field in self.given and self.given[field] != []:
            flags = self.of_layers(field, len(kinds))
            return {i for i, flag in enumerate(flags) if not flag}
        if field == "no_rope_layers":
            step = 4
            if self.field("no_rope_layer_interval"):
                step = self.integer("no_rope_layer_interval")
            return {i for i in range(len(kinds)) if (i + 1) % step == 0}
        window = rule.get("unless_null")
        if window is not None and window in self.nulls:
            return set()
        return {i for i, kind in enumerate(kinds) if kind in rule.get("types", ())}

    def of_layers(self, name: str, count: int, *, may_be_longer: bool = False) -> list[Any]:
        """A list of the file with a number for each layer."""
        numbers = self.given[name]
        if isinstance(numbers, list | tuple) and may_be_longer:
            numbers = numbers[:count]
        if not isinstance(numbers, list | tuple) or len(numbers) != count:
            raise ConfigurationError(
                f"{name} must have one number for each of {count} layers, got "
                f"{check.brief(numbers)}"
            )
        return list(numbers)

    def bases(self, count: int) -> list[float | None]:
        """For each layer its own base, where the file has such a list; 0 where nothing turns."""
        field = self.family.get("bases")
        if field not in self.given or self.given[field] == []:
            return [None] * count
        return [check.real(f"each number in {field}", v) for v in self.of_layers(field, count)]

    def scaled(self, count: int) -> set[int]:
        """The layers whose frequencies are scaled, if the rope parameters say that any are."""
        field = self.family.get("scaled")
        if field not in self.given:
            return set(range(count))
        layers = self.given[field]
        if not isinstance(layers, list | tuple):
            raise ConfigurationError(f"{field} must be a list of layers, got {check.brief(layers)}")
        return {check.integer(f"each number in {field}", v, at_least=0) for v in layers}

    def switched(self) -> str | None:
        """What a field of the file makes of the family's layout: another one, or "none"."""
        for name, effects in self.family.get("switches", {}).items():
            value = self.field(name)
            if value is None:
                continue
            effect: str | None = effects.get(str(bool(value)).lower())
            if effect is not None:
                self.sources["layout"] = name
                return effect
        return None

    # ---- Fields of the rotation

    def parameters(self) -> dict[str | None, Any]:
        """The file's rope parameters: for each kind of layer, or under None for all of them."""
        given = self.given.get("rope_parameters")
        if given is not None and not isinstance(given, Mapping):
            raise ConfigurationError(
                f"rope_parameters must be an object with fields, got {check.brief(given)}"
            )
        default = self.family.get("defaults", {}).get("rope_parameters") or {}
        kinds = _of_kinds(default)
        nested = _of_kinds(given or {})
        if nested:
            if "flat" in self.family:  # these classes complete a kind that the file leaves out
                nested = kinds | nested
            return {k: None if v is None else self.completed(dict(v), k) for k, v in nested.items()}
        if kinds:
            return self.dealt(kinds, given)
        has_base = "rope_theta" in self.given
        if given is None and not (has_base and default.get("rope_type", "default") == "default"):
            # A class whose default is a scaling keeps it where a file has a base alone.
            beside = {"rope_theta", "partial_rotary_factor"} & set(self.given)
            given = {name: value for name, value in default.items() if name not in beside}
            self.sources["frequencies"] = f"the default of {self.shared}"
        whole = self.completed(dict(given or {}))
        result: dict[str | None, Any] = {None: whole}
        for name, kind in OLDER_BASES.items():
            if name in self.given:
                scaled = whole if kind == "full_attention" else {}
                other = {k: v for k, v in scaled.items() if k != "rope_theta"}
                result[kind] = self.completed(other | {"rope_theta": self.given[name]})
        return result

    def takers(self, kinds: Fields) -> dict[str, list[str]]:
        """Which kinds of layers take a field of an older file: as the family's class deals them.

        Of another class, which has no older files, the released ones of MiMo-V2 have two bases, of
        which one names its kind. So the other, and a scaling, are those of full attention."""
        if "flat" in self.family:
            return dict(self.family["flat"])
        if not any(name in self.given for name in OLDER_BASES):
            return {}
        guessed = OLDER_BASES | dict.fromkeys(("rope_theta", "rope_scaling"), "full_attention")
        return {name: [kind] for name, kind in guessed.items() if kinds.get(kind) is not None}

    def dealt(self, kinds: Fields, scaling: Mapping[str, Any] | None) -> dict[str | None, Any]:
        """The fields of an older file, dealt to kinds of layers as the family's class deals them.

        What no field says is the class's default. Of a family that is not known to take such
        fields, a base beside the parameters is ignored, and a scaling refused.
        """
        taken = self.takers(kinds)
        found: dict[str | None, Any] = {
            kind: None if value is None else dict(value) for kind, value in kinds.items()
        }
        bases = [name for name in ("rope_theta", *OLDER_BASES) if name in self.given]
        self.ignored |= {name for name in bases if name not in taken}
        for name in bases:
            for kind in taken.get(name, ()):
                found[kind] |= {"rope_theta": self.given[name]}
        if "partial_rotary_factor" in self.given:
            for kind in taken.get("partial_rotary_factor", ()):
                found[kind] |= {"partial_rotary_factor": self.given["partial_rotary_factor"]}
        if scaling:
            if "rope_scaling" not in taken:
                raise ConfigurationError(
                    f"rope_parameters of {self.model_type!r} must have fields for each kind of "
                    f"layer, {', '.join(map(repr, kinds))}, got {check.brief(dict(scaling))}"
                )
            for kind in taken["rope_scaling"]:
                found[kind] |= self.as_the_class_reads_it(scaling)
        says_part = self.family.get("older_rotary_dim") in self.given
        if says_part and "partial_rotary_factor" not in self.given:
            found = {kind: _without_part(fields) for kind, fields in found.items()}
        told = {kind for name in bases for kind in taken.get(name, ())}
        missing = [kind for kind in kinds if kind not in told]
        if missing:
            where = "base" if told or scaling else "frequencies"
            of = f" for {', '.join(missing)}" if told else ""
            self.sources[where] = f"the default of {self.shared}{of}"
        return found

    def as_the_class_reads_it(self, scaling: Mapping[str, Any]) -> Fields:
        """A scaling of an older file. Most of these classes write rope_type "default" first, and
        then do not look at ``type``, its older name. One takes YaRN without its factor."""
        told = {name: value for name, value in scaling.items() if value is not None}
        if "rope_type" not in told and "type" in told:
            older = told.pop("type")
            if "type" in self.family.get("flat", ("type",)):
                told["rope_type"] = older
            else:
                self.ignored.add("type")
        if self.family.get("plain_yarn") and told.get("rope_type") == "yarn":
            told.setdefault("attention_factor", 1.0)
        return told

    def completed(self, given: Fields, kind: str | None = None) -> Fields:
        """One kind's fields, with those that a file has beside them."""
        default = self.family.get("defaults", {}).get("rope_parameters") or {}
        taken = ["rope_theta", "partial_rotary_factor"]
        of_part = self.family.get("flat", {}).get("partial_rotary_factor", ())
        if _of_kinds(default) and kind not in of_part:  # the class gives no part to this kind
            taken.remove("partial_rotary_factor")
        for name in taken:
            if given.get(name) is None and self.field(name) is not None:
                given[name] = self.field(name)
        if given.get("rope_theta") is None and default.get("rope_theta") is not None:
            given["rope_theta"] = default["rope_theta"]
            self.sources["base"] = f"the default of {self.shared}"
        if given.get("partial_rotary_factor") is None and "partial_rotary_factor" in default:
            given["partial_rotary_factor"] = default["partial_rotary_factor"]
        return given

    def rotation(
        self,
        kind: str | None,
        width: int,
        base: float | None,
        is_scaled: bool,
        parameters: dict[str | None, Any],
    ) -> LayerRotation | None:
        kind = self.family.get("labels", {}).get(kind, kind)
        given = parameters.get(kind, parameters.get(None))
        if given is None:
            if kind in parameters:  # the file says null: nothing turns
                return None
            raise ConfigurationError(
                f"rope_parameters must have fields for layers of the kind {kind!r}, got those for "
                f"{', '.join(repr(each) for each in parameters)}"
            )
        if base is not None:
            given = given | {"rope_theta": base}
        if not is_scaled:
            given = {name: value for name, value in given.items() if name in UNSCALED}
        if self.family.get("width") == "qk_rope_head_dim":  # the whole of a part of its own turns
            given = {k: v for k, v in given.items() if k != "partial_rotary_factor"}
        fields, rope_type = self.fields(dict(given), width)
        try:
            found = rotary_frequencies(width, **fields)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"rope_parameters of {self.model_type!r}: {error}") from error
        switched: Any = self.switched()
        layout: Layout = switched or self.family["layout"]
        layout_out: Layout = switched or self.family.get("layout_out", layout)
        rotary_dim = 2 * len(found.frequencies)
        return LayerRotation(
            head_dim=width,
            rotary_dim=rotary_dim,
            layout=layout,
            layout_out=layout_out,
            frequencies=tuple(found.frequencies.tolist()),
            attention_factor=float(found.attention_factor),
            direction=self.family.get("direction", 1),
            rotary_start=width - rotary_dim if self.family.get("last") else 0,
            pair_axes=self.pair_axes(given, rotary_dim // 2),
            base=float(fields["rope_theta"]),
            rope_type=rope_type,
            rope_parameters=tuple(
                (name, _frozen(value)) for name, value in sorted(given.items()) if value is not None
            ),
        )

    def width(self, kind: str | None, index: int) -> int:
        """The width of the vectors that the rotation of one layer is given."""
        field = self.family.get("width", "head_dim")
        if field == "head_dim":
            own = self.of_layer(index).get("head_dim")  # Gemma 4, since transformers 5
            if own is not None:
                return _width("head_dim", own)
            if kind == "full_attention" and self.field("global_head_dim") is not None:
                return _width("global_head_dim", self.field("global_head_dim"))
            if self.field("head_dim") is not None:
                return _width("head_dim", self.field("head_dim"))
            field = "hidden_size"
        if field == "hidden_size":
            width, heads = self.integer("hidden_size"), self.integer("num_attention_heads")
            if width % heads:
                raise ConfigurationError(
                    f"head_dim must be given, or hidden_size = {width} be a multiple of "
                    f"num_attention_heads = {heads}"
                )
            return _width("hidden_size divided by num_attention_heads", width // heads)
        return _width(field, self.integer(field))

    def of_layer(self, index: int) -> Mapping[str, Any]:
        """The fields that a file has for one layer alone."""
        own = self.given.get("per_layer_config")
        if not isinstance(own, Mapping):
            return {}
        found = {int(name): value for name, value in own.items() if str(name).isdigit()}
        value = found.get(index, {})
        return value if isinstance(value, Mapping) else {}

    def fields(self, given: Fields, width: int) -> tuple[Fields, str]:
        """What `rotary_frequencies` takes: completed as transformers does, and no more."""
        named = given.get("rope_type") or given.get("type") or "default"
        rope_type = {"su": "longrope"}.get(named, named) if isinstance(named, str) else named
        if rope_type == "dynamic" and given.get("alpha") is not None:  # HunYuan
            rope_type = "ntk"
            given |= {"rope_type": "ntk", "type": None, "factor": given["alpha"]}
        check.choice("rope_type", rope_type, tuple(SCALINGS))
        given |= self.lengths(given, rope_type)
        if given.get("attention_factor") is None and given.get("short_mscale") is not None:
            trained = _whole(given.get("original_max_position_embeddings"))
            trained = check.integer("original_max_position_embeddings", trained, at_least=2)
            is_long = (self.seq_len or 1) > trained
            given["attention_factor"] = given.get("long_mscale" if is_long else "short_mscale")
        field = self.field_of_part(given)
        if field is not None and self.field(field) is not None:
            given["partial_rotary_factor"] = self.integer(field) / width
        if "rotary_dim" in self.given and field is None:
            self.ignored.add("rotary_dim")
        used = {*fields_of(rope_type), *OF_EVERY_TYPE, *NOT_FREQUENCIES, "rope_type", "type"}
        told = {name for name, value in given.items() if value is not None}
        self.ignored |= told - used - {"alpha", "short_mscale", "long_mscale"}
        return {name: value for name, value in given.items() if name in used}, rope_type

    def field_of_part(self, given: Fields) -> str | None:
        """The field that says how many entries turn, where that is not `partial_rotary_factor`."""
        field: str | None = self.family.get("rotary_dim")
        if field is not None or given.get("partial_rotary_factor") is not None:
            return field
        is_stored = "read" in self.family  # and not a layout alone, from the caller
        return self.family.get("older_rotary_dim", None if is_stored else "rotary_dim")

    def lengths(self, given: Fields, rope_type: str) -> Fields:
        """The lengths of texts that stand beside the fields of the rotation, or are left out."""
        found: Fields = {}
        longest = self.field("max_position_embeddings")
        if longest is not None and given.get("max_position_embeddings") is None:
            found["max_position_embeddings"] = longest
        if rope_type in ("yarn", "longrope", "llama3"):
            beside = self.given.get("original_max_position_embeddings")
            if beside is not None:
                found["original_max_position_embeddings"] = beside
            elif given.get("original_max_position_embeddings") is None and longest is not None:
                found["original_max_position_embeddings"] = longest
        if rope_type in ("dynamic", "longrope"):
            found["seq_len"] = self.seq_len or 1
        return found

    def pair_axes(self, given: Fields, pairs: int) -> tuple[int, ...] | None:
        rule = self.family.get("axes")
        if rule is None:
            return None
        if rule == "alternate":
            return tuple(i % 2 for i in range(pairs))
        sections = given.get("mrope_section") or self.family.get("sections")
        if sections is None:
            raise ConfigurationError(
                "mrope_section must be given: how many pairs each axis of a position turns"
            )
        if not isinstance(sections, list | tuple):
            raise ConfigurationError(
                f"mrope_section must be a list of integers, got {check.brief(sections)}"
            )
        numbers = [check.integer("mrope_section", each, at_least=0) for each in sections]
        if sum(numbers) != pairs:
            raise ConfigurationError(
                f"mrope_section must add up to the {pairs} pairs that turn, got {numbers}"
            )
        if rule == "interleaved":
            of = len(numbers)
            return tuple(i % of if i < of * numbers[i % of] else 0 for i in range(pairs))
        if rule == "ernie":
            if len(numbers) != 3:
                raise ConfigurationError(f"mrope_section must have three numbers, got {numbers}")
            height, width, time = numbers
            return tuple([1, 2] * ((height + width) // 2) + [0] * time)
        return tuple(axis for axis, number in enumerate(numbers) for _ in range(number))

    # ---- What is not rotation

    def not_rotation(self, kinds: list[str | None]) -> list[str]:
        said = self.norms()
        said += [
            f"other vectors in these layers, as an indexer's, turn in the layout {layout}"
            for layout in self.family.get("further", ())
        ]
        said.append(self.softmax_scale(kinds))
        cap = self.family.get("soft_cap")
        if cap is not None and self.field(cap):
            value = check.real(cap, self.field(cap))
            said.append(f"scores capped, {value:g}·tanh(score/{value:g}) ({cap})")
        said += self.temperature()
        return said

    def norms(self) -> list[str]:
        """Norms of queries and keys. Those after the rotation read rotated entries, so where they
        have weights, these stand in the order of the layout as well."""
        switch = self.family.get("norms_field")
        if "norms" not in self.family or (switch is not None and not self.field(switch)):
            return []
        where = "after" if self.family.get("norms_after") else "before"
        plain = self.family.get("norms_plain")
        hint = "without weights" if plain else "convert them with the weights"
        return [f"{', '.join(self.family['norms'])} {where} it ({hint})"]

    def softmax_scale(self, kinds: list[str | None]) -> str:
        for name, text in (
            ("attention_multiplier", "softmax scale {value:g} (attention_multiplier)"),
            ("query_pre_attn_scalar", "softmax scale 1/√{value:g} (query_pre_attn_scalar)"),
        ):
            if self.field(name) is not None:
                return text.format(value=check.real(name, self.field(name)))
        if "scale" in self.family:
            return f"softmax scale {self.family['scale']:g}"
        if self.family.get("width") == "qk_rope_head_dim":
            turned = self.integer("qk_rope_head_dim")
            kept = self.integer("qk_nope_head_dim", at_least=0)
            text = f"softmax scale 1/√{turned + kept} (of both parts, {kept} + {turned})"
            parameters = self.parameters().get(None) or {}
            all_dim = parameters.get("mscale_all_dim")
            if all_dim and (parameters.get("rope_type") or parameters.get("type")) == "yarn":
                factor, scale = self.yarn_factor(parameters), check.real("mscale_all_dim", all_dim)
                m = 0.1 * scale * math.log(factor) + 1
                text += f" times m² = {m * m:.4f}, m = 0.1·{scale:g}·ln {factor:g} + 1"
            return text
        share = self.family.get("scale_share", 1)
        widths = {int(self.width(kind, i) * share) for i, kind in enumerate(kinds)}
        return " and ".join(f"softmax scale 1/√{width}" for width in sorted(widths))

    def yarn_factor(self, parameters: Fields) -> float:
        """The field, or the ratio of lengths that takes its place."""
        given = parameters | self.lengths(parameters, "yarn")

        def told(name: str) -> Any:
            return None if given.get(name) is None else checked(name, given[name])

        trained = told("original_max_position_embeddings")
        return factor_or_ratio(told("factor"), told("max_position_embeddings"), trained)

    def temperature(self) -> list[str]:
        said = []
        for parameters in self.parameters().values():
            beta = (parameters or {}).get("llama_4_scaling_beta")
            if beta:
                beta = check.real("llama_4_scaling_beta", beta)
                length = parameters.get("original_max_position_embeddings")
                said.append(
                    f"query temperature 1 + {beta:g}·ln(1 + ⌊p/{length}⌋) after it, at position p"
                )
        if self.field("attn_temperature_tuning") and self.field("floor_scale"):
            scale = check.real("attn_scale", self.field("attn_scale"))
            said.append(
                f"query temperature 1 + {scale:g}·ln(1 + ⌊(p+1)/"
                f"{self.field('floor_scale')}⌋), in the layers that do not turn"
            )
        return said
