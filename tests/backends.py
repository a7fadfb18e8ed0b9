"""The implementations behind one face, so that a test is written once and run on each.

PyTorch's runs in two ways: on the CPU NumPy does the arithmetic, on a device PyTorch's operations
do. `on_device` runs the second way on the CPU: PyTorch is told that something watches it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import pe_lib.numpy
import pe_lib.torch


@dataclass(frozen=True)
class Backend:
    """A module of the library, with its arrays and dtypes."""

    name: str
    pe: ModuleType | SimpleNamespace

    def array(self, values: Any, dtype: str | None = None) -> Any:
        array = np.array(values, dtype)
        return array if self.name == "numpy" else torch.from_numpy(array)

    def dtype(self, name: str) -> Any:
        return getattr(np if self.name == "numpy" else torch, name)

    def numpy(self, values: Any) -> np.ndarray:
        return np.asarray(values if self.name == "numpy" else values.detach())


class Watcher(TorchDispatchMode):
    """Sees every operation, as a tracer does, and lets it pass."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with Watcher():  # type: ignore[no-untyped-call]
            return function(*args, **kwargs)

    return run


NUMPY, TORCH = Backend("numpy", pe_lib.numpy), Backend("torch", pe_lib.torch)
FUNCTIONS = {name: getattr(pe_lib.torch, name) for name in pe_lib.numpy.__all__}
DEVICE = Backend("device", SimpleNamespace(**{name: on_device(f) for name, f in FUNCTIONS.items()}))
both = pytest.mark.parametrize("backend", [NUMPY, TORCH], ids=lambda backend: backend.name)
every = pytest.mark.parametrize("backend", [NUMPY, TORCH, DEVICE], ids=lambda backend: backend.name)
