from dataclasses import dataclass


@dataclass(frozen=True)
class LayerRotation:
    head_dim: int
    rotary_dim: int
    layout: str
    layout_out: str
    frequencies: tuple[float, ...]
    attention_factor: float = 1.0
    direction: int = 1
    rotary_start: int = 0
    pair_axes: tuple[int, ...] | None = None
    base: float | None = None
    rope_type: str | None = None


@dataclass(frozen=True)
class RotarySettings:
    layers: tuple[LayerRotation | None, ...]


def rotary_settings(config, seq_len=None):
    raise NotImplementedError
