"""``python -m pe_lib CONFIG``: what a model expects of its rotation; does a function do it?

Exit codes: 0, 1 if the function that is given differs, 2 if it cannot be said, with a sentence on
standard error that says why.
"""

import argparse
import importlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pe_lib import doctor
from pe_lib.doctor.calls import AXES
from pe_lib.doctor.comparison import is_for_long_texts, longest_of, one_layer, refuse_several
from pe_lib.doctor.numbers import number, spans
from pe_lib.doctor.report import NAMES, layers_of
from pe_lib.doctor.words import describe_frequencies
from pe_lib.rope import LayerRotation, RotarySettings, rotary_settings
from pe_lib.rope.configuration import LAYERS_NOT_KNOWN

DIFFERS, CANNOT_SAY = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    options = _parser().parse_args(arguments)
    try:
        settings = rotary_settings(options.config, options.length, family=_family(options))
        said = _said(options, settings)
    except (TypeError, ValueError) as error:
        return _cannot_say(error)
    _print(said)
    if options.against is None:
        return 0
    try:
        report = _against(options, settings)
    except (TypeError, ValueError) as error:
        return _cannot_say(error)
    _print(f"\n{report}")
    return DIFFERS if report.faults else 0


def _print(text: str) -> None:
    """Print. Whoever reads, such as ``head``, may have seen enough: the exit code still says what
    was found."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # and none again when Python ends and writes what is left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _cannot_say(error: Exception) -> int:
    print(f"cannot say: {error}", file=sys.stderr)
    return CANNOT_SAY


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pe_lib",
        description="What a model's config.json expects of its rotary positional encoding.",
        epilog="exit code 0; 1 if the function differs; 2 if it cannot be said",
    )
    parser.add_argument("config", help="a config.json, or the folder that it is in")
    parser.add_argument(
        "--against",
        metavar="MODULE:FUNCTION",
        help="let the doctor examine turn(x, positions), NumPy arrays in and out",
    )
    parser.add_argument(
        "--length", type=int, metavar="N", help="the longest text, for scalings that depend on it"
    )
    parser.add_argument(
        "--layer",
        type=int,
        metavar="N",
        help="print this layer's kind alone, and hold the function to it; needed with --against "
        "where layers turn in different ways",
    )
    parser.add_argument("--axes", choices=AXES, help="the shape that the function takes")
    parser.add_argument(
        "--same-cache",
        action="store_true",
        help="the model's own code reads the keys: their order has to be the same, too",
    )
    parser.add_argument(
        "--layout",
        choices=("split", "interleaved"),
        help="of a family that is not in the table, if you know it",
    )
    parser.add_argument(
        "--like",
        metavar="FAMILY",
        help="a family of the table whose code it shares, such as deepseek_v3 for Kimi K2",
    )
    parser.add_argument("--json", action="store_true", help="print the settings as JSON, no more")
    return parser


def _family(options: argparse.Namespace) -> dict[str, Any] | str | None:
    if options.layout is None or options.like is None:
        like: str | None = options.like
        return like if options.layout is None else {"layout": options.layout}
    raise ValueError("--layout must be left out where --like names a family, whose layout is known")


def _said(options: argparse.Namespace, settings: RotarySettings) -> str:
    """What is printed of the file."""
    for name in ("against", "layer"):
        if options.json and getattr(options, name) is not None:
            raise ValueError(
                f"--json prints one object, all that the file says: leave out --{name}"
            )
    if options.json:
        return json.dumps(settings.to_dict())
    if options.layer is None:
        return "\n".join([describe(settings), *_of_lengths(settings.kinds)])
    kind = one_layer(settings, options.layer, "--layer")
    return "\n".join([describe(settings, kind), *_of_lengths([kind])])


def _of_lengths(kinds: Sequence[LayerRotation]) -> list[str]:
    """That the frequencies are those of short texts, or of long ones, where these differ."""
    said = []
    for kind in kinds:
        if kind.rope_type not in ("dynamic", "longrope"):
            continue
        others = "others apply to longer ones: --length N"
        if is_for_long_texts(kind):
            others = "others apply to short ones"
        which = "long" if is_for_long_texts(kind) else "short"
        said.append(_line("length", f"{kind.rope_type}: frequencies of {which} texts; {others}"))
    return list(dict.fromkeys(said))


def _against(options: argparse.Namespace, settings: RotarySettings) -> doctor.Report:
    """The doctor's report."""
    turn = _function(options.against)
    if not settings.kinds:
        raise ValueError("no layer of this model turns: there is nothing to examine")
    if options.layer is None:
        refuse_several(settings, "--layer")
        kind = settings.kinds[0]
    else:
        kind = one_layer(settings, options.layer, "--layer")
    return doctor.examine(
        turn,
        kind.head_dim,
        expect=settings,
        layer=options.layer,
        axes=options.axes,
        position_axes=1 if kind.pair_axes is None else max(kind.pair_axes) + 1,
        longest=options.length or longest_of(options.config, settings),
        same_cache=options.same_cache,
    )


