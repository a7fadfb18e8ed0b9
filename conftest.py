"""Every test, and every example of pe_lib, draws the same random numbers in each run."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _seed_torch() -> None:
    if torch := sys.modules.get("torch"):  # a test that has no use for it need not import it
        torch.manual_seed(0)
