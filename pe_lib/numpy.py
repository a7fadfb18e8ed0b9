"""Sinusoidal positional encoding in NumPy: the reference implementation.

Conventions, the same throughout the book: positions count from 0; pair i = 0 … d_model/2 − 1 turns
at the angular frequency ω_i; the encoding of a position is a **row**, so a shift multiplies from
the right,

    PE(x + Δx) = PE(x) · T(Δx).

The source of the encoding is Vaswani et al. (2017), "Attention Is All You Need", section 3.5.
"""

from typing import NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pe_lib._checks import (
    Layout,
    Spacing,
    check_base,
    check_broadcast,
    check_even,
    check_integer,
    check_layout,
    check_real,
    check_row_width,
    check_same_rows,
    check_spacing,
)

__all__ = [
    "AttentionTerms",
    "attention_terms",
    "frequencies",
    "rotate",
    "rotation_matrix",
    "similarity",
    "sinusoidal_encoding",
    "sinusoidal_table",
]

FloatArray = NDArray[np.floating]


class AttentionTerms(NamedTuple):
    """The four parts of an attention score, each of shape (…, n, m)."""

    content_content: FloatArray
    content_position: FloatArray
    position_content: FloatArray
    position_position: FloatArray


def frequencies(
    d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0, spacing: Spacing = "paper"
) -> NDArray[np.float64]:
    """Angular frequencies ω_i of the d_model/2 pairs, in radians per position.

    ``spacing="paper"`` gives ω_i = base^(−2i/d_model), whose last value stays short of 1/base.
    ``spacing="tensor2tensor"`` gives ω_i = base^(−i/(d_model/2 − 1)), whose last value is 1/base;
    so do the authors' own code and the libraries that descend from it. At d_model = 2 both are [1].

    Parameters
    ----------
    d_model
        Width of the encoding, a positive even integer.
    base
        The 10000 of the paper, a finite number of at least 1.
    spacing
        ``"paper"`` or ``"tensor2tensor"``.

    Returns
    -------
    float64 array of shape (d_model/2,), from 1 downwards.

    Examples
    --------
    >>> frequencies(4, base=100)
    array([1. , 0.1])
    >>> frequencies(4, base=100, spacing="tensor2tensor")
    array([1.  , 0.01])
    """
    d_model, base = check_even("d_model", d_model), check_base(base)
    check_spacing(spacing)
    pairs = d_model // 2
    steps = pairs if spacing == "paper" else max(pairs - 1, 1)
    return np.power(base, -np.arange(pairs) / steps)


def sinusoidal_table(
    seq_len: SupportsIndex,
    d_model: SupportsIndex,
    *,
    start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: DTypeLike = np.float32,
) -> FloatArray:
    """Encodings of the contiguous positions start … start + seq_len − 1.

    Parameters
    ----------
    seq_len
        Number of positions, an integer of at least 0.
    d_model, base, spacing
        As for `frequencies`.
    start
        First position, any integer.
    layout
        ``"interleaved"`` for [sin ω_0x, cos ω_0x, sin ω_1x, …], ``"split"`` for all the sines
        followed by all the cosines.
    dtype
        float16, float32 or float64. Angles are always formed in float64.

    Returns
    -------
    New array of shape (seq_len, d_model).

    Examples
    --------
    >>> sinusoidal_table(2, 4, base=100, dtype=np.float64).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.1  , 0.995]])
    """
    seq_len = check_integer("seq_len", seq_len, at_least=0)
    start = check_integer("start", start)
    return sinusoidal_encoding(
        np.arange(start, start + seq_len),
        d_model,
        base=base,
        spacing=spacing,
        layout=layout,
        dtype=dtype,
    )


