"""Every test, and every example of pe_lib, draws the same random numbers in each run."""

import sys

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _seed_torch() -> None:
    if torch := sys.modules.get("torch"):  # no test imports it for this
        torch.manual_seed(0)
