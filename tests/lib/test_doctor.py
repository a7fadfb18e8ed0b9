"""The doctor, on functions that are right and on functions with one planted fault each."""

import argparse
import copy
import ctypes
import dataclasses
import importlib
import inspect
import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest
import torch
from planted import BASE, LLAMA3, PLAIN, WIDTH, YARN, expected, rotation, turned

from pe_lib import doctor
from pe_lib.doctor.words import describe_frequencies
from pe_lib.rope import rotary_frequencies, rotary_settings
from pe_lib.torch import RotaryPositionalEncoding

# ---- Its own table: faults caught, and false alarms


@pytest.mark.parametrize("fault", planted.faults(), ids=lambda each: each.name)
def test_a_planted_fault_is_named(fault: planted.Planted) -> None:
    report = planted.examined(fault)
    assert fault.code in report.codes
    (named,) = (each for each in report.faults if each.code == fault.code)
    assert named.difference
    assert named.consequence
    assert named.remedy
    assert f"{named.code}: {named.difference}" in str(report)
    assert "FAULT" in str(report)


@pytest.mark.parametrize("right", planted.right_ones(), ids=lambda each: each.name)
def test_a_right_function_raises_no_alarm(right: planted.Right) -> None:
    report = planted.examined(right)
    assert report.faults == ()
    assert "FAULT" not in str(report)


def test_the_table_for_the_page_is_what_these_tests_say() -> None:
    table = planted.table()
    assert table == json.loads(planted.FILE.read_text(encoding="utf-8"))
    assert len(table["planted"]) > 40
    assert all(row["code"] in row["found"] for row in table["planted"])
    assert table["right"] > 150
    assert table["false_alarms"] == []


# ---- Blind


@pytest.mark.parametrize("layout", ["split", "interleaved"])
@pytest.mark.parametrize("fields", [PLAIN, YARN, LLAMA3], ids=["plain", "yarn", "llama3"])
def test_what_is_read_is_what_was_made(layout: str, fields: dict[str, Any]) -> None:
    kind = expected(fields, layout, 128, rotary_dim=96)
    report = doctor.examine(rotation(kind), 128)
    assert (report.layout, report.layout_out, report.direction) == (layout, layout, 1)
    assert (report.rotary_dim, report.rotary_start) == (96, 0)
    errors = np.abs(report.frequencies - kind.frequencies)
    assert np.all(errors <= report.frequency_errors)
    assert report.attention_factor == pytest.approx(kind.attention_factor, rel=1e-6)
    assert (report.offset, report.pair_axes, report.faults) == (0, None, ())


def test_error_bars_hold_for_every_right_function_and_are_not_idle() -> None:
    for right in planted.right_ones():
        report = doctor.examine(right.turn, right.kind.head_dim)
        if len(report.frequencies) != len(right.kind.frequencies):
            continue  # slower pairs of a proportional head stand still
        errors = np.abs(report.frequencies - right.kind.frequencies)
        assert np.all(errors <= 2 * report.frequency_errors), right.name
        turning = np.array(right.kind.frequencies) > 0
        relative = report.frequency_errors[turning] / np.array(right.kind.frequencies)[turning]
        assert relative[0] < 1e-5
        assert relative.max() < (0.02 if "float16" in right.name else 1e-3), right.name


def test_half_types_widen_the_error_bars_and_are_named() -> None:
    kind = expected(width=128)
    single = doctor.examine(rotation(kind), 128)
    half = doctor.examine(rotation(kind, rounded=planted.bfloat16), 128)
    assert (single.dtype, half.dtype) == ("float32", "bfloat16")
    relative = [each.frequency_errors[-1] / kind.frequencies[-1] for each in (single, half)]
    assert relative[0] < 1e-5
    assert 1e-3 < relative[1] < 1e-2


def test_very_slow_pairs_are_not_called_unturned() -> None:
    kind = expected(LLAMA3 | {"rope_theta": 12_000_000.0}, width=128)  # Apertus
    assert min(kind.frequencies) < 2e-8
    report = doctor.examine(rotation(kind), 128)
    assert report.rotary_dim == 128
    assert np.all(report.frequencies > 0)


def test_input_and_output_may_have_different_layouts() -> None:
    kind = expected(layout="interleaved", layout_out="split")
    report = doctor.examine(rotation(kind), WIDTH)
    assert (report.layout, report.layout_out) == ("interleaved", "split")
    assert "interleaved, written split" in str(report)


@pytest.mark.parametrize(("shift", "offset"), [(1, 1), (37, 37), (1000, 1000)])
def test_an_offset_is_found_with_both_of_its_causes(shift: int, offset: int) -> None:
    right = rotation(expected())
    report = doctor.examine(lambda x, p: right(x, p + shift), WIDTH)
    assert report.offset == pytest.approx(offset, abs=0.02)
    (fault,) = report.faults
    assert "constant offset in the function and a cache's length" in fault.remedy
    assert np.allclose(report.frequencies, expected().frequencies, rtol=1e-5)