def sinusoidal_encoding(
    positions: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: DTypeLike = np.float32,
) -> FloatArray:
    """Encodings of any positions: integers or floats, negative too, in any order and shape.

    Parameters
    ----------
    positions
        Finite real numbers, of any shape.
    d_model, base, spacing, layout, dtype
        As for `sinusoidal_table`.

    Returns
    -------
    New array of shape (*positions.shape, d_model).

    Examples
    --------
    >>> sinusoidal_encoding([0, 0.5, -3], 512).shape
    (3, 512)
    """
    positions = _as_positions("positions", positions)
    omega = frequencies(d_model, base=base, spacing=spacing)
    check_layout(layout)
    encoding = np.empty((*positions.shape, 2 * omega.size), _as_float_dtype(dtype))
    sines, cosines = _halves(encoding, layout)
    angles = positions[..., np.newaxis] * omega
    sines[...], cosines[...] = np.sin(angles), np.cos(angles)
    return encoding


def rotation_matrix(
    offset: SupportsFloat,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: DTypeLike = np.float64,
) -> FloatArray:
    """The matrix T(Δx) with PE(x + Δx) = PE(x) · T(Δx) for every x, written out.

    In the interleaved layout T is block-diagonal with the 2×2 blocks
    [[cos ω_iΔx, −sin ω_iΔx], [sin ω_iΔx, cos ω_iΔx]]. It is meant for teaching and for tests:
    `rotate` applies it without forming it.

    Parameters
    ----------
    offset
        Δx, one finite real number.
    d_model, base, spacing, layout, dtype
        As for `sinusoidal_table`, the dtype being float64 unless you ask for another.

    Returns
    -------
    New array of shape (d_model, d_model).

    Examples
    --------
    >>> rotation_matrix(0, 2)
    array([[ 1., -0.],
           [ 0.,  1.]])
    """
    angle = check_real("offset", offset) * frequencies(d_model, base=base, spacing=spacing)
    check_layout(layout)
    width = 2 * angle.size
    sine, cosine = _halves(np.arange(width), layout)  # the column that each of the pair stands in
    matrix = np.zeros((width, width), _as_float_dtype(dtype))
    matrix[sine, sine] = matrix[cosine, cosine] = np.cos(angle)
    matrix[sine, cosine] = -np.sin(angle)
    matrix[cosine, sine] = np.sin(angle)
    return matrix


def rotate(
    x: ArrayLike,
    offset: ArrayLike,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
) -> FloatArray:
    """x · T(Δx), row by row, without forming T: O(d_model) operations a row.

    T turns a [sin, cos] pair clockwise. Rotary embedding with the sign of RoFormer and Llama, which
    turn the other way, is ``rotate(q, -positions)``.

    Parameters
    ----------
    x
        Real floating-point array of shape (…, d_model), d_model even.
    offset
        Δx: a number, or an array that broadcasts to ``x.shape[:-1]``.
    base, spacing, layout
        As for `sinusoidal_table`.

    Returns
    -------
    New array of x's shape and dtype. float16 is computed in float32.

    Examples
    --------
    >>> row = sinusoidal_encoding(3, 8, dtype=np.float64)
    >>> np.allclose(rotate(row, 4), sinusoidal_encoding(7, 8, dtype=np.float64))
    True
    """
    x = np.asarray(x)
    if x.ndim == 0 or x.dtype.kind != "f" or x.dtype.itemsize > 8:
        raise TypeError(
            "x must be an array of float16, float32 or float64 with at least one axis, "
            f"got dtype {x.dtype} and shape {x.shape}"
        )
    check_layout(layout)
    omega = frequencies(check_even("the last axis of x", x.shape[-1]), base=base, spacing=spacing)
    offset = _as_positions("offset", offset)
    check_broadcast("offset", offset.shape, x.shape[:-1], "x.shape[:-1]")

    working = np.promote_types(x.dtype, np.float32)
    angle = offset[..., np.newaxis] * omega
    cos, sin = np.cos(angle).astype(working), np.sin(angle).astype(working)
    s, c = _halves(x, layout)
    rotated = np.empty_like(x, order="C", subok=False)
    new_s, new_c = _halves(rotated, layout)
    new_s[...] = s * cos + c * sin
    new_c[...] = c * cos - s * sin
    return rotated


