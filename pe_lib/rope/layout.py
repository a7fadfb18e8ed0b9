"""Weights in the layout of somebody else's code."""

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pe_lib import _checks as check
from pe_lib._checks import Layout


def convert_layout(
    weights: ArrayLike,
    head_dim: SupportsIndex,
    *,
    to: Layout,
    rotary_dim: SupportsIndex | None = None,
    axis: SupportsIndex = 0,
) -> NDArray:
    """Reorder the weights of the projections to queries or keys, from one layout to the other.

    Interleaved code pairs the entries 2i and 2i + 1 of a head; split code pairs i and
    i + rotary_dim/2. A checkpoint made for one of them runs in the other without an error, and is
    wrong. There are two remedies. If the code can choose, as ``RotaryPositionalEncoding`` can, set
    its ``layout`` to that of the checkpoint, and leave the weights alone. Otherwise reorder the
    outputs of the projections: scores stay as they were, because queries and keys are reordered
    alike.

    ``to`` is the layout of the result, ``"split"`` or ``"interleaved"``; ``weights`` are in the
    other one. Their ``axis`` holds the entries of one or more heads, ``head_dim`` each, one head
    after the other; every other axis stays as it is. What to convert:

    ============================================  ==========================================
    weight of ``nn.Linear``                       (heads · head_dim, in_features), axis 0
    its bias                                      (heads · head_dim,)
    a matrix W that is used as x @ W              (in_features, heads · head_dim), ``axis=-1``
    key weights of grouped-query attention        the same, with fewer heads
    weight of a norm of each query or key         (head_dim,)
    LoRA: the factor B                            (heads · head_dim, r), axis 0; A stays
    ============================================  ==========================================

    Convert what belongs to queries **and** keys, never values or the output projection. A matrix
    that holds queries, keys and values must be taken apart first. ``rotary_dim`` is the number of
    entries of a head, from the first, that turn; the others stay in their places.

    The result is a new array, a permutation of what was given: bit for bit the same numbers, and
    converting back restores the original. A width that is no multiple of ``head_dim``, and a
    ``rotary_dim`` that is odd or exceeds it, get a ``ValueError``.

    >>> convert_layout([0, 1, 2, 3, 4, 5, 6, 7], 8, to="split")
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> convert_layout([0, 2, 4, 6, 1, 3, 5, 7], 8, to="interleaved")
    array([0, 1, 2, 3, 4, 5, 6, 7])
    """
    weights = check.as_array("weights", weights)
    order = layout_order(weights.shape, head_dim, to, rotary_dim, axis)
    return np.take(weights, order, axis)


def layout_order(
    shape: tuple[int, ...],
    head_dim: SupportsIndex,
    to: Layout,
    rotary_dim: SupportsIndex | None,
    axis: SupportsIndex,
) -> NDArray[np.intp]:
    """For each entry along ``axis`` of a converted array, the entry that it is taken from."""
    check.choice("to", to, check.LAYOUTS)
    width = check.even("head_dim", head_dim)
    turned = width if rotary_dim is None else check.even("rotary_dim", rotary_dim)
    if turned > width:
        raise ValueError(f"rotary_dim must be at most head_dim = {width}, got {turned}")
    axis = check.integer("axis", axis)
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis must be an axis of weights, whose shape is {shape}, got {axis}")
    if shape[axis] % width != 0:
        raise ValueError(
            f"axis {axis} of weights must be a multiple of head_dim = {width}, got shape {shape}"
        )
    evens_and_odds = np.arange(turned).reshape(turned // 2, 2)
    from_interleaved = evens_and_odds.T.ravel()
    of_one_head = np.arange(width)
    of_one_head[:turned] = from_interleaved if to == "split" else from_interleaved.argsort()
    starts = np.arange(0, shape[axis], width)
    return (starts[:, np.newaxis] + of_one_head).ravel()