def test_two_explanations_of_the_same_frequencies_are_both_given() -> None:
    ntk = expected({"rope_theta": 10_000.0, "rope_type": "ntk", "factor": 4.0}, width=128)
    printed = str(doctor.examine(rotation(ntk), 128))
    assert "base 40,890" in printed
    assert "or: base 10,000 under NTK-aware scaling by 4" in printed
    part = tuple((10_000.0 ** (-2 * np.arange(16) / 128)).tolist())
    printed = str(
        doctor.examine(rotation(expected(rotary_dim=32, width=128, frequencies=part)), 128)
    )
    assert "or: base 10,000 spaced over the whole head of 128" in printed
    linear = expected({"rope_theta": 10_000.0, "rope_type": "linear", "factor": 8.0}, width=128)
    assert "linear scaling by 8 of base 10,000" in str(doctor.examine(rotation(linear), 128))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (YARN, ["pairs 0–23 kept, 40–63 divided by 4", "linear in the index, as YaRN's"]),
        (LLAMA3, ["divided by 8", "linear in the frequency, as Llama 3's"]),
        (PLAIN, ["base 1,000,000, no pair slowed"]),
    ],
    ids=["yarn", "llama3", "plain"],
)
def test_kept_and_slowed_pairs_are_said(fields: dict[str, Any], words: list[str]) -> None:
    printed = str(doctor.examine(rotation(expected(fields, width=128)), 128))
    for each in words:
        assert each in printed


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (YARN, ["pairs 0–23 kept, 40–63 divided by 4 ", "linear in the index, as YaRN's"]),
        (LLAMA3, ["pairs 0–28 kept, 35–63 divided by 8 ", "linear in the frequency, as Llama 3's"]),
    ],
    ids=["yarn", "llama3"],
)
def test_kept_and_slowed_pairs_are_read_from_rounded_outputs(
    fields: dict[str, Any], words: list[str]
) -> None:
    """The last pair is known to a hundredth alone, and the others are compared within its error."""
    kind = expected(fields, width=128)
    printed = str(doctor.examine(rotation(kind, rounded=planted.bfloat16), 128, expect=kind))
    for each in words:
        assert each in printed


def test_a_ramp_of_neither_kind_is_said_to_be_so() -> None:
    kept, slowed = np.ones(24), np.full(24, 1 / 4)
    between = 1 / 4 + 3 / 4 * np.linspace(1, 0, 18)[1:-1] ** 3
    shape = np.concatenate([kept, between, slowed])
    omega = 1e6 ** (-np.arange(64) / 64) * shape
    printed = str(doctor.examine(rotation(expected(frequencies=tuple(omega), width=128)), 128))
    assert "the pairs between follow neither YaRN's ramp nor Llama 3's" in printed


@pytest.mark.parametrize("second", [1e-5, 1e5], ids=["steep", "rising"])
def test_pairs_from_which_no_base_can_be_told_are_described_without_one(second: float) -> None:
    """In a wide head such a base would be beyond every number of the format, or rounded to 0."""
    frequencies = (second, 1.0, *[0.5] * 126) if second < 1 else (1.0, 1 / second, *[3e-6] * 126)
    report = doctor.examine(rotation(expected(frequencies=frequencies, width=256)), 256)
    least, most = f"{min(frequencies):.6g}", f"{max(frequencies):.6g}"
    assert f"no single base: from {most} down to {least} a position" in str(report)


def test_what_cannot_be_told_apart_is_no_other_explanation() -> None:
    """Of a narrow head one or two pairs lie between the kept and the slowed ones."""
    printed = str(doctor.examine(rotation(expected(LLAMA3, width=128, rotary_dim=32)), 128))
    assert "\n             between them YaRN's ramp and Llama 3's cannot be told apart" in printed


def test_a_base_that_is_known_is_not_said_again() -> None:
    """And 10,000 is not the beginning of 10,000,000."""
    omega = [10_000_000.0 ** (-k / 4) for k in range(4)]
    whole = "base 10,000,000, no pair slowed"
    assert describe_frequencies(omega, 8) == whole
    assert describe_frequencies(omega, 8, base=10_000) == whole
    assert describe_frequencies(omega, 8, base=10_000_000) == "no pair slowed"


def test_frequencies_in_bfloat16_are_recognised_blind() -> None:
    omega = planted.bfloat16(10_000.0 ** (-np.arange(32) / 32)).astype(float)
    printed = str(doctor.examine(rotation(expected(frequencies=tuple(omega.tolist()))), WIDTH))
    assert "base about 10,000, rounded to bfloat16" in printed


def test_axes_of_positions() -> None:
    axes = (0, 1, 2) * 8 + (0,) * 8
    omega = np.array(expected().frequencies)

    def turn(x: Any, positions: Any) -> Any:
        angle = positions.take(axes, axis=0)  # (pairs, …)
        angle = np.moveaxis(angle, 0, -1) * omega
        if x.ndim == 4:
            angle = angle[:, np.newaxis]
        return turned(x, np.cos(angle), np.sin(angle))

    report = doctor.examine(turn, WIDTH, position_axes=3, expect=expected(pair_axes=axes))
    assert report.pair_axes == axes
    assert report.faults == ()
    other = doctor.examine(turn, WIDTH, position_axes=3, expect=planted.MROPE)
    assert other.codes == ("axes",)

    def shared(x: Any, positions: Any) -> Any:
        return rotation(expected())(x, positions.max(axis=0))

    assert "axes" in doctor.examine(shared, WIDTH, position_axes=3).codes


def test_angles_in_float32_are_told_by_what_they_do_to_scores() -> None:
    """Chapter "RoPE in your model" measures the same: some 10⁻⁴ to 10⁻³ at 100,000."""
    kind = expected({"rope_theta": 500_000.0}, width=128)
    single = doctor.examine(rotation(kind, angles=planted.float32_angles), 128, expect=kind)
    double = doctor.examine(rotation(kind), 128, expect=kind)
    assert "as in float32" in str(single)
    assert "as in float64" in str(double)
    assert single.angle_at == double.angle_at == 100_000
    exact = np.multiply.outer([100_000], np.array(kind.frequencies))[0]
    rounded = planted.float32_angles(np.array([100_000]), np.array(kind.frequencies))[0]
    assert single.angle_error == pytest.approx(np.abs(exact - rounded).max(), rel=0.3)
    assert 1e-4 < single.score_error < 2e-3
    assert double.score_error < 1e-6


