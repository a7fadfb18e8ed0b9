"""Make .venv and install the pinned requirements. Quick when nothing changed.

    python3 website/install.py          what a reader needs
    python3 website/install.py --test   and what the tests need, but for a browser
    python3 website/install.py --bare   no package: `make constraints` looks for versions that fit

Runs under any Python from 3.11 on, with the standard library alone.
"""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
INPUTS = ("requirements.txt", "constraints.txt", "pyproject.toml")
HTML_VALIDATE = "html-validate@10.17.0"
HTML_VALIDATE_FOLDER = VENV / HTML_VALIDATE
HTML_VALIDATE_PROGRAM = HTML_VALIDATE_FOLDER / "node_modules" / ".bin" / "html-validate"
WITHOUT_NPM = (
    "There is no npm, so the HTML of the site is not validated. Install Node.js, which brings npm, "
    "to have that checked too."
)
WITHOUT_HTML_VALIDATE = (
    "npm has not fetched html-validate, so the HTML of the site is not validated. Each `make test` "
    "tries again, and needs the network for it."
)
PYTORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
# Python compiles what is imported, once. pip would first compile all of some 15,000 files.
AS_THEY_ARE = "--no-compile"
# What pip says where two of the versions that it is asked for exclude each other.
CONFLICT = "ResolutionImpossible"
AFTER_A_CONFLICT = (
    "requirements.txt and constraints.txt do not fit together. If you have changed a version in "
    "requirements.txt, run `make constraints`, and then the same command again."
)
AFTER_ANOTHER_FAILURE = (
    "The installation needs the network, and room on the disk. Once what pip names is mended, run "
    "the same command again: it goes on where it stopped."
)


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  (the point is to say so)
        sys.exit(
            f"Python 3.11 or newer is needed, this is {platform.python_version()}. If you have a "
            "newer one, name it in each command, for example: make book PYTHON=python3.12"
        )
    testing, bare = "--test" in sys.argv[1:], "--bare" in sys.argv[1:]
    try:
        if bare:
            make_environment()
            return
        install_packages(testing)
        if testing:
            install_html_validate()
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command goes on where the installation stopped.")


def install_packages(testing: bool) -> None:
    """Bring .venv up to date with the pinned versions, unless it is."""
    for_readers, for_tests = VENV / "installed", VENV / "installed-for-tests"
    stamp = for_tests if testing else for_readers
    content = b"".join((ROOT / name).read_bytes() for name in INPUTS)
    # An environment holds the path of its folder, and is of no use in another one.
    place = f"{platform.python_version()} {ROOT}"
    state = hashlib.sha256(content + place.encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == state:
        return
    make_environment()
    install_torch()
    pip("install", AS_THEY_ARE, "-r", "requirements.txt", "-c", "constraints.txt")
    if testing:
        pip("install", AS_THEY_ARE, "-e", ".[test]", "-c", "constraints.txt")
        for_readers.write_text(state, encoding="utf-8")  # the tests need all that a reader needs
    stamp.write_text(state, encoding="utf-8")


def make_environment() -> None:
    """Make .venv, unless there is one that was made here by this version of Python."""
    if is_usable():
        return
    if VENV.exists():
        print("Replacing .venv: it is unfinished, or of another Python or folder", flush=True)
    else:
        print("Creating .venv", flush=True)
    if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False).returncode:
        sys.exit(
            "Python could not make a virtual environment and says why above. Mend that and run the "
            "same command again. On Debian and Ubuntu, the package python3-venv may be missing."
        )


def is_usable() -> bool:
    """Whether .venv is finished, and was made in this folder by this version of Python.

    Python puts pip in last. So where there is no pip3.11, say, the environment belongs to another
    version, or was not finished. Where a folder was copied or renamed, pyvenv.cfg has its old path.
    """
    pip_of_this_python = f"pip{sys.version_info.major}.{sys.version_info.minor}*"
    if not PYTHON.exists() or not any(PYTHON.parent.glob(pip_of_this_python)):
        return False
    return f"{VENV}\n" in (VENV / "pyvenv.cfg").read_text(encoding="utf-8")


def install_torch() -> None:
    """On Linux without an NVIDIA GPU, take PyTorch's CPU wheel and not gigabytes of CUDA.

    Where PyTorch's own index cannot be reached, pip warns and takes what it finds elsewhere.
    """
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    found = re.search(r"^torch==\S+", requirements, flags=re.MULTILINE)
    if sys.platform == "linux" and not shutil.which("nvidia-smi") and found is not None:
        quick = ("--retries", "1", "--timeout", "10")
        options = (AS_THEY_ARE, "--no-deps", "--extra-index-url", PYTORCH_CPU_WHEELS, *quick)
        pip("install", *options, found[0])


def install_html_validate() -> None:
    """Fetch html-validate, where that is possible. Its test is skipped without, and says so."""
    npm = shutil.which("npm")
    if npm and not HTML_VALIDATE_PROGRAM.exists():
        print("npm install", HTML_VALIDATE, flush=True)
        options = ("--prefix", HTML_VALIDATE_FOLDER, "--loglevel=error", "--no-audit", "--no-fund")
        subprocess.run([npm, "install", *options, HTML_VALIDATE], check=False)
    if reason := why_html_is_not_validated():
        print(reason)


def why_html_is_not_validated() -> str:
    """What html-validate lacks on this machine, or nothing where it is there."""
    if HTML_VALIDATE_PROGRAM.exists():
        return ""
    return WITHOUT_HTML_VALIDATE if shutil.which("npm") else WITHOUT_NPM


def pip(*arguments: str) -> None:
    """Run pip in .venv from the book's folder. Where it fails, stop with its reason and a remedy.

    What pip says is shown while it runs, and kept, because its last errors are the reason.
    """
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    print("pip", *arguments, flush=True)
    said = []
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            said.append(line)
    if process.returncode:
        errors = [line for line in said if line.startswith("ERROR: ")]
        reason = "".join(errors or said).strip() or "pip gave none."
        remedy = AFTER_A_CONFLICT if CONFLICT in reason else AFTER_ANOTHER_FAILURE
        sys.exit(f"\nThe installation failed. The reason that pip gives:\n{reason}\n{remedy}")


if __name__ == "__main__":
    main()
