"""The frequencies and the attention factor of RoPE, one function for each ``rope_type``.

Notation: a head has ``pairs`` pairs that turn; pair i turns at the unscaled frequency
ω_i = rope_theta^(−i/pairs), in radians per position, and its wavelength is 2π/ω_i positions. Each
scaling below is a function of the unscaled frequencies and of the fields that it uses, so its
signature says which fields a ``rope_type`` needs and which values are taken where a field is left
out.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, SupportsIndex, Unpack

import numpy as np
from numpy.typing import NDArray

from pe_lib import _angles
from pe_lib import _checks as check
from pe_lib.rope.fields import (
    NOT_FREQUENCIES,
    OF_EVERY_TYPE,
    RopeParameters,
    allowed,
    check_names,
    checked,
    rope_type_of,
    rotary_dim_of,
)

FrequencyArray = NDArray[np.float64]


class _Pair(NamedTuple):
    frequencies: Any
    attention_factor: float


class RotaryFrequencies(_Pair):
    """What `rotary_frequencies` returns, and ``frequencies=`` takes: a pair.

    ``frequencies`` are in radians per position, one for each pair that turns, a float64 array or
    tensor of shape (rotary_dim // 2,). ``attention_factor`` multiplies every cosine and sine, so it
    multiplies a score of two rotated vectors by its square. Beside the two it knows the
    ``head_dim`` that it was made for, if any, so that a module of another width can refuse it.

    >>> RotaryFrequencies(np.array([1.0, 0.1]), 1.0).attention_factor
    1.0
    """

    head_dim: int | None = None

    def of_head(self, head_dim: int) -> Self:
        """The same, made for heads of this width."""
        self.head_dim = head_dim
        return self


def rotary_frequencies(
    head_dim: SupportsIndex,
    *,
    seq_len: SupportsIndex | None = None,
    **rope_parameters: Unpack[RopeParameters],
) -> RotaryFrequencies:
    """The frequencies and the attention factor of RoPE, from the fields of a model's configuration.

    For most models of transformers, ``rotary_frequencies(head_dim, **config.rope_parameters)``
    gives what the model turns by, and the pair goes to the module as it is:
    ``RotaryPositionalEncoding(head_dim, frequencies=pair, layout=…)``. A configuration that
    has one set of fields for each kind of layer, such as Gemma 3's, needs one call for each.

    ``head_dim`` is the width of one head, a positive even integer. Where a model keeps the part of
    a head that turns apart from the rest, as DeepSeek does, it is the width of this part
    (``qk_rope_head_dim``). Every type needs ``rope_theta``,
    the base, above 1, which has no default because each family of models has its own. Every type
    takes ``partial_rotary_factor``, the part of the head that turns (1 by default).

    **Older files.** A ``config.json`` from before transformers 5 has ``rope_scaling``, and further
    fields beside it. Pass ``rope_theta`` from there (a file without it means the base of its
    family, often 10,000), and ``partial_rotary_factor``, ``original_max_position_embeddings`` and
    ``max_position_embeddings`` if the file has them: every type takes all four. If a type needs
    ``original_max_position_embeddings`` and the file has none, transformers takes
    ``max_position_embeddings`` for it. New files have ``max_position_embeddings`` beside
    ``rope_parameters`` too. In Gemma 3's older files ``rope_theta`` and ``rope_scaling`` are for
    full attention alone; sliding attention has ``rope_local_base_freq`` as its base and no scaling.

    Write ω_i for the unscaled frequencies, s for ``factor`` and L for
    ``original_max_position_embeddings``, the length that the model was first trained for. What
    ``rope_type`` may be (``type`` is its older name, and must not contradict it), and which fields
    each type needs beside these:

    ``"default"``
        ω_i as they are. ``"mrope"``, in files of Qwen2-VL, is the same.
    ``"linear"``
        Needs ``factor``. ω_i/s: position interpolation (Chen et al., 2023).
    ``"ntk"``
        Needs ``factor``. A larger base, rope_theta·s^(d/(d−2)) for d entries that turn. The fastest
        pair stays, and the slowest is divided by s: NTK-aware scaling (bloc97, 2023). Transformers
        has it in its dynamic form only.
    ``"dynamic"``
        Needs ``factor``, ``max_position_embeddings`` and ``seq_len``. For this type the trained
        length is ``max_position_embeddings``, and not L. Up to it ω_i. Beyond it NTK-aware scaling
        by 1 + s·(seq_len/max_position_embeddings − 1), which grows with the text.
    ``"yarn"``
        Needs L, and ``factor`` or ``max_position_embeddings``. Pairs that make more than
        ``beta_fast`` turns (32) within L stay, pairs that make less than ``beta_slow`` (1) are
        divided by s, with a ramp between them that is linear in i (Peng et al., 2024). The first
        pair always stays. ``truncate=False`` leaves the ends of the ramp unrounded; so does None,
        a file's null, which transformers reads in this way. Let
        m(a) = 0.1·a·ln s + 1. The attention factor is ``attention_factor`` if it is given. If not,
        it is m(mscale)/m(mscale_all_dim) if both are given and not 0, and m(1) otherwise. If all
        pairs make far fewer turns than ``beta_slow`` within L, or far more than ``beta_fast``, L is
        refused. There the formula of YaRN's authors, which is that of transformers, runs backwards:
        it keeps the pairs that should be divided, or divides those that should stay.
    ``"longrope"``
        Needs L, ``seq_len``, ``short_factor`` and ``long_factor``, and ``factor`` or
        ``max_position_embeddings``. ω_i/short_factor[i] for texts up to L, ω_i/long_factor[i] for
        longer ones (Ding et al., 2024). The attention factor is ``attention_factor``, or else
        √(1 + ln s/ln L). ``"su"`` is its name in early files of Phi-3.
    ``"llama3"``
        Needs L, ``factor``, ``low_freq_factor`` and ``high_freq_factor``. Pairs that make more than
        ``high_freq_factor`` turns within L stay, pairs that make less than ``low_freq_factor`` are
        divided by s, and the others are a mean of the two, weighted by their number of turns
        (Llama Team, 2024). If both are the same number, as in Llama 4 Scout, no pair is between.
    ``"proportional"``
        The first ``partial_rotary_factor`` of the pairs have the frequencies of the whole head, and
        the others stand still: their frequency is 0. All are divided by ``factor``, if given.

    Where ``factor`` is left out of ``"yarn"`` or ``"longrope"``, it is ``max_position_embeddings``
    divided by L. If ``factor`` is given, it is used even if it disagrees with these lengths, as in
    the file of a model that was extended later and keeps its old ``max_position_embeddings``.

    Two families have fields of their own. HunYuan's ``"dynamic"`` with an ``alpha`` is ``"ntk"``
    with that ``factor``. Phi-3.5-MoE's ``"longrope"`` has ``short_mscale`` and ``long_mscale``: the
    one for your ``seq_len`` is the ``attention_factor``.

    **A filled cache.** Only ``"dynamic"`` and ``"longrope"`` depend on ``seq_len``, the length of
    the longest text that the frequencies will serve. Cached keys keep the rotation with which they
    were stored, so a query has to be turned by the same frequencies; otherwise its scores with them
    depend on both positions, and not only on the offset. So decide ``seq_len`` before the first
    token, for the prompt together with everything that will be generated, and keep the frequencies
    until the cache is empty. The attention factor is the same at every length.

    **Fields that are no frequencies** are accepted and have no effect here. What they ask of the
    caller:

    - ``llama_4_scaling_beta``, as in Ministral 3, is β of a factor 1 + β·ln(1 + ⌊p/L⌋): multiply
      the query at position p by it in the attention layer, and no key.
    - ``mrope_section``, as in Qwen2-VL, says how many pairs the axes of a position turn: sections
      a, b, c are ``pair_axes=[0] * a + [1] * b + [2] * c`` of ``RotaryPositionalEncoding``.
    - ``mrope_interleaved``, as in Qwen3-VL: pair i is turned by the axis i % 3 if i is less than
      three times the section of that axis, and by axis 0 otherwise.
    - ``finetuned`` asks nothing.

    The frequencies are new, and computed in float64: their relative error is below 10⁻¹⁴ in every
    configuration that the tests try, and those of ``"default"`` are the float64 numbers nearest to
    the exact values. Transformers computes them in float32. DeepSeek's layers multiply their scores
    by m(mscale_all_dim)² as well, which is not part of the rotation.

    A field that is missing, out of range, or not used by the ``rope_type`` gets a ``ValueError``
    that names it, its value and what is allowed; None counts as left out, but for ``truncate``.
    ``seq_len``,
    ``max_position_embeddings`` and ``original_max_position_embeddings`` describe the model rather
    than its scaling, so every type accepts them. A value of a wrong type, such as
    ``factor="4"``, and an unknown name get a ``TypeError``.

    >>> fields = {"rope_theta": 100, "rope_type": "linear", "factor": 4}
    >>> rotary_frequencies(8, **fields).frequencies.round(4)
    array([0.25  , 0.0791, 0.025 , 0.0079])
    >>> rotary_frequencies(
    ...     64, rope_theta=150_000, rope_type="yarn", factor=32, truncate=False,
    ...     original_max_position_embeddings=4096,
    ... ).attention_factor  # of gpt-oss, whose scores are multiplied by its square, 1.81
    1.3465735902799727
    """
    head_dim = check.even("head_dim", head_dim)
    check_names(rope_parameters)
    fields = {
        name: checked(name, value)
        for name, value in {**rope_parameters, "seq_len": seq_len}.items()
        if value is not None and name not in NOT_FREQUENCIES
    }
    rope_type = rope_type_of(fields, SCALINGS)
    if rope_type == "yarn" and rope_parameters.get("truncate", True) is None:
        fields["truncate"] = False
    fields = {"partial_rotary_factor": 1.0} | fields
    scaling = SCALINGS[rope_type]
    used_fields = _used_fields(rope_type, scaling, fields)
    rotary_dim = head_dim
    if rope_type != "proportional":  # which sets the frequency of the other pairs to 0 instead
        rotary_dim = rotary_dim_of(head_dim, fields["partial_rotary_factor"])

    config = check.frequency_config(rotary_dim, fields["rope_theta"], "paper")
    unscaled = _angles.exact_frequencies(config).omega.copy()
    return scaling(unscaled, **used_fields).of_head(head_dim)


# ---- The scalings, one function for each


def _default(unscaled: FrequencyArray) -> RotaryFrequencies:
    return RotaryFrequencies(unscaled, 1.0)


def _linear(unscaled: FrequencyArray, *, factor: float) -> RotaryFrequencies:
    """Position interpolation: position x is treated as x/factor."""
    return RotaryFrequencies(unscaled / factor, 1.0)


def _ntk(unscaled: FrequencyArray, *, factor: float) -> RotaryFrequencies:
    """NTK-aware scaling. With the base rope_theta·s^(d/(d−2)), where d = 2·pairs, ω_i becomes
    ω_i·s^(−i/(pairs − 1)): the first pair stays as it is, the last one is divided by s."""
    pairs = len(unscaled)
    share = np.arange(pairs) / max(pairs - 1, 1)
    return RotaryFrequencies(unscaled * factor**-share, 1.0)


def _dynamic(
    unscaled: FrequencyArray, *, factor: float, max_position_embeddings: int, seq_len: int
) -> RotaryFrequencies:
    """NTK-aware scaling whose factor is 1 up to the trained length and grows from there on."""
    times_the_trained_length = max(seq_len / max_position_embeddings, 1.0)
    return _ntk(unscaled, factor=1 + factor * (times_the_trained_length - 1))


def _yarn(
    unscaled: FrequencyArray,
    *,
    rope_theta: float,
    original_max_position_embeddings: int,
    factor: float | None = None,
    max_position_embeddings: int | None = None,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
    attention_factor: float | None = None,
    mscale: float = 0.0,
    mscale_all_dim: float = 0.0,
) -> RotaryFrequencies:
    """The ramp is linear in the index of the pair, as in the code of YaRN's authors. Their bound
    for its end, the last entry instead of the last pair, is kept as well."""
    if beta_slow > beta_fast:
        raise ValueError(f"beta_slow must be at most beta_fast = {beta_fast}, got {beta_slow}")
    factor = factor_or_ratio(factor, max_position_embeddings, original_max_position_embeddings)
    pairs = len(unscaled)
    first, last = _ends_of_ramp(
        pairs, rope_theta, original_max_position_embeddings, beta_fast, beta_slow, truncate
    )
    length = last - first if last != first else 0.001  # a ramp of no length is a step
    interpolated = np.clip((np.arange(pairs) - first) / length, 0, 1)
    frequencies = unscaled * (1 - interpolated) + unscaled / factor * interpolated

    if attention_factor is None:
        attention_factor = _yarn_scale(factor)
        if mscale != 0 and mscale_all_dim != 0:
            attention_factor = _yarn_scale(factor, mscale) / _yarn_scale(factor, mscale_all_dim)
    return RotaryFrequencies(frequencies, attention_factor)


def _ends_of_ramp(
    pairs: int,
    rope_theta: float,
    trained_length: int,
    beta_fast: float,
    beta_slow: float,
    truncate: bool,
) -> tuple[float, float]:
    """YaRN's ramp as two indices: pairs up to the first stay, pairs from the last on are divided.

    The formula raises the first to 0 but never lowers it to the last entry, and lowers the last to
    the last entry but never raises it to 0. So where the whole ramp lies before 0 or behind the
    last entry, its ends change places: pairs that should be divided stay, or the other way round.
    Transformers does so without a word. Here such a trained length is refused.
    """

    def pair_that_makes(turns: float) -> float:
        """The real i whose pair makes so many turns within the trained length: ω_i·L = 2π·turns."""
        frequency = 2 * math.pi * turns / trained_length
        return -pairs * math.log(frequency) / math.log(rope_theta)

    def length_for(pair: float, turns: float) -> float:
        """The trained length within which pair i, a real number, makes so many turns."""
        return float(2 * math.pi * turns * rope_theta ** (pair / pairs))

    first, last = pair_that_makes(beta_fast), pair_that_makes(beta_slow)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    last_entry = 2 * pairs - 1
    name = "original_max_position_embeddings"
    if last < 0:  # rounded up, so the real number is −1 or less
        shortest = length_for(-1 if truncate else 0, beta_slow)
        raise ValueError(
            f"{name} must be greater than {shortest:.6g} for beta_slow = {beta_slow}, or every "
            f"pair makes too few turns within it, got {trained_length}"
        )
    if first > last_entry:  # rounded down
        longest = length_for(last_entry + 1 if truncate else last_entry, beta_fast)
        raise ValueError(
            f"{name} must be less than {longest:.6g} for beta_fast = {beta_fast} and "
            f"rope_theta = {rope_theta}, or every pair makes too many turns within it, "
            f"got {trained_length}"
        )
    return max(first, 0), min(last, last_entry)


def _yarn_scale(factor: float, mscale: float = 1.0) -> float:
    """YaRN's recommended factor of cosines and sines, the m of `rotary_frequencies`."""
    return 0.1 * mscale * math.log(factor) + 1.0


def _longrope(
    unscaled: FrequencyArray,
    *,
    short_factor: Sequence[float],
    long_factor: Sequence[float],
    original_max_position_embeddings: int,
    seq_len: int,
    factor: float | None = None,
    max_position_embeddings: int | None = None,
    attention_factor: float | None = None,
) -> RotaryFrequencies:
    """A divisor for each pair, found by search: one list for short texts, one for long ones."""
    for name, divisors in (("short_factor", short_factor), ("long_factor", long_factor)):
        if len(divisors) != len(unscaled):
            raise ValueError(
                f"{name} must have one number for each of the {len(unscaled)} pairs that turn, "
                f"got {len(divisors)}: {check.brief(list(map(float, divisors)))}"
            )
    if attention_factor is None:
        factor = factor_or_ratio(factor, max_position_embeddings, original_max_position_embeddings)
        trained = math.log(original_max_position_embeddings)
        attention_factor = math.sqrt(1 + math.log(factor) / trained)
    is_long = seq_len > original_max_position_embeddings
    divisors = long_factor if is_long else short_factor
    return RotaryFrequencies(unscaled / divisors, attention_factor)


def _llama3(
    unscaled: FrequencyArray,
    *,
    factor: float,
    original_max_position_embeddings: int,
    low_freq_factor: float,
    high_freq_factor: float,
) -> RotaryFrequencies:
    """Llama 3.1's own: the weight of the unscaled frequency rises with the number of turns."""
    if low_freq_factor > high_freq_factor:
        raise ValueError(
            f"low_freq_factor must be at most high_freq_factor = {high_freq_factor}, "
            f"got {low_freq_factor}"
        )
    turns = original_max_position_embeddings * unscaled / (2 * math.pi)
    if low_freq_factor == high_freq_factor:  # a step, as in Llama 4 Scout
        return RotaryFrequencies(np.where(turns > low_freq_factor, 1, 1 / factor) * unscaled, 1.0)
    kept = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    return RotaryFrequencies((1 - kept) * unscaled / factor + kept * unscaled, 1.0)


def _proportional(
    unscaled: FrequencyArray, *, partial_rotary_factor: float, factor: float = 1.0
) -> RotaryFrequencies:
    turning = int(partial_rotary_factor * len(unscaled))
    frequencies = unscaled / factor
    frequencies[turning:] = 0
    return RotaryFrequencies(frequencies, 1.0)


SCALINGS: dict[str, Callable[..., RotaryFrequencies]] = {
    "default": _default,
    "mrope": _default,
    "linear": _linear,
    "ntk": _ntk,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "llama3": _llama3,
    "proportional": _proportional,
}


def factor_or_ratio(factor: float | None, longest: int | None, trained: int) -> float:
    """``factor``, or else how many times the trained length the longest one is."""
    if factor is not None:
        return factor
    if longest is None:
        raise ValueError(
            "factor must be given, or max_position_embeddings, whose ratio to "
            f"original_max_position_embeddings takes its place: {allowed('factor')}; got neither"
        )
    if trained > longest:
        raise ValueError(
            "original_max_position_embeddings must be at most max_position_embeddings = "
            f"{longest} where factor is left out, got {trained}"
        )
    return longest / trained


def fields_of(rope_type: str) -> tuple[str, ...]:
    """The fields that a type uses."""
    return tuple(name for name in inspect.signature(SCALINGS[rope_type]).parameters)


def _used_fields(
    rope_type: str, scaling: Callable[..., RotaryFrequencies], fields: dict[str, Any]
) -> dict[str, Any]:
    """The fields that a scaling takes by name. Those that it needs must be there, and a field of
    another scaling must not, because it would have no effect."""
    parameters = inspect.signature(scaling).parameters
    needed = [name for name, each in parameters.items() if each.default is each.empty]
    for name in ("rope_theta", *needed):
        if name != "unscaled" and name not in fields:
            raise ValueError(
                f"{name} must be given for rope_type {rope_type!r}: {allowed(name)}; got None"
            )
    for name, value in fields.items():
        if name not in parameters and name not in OF_EVERY_TYPE:
            raise ValueError(
                f"{name} must be left out for rope_type {rope_type!r}, which does not use it, "
                f"got {check.brief(value)}"
            )
    return {name: value for name, value in fields.items() if name in parameters}