# ---- What was not tested is never called ok


def test_what_was_not_tested_is_said() -> None:
    right = rotation(expected())

    def rows_only(x: Any, positions: Any) -> Any:
        if x.ndim != 2:
            raise TypeError("rows only")
        if positions.max() >= 4096:
            raise IndexError(f"index {positions.max()} is out of bounds for 4096 rows")
        return right(x, positions)

    report = doctor.examine(rows_only, WIDTH, expect=expected())
    assert report.faults == ()
    assert "axis of heads" not in report.tested
    untested = ", ".join(report.untested)
    for what in ("softmax scale", "masks", "which layers call it", "query temperature"):
        assert what in untested
    assert "axes of heads and of a batch" in untested
    assert "positions beyond 2,048" in untested
    assert "out of bounds for 4096 rows" in untested
    assert report.reach == 2048


QWEN = {"model_type": "qwen3", "head_dim": WIDTH, "num_hidden_layers": 2, "rope_theta": BASE}


@pytest.mark.parametrize("length", [4096, 6144, 3000])  # powers of two end before the last two
@pytest.mark.parametrize(
    ("beyond", "code"), [("clamp", "far"), ("wrap", "far"), ("nan", "not_finite")]
)
def test_a_table_may_end_with_the_longest_text_and_not_before(
    length: int, beyond: str, code: str
) -> None:
    turn = planted.ending(length, beyond)
    for options in (
        {"expect": QWEN | {"max_position_embeddings": length}},
        {"expect": expected(), "longest": length},
        {"longest": length},
    ):
        report = doctor.examine(turn, WIDTH, **options)
        assert report.faults == ()
        assert report.reach == length - 1
        assert f"positions    up to {length - 1:,}" in str(report)
        assert f"beyond the {length:,} positions of the longest text" in str(report)
    for options in (
        {"expect": QWEN | {"max_position_embeddings": length}, "longest": length + 1},
        {"expect": QWEN | {"max_position_embeddings": length + 1}},
        {"expect": QWEN},
    ):
        report = doctor.examine(turn, WIDTH, **options)
        assert report.codes == (code,)
        assert report.reach < length


def test_where_a_table_ends_with_an_error_the_positions_beyond_are_not_tested() -> None:
    def turn(x: Any, positions: Any) -> Any:
        if positions.max() >= 6144:
            raise IndexError("out of bounds")
        return rotation(expected())(x, positions)

    for length, last in ((6144, 6143), (8192, 4096), (2000, 4096), (None, 4096)):
        config = QWEN | ({} if length is None else {"max_position_embeddings": length})
        report = doctor.examine(turn, WIDTH, expect=config)
        assert report.faults == ()
        assert report.reach == last
        assert any(f"positions beyond {last:,}, where" in each for each in report.untested)


def test_frequencies_that_follow_the_length_are_no_fault_at_the_longest_text() -> None:
    """The last position is asked in a call of its own, where all frequencies are others."""

    def turn(x: Any, positions: Any) -> Any:
        if positions.max() >= 6144:
            raise IndexError("out of bounds")
        return GROWING(x, positions)

    report = doctor.examine(turn, WIDTH, longest=6144)
    assert report.follows_length
    assert report.faults == ()
    assert any("positions beyond 4,096, where" in each for each in report.untested)


def test_a_length_that_dynamic_scaling_goes_beyond_is_no_end_of_a_table() -> None:
    scaling = {"rope_theta": BASE, "rope_type": "dynamic", "factor": 4.0}
    config = QWEN | {"max_position_embeddings": 4096, "rope_parameters": scaling}
    report = doctor.examine(planted.ending(4096, "clamp"), WIDTH, expect=config)
    assert report.codes == ("far",)


def test_the_axes_of_positions_are_untested_where_positions_have_one() -> None:
    report = doctor.examine(rotation(planted.MROPE), WIDTH, expect=planted.MROPE)
    assert any("position_axes=3" in each for each in report.untested)


def test_nothing_is_ok_after_a_fault_that_ends_the_reading() -> None:
    faults = {each.code: each for each in planted.faults()}
    report = doctor.examine(faults["not_a_rotation"].turn, WIDTH, expect=expected())
    assert not any(
        line.rstrip().endswith(" ok") for line in str(report).splitlines() if line[:1] != " "
    )


@pytest.mark.parametrize("sequence_first", [False, True])
def test_the_two_orders_of_four_axes(sequence_first: bool) -> None:
    kind = expected()
    axes: doctor.Axes = "batch seq heads" if sequence_first else "batch heads seq"

    def turn(x: Any, positions: Any) -> Any:
        if x.ndim != 4:
            raise TypeError("four axes")
        angle = np.multiply.outer(positions, np.array(kind.frequencies))
        angle = angle[:, :, np.newaxis] if sequence_first else angle[:, np.newaxis]
        return turned(x, np.cos(angle), np.sin(angle))

    report = doctor.examine(turn, WIDTH, expect=kind, axes=axes)
    assert report.faults == ()
    assert set(report.tested) >= {"ragged rows", "axis of heads", "cached step", "second call"}
    other: doctor.Axes = "batch heads seq" if sequence_first else "batch seq heads"
    with pytest.raises(ValueError, match="turn must take"):
        doctor.examine(turn, WIDTH, expect=kind, axes=other)


