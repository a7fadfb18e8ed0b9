"""Resolve requirements.txt anew and write every version that comes with it to constraints.txt.

    make constraints

Nothing is installed. pip only says what it would install for the book and its tests.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Every package that the book, its tests and Binder install, at the version they were tested with.
# Written by `make constraints`; do not edit.
"""
# Each release of PyTorch pins the packages of NVIDIA that its CUDA wheel brings along.
LEFT_OUT = ("nvidia-", "cuda-", "triton", "pe_lib", "pe-lib")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        wanted = ["--report", str(report), "-r", "requirements.txt", "-e", ".[test]"]
        if subprocess.run([*pip, *wanted], cwd=ROOT, check=False).returncode:
            sys.exit("pip found no versions that fit together, and says why above.")
        packages = json.loads(report.read_text(encoding="utf-8"))["install"]
    (ROOT / "constraints.txt").write_text(HEAD + "".join(pins(packages)), encoding="utf-8")


def pins(packages: list[dict[str, dict[str, str]]]) -> list[str]:
    """A line for each package, without the mark of the wheel (``+cpu``)."""
    versions = {}
    for package in packages:
        name, version = package["metadata"]["name"], package["metadata"]["version"]
        if not name.startswith(LEFT_OUT):
            versions[name] = version.partition("+")[0]
    return [f"{name}=={versions[name]}\n" for name in sorted(versions, key=str.lower)]


if __name__ == "__main__":
    main()