def similarity(
    offset: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
) -> NDArray[np.float64]:
    """Cosine between PE(x) and PE(x + Δ), whatever x: the mean of cos ω_iΔ over the pairs.

    It is K(Δ)/(d_model/2) with K(Δ) = PE(x)·PE(x + Δ) = Σ_i cos ω_iΔ.

    Parameters
    ----------
    offset
        Δ, finite real numbers of any shape.
    d_model, base, spacing
        As for `frequencies`.

    Returns
    -------
    float64 array of ``offset``'s shape (a zero-dimensional one for a number).

    Examples
    --------
    >>> float(similarity(0, 512))
    1.0
    """
    offset = _as_positions("offset", offset)
    omega = frequencies(d_model, base=base, spacing=spacing)
    return np.asarray(np.cos(offset[..., np.newaxis] * omega).mean(axis=-1))


def attention_terms(
    x: ArrayLike, y: ArrayLike, e: ArrayLike, f: ArrayLike, w_q: ArrayLike, w_k: ArrayLike
) -> AttentionTerms:
    """Split the score (x + e)W_q · ((y + f)W_k)ᵀ into its four terms, not scaled by √d_k.

    Parameters
    ----------
    x, e
        Content and position of the queries, shape (…, n, d_model); leading axes may broadcast.
    y, f
        Content and position of the keys, shape (…, m, d_model); leading axes may broadcast.
    w_q, w_k
        Projections of shape (d_model, d_k).

    Returns
    -------
    `AttentionTerms`, each of shape (…, n, m). Their sum is the score.

    Examples
    --------
    >>> one = np.ones((1, 2))
    >>> [float(term.item()) for term in attention_terms(one, one, one, one, np.eye(2), np.eye(2))]
    [2.0, 2.0, 2.0, 2.0]
    """
    x, y, e, f = (_as_rows(n, v) for n, v in (("x", x), ("y", y), ("e", e), ("f", f)))
    w_q, w_k = np.asarray(w_q), np.asarray(w_k)
    if w_q.ndim != 2 or w_q.shape != w_k.shape:
        raise ValueError(
            f"w_q and w_k must have one shape (d_model, d_k), got {w_q.shape} and {w_k.shape}"
        )
    for name, rows in (("x", x), ("y", y), ("e", e), ("f", f)):
        check_row_width(name, rows.shape[-1], w_q.shape[0])
    check_same_rows("e", e.shape, "x", x.shape)
    check_same_rows("f", f.shape, "y", y.shape)
    (x, e), (y, f) = np.broadcast_arrays(x, e), np.broadcast_arrays(y, f)
    queries, keys = (x @ w_q, e @ w_q), (y @ w_k, f @ w_k)
    return AttentionTerms(*(q @ k.swapaxes(-1, -2) for q in queries for k in keys))


def _halves(array: NDArray, layout: Layout) -> tuple[NDArray, NDArray]:
    """Views of the sine and the cosine entries along the last axis."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    middle = array.shape[-1] // 2
    return array[..., :middle], array[..., middle:]


def _as_positions(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Finite real numbers as float64; integers up to 2⁵³ stay exact."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" and array.size:
        raise TypeError(f"{name} must be real numbers, got {values!r} of dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {bad}")
    return array


def _as_float_dtype(dtype: DTypeLike) -> np.dtype:
    allowed = (np.float16, np.float32, np.float64)
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved is None or dtype is None or resolved not in allowed:
        raise TypeError(f"dtype must be float16, float32 or float64, got {dtype!r}")
    return resolved


def _as_rows(name: str, values: ArrayLike) -> NDArray:
    array = np.asarray(values)
    if array.ndim < 2 or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must be a real array of shape (…, rows, d_model), "
            f"got dtype {array.dtype} and shape {array.shape}"
        )
    return array
