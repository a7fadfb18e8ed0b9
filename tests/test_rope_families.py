"""The cheat sheet's table of model families, held against transformers' own code."""

import importlib
import re
from pathlib import Path
from typing import Any

import prose
import pytest
import torch
from torch import Tensor

SHEET = (Path(__file__).resolve().parent.parent / "book" / "cheat_sheet.md").read_text()
ROWS = re.findall(
    r"^\| ((?:`\w+` ?)+) \| (.+?) \| `(\w+)` \| (.+?) \|$",
    prose.section(SHEET, "RoPE by model family"),
    re.M,
)
FAMILIES = [
    (module, layout, share)
    for names, _, layout, share in ROWS
    for module in names[1:-1].split("` `")
]


def turned_at_one(family: str) -> tuple[Tensor, int]:
    """What a family's code makes of each unit vector that turns, and the width of its head."""
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    if hasattr(module, "create_sinusoidal_positions"):  # GPT-J's kind
        (name,) = {n for n in dir(module) if re.fullmatch(r"(GPTJ|CodeGen)Config", n)}
        config = getattr(module, name)()
        r = config.rotary_dim
        sin, cos = module.create_sinusoidal_positions(2, r)[1:2][None].chunk(2, dim=-1)
        units = torch.eye(r)[:, None, None]
        return module.apply_rotary_pos_emb(units, sin, cos)[:, 0, 0], config.n_embd // config.n_head
    (name,) = {n for n in dir(module) if re.fullmatch(r"(?!.*Vision)\w+RotaryEmbedding", n)}
    config = getattr(module, name.replace("RotaryEmbedding", "Config"))()
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    tables: Any = getattr(module, name)(config)(torch.zeros(1, 1, width), torch.tensor([[1]]))
    if torch.is_tensor(tables):  # one complex number for each pair
        units = torch.eye(2 * tables.shape[-1])[None, None]
        return module.apply_rotary_emb(units, units, tables)[0][0, 0], width
    cos, sin = tables
    apply = module.apply_rotary_pos_emb
    if getattr(config, "rope_interleave", False):
        apply = module.apply_rotary_pos_emb_interleave
    r = 2 * cos.shape[-1] if family == "gpt_oss" else cos.shape[-1]  # there, one entry a pair
    units = torch.eye(r)[:, None, None]
    turned: Tensor = apply(units, units, cos, sin)[0][:, 0, 0]
    return turned, width


@pytest.mark.parametrize(("family", "layout", "share"), FAMILIES)
def test_family_turns_as_the_sheet_says(family: str, layout: str, share: str) -> None:
    turned, width = turned_at_one(family)
    r = len(turned)
    assert r / width == {"all": 1, "1/2": 1 / 2, "1/4": 1 / 4}[share]
    partner = {"split": r // 2, "interleaved": 1}[layout]
    both = [(row.abs() > 1e-9).nonzero().ravel().tolist() for row in (turned[0], turned[partner])]
    assert both[0] == both[1]
    a, b = turned[0][both[0]], turned[partner][both[0]]
    angle = torch.tensor(1.0)
    length = a.norm()  # YaRN's factor, in gpt-oss
    torch.testing.assert_close(a / length, torch.stack((angle.cos(), angle.sin())))
    torch.testing.assert_close(b / length, torch.stack((-angle.sin(), angle.cos())))
