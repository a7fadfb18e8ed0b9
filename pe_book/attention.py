"""One attention head in NumPy, as the chapters use it: rows in, rows out."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating]


def softmax(scores: ArrayLike) -> Array:
    """Positive numbers that sum to 1 along the last axis, in the proportions of exp(scores).

    Examples
    --------
    >>> softmax([0, 0, np.log(2)])
    array([0.25, 0.25, 0.5 ])
    """
    scores = np.asarray(scores, dtype=float)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def causal_mask(length: int) -> NDArray[np.bool_]:
    """A square matrix that is True where position t (the row) may see position s (the column).

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    return np.tri(length, dtype=bool)


def attention_weights(
    x: Array,
    wq: Array,
    wk: Array,
    *,
    mask: NDArray[np.bool_] | None = None,
    bias: ArrayLike = 0.0,
) -> Array:
    """How much each row of ``x`` attends to each: softmax(x wq (x wk)ᵀ / √d_k + bias).

    ``x`` has the shape (…, length, d), ``wq`` and ``wk`` (d, d_k). Where ``mask`` is False the
    weight is 0.

    Examples
    --------
    >>> attention_weights(np.eye(2), np.zeros((2, 1)), np.zeros((2, 1)), mask=causal_mask(2))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    scores = (x @ wq) @ np.swapaxes(x @ wk, -1, -2) / np.sqrt(wk.shape[-1]) + np.asarray(bias)
    return softmax(scores if mask is None else np.where(mask, scores, -np.inf))


def self_attention(
    x: Array,
    wq: Array,
    wk: Array,
    wv: Array,
    *,
    mask: NDArray[np.bool_] | None = None,
    bias: ArrayLike = 0.0,
) -> Array:
    """The output of one head: its attention weights times the values ``x @ wv``.

    Examples
    --------
    >>> nothing = np.zeros((2, 1))  # no scores: every row gets the mean of all rows
    >>> self_attention(np.array([[2.0, 0.0], [4.0, 6.0]]), nothing, nothing, np.eye(2))
    array([[3., 3.],
           [3., 3.]])
    """
    return np.asarray(attention_weights(x, wq, wk, mask=mask, bias=bias) @ (x @ wv))
