"""The implementations behind one face, so that a test is written once and run on both."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import pe_lib.numpy
import pe_lib.torch


@dataclass(frozen=True)
class Backend:
    """A module of the library, with its arrays and dtypes."""

    name: str
    pe: ModuleType

    def array(self, values: Any, dtype: str | None = None) -> Any:
        array = np.array(values, dtype)
        return array if self.name == "numpy" else torch.from_numpy(array)

    def dtype(self, name: str) -> Any:
        return getattr(np if self.name == "numpy" else torch, name)

    def numpy(self, values: Any) -> np.ndarray:
        return np.asarray(values if self.name == "numpy" else values.detach())

    def table(self, *sizes: int, dtype: str = "float64", **options: Any) -> np.ndarray:
        return self.numpy(self.pe.sinusoidal_table(*sizes, dtype=self.dtype(dtype), **options))

    def encoding(
        self, positions: Any, d_model: int, *, dtype: str = "float64", **options: Any
    ) -> np.ndarray:
        options["dtype"] = self.dtype(dtype)
        return self.numpy(self.pe.sinusoidal_encoding(positions, d_model, **options))

    def matrix(self, offset: float, d_model: int, **options: Any) -> np.ndarray:
        return self.numpy(self.pe.rotation_matrix(offset, d_model, **options))


NUMPY, TORCH = Backend("numpy", pe_lib.numpy), Backend("torch", pe_lib.torch)
both = pytest.mark.parametrize("backend", [NUMPY, TORCH], ids=lambda backend: backend.name)
both_layouts = pytest.mark.parametrize("layout", ["interleaved", "split"])