# ---- Against what is expected


def test_the_consequence_for_scores_is_what_scores_suffer() -> None:
    """The stated error beside that of many drawn queries and keys."""
    kind, wrong = expected(YARN), expected(YARN, "interleaved")
    report = doctor.examine(rotation(wrong), WIDTH, expect=kind)
    (fault,) = report.faults
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 20_000, WIDTH))
    at = np.full(20_000, 100)

    def scores(each: Any) -> Any:
        turn = rotation(each)
        return (turn(q, at) * turn(k, 0 * at)).sum(axis=1) / math.sqrt(WIDTH)

    measured = np.std(scores(wrong) - scores(kind))
    assert f"{measured:.1f}" in fault.consequence
    assert "at distance 100" in fault.consequence


def test_a_missing_factor_is_said_in_per_cent_of_scores() -> None:
    kind = expected(YARN)
    report = doctor.examine(
        rotation(dataclasses.replace(kind, attention_factor=1.0)), WIDTH, expect=kind
    )
    assert "23% too small" in report.faults[0].consequence


GEMMA = {
    "model_type": "gemma3_text",
    "head_dim": WIDTH,
    "num_hidden_layers": 12,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
}


def of_base(base: float) -> planted.Turn:
    return rotation(expected({"rope_theta": base}))


@pytest.mark.parametrize(
    ("base", "nearest", "own", "others"),
    [
        (10_000.0, 10_000.0, "0–4, 6–10", "5, 11"),
        (1_000_000.0, 1_000_000.0, "5, 11", "0–4, 6–10"),
        (990_000.0, 1_000_000.0, "5, 11", "0–4, 6–10"),  # one fault against either
        (11_000.0, 10_000.0, "0–4, 6–10", "5, 11"),
    ],
)
def test_of_several_kinds_of_layers_the_nearest_is_taken_and_named(
    base: float, nearest: float, own: str, others: str
) -> None:
    report = doctor.examine(of_base(base), WIDTH, expect=GEMMA)
    assert report.expected is not None
    assert report.expected.base == nearest
    assert report.codes == (() if base == nearest else ("base",))
    first = str(report).splitlines()[0]
    assert re.split(r"\s{2,}", first) == [
        "held to",
        f"layers {own}",
        f"1 OF 2 KINDS: not held to layers {others}",
    ]
    assert f"layers {others}" in report.untested


def test_a_layer_that_is_named_is_the_one_it_is_held_to() -> None:
    settings = rotary_settings(GEMMA)
    for expect in (GEMMA, settings):
        report = doctor.examine(of_base(10_000), WIDTH, expect=expect, layer=5)
        assert report.codes == ("base",)
        assert report.layers == (5, 11)
        assert "not held to layers 0–4, 6–10" in str(report)
    alone = doctor.examine(of_base(10_000), WIDTH, expect=settings.layers[0])
    assert alone.layers == ()
    assert "held to" not in str(alone)


def test_a_model_of_one_kind_is_not_said_to_have_others() -> None:
    smollm = {"model_type": "smollm3", "hidden_size": 256, "num_attention_heads": 4}
    smollm |= {"num_hidden_layers": 8, "rope_theta": BASE}
    report = doctor.examine(of_base(BASE), WIDTH, expect=smollm)
    assert report.layers == (0, 1, 2, 4, 5, 6)  # the others do not turn
    assert "held to" not in str(report)


def test_a_width_of_some_layers_is_not_that_of_the_model() -> None:
    gemma_4 = {"model_type": "gemma4_text", "head_dim": 64, "global_head_dim": 128}
    gemma_4 |= {"num_hidden_layers": 6}
    gemma_4 |= {"layer_types": [*["sliding_attention"] * 5, "full_attention"]}
    report = doctor.examine(of_base(10_000), 64, expect=gemma_4)
    assert report.faults == ()
    assert "1 OF 2 KINDS: not held to layers 5" in str(report)
    with pytest.raises(ValueError, match="layer must be given"):
        doctor.assert_turns_as(of_base(10_000), 64, gemma_4)
    with pytest.raises(ValueError, match=r"layer or head_dim must be given.* 64 and 128"):
        doctor.examine(of_base(10_000), expect=gemma_4)
    reports = [doctor.examine(of_base(10_000), w, expect=gemma_4, layer=0) for w in (64, None)]
    assert str(reports[0]) == str(reports[1])


def test_a_configuration_says_the_width_itself() -> None:
    for expect in (GEMMA, expected(), rotary_settings(GEMMA)):
        turn = of_base(10_000)
        assert str(doctor.examine(turn, expect=expect)) == str(
            doctor.examine(turn, WIDTH, expect=expect)
        )
    doctor.assert_turns_as(rotation(expected()), expect=expected())
    with pytest.raises(AssertionError, match="the rotation differs"):
        doctor.assert_turns_as(of_base(10_000), expect=expected())
    with pytest.raises(TypeError, match=r"^head_dim must be given without expect"):
        doctor.examine(of_base(10_000))
    with pytest.raises(ValueError, match=r"^expect must have a layer that turns"):
        doctor.examine(of_base(10_000), expect={"model_type": "falcon", "alibi": True})


