"""``python -m pe_lib CONFIG``: what it prints, and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_rope_configuration import DEEPSEEK_V3, GEMMA_3, LLAMA_2, PHI_3_5, QWEN_3, SMOLLM_3

from pe_lib.__main__ import main

ROOT = Path(__file__).parents[2]
KERNELS = """
import numpy as np

def turning(base, factor=1.0, interleaved=False):
    def turn(x, positions):
        width = x.shape[-1]
        omega = np.array(base)
        if omega.ndim == 0:
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

from pe_lib.rope import rotary_settings

deepseek = turning(rotary_settings("deepseek.json").layers[0].frequencies, interleaved=True)
phi = rotary_settings("phi.json", 131_072).layers[0]
long = turning(phi.frequencies, phi.attention_factor)
ending = lambda x, positions: llama_2(x, np.minimum(positions, 4095))
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
        "phi": PHI_3_5,
        "table": LLAMA_2 | {"max_position_embeddings": 4096},
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
        (["gemma.json", "--against", "my_kernels:local", "--layer", "0"], 0, "1 OF 2 KINDS"),
        (["gemma.json", "--against", "my_kernels:local", "--layer", "5"], 1, "FAULT"),
        (["deepseek.json", "--against", "my_kernels:deepseek"], 0, "cached keys are in another"),
        (["deepseek.json", "--against", "my_kernels:deepseek", "--same-cache"], 1, "layout_out"),
        (["table.json", "--against", "my_kernels:ending"], 0, "positions    up to 4,095"),
        (["table.json", "--against", "my_kernels:ending", "--length", "4097"], 1, "far: beyond"),
        (["phi.json", "--against", "my_kernels:long"], 1, "frequencies: pairs 1–47 differ"),
        (["phi.json", "--against", "my_kernels:long", "--length", "4097"], 0, "ok"),
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
        (
            ["gemma.json", "--against", "my_kernels:local"],
            "--layer must be given, because 2 kinds of layers of 'gemma3_text' turn in different "
            "ways: 0 stands for layers 0–4, 6–10, 12–16, 18–22, …; 5 stands for layers 5, 11",
        ),
        (["gemma.json", "--layer", "34"], "--layer must be from 0 to 33, got 34"),
        (["gemma.json", "--layer", "-1"], "--layer must be"),
        (["smollm.json", "--layer", "3"], "does not turn"),
        (["llama.json", "--json", "--against", "my_kernels:llama_2"], "leave out --against"),
        (["gemma.json", "--json", "--layer", "0"], "leave out --layer"),
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
    against = ["unknown.json", "--against", "my_kernels:of_meta", "--layout"]
    assert [run(capsys, *against, each)[0] for each in ("interleaved", "split")] == [0, 1]


def test_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "gemma.json", "--json")
    assert code == 0
    assert out.isascii()  # which every terminal has, and every file
    plain: dict[str, Any] = json.loads(out)
    assert plain["kinds"][0]["base"] == 10_000
    assert len(plain["layers"]) == 34


def test_json_beside_what_is_no_json_prints_nothing(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "llama.json", "--json", "--against", "my_kernels:llama_2")
    assert (code, out) == (2, "")


def test_a_layer_alone(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its kind, with the layers that are alike; and not the other kind."""
    for layer, own, other in (("0", "10,000", "1,000,000"), ("5", "1,000,000", "10,000")):
        code, out, _ = run(capsys, "gemma.json", "--layer", layer)
        assert code == 0
        assert out.startswith("gemma3_text · 34 layers, all rotated\n")
        assert f"base {own}" in out
        assert f"base {other}" not in out
    assert "layers 5, 11, 17, 23, … · head 256" in out


def test_frequencies_of_short_and_of_long_texts(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = (run(capsys, "phi.json", "--length", n)[1] for n in ("4096", "4097"))
    assert run(capsys, "phi.json")[1] == short
    assert "frequencies of short texts; others apply to longer ones: --length N" in short
    assert "frequencies of long texts; others apply to short ones" in long
    assert "length" not in run(capsys, "qwen.json")[1]


def python(files: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """The command in a process of its own, with these variables of the environment."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    environment.pop("PYTHONUTF8", None)
    return subprocess.Popen(
        [sys.executable, "-m", "pe_lib", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="latin-1",
        cwd=files,
    )


def test_a_terminal_that_lacks_a_letter(files: Path) -> None:
    """The table of Western European Windows has × and no √."""
    process = python(files, "qwen.json", PYTHONIOENCODING="cp1252")
    out, error = process.communicate()
    assert (process.returncode, error) == (0, "")
    assert "yarn ×4" in out
    assert r"softmax scale 1/\u221a128" in out


@pytest.mark.parametrize(("function", "code"), [("llama_2", 0), ("of_meta", 1)])
def test_a_reader_that_has_seen_enough(function: str, code: int, files: Path) -> None:
    """As in ``| head -1``: the exit code is that of the report, and nobody is told of a pipe."""
    process = python(files, "llama.json", "--against", f"my_kernels:{function}")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), error) == (code, "")


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


def test_a_file_with_a_byte_order_mark(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "marked.json").write_bytes(b"\xef\xbb\xbf" + (files / "llama.json").read_bytes())
    assert run(capsys, "marked.json") == run(capsys, "llama.json")


def test_a_family_that_shares_the_code_of_another(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kimi = json.loads((files / "deepseek.json").read_text()) | {"model_type": "kimi_k2"}
    (files / "kimi.json").write_text(json.dumps(kimi))
    code, said, _ = run(capsys, "kimi.json", "--like", "deepseek_v3")
    assert code == 0
    assert said == run(capsys, "deepseek.json")[1].replace("deepseek_v3 ·", "kimi_k2 ·")
    code, _, why = run(capsys, "kimi.json", "--layout", "split")
    assert code == 2
    assert "qk_rope_head_dim" in why
    assert run(capsys, "kimi.json", "--like", "deepseek_v3", "--layout", "split")[0] == 2


def test_fields_that_are_not_read_are_named(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Molmo 2, for example, says in such a field which layers have the scaling."""
    file = json.loads((files / "llama.json").read_text()) | {"rope_scaling_layers": [0, 1]}
    (files / "layers.json").write_text(json.dumps(file))
    said = run(capsys, "layers.json")[1]
    assert (
        "not read     rope_scaling_layers: what the model's code makes of it is not known" in said
    )
