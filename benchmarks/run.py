"""`python benchmarks/run.py`: the suites with 1 and 2 threads, into results/cpu.json.

Every maker runs in one process beside the others, in three processes one after the other: what else
a machine does, and where a process finds its memory, can cost a maker half its speed in one of
them. Of each only the numbers that carry over are kept: seconds, as the least of all and as the
median of the three medians, and where they were taken.
"""

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
PROCESSES = 3
PACKAGES = [
    "numpy",
    "torch",
    "pytest-benchmark",
    "positional-encodings",
    "x-transformers",
    "rotary-embedding-torch",
    "transformers",
    "diffusers",
]


def main() -> None:
    results = provenance()
    results["threads"] = {str(n): merged([suite(n) for _ in range(PROCESSES)]) for n in (1, 2)}
    from benchmarks.accuracy import D_MODEL, STARTS, WINDOW, errors

    results["accuracy"] = {
        "d_model": D_MODEL,
        "window": WINDOW,
        "starts": STARTS,
        "errors": errors(),
    }
    path = HERE / "results" / "cpu.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for line in summary(results):
        print(line)


def provenance() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": "python benchmarks/run.py",
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def suite(threads: int) -> list[dict[str, Any]]:
    """One run of pytest-benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(HERE),
            "-o",
            "python_files=bench_*.py",
            "-o",
            "addopts=",
            f"--benchmark-json={report}",
            "--benchmark-disable-gc",
            "--benchmark-warmup=on",
            "--benchmark-min-rounds=5",
            "--benchmark-max-time=0.4",
            "--benchmark-warmup-iterations=2",
        ]
        environment = os.environ | {
            name: str(threads)
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        }
        subprocess.run(command, check=True, env=environment)
        benchmarks = json.loads(report.read_text(encoding="utf-8"))["benchmarks"]
    return [
        {
            **b["extra_info"],
            "min": round(b["stats"]["min"], 9),
            "median": round(b["stats"]["median"], 9),
            "rounds": b["stats"]["rounds"],
        }
        for b in benchmarks
    ]


def merged(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Row by row, the same task in every process."""
    return [
        {
            **rows[0],
            "min": min(row["min"] for row in rows),
            "median": median(row["median"] for row in rows),
            "rounds": sum(row["rounds"] for row in rows),
        }
        for rows in zip(*runs, strict=True)
    ]


def summary(results: dict[str, Any]) -> list[str]:
    """The ratios that matter, by minimum and by median, one a line."""
    lines = []
    for threads, rows in results["threads"].items():
        place = {(r["kind"], r["maker"], r.get("seq_len"), r.get("d_model")): r for r in rows}
        for (kind, maker, n, d), row in place.items():
            if kind in ("table", "first"):
                unit, limit = "writing", place["limit", "write", n, d]
            elif kind == "positions":
                unit, limit = "writing", place[kind, "write", n, d]
            elif kind.startswith(("rotary", "training")):
                unit = "rotate_half with ready tables"
                limit = place[kind, unit, None, None]
            elif kind.startswith("step"):
                unit = "transformers, ready tables"
                limit = place[kind, unit, None, None]
            elif kind in ("rotate", "add"):
                unit = {"add": "one torch.add"}.get(kind, "copy")
                if (kind, maker) == ("rotate", "pe_lib.torch"):
                    unit = "torch copy"
                limit = place[kind, unit, None, None]
            else:
                continue
            low, middle = (row[of] / limit[of] for of in ("min", "median"))
            size = f"{n}x{d} " if n else ""
            lines.append(
                f"{threads} thread: {kind} {size}{maker}: {low:.2f} ({middle:.2f}) × {unit}"
            )
    return lines


if __name__ == "__main__":
    main()
