"""pe_lib as a package: what is in its archives, and that it works alone with NumPy."""

import ast
import email
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray
from torch.nn import functional

import pe_lib
from pe_lib import numpy as pe

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCES = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info", "build", "dist")


def examples_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as for a package index: from the archive of sources of a copy of the repository."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT, folder / "tree", ignore=NOT_SOURCES)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    done = subprocess.run([*command, str(folder / "tree")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (folder / "dist").glob("*.whl")
    return found


def test_wheel_holds_the_library_and_nothing_else(wheel: Path) -> None:
    files = (path for path in (ROOT / "pe_lib").rglob("*.*") if "__pycache__" not in path.parts)
    library = {path.relative_to(ROOT).as_posix() for path in files} - {"pe_lib/README.md"}
    held = set(zipfile.ZipFile(wheel).namelist())
    assert library <= held
    assert all(".dist-info/" in name for name in held - library), held - library
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_metadata_says_what_an_index_shows(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(info))
    assert metadata["Version"] == pe_lib.__version__
    assert metadata["License-Expression"] == "MIT"
    required = metadata.get_all("Requires-Dist") or []
    assert [need for need in required if "extra ==" not in need] == ["numpy>=2.0"]
    assert any(need.startswith("torch>=") and '"torch"' in need for need in required)
    assert "A shift of all positions is one matrix" in str(metadata.get_payload())


def test_the_wheel_needs_numpy_alone_and_imports_nothing_by_itself(
    wheel: Path, tmp_path: Path
) -> None:
    """By a Python that finds what is in the wheel, NumPy and the standard library."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    numpy = Path(np.__file__).parent
    for source in (numpy, numpy.with_name("numpy.libs")):
        if source.exists():
            (tmp_path / source.name).symlink_to(source)
    usable = [example for example in examples_of("pe_lib/README.md") if "torch" not in example]
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
before = set(sys.modules)
import pe_lib
print(*set(sys.modules) - before)
{"".join(usable)}
print(np.__name__, pe.__file__)
"""
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["pe_lib", "numpy", f"{tmp_path}/pe_lib/numpy.py"], done.stderr


@pytest.mark.parametrize(
    ("page", "count"), [("README.md", 3), ("pe_lib/README.md", 3), ("book/library.md", 3)]
)
def test_examples_of_pages_run(page: str, count: int) -> None:
    assert len(examples_of(page)) == count
    names: dict[str, object] = {}
    for example in examples_of(page):
        exec(example, names)


def layer_example() -> str:
    (example,) = (code for code in examples_of("book/library.md") if "class Attention" in code)
    return example


def test_the_attention_layer_serves_padded_and_packed_rows_and_trains_on_them() -> None:
    """Beside each sequence alone, without padding and without a mask."""
    names: dict[str, Any] = {}
    exec(layer_example(), names)
    layer, tables = names["layer"], names["rotary"].tables
    first, second = torch.randn(1, 5, 64), torch.randn(1, 3, 64)
    alone = [
        layer(x, tables(torch.arange(x.shape[1])), torch.ones(x.shape[:2]))[0][0]
        for x in (first, second)
    ]

    packed = torch.cat((first, second), dim=1)
    places = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2]])
    documents = torch.tensor([[1, 1, 1, 1, 1, 2, 2, 2]])
    found, _ = layer(packed, tables(places), documents)
    torch.testing.assert_close(found[0], torch.cat(alone), rtol=0, atol=1e-5)

    padded = torch.cat((first, functional.pad(second, (0, 0, 2, 0))))
    places = torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    found, _ = layer(padded, tables(places), mask)
    torch.testing.assert_close(found[mask == 1], torch.cat(alone), rtol=0, atol=1e-5)
    found[mask == 1].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_the_attention_layer_takes_offsets_in_place_of_tables() -> None:
    """As the text below the layer says."""
    (written,) = re.findall(
        r"an offset takes the place of tables: write `(.*)` for `tables=tables`",
        (ROOT / "book/library.md").read_text(encoding="utf-8"),
    )
    names: dict[str, Any] = {}
    exec(layer_example(), names)
    by_tables, x = names["layer"], torch.randn(2, 9, 64)
    names_by_offset: dict[str, Any] = {}
    source, _, _ = layer_example().partition("\n\nrotary = ")
    assert source.count("tables=tables") == 2
    exec(source.replace("tables=tables", written), names_by_offset)
    by_offset = names_by_offset["Attention"](64, 4, 2, names["rotary"])
    by_offset.load_state_dict(by_tables.state_dict())

    mask, positions = torch.ones(2, 9), torch.arange(9)
    whole, _ = by_tables(x, names["rotary"].tables(positions), mask)
    prompts, cache = by_offset(x[:, :8], None, mask[:, :8])
    token, _ = by_offset(x[:, 8:], None, mask, cache)
    torch.testing.assert_close(torch.cat((prompts, token), dim=1), whole, rtol=0, atol=1e-5)


