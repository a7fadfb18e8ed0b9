"""`nice python benchmarks/length_by_block.py`: in which blocks the tables' models are right.

`length_transfer.py` stores one accuracy a run. This trains the models of the task *block* anew,
with the same settings and seeds, and stores the share of right answers in each block of four of
texts of 2L: blocks 0 to 5 lie within the trained length, 6 to 11 beyond it. Rounding differs from
processor to processor, so a model need not be that of the stored run with the same seed.
"""

import datetime
import json

import length_transfer as lt
import torch
from run import cpu

CODES = ("binary", "gray", "add", "concatenate", "learned")
SEEDS = 5
RESULTS = lt.RESULTS.with_name("length_by_block.json")


@torch.no_grad()
def by_block(model: lt.Encoder, seed: int) -> list[float]:
    """The share of right answers in each block of texts of 2L: those that `accuracy` measures."""
    (tokens,) = lt.batches(lt.TEST_STREAM + seed, 1, lt.MEASURED, 2 * lt.LENGTH)
    scored, source = lt.sources("block", 2 * lt.LENGTH)
    right = (model(tokens)[:, scored].argmax(dim=-1) == tokens[:, source]).double().mean(dim=0)
    return [round(float(share), 4) for share in right.unflatten(0, (-1, 3)).mean(dim=1)]


def main() -> None:
    torch.set_num_threads(1)
    found = []
    for code in CODES:
        for seed in range(SEEDS):
            shares = by_block(lt.train(code, "block", seed=seed), seed)
            found.append({"code": code, "seed": seed, "shares": shares})
            print(code, seed, shares, flush=True)
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": "python benchmarks/length_by_block.py",
        "cpu": cpu(),
        "versions": {"torch": torch.__version__},
        "runs": found,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