def test_no_function_passes_as_the_whole_of_a_model_with_two_kinds_of_layers() -> None:
    asked = r"layer must be given.*0 stands for layers 0–4, 6–10; 5 stands for layers 5, 11"
    for expect in (GEMMA, json.dumps(GEMMA), rotary_settings(GEMMA)):
        with pytest.raises(ValueError, match=asked):
            doctor.assert_turns_as(of_base(10_000), WIDTH, expect)
    doctor.assert_turns_as(of_base(10_000), WIDTH, GEMMA, layer=0)
    doctor.assert_turns_as(of_base(1_000_000), WIDTH, GEMMA, layer=5)
    with pytest.raises(AssertionError, match="base is 10,000 and the model's is 1,000,000"):
        doctor.assert_turns_as(of_base(10_000), WIDTH, GEMMA, layer=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"expect": GEMMA, "layer": 12}, "layer must be from 0 to 11, got 12"),
        ({"expect": GEMMA, "layer": -1}, "layer must be .* at least 0, got -1"),
        ({"expect": expected(), "layer": 0}, "layer must be left out where expect is one layer"),
        ({"layer": 0}, "layer must be left out without expect, got 0"),
        ({"axes": "heads"}, r"axes must be one of 'seq', .* got 'heads'"),
        ({"longest": 0}, "longest must be .* at least 1, got 0"),
    ],
    ids=["beyond", "negative", "of a layer", "without", "axes", "longest"],
)
def test_an_argument_that_is_not_allowed_is_named(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        doctor.examine(of_base(10_000), WIDTH, **options)


def test_a_layer_that_does_not_turn_is_no_expectation() -> None:
    smollm = {"model_type": "smollm3", "hidden_size": 256, "num_attention_heads": 4}
    smollm |= {"num_hidden_layers": 8, "rope_theta": BASE}
    with pytest.raises(ValueError, match="layer must be a layer that turns, got 3"):
        doctor.examine(of_base(BASE), WIDTH, expect=smollm, layer=3)


def of_module(module: RotaryPositionalEncoding) -> planted.Turn:
    def turn(x: Any, positions: Any) -> Any:
        where = torch.from_numpy(positions)
        return module(torch.from_numpy(x), positions=where).numpy()

    return turn


def test_a_module_of_ours_is_an_expectation_and_a_function() -> None:
    module = RotaryPositionalEncoding(WIDTH, base=BASE, layout="split")
    report = doctor.examine(of_module(module), WIDTH, expect=module)
    assert report.faults == ()
    assert "axis of heads" in report.tested
    assert report.angle_error < 1e-6


def test_a_module_that_turns_backward_is_an_expectation() -> None:
    nanochat = {"model_type": "nanochat", "hidden_size": 256, "num_attention_heads": 4}
    nanochat |= {"num_hidden_layers": 2, "rope_theta": BASE}
    backward = RotaryPositionalEncoding.from_config(nanochat)
    forward = RotaryPositionalEncoding(WIDTH, base=BASE, layout="split")
    other = RotaryPositionalEncoding(WIDTH, base=BASE / 2, layout="split")
    rounded = planted.bfloat16(-planted.OMEGA).astype(float)
    half = RotaryPositionalEncoding(WIDTH, frequencies=torch.from_numpy(rounded), layout="split")
    assert torch.all(backward.frequencies < 0)
    for module, codes in (
        (backward, ()),
        (forward, ("direction",)),
        (other, ("direction", "base")),
        (half, ("half_frequencies",)),
    ):
        report = doctor.examine(of_module(module), WIDTH, expect=backward)
        assert report.codes == codes
    assert doctor.examine(of_module(backward), WIDTH, expect=nanochat).codes == ()
    assert doctor.examine(of_module(backward), WIDTH, expect=forward).codes == ("direction",)


def test_a_module_whose_pairs_turn_both_ways_is_an_expectation() -> None:
    signs = np.repeat([1, -1], 16)
    both = RotaryPositionalEncoding(
        WIDTH, frequencies=torch.from_numpy(signs * planted.OMEGA), layout="split"
    )
    assert doctor.examine(of_module(both), WIDTH, expect=both).codes == ()
    forward = of_base(BASE)
    assert doctor.examine(forward, WIDTH, expect=both).codes != ()


DEEPSEEK = {"model_type": "deepseek_v3", "qk_rope_head_dim": WIDTH, "qk_nope_head_dim": 128}
DEEPSEEK |= {"num_hidden_layers": 2, "rope_theta": 10_000.0}


def test_another_order_of_the_outputs_is_a_note_unless_they_share_a_cache() -> None:
    """The module that is made from a file passes: no score of it differs."""
    turn = of_module(RotaryPositionalEncoding.from_config(DEEPSEEK))
    doctor.assert_turns_as(turn, WIDTH, DEEPSEEK)
    report = doctor.examine(turn, WIDTH, expect=DEEPSEEK)
    assert report.faults == ()
    assert "it writes interleaved and the model's own code writes split" in str(report)
    assert "cannot be exchanged" in str(report)
    shared = doctor.examine(turn, WIDTH, expect=DEEPSEEK, same_cache=True)
    assert shared.codes == ("layout_out",)
    assert shared.notes == report.notes[:-1]
    with pytest.raises(AssertionError, match="layout_out: it writes interleaved"):
        doctor.assert_turns_as(turn, WIDTH, DEEPSEEK, same_cache=True)
    with pytest.raises(TypeError, match="same_cache must be True or False"):
        doctor.examine(turn, WIDTH, expect=DEEPSEEK, same_cache="no")  # type: ignore[arg-type]


def test_the_assert_form_raises_with_the_whole_report() -> None:
    doctor.assert_turns_as(rotation(expected()), WIDTH, expected())
    with pytest.raises(AssertionError, match=r"the rotation differs(?s:.*)layout: pairs are split"):
        doctor.assert_turns_as(rotation(expected()), WIDTH, expected(layout="interleaved"))


@pytest.mark.parametrize(
    ("turn", "expect", "words"),
    [
        (lambda x, p: x[..., :1], None, "an output of shape"),
        (lambda x, p: 1 / 0, None, "ZeroDivisionError"),
        (lambda x: x, None, "TypeError"),
        (lambda x, p: "no array", None, "ValueError"),
        (rotation(expected()), expected(width=128), r"head_dim must be the width .* \[128\]"),
    ],
)
def test_what_cannot_be_examined_is_a_sentence(turn: Any, expect: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        doctor.examine(turn, WIDTH, expect=expect)


def test_the_callers_arrays_are_its_own() -> None:
    """A function that writes into what it is given spoils no later call."""
    faults = {each.code: each for each in planted.faults()}
    report = doctor.examine(faults["writes_input"].turn, WIDTH, expect=expected())
    assert report.codes == ("writes_input",)


# ---- What a fault is called, and what it says


def alternating(turn: planted.Turn) -> planted.Turn:
    """With axes of a batch and of heads, positions that are those of nobody."""
    return lambda x, p: turn(x, p if x.ndim == 2 else p + 3 + np.arange(p.shape[-1]) ** 2)


def phased(x: Any, positions: Any) -> Any:
    """All pairs stand at the same angle at position 0, which no one offset gives."""
    angle = np.multiply.outer(positions, np.array(expected().frequencies)) + 0.5
    if x.ndim == 4:
        angle = angle[:, np.newaxis]
    return turned(x, np.cos(angle), np.sin(angle))


def raising(x: Any, positions: Any) -> Any:
    """It takes many rows and not a few."""
    if x.shape[-2] < WIDTH:
        raise IndexError("too few rows")
    return rotation(expected())(x, positions)


def one_axis(x: Any, positions: Any) -> Any:
    """It looks at the first axis of the positions alone."""
    return rotation(expected())(x, positions[0])


# Code that no planted fault has, what raises it, and the axes of its positions.
OTHERS = [
    ("axes", one_axis, 3),
    ("batch", alternating(rotation(expected())), 1),
    ("phase", phased, 1),
    ("raises", raising, 1),
]


@pytest.mark.parametrize(("code", "turn", "axes"), OTHERS, ids=[each[0] for each in OTHERS])
def test_what_no_planted_fault_has_is_named(code: str, turn: planted.Turn, axes: int) -> None:
    kind = planted.MROPE if axes > 1 else expected()
    assert code in doctor.examine(turn, WIDTH, expect=kind, position_axes=axes).codes


def test_every_code_can_be_raised_and_is_explained() -> None:
    raised = {each.code for each in planted.faults()} | {code for code, *_ in OTHERS}
    assert raised == set(doctor.Code)
    explained = re.findall(r'^    [A-Z\d_]+ = "(\w+)"  #: ', inspect.getsource(doctor.Code), re.M)
    assert set(explained) == raised


def test_a_code_is_a_string() -> None:
    report = doctor.examine(rotation(expected()), WIDTH, expect=expected(layout="interleaved"))
    assert report.codes == ("layout",)
    assert str(report.codes) == "('layout',)"
    assert json.dumps(report.codes) == '["layout"]'


def normed(turn: planted.Turn) -> planted.Turn:
    """A function that divides each vector by its length first, which unit vectors do not show."""
    return lambda x, p: turn(x / np.linalg.norm(x, axis=-1, keepdims=True).clip(1e-6), p)


def with_rest(turn: planted.Turn, order: Any, factor: float = 1.0) -> planted.Turn:
    """A function of half a head that also reorders and multiplies the entries that do not turn."""

    def changed(x: Any, positions: Any) -> Any:
        y = turn(x, positions).copy()
        y[..., WIDTH // 2 :] = factor * y[..., WIDTH // 2 :][..., order]
        return y

    return changed


def test_pairs_of_both_directions_are_told_apart() -> None:
    """The consequence and the remedy are those of the pairs that turn the other way."""
    ways = np.repeat([1, -1], 16)
    for wanted in (1, -1):
        kind = expected(direction=wanted)
        wrong = rotation(expected(frequencies=tuple((ways * kind.frequencies).tolist())))
        report = doctor.examine(wrong, WIDTH, expect=kind)
        (fault,) = (each for each in report.faults if each.code == "direction")
        named = "16–31" if wanted == 1 else "0–15"
        assert f"pairs {named} turn" in fault.difference
        assert f"of pairs {named} alone" in fault.remedy
        q, k = np.random.default_rng(0).standard_normal((2, 20_000, WIDTH))
        at = np.full(20_000, 10_000)
        scores = [
            (turn(q, at) * turn(k, 0 * at)).sum(axis=1) / math.sqrt(WIDTH)
            for turn in (wrong, rotation(kind))
        ]
        (said,) = re.findall(r"([\d.]+) at distance 10,000", fault.consequence)
        assert np.std(scores[0] - scores[1]) == pytest.approx(float(said), rel=0.05)


GROWING = next(each.turn for each in planted.faults() if each.code == "follows_length")


def test_a_large_rest_in_a_half_type_is_no_fault() -> None:
    """Its roundings are as much larger as it is."""
    right = rotation(planted.PART)
    turn = with_rest(right, np.s_[:], 100.0)
    report = doctor.examine(lambda x, p: planted.bfloat16(turn(x, p)), WIDTH)
    assert any("multiplied by 100" in each for each in report.notes)
    assert report.codes == ()


@pytest.mark.parametrize(
    ("turn", "note"),
    [
        (with_rest(rotation(planted.PART), np.s_[:], 0.5), "multiplied by 0.5"),
        (with_rest(rotation(planted.PART), np.s_[::-1]), "change places"),
        (GROWING, "frequencies follow"),
    ],
    ids=["multiplied", "moved", "growing"],
)
def test_a_note_hides_no_fault(turn: planted.Turn, note: str) -> None:
    """What is worth knowing does not keep the doctor from looking at other vectors."""
    right, wrong = doctor.examine(turn, WIDTH), doctor.examine(normed(turn), WIDTH)
    for report in (right, wrong):
        assert any(note in each for each in report.notes)
    assert right.codes == ()
    assert wrong.codes == ("not_linear",)


# ---- Adapters, as they are printed


def adapter(name: str, **names: Any) -> Any:
    """The function that an adapter defines, with the user's own names filled in."""
    names |= {"np": np, "torch": torch, "ctypes": ctypes, "device": "cpu"}
    exec(doctor.ADAPTERS[name], names)
    return names["turn"]


def test_all_adapters_are_python_and_named_where_one_is_needed() -> None:
    assert set(doctor.ADAPTERS) == {"torch", "transformers", "flash-attn", "jax", "mlx", "ctypes"}
    for code in doctor.ADAPTERS.values():
        compile(code, "adapter", "exec")
    with pytest.raises(ValueError, match=r"ADAPTERS has torch, transformers"):
        doctor.examine(lambda x, p: x @ torch.eye(WIDTH), WIDTH, axes="batch seq heads")


def test_a_function_of_torch_in_a_half_type() -> None:
    omega = torch.tensor(expected().frequencies)

    def kernel(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        angle = positions[:, None].float() * omega
        a, b = x.bfloat16().chunk(2, dim=-1)
        cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    report = doctor.examine(adapter("torch", kernel=kernel), WIDTH, expect=expected())
    assert report.faults == ()
    assert report.dtype == "bfloat16"


def test_a_model_of_transformers() -> None:
    from transformers import AutoConfig, AutoModel
    from transformers.models.qwen3.modeling_qwen3 import apply_rotary_pos_emb

    config = AutoConfig.for_model(
        "qwen3",
        vocab_size=8,
        hidden_size=32,
        intermediate_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=128,
        rope_parameters=YARN,
    )
    model = AutoModel.from_config(config)
    turn = adapter("transformers", model=model, apply_rotary_pos_emb=apply_rotary_pos_emb)
    report = doctor.examine(turn, 128, expect=config, axes="batch heads seq")
    assert report.faults == ()
    assert "axis of heads" in report.tested
    assert report.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    plain = config.to_dict() | {"rope_parameters": PLAIN}
    other = doctor.examine(turn, 128, expect=plain, axes="batch heads seq")
    assert set(other.codes) == {"frequencies", "factor"}


@pytest.mark.parametrize("family", ["gemma3_text", "olmo3", "modernbert"])
def test_a_model_of_transformers_with_two_kinds_of_layers(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module takes the name of a kind, which is filled into the same adapter."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(
        family,
        vocab_size=8,
        hidden_size=2 * WIDTH,
        intermediate_size=8,
        num_hidden_layers=6,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=WIDTH,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
        cls_token_id=1,
        sep_token_id=1,
    )
    model = AutoModel.from_config(config)
    code = importlib.import_module(f"transformers.models.{config_folder(family)}")
    for layer, kind in ((0, "sliding_attention"), (5, "full_attention")):
        text = doctor.ADAPTERS["transformers"].replace("kind = []", f"kind = [{kind!r}]")
        assert kind in text
        monkeypatch.setitem(doctor.ADAPTERS, "transformers", text)
        turn = adapter("transformers", model=model, apply_rotary_pos_emb=code.apply_rotary_pos_emb)
        report = doctor.examine(turn, WIDTH, expect=config, layer=layer, axes="batch heads seq")
        assert report.faults == (), report
        monkeypatch.undo()


def config_folder(family: str) -> str:
    folder = family.removesuffix("_text")
    return f"{folder}.modeling_{folder}"


def test_long_texts_are_held_to_the_list_of_long_texts() -> None:
    """transformers chooses a list in each call, and the doctor has read both."""
    from transformers import Phi3Config
    from transformers.models.phi3 import modeling_phi3

    fields: dict[str, Any] = {
        "hidden_size": 4 * WIDTH,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "max_position_embeddings": 131_072,
        "original_max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10_000.0,
            "factor": 32.0,
            "original_max_position_embeddings": 4096,
            "short_factor": np.linspace(1, 2, WIDTH // 2).round(3).tolist(),
            "long_factor": np.linspace(1, 64, WIDTH // 2).round(3).tolist(),
        },
    }
    config = {"model_type": "phi3"} | fields
    model = argparse.Namespace(
        rotary_emb=modeling_phi3.Phi3RotaryEmbedding(Phi3Config(**copy.deepcopy(fields)))
    )
    turn = adapter(
        "transformers", model=model, apply_rotary_pos_emb=modeling_phi3.apply_rotary_pos_emb
    )
    for length in (None, 4096, 131_072):
        settings = rotary_settings(config, length)
        report = doctor.examine(turn, WIDTH, expect=settings, axes="batch heads seq")
        assert report.faults == (), report
        (kind,) = settings.kinds
        np.testing.assert_allclose(report.frequencies, kind.frequencies, rtol=1e-5)
        assert ("a call with far positions" in str(report)) == (length == 131_072)
    other = copy.deepcopy(config)
    other["rope_parameters"]["long_factor"][-1] = 65.0
    report = doctor.examine(
        turn, WIDTH, expect=rotary_settings(other, 131_072), axes="batch heads seq"
    )
    assert report.codes == ("frequencies",)
    assert "pairs 31 differ" in report.faults[0].difference


LONGROPE: dict[str, Any] = {
    "model_type": "phi3",
    "head_dim": WIDTH,
    "num_hidden_layers": 2,
    "max_position_embeddings": 131_072,
    "original_max_position_embeddings": 4096,
    "rope_scaling": {
        "type": "longrope",
        "short_factor": np.linspace(1, 2, WIDTH // 2).round(3).tolist(),
        "long_factor": np.linspace(1, 64, WIDTH // 2).round(3).tolist(),
    },
}


@pytest.mark.parametrize(("length", "other"), [(4096, "long"), (131_072, "short")])
def test_a_kernel_with_one_list_of_longrope_is_held_to_that_list(length: int, other: str) -> None:
    """Some engines take one list for all texts."""
    (layer,) = rotary_settings(LONGROPE, length).kinds
    turn = rotation(layer)
    report = doctor.examine(turn, expect=LONGROPE)
    assert report.faults == (), report
    assert f"{other} texts, for which longrope has another list" in report.untested
    assert doctor.examine(turn, expect=LONGROPE, longest=length).faults == ()
    wrong = {4096: 131_072, 131_072: 4096}[length]
    assert "frequencies" in doctor.examine(turn, expect=LONGROPE, longest=wrong).codes
    assert "another list" not in str(doctor.examine(turn, expect=LONGROPE, longest=length))


def test_flash_attn_by_its_reference_formula() -> None:
    """Its function runs on a GPU alone; here is what its source gives as the formula in torch."""

    def apply_rotary_emb(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
        assert not interleaved
        cos, sin = (torch.cat((each, each), dim=-1)[:, None] for each in (cos, sin))
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    angles = torch.outer(torch.arange(4096.0), torch.tensor(expected().frequencies).float())
    turn = adapter(
        "flash-attn",
        apply_rotary_emb=apply_rotary_emb,
        cos=angles.cos(),
        sin=angles.sin(),
        interleaved=False,
    )
    report = doctor.examine(turn, WIDTH, expect=expected(), axes="batch seq heads")
    assert report.faults == ()
    assert report.reach == 2048  # its tables end there
    assert "axis of heads" in report.tested


C_KERNEL = """
#include <math.h>
#include <stdint.h>
void turn(const float *x, const int64_t *positions, float *y, int rows, int width) {
    for (int n = 0; n < rows; n++)
        for (int i = 0; i < width / 2; i++) {
            double angle = positions[n] * pow(1e6, -2.0 * i / width);
            float c = cos(angle), s = sin(angle);
            float a = x[n * width + 2 * i], b = x[n * width + 2 * i + 1];
            y[n * width + 2 * i] = a * c - b * s;
            y[n * width + 2 * i + 1] = a * s + b * c;
        }
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
def test_a_kernel_in_c_behind_ctypes(tmp_path: Path) -> None:
    (tmp_path / "kernel.c").write_text(C_KERNEL)
    library = tmp_path / "kernel.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "kernel.c")]
    subprocess.run([*command, "-lm"], check=True)
    turn = adapter("ctypes", kernel=ctypes.CDLL(str(library)).turn)
    report = doctor.examine(turn, WIDTH, expect=expected(layout="interleaved"), axes="seq")
    assert report.faults == ()
    assert doctor.examine(turn, WIDTH, expect=expected(), axes="seq").codes == ("layout",)


def test_its_settings_may_come_from_a_file(tmp_path: Path) -> None:
    config = {"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2, "rope_theta": BASE}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for expect in (config, json.dumps(config), tmp_path / "config.json", str(tmp_path)):
        assert doctor.examine(rotation(expected()), 64, expect=expect).faults == ()


def test_dynamic_frequencies_are_read_near_and_far() -> None:
    config: dict[str, Any] = {
        "model_type": "llama",
        "head_dim": WIDTH,
        "num_hidden_layers": 1,
        "max_position_embeddings": 2048,
        "rope_parameters": {"rope_theta": BASE, "rope_type": "dynamic", "factor": 4.0},
    }
    faults = {each.code: each for each in planted.faults()}
    report = doctor.examine(faults["follows_length"].turn, WIDTH, expect=config)
    assert report.faults == ()
    assert report.follows_length
    assert report.far_frequencies is not None
    far, _ = rotary_frequencies(
        WIDTH, seq_len=2**20 + 1, max_position_embeddings=2048, **config["rope_parameters"]
    )
    np.testing.assert_allclose(report.far_frequencies, far, rtol=1e-5)
    np.testing.assert_allclose(report.frequencies, expected().frequencies, rtol=1e-5)
    long = doctor.examine(
        faults["follows_length"].turn, WIDTH, expect=rotary_settings(config, 8192)
    )
    assert long.faults == ()
    assert any("frequencies of long texts" in each for each in long.untested)
