"""`python -m experiments.rank`: does the rank of the positions decide whether adding works?"""

import argparse

from experiments import common
from experiments.rank import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, help="processes at a time; default: all cores")
    asked = parser.parse_args()
    with common.pool(asked.workers) as processes:
        for series, jobs in (("rank", run.jobs), ("controls", run.controls)):
            common.make_series(
                run.RESULTS,
                series,
                lambda: run.provenance(asked.seeds),
                jobs(asked.seeds),
                run.run,
                processes,
            )


if __name__ == "__main__":
    main()
