"""Make .venv and install the pinned requirements. Quick when nothing changed.

    python3 tools/install.py          what a reader needs
    python3 tools/install.py --test   and what the tests need

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
PYTORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  (the point is to say so)
        sys.exit(
            f"Python 3.11 or newer is needed, this is {platform.python_version()}. "
            "Name another one: make book PYTHON=python3.12"
        )
    testing = "--test" in sys.argv[1:]
    make_environment()
    for_readers, for_tests = VENV / "installed", VENV / "installed-for-tests"
    stamp = for_tests if testing else for_readers
    state = fingerprint()
    if stamp.exists() and stamp.read_text() == state:
        return
    install_torch()
    pip("install", "-r", "requirements.txt", "-c", "constraints.txt")
    if testing:
        pip("install", "-e", ".[test]", "-c", "constraints.txt")
        for_readers.write_text(state)  # the tests need all that a reader needs
    stamp.write_text(state)


def make_environment() -> None:
    """Create .venv, anew where its Python is gone or another one, or its pip does not run."""
    if is_usable():
        return
    if VENV.exists():
        shutil.rmtree(VENV)
    print("Creating .venv", flush=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    except subprocess.CalledProcessError:
        shutil.rmtree(VENV, ignore_errors=True)
        sys.exit(
            "Python could not make a virtual environment and says why above. Mend that and run the "
            "same command again. On Debian and Ubuntu, the package python3-venv may be missing."
        )
    except KeyboardInterrupt:
        shutil.rmtree(VENV, ignore_errors=True)
        raise


def is_usable() -> bool:
    """Whether .venv holds the Python that runs this, and a pip that runs."""
    version = [str(PYTHON), "-c", "import platform; print(platform.python_version())"]
    try:
        python = subprocess.run(version, capture_output=True, text=True, check=True)
        subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return python.stdout.strip() == platform.python_version()


def fingerprint() -> str:
    """A hash of all that decides what is installed."""
    content = b"".join((ROOT / name).read_bytes() for name in INPUTS)
    return hashlib.sha256(content + platform.python_version().encode()).hexdigest()


def install_torch() -> None:
    """On Linux without an NVIDIA GPU, take PyTorch's CPU wheel and not gigabytes of CUDA.

    Where PyTorch's own index cannot be reached, pip takes what it finds elsewhere.
    """
    found = re.search(r"^torch==\S+", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)
    if sys.platform != "linux" or has_nvidia_gpu() or found is None:
        return
    quick = ("--retries", "0", "--timeout", "10")
    only_torch = ("install", "--no-deps", found[0], "--index-url", PYTORCH_CPU_WHEELS)
    if pip(*only_torch, *quick, required=False):
        print("PyTorch's index of CPU wheels was not reached: taking what pip finds.", flush=True)


def has_nvidia_gpu() -> bool:
    """Whether the driver lists at least one GPU."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout


def pip(*arguments: str, required: bool = True) -> int:
    """Run pip in .venv from the book's folder, and stop with a clear sentence where it fails."""
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    print("pip", *arguments, flush=True)
    quiet = None if required else subprocess.DEVNULL
    code = subprocess.run(command, cwd=ROOT, stderr=quiet, check=False).returncode
    if code and required:
        sys.exit(
            "The installation failed; pip says why above. It needs the network, and room on the "
            "disk. Once that is mended, run the same command again: it goes on where it stopped."
        )
    return code


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again: it goes on where it stopped.")
    except OSError as error:
        sys.exit(f"{error}\nThe book's folder must be writable, with some 3 GB of disk.")
