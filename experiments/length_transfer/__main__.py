"""`python -m experiments.length_transfer`: which encodings work on texts longer than trained?

Makes the runs that are missing, in five series: all encodings; a random table; the steps from the
index to the sinusoid; which letter the RoPE models of *copy* name after their frequencies were
changed; and a closer look at some models.
"""

import argparse

from experiments import common
from experiments.length_transfer import controls, run
from experiments.stored import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, help="processes at a time; default: all cores")
    asked = parser.parse_args()
    seeds = asked.seeds
    with common.pool(asked.workers) as processes:

        def provenance() -> Run:
            return run.provenance(seeds) | {"rates": run.rates(processes)}

        def closer() -> Run:
            return run.closer_look(seeds)

        for series, made, jobs, one_run in (
            ("all encodings", provenance, run.jobs(seeds), run.run),
            ("random table", closer, run.jobs_random(seeds), run.run),
            ("step by step", closer, run.jobs_stepwise(seeds), run.run),
            ("named", closer, run.jobs_named(seeds), run.run_named),
            ("controls", closer, controls.jobs(seeds), controls.run),
        ):
            common.make_series(run.RESULTS, series, made, jobs, one_run, processes)


if __name__ == "__main__":
    main()
