"""Resolve requirements.txt and the tests' tools anew, and write the full set to constraints.txt.

    make constraints

The packages of NVIDIA that PyTorch's CUDA wheel brings along are left out: each PyTorch release
pins its own.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# Every package that the book, its tests and Binder install, at the version they were tested with.
# Written by `make constraints`; do not edit.
"""
LEFT_OUT = ("nvidia-", "cuda-", "triton", "pe_lib", "pe-lib", "-e ", "#")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        run(sys.executable, "-m", "venv", folder)
        run(str(python), "-m", "pip", "install", "-q", "-r", "requirements.txt", "-e", ".[test]")
        frozen = run(str(python), "-m", "pip", "freeze", "--all", "--exclude", "pip")
    lines = [line.split("+")[0] for line in frozen.splitlines() if not line.startswith(LEFT_OUT)]
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(sorted(lines, key=str.lower)) + "\n")


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
