"""`python -m experiments.positions`: ways of giving a Transformer its positions, compared.

Makes the runs that are missing. It may be stopped at any time, and goes on where it stopped.
"""

import argparse

from experiments.common import make_all, missing
from experiments.positions.results import load_results, summary
from experiments.positions.run import SHORT, STORED, Setting, make, make_short, series, stored
from experiments.words import archive


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--list", action="store_true", help="say what is stored and missing")
    parser.add_argument("--summary", action="store_true", help="print medians and ranges")
    parser.add_argument(
        "--short", action="store_true", help="store the run that a test makes again"
    )
    parser.add_argument("--workers", type=int, help="processes at a time; default: all cores")
    options = parser.parse_args()
    if options.list:
        print_list()
    elif options.summary:
        print("\n".join(summary(load_results())))
    elif options.short:
        SHORT.file.unlink(missing_ok=True)
        SHORT.append(make_short())
    else:
        archive()  # here, or each process would download the text
        for name, settings in series():
            print(name, end=": ")
            make_all(settings, make, STORED, options.workers)


def print_list() -> None:
    """How many runs of each series are stored, and how long the missing ones may take.

    A run that belongs to several series is counted in the first.
    """
    listed: set[Setting] = set()
    left: list[Setting] = []
    for name, settings in series():
        new = [setting for setting in settings if setting not in listed]
        listed.update(new)
        if not new and not (settings and all(map(stored, settings))):
            print(f"not known yet  {name}")  # it depends on runs that are missing
            continue
        missing_here = missing(new, STORED)
        left += missing_here
        print(f"{len(new) - len(missing_here):6d} of {len(new):3d}  {name}")
    made = sum(run["cpu_seconds"] for run in load_results()) / 3600
    hours = sum(map(expected_seconds, left)) / 3600
    print(f"{made:.1f} hours of one core so far, and {hours:.1f} for what is known to be missing")


def expected_seconds(setting: Setting) -> float:
    """About 50 ms a step of the small model, by what stored runs took. The large takes 6 times."""
    return setting.steps * 0.05 * (6 if setting.size == "large" else 1)


if __name__ == "__main__":
    main()