def test_the_attention_layer_packs_documents_with_positions_that_run_on() -> None:
    """The example compares the packed row with each document alone. Positions from the sum of such
    a mask would be wrong: they grow by two from the second document on."""
    names: dict[str, Any] = {}
    exec(layer_example(), names)
    layer, tables, x = names["layer"], names["rotary"].tables, names["x"][:1]
    documents = names["documents"]
    assert documents.max() > 1
    torch.testing.assert_close(layer(x, tables(torch.arange(9)), documents)[0], names["packed"])
    wrong = (documents.cumsum(-1) - 1).clamp(min=0)
    found, _ = layer(x, tables(wrong), documents)
    assert not torch.allclose(found, names["packed"], atol=1e-3)


def test_the_dtype_asked_for_is_in_the_type() -> None:
    """What mypy, among the checks of types, reads here."""
    assert_type(pe.sinusoidal_table(1, 2, dtype=np.float64), NDArray[np.float64])
    assert_type(pe.sinusoidal_encoding(1, 2, dtype=np.dtype(np.float16)), NDArray[np.float16])
    assert_type(pe.rotation_matrix(1, 2), NDArray[np.floating])


def test_what_repeats_the_version_for_readers_agrees() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.M)[0] == pe_lib.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == pe_lib.__version__


# Rooms from the highest to the lowest; a file imports only what stands below it, here and in the
# folder `torch`.
ROOMS = ("__main__", "doctor", "torch", "numpy", "rope", "_angles", "_checks")
FILES_OF_TORCH = (
    "rotary",
    "sinusoidal",
    "functions",
    "_cache",
    "_axes",
    "_rotation",
    "_angles",
    "_arguments",
    "_device",
)


def imported_below(package: str, path: Path) -> set[str]:
    """What stands directly below ``package`` in the names that a file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = [".".join(path.relative_to(ROOT).parts[: -node.level])] if node.level else []
            module = [node.module] if node.module else []
            names += [".".join([*start, *module, alias.name]) for alias in node.names]
    below = package.count(".") + 1
    return {name.split(".")[below] for name in names if name.startswith(f"{package}.")}


@pytest.mark.parametrize(
    ("package", "order"), [("pe_lib", ROOMS), ("pe_lib.torch", FILES_OF_TORCH)]
)
def test_imports_go_down(package: str, order: tuple[str, ...]) -> None:
    folder = ROOT / package.replace(".", "/")
    files = [path for path in folder.rglob("*.py") if "__pycache__" not in path.parts]
    here = {path.relative_to(folder).parts[0].removesuffix(".py") for path in files} - {"__init__"}
    assert here <= set(order)
    for path in files:
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        if room != "__init__":
            below = {*order[order.index(room) + 1 :], room}
            assert imported_below(package, path) & here <= below, path


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        ("from pe_lib import _angles, numpy as n", {"_angles", "numpy"}),
        ("from pe_lib._angles import grid", {"_angles"}),
        ("def late():\n    import numpy, pe_lib.torch as pe", {"torch"}),
        ("from . import _checks\nfrom ._angles import grid", {"_checks", "_angles"}),
        ("import numpy\nfrom torch import nn", set()),
    ],
)
def test_every_form_of_an_import_is_seen(
    code: str, imported: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pe_lib").mkdir()
    (tmp_path / "pe_lib" / "file.py").write_text(code, encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert imported_below("pe_lib", tmp_path / "pe_lib" / "file.py") == imported
