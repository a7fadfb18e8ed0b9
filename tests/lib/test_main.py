"""``python -m pe_lib CONFIG``: what it prints, and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_rope_configuration import DEEPSEEK_V3, GEMMA_3, LLAMA_2, QWEN_3, SMOLLM_3

from pe_lib.__main__ import main

ROOT = Path(__file__).parents[2]
KERNELS = """
import numpy as np

def turning(base, factor=1.0, interleaved=False):
    def turn(x, positions):
        width = x.shape[-1]
        omega = base ** (-np.arange(width // 2) / (width // 2))
        angle = np.multiply.outer(positions, omega)
        if x.ndim == 4:
            angle = angle[:, None]
        cos, sin = factor * np.cos(angle), factor * np.sin(angle)
        if interleaved:
            a, b = x[..., ::2], x[..., 1::2]
            return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
    return turn

llama_2 = turning(1e4)
of_meta = turning(1e4, interleaved=True)
local = turning(1e4)
broken = lambda x: x
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("my_kernels", None)
    (tmp_path / "my_kernels.py").write_text(KERNELS)
    (tmp_path / "rubbish.json").write_text("nothing")
    (tmp_path / "long.json").write_text("[" * 1_000_000)
    (tmp_path / "binary.json").write_bytes(bytes(range(256)))
    for name, fields in {
        "llama": LLAMA_2,
        "qwen": QWEN_3,
        "gemma": GEMMA_3,
        "deepseek": DEEPSEEK_V3,
        "smollm": SMOLLM_3,
        "unknown": LLAMA_2 | {"model_type": "a_new_family"},
        "empty": {},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(fields))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_what_a_model_expects(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "qwen.json")
    assert code == 0
    assert out.splitlines() == [
        "qwen3 · 36 layers, all rotated · head 128, all of it turns",
        "layout       split (rotate_half, NEOX, interleaved=False)   from the code of the family",
        "frequencies  base 1,000,000, yarn ×4 from 32,768: pairs 0–23 kept, 40–63 divided by 4",
        "factor       1.1386 on q and k (scores ×1.296)",
        "not rotation q_norm, k_norm before it (convert them with the weights); "
        "softmax scale 1/√128",
    ]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("gemma.json", ["layers 0–4, 6–10", "layers 5, 11", "base 10,000", "linear ×8"]),
        ("deepseek.json", ["interleaved", "written split", "times m² = 1.8739"]),
        ("smollm.json", ["27 rotated", "not rotated  layers 3, 7, 11, 15, …"]),
        ("llama.json", ["base 10,000", "the default of llama"]),
    ],
)
def test_kinds_of_layers_and_what_is_not_rotation(
    file: str, words: list[str], files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, file)
    assert code == 0
    for each in words:
        assert each in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["llama.json", "--against", "my_kernels:llama_2"], 0, "layout"),
        (["llama.json", "--against", "my_kernels:of_meta"], 1, "FAULT: pairs are interleaved"),
        (["qwen.json", "--against", "my_kernels:llama_2"], 1, "FAULT: cosines and sines"),
        (["gemma.json", "--against", "my_kernels:local"], 0, "ok"),
        (["gemma.json", "--against", "my_kernels:local", "--layer", "0"], 0, "ok"),
        (["gemma.json", "--against", "my_kernels:local", "--layer", "5"], 1, "FAULT"),
    ],
)
def test_against_a_function(
    arguments: list[str],
    code: int,
    words: str,
    files: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, out, _ = run(capsys, *arguments)
    assert found == code
    assert words in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.json"], "there is no file missing.json"),
        (["rubbish.json"], "rubbish.json is not JSON"),
        (["long.json"], "long.json is not JSON"),
        (["binary.json"], "binary.json cannot be read"),
        (["empty.json"], "got None"),
        (["unknown.json"], "'a_new_family': its layout is not known"),
        (["llama.json", "--against", "nowhere:turn"], "nowhere cannot be imported"),
        (["llama.json", "--against", "my_kernels:missing"], "has no missing"),
        (["llama.json", "--against", "my_kernels"], "MODULE:FUNCTION"),
        (["llama.json", "--against", "my_kernels:broken"], "turn must take x and positions"),
        (["llama.json", "--against", "my_kernels:llama_2", "--layer", "32"], "from 0 to 31"),
        (["smollm.json", "--against", "my_kernels:llama_2", "--layer", "3"], "does not turn"),
        (["qwen.json", "--length", "0"], "seq_len"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_said_is_a_sentence_and_exit_code_2(
    arguments: list[str], words: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = run(capsys, *arguments)
    assert code == 2
    assert error.startswith("cannot say: ")
    assert words in error
    assert len(error) < 1000


def test_an_unknown_family_with_its_layout(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = json.loads((files / "unknown.json").read_text()) | {"rope_theta": 10_000.0}
    (files / "unknown.json").write_text(json.dumps(file))
    code, out, _ = run(capsys, "unknown.json", "--layout", "interleaved")
    assert code == 0
    assert "interleaved" in out


def test_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "gemma.json", "--json")
    assert code == 0
    plain: dict[str, Any] = json.loads(out)
    assert plain["kinds"][0]["base"] == 10_000
    assert len(plain["layers"]) == 34


def test_as_a_command_without_torch(files: Path) -> None:
    """In a process of its own: the exit code, and that torch is not imported."""
    code = "import sys; from pe_lib.__main__ import main; c = main(sys.argv[1:]); "
    code += "assert 'torch' not in sys.modules; sys.exit(c)"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    for command, expected in (
        ([sys.executable, "-m", "pe_lib", "qwen.json"], 0),
        ([sys.executable, "-c", code, "llama.json", "--against", "my_kernels:of_meta"], 1),
        ([sys.executable, "-m", "pe_lib", "missing.json"], 2),
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == expected, done.stderr
