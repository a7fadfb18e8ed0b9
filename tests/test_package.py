"""pe_lib as a package: what is in its archives, and that it works alone with NumPy."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

import pe_lib

ROOT = Path(__file__).resolve().parent.parent
NOT_SOURCES = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info", "build", "dist")
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "pe_lib/README.md").read_text(), re.S)


@dataclass(frozen=True)
class Archives:
    """The two files that go to a package index, and what they hold."""

    sources: Path
    wheel: Path
    in_sources: set[str]
    in_wheel: set[str]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Built from a copy of the whole repository; the wheel from the sources' archive alone."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT, folder / "tree", ignore=NOT_SOURCES)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    done = subprocess.run([*command, str(folder / "tree")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (sources,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    with tarfile.open(sources) as tar, zipfile.ZipFile(wheel) as zipped:
        names = {name.partition("/")[2] for name in tar.getnames() if "/" in name}
        return Archives(sources, wheel, names, set(zipped.namelist()))


@pytest.fixture(scope="module")
def python_with_numpy(archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and NumPy, and nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python), "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(archives.wheel)], check=True)
    (installed,) = folder.rglob("pe_lib/__init__.py")
    numpy = Path(np.__file__).parent
    for source in (numpy, numpy.with_name("numpy.libs")):
        if source.exists():
            (installed.parent.parent / source.name).symlink_to(source)
    return python


def run(python: Path, code: str) -> list[str]:
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).split()


def test_wheel_holds_the_library_and_nothing_else(archives: Archives) -> None:
    files = (path for path in (ROOT / "pe_lib").rglob("*.*") if "__pycache__" not in path.parts)
    library = {path.relative_to(ROOT).as_posix() for path in files} - {"pe_lib/README.md"}
    others = archives.in_wheel - library
    assert library <= archives.in_wheel
    assert all(".dist-info/" in name for name in others), others
    assert any(name.endswith("licenses/LICENSE") for name in others)


def test_archive_of_sources_holds_no_book_and_no_tests(archives: Archives) -> None:
    made = {"PKG-INFO", "setup.cfg", "pe_lib.egg-info"}
    kept = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "pyproject.toml", "pe_lib"}
    assert {name.partition("/")[0] for name in archives.in_sources} == kept | made
    assert archives.sources.stat().st_size < 100_000


def test_metadata_says_what_an_index_shows(archives: Archives) -> None:
    (info,) = (name for name in archives.in_wheel if name.endswith("/METADATA"))
    with zipfile.ZipFile(archives.wheel) as archive:
        metadata = email.message_from_bytes(archive.read(info))
    assert metadata["Version"] == pe_lib.__version__
    assert metadata["License-Expression"] == "MIT"
    required = metadata.get_all("Requires-Dist") or []
    assert [need for need in required if "extra ==" not in need] == ["numpy>=2.0"]
    assert any(need.startswith("torch>=") and '"torch"' in need for need in required)
    assert "The theorem is the interface" in str(metadata.get_payload())


def test_the_package_alone_imports_nothing(python_with_numpy: Path) -> None:
    code = "import sys; before = set(sys.modules); import pe_lib; print(*set(sys.modules) - before)"
    assert run(python_with_numpy, code) == ["pe_lib"]


def test_numpy_half_needs_numpy_alone(python_with_numpy: Path) -> None:
    usable = [example for example in EXAMPLES if "torch" not in example]
    code = "\n".join(usable) + "\nprint(np.__name__, pe.__name__)"
    assert run(python_with_numpy, code) == ["numpy", "pe_lib.numpy"]


def test_readme_s_examples_run() -> None:
    assert len(EXAMPLES) == 3
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(example, names)


def test_the_version_is_written_once() -> None:
    """The library says it; what repeats it for readers agrees."""
    version = re.escape(pe_lib.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changes, re.M)[0] == pe_lib.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == pe_lib.__version__
    typed = [
        name
        for name in ("pyproject.toml", "_config.yml")
        if re.search(rf"version\W+{version}\b", (ROOT / name).read_text())
    ]
    assert typed == []
