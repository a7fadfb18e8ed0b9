"""Run every notebook in a fresh kernel and write what it took to book/status.json, for the book.

    make status

Times are the processor's, so that other work on the machine does not count. Needs Linux, which
keeps the peak of a process's memory (VmHWM). Nothing of a notebook's output is kept.
"""

import datetime
import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
STATUS = BOOK / "status.json"
PACKAGES = ("numpy", "torch", "matplotlib", "scipy", "anywidget", "jupyter-book", "Sphinx")
LAST_CELL = """\
import pathlib, time
memory = pathlib.Path("/proc/self/status").read_text()
print(time.process_time(), memory.partition("VmHWM:")[2].split()[0])"""


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the book is built
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    status = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "notebooks": {
            path.relative_to(BOOK).with_suffix("").as_posix(): measure(path)
            for path in sorted(BOOK.rglob("*.ipynb"))
        },
    }
    STATUS.write_text(json.dumps(status, indent=1) + "\n")


def measure(path: Path) -> dict[str, float]:
    """Processor time of the kernel, from its start to the last cell, and its peak memory."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(LAST_CELL))
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    seconds, peak_in_kib = map(float, notebook.cells[-1].outputs[0].text.split())
    print(f"{seconds:6.1f} s  {peak_in_kib / 1024:6.0f} MiB  {path.relative_to(BOOK)}", flush=True)
    return {"processor_seconds": round(seconds, 1), "peak_mib": round(peak_in_kib / 1024)}


if __name__ == "__main__":
    main()