def _function(name: str) -> Any:
    """``module:function``, imported with the current folder on the path, as ``python -m`` does."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise ValueError(f"--against must be MODULE:FUNCTION, got {name!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # anybody's code
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"--against: {module_name} cannot be imported: {what}") from error
    if not hasattr(module, function_name):
        raise ValueError(f"--against: {module_name} has no {function_name}")
    return getattr(module, function_name)


# ---- In words


def describe(settings: RotarySettings, only: LayerRotation | None = None) -> str:
    """What a model expects, a line for each thing; a block for each kind of layer, or for one."""
    kinds, layers = settings.kinds, settings.layers
    still = [index for index, each in enumerate(layers) if each is None]
    how = "all rotated" if not still else f"{len(layers) - len(still)} rotated"
    if not kinds:
        how = "none rotated"
    title = f"{settings.model_type} · {len(layers)} layers, {how}"
    if len(kinds) == 1:
        title += f" · {_part(kinds[0])}"
    lines = [title]
    if still and kinds:
        lines.append(_line("not rotated", f"layers {spans(still)}"))
    for kind in kinds if only is None else [only]:
        if len(kinds) > 1:
            lines += ["", f"layers {spans(layers_of(settings, kind))} · {_part(kind)}"]
        lines += _of_kind(kind, settings)
    if len(kinds) > 1:
        lines.append("")
    lines.append(_line("not rotation", "; ".join(settings.not_rotation)))
    if dict(settings.sources).get("layers") == LAYERS_NOT_KNOWN:
        lines.append(_line("not known", "which layers call the rotation"))
    if settings.ignored:
        names = ", ".join(settings.ignored)
        lines.append(_line("ignored", f"{names}: not used by the model's code"))
    if settings.unread:
        names = ", ".join(settings.unread)
        lines.append(_line("not read", f"{names}: what the model's code makes of it is not known"))
    return "\n".join(lines)


def _line(name: str, text: str) -> str:
    return f"{name:<12} {text}".rstrip()


def _part(kind: LayerRotation) -> str:
    if kind.rotary_dim == kind.head_dim:
        return f"head {kind.head_dim}, all of it turns"
    last = kind.rotary_start + kind.rotary_dim - 1
    return f"head {kind.head_dim}, entries {kind.rotary_start}–{last} turn"


def _of_kind(kind: LayerRotation, settings: RotarySettings) -> list[str]:
    layout = f"{kind.layout} ({NAMES[kind.layout]})"
    if kind.layout_out != kind.layout:
        layout += f", written {kind.layout_out}"
    source = dict(settings.sources).get("layout", "")
    lines = [_line("layout", f"{layout}   from {source}")]
    if kind.direction == -1:
        lines.append(_line("direction", "backward: the sign of the sine is the other one"))
    lines.append(_line("frequencies", _frequencies(kind)))
    for name in ("frequencies", "base"):
        if name in dict(settings.sources):
            lines.append(_line("", f"from {dict(settings.sources)[name]}"))
            break
    factor = f"{kind.attention_factor:.4f}"
    if kind.attention_factor != 1:
        factor += f" on q and k (scores ×{kind.attention_factor**2:.3f})"
    lines.append(_line("factor", factor))
    if kind.pair_axes is not None:
        lines.append(_line("axes", ", ".join(map(str, kind.pair_axes))))
    return lines


def _frequencies(kind: LayerRotation) -> str:
    """Base and scaling as the file says them, then what becomes of the pairs."""
    given = dict(kind.rope_parameters)
    text = f"base {number(kind.base or 0)}"
    if kind.rope_type not in (None, "default", "mrope"):
        text += f", {kind.rope_type}"
        factor = given.get("factor")
        if kind.rope_type == "ntk" and given.get("alpha") is not None:  # HunYuan
            factor = given["alpha"]
        if factor is not None:
            text += f" ×{factor:g}"
        if given.get("original_max_position_embeddings") is not None:
            text += f" from {int(given['original_max_position_embeddings']):,}"
        text += f": {describe_frequencies(kind.frequencies, kind.head_dim, base=kind.base)}"
    return text


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack a letter, such as √
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
