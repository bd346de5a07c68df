"""Settings every test shares: Hypothesis profiles, and the marks of whole folders."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
# Deadlines measure the machine, not the code. Short runs are the same each time; long ones explore.
settings.register_profile("short", deadline=None, suppress_health_check=_checks, derandomize=True, print_blob=True)
settings.register_profile(
    "fuzz",
    deadline=None,
    suppress_health_check=_checks,
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "5000")),
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0]
        if folder in {"spark", "faults"}:
            item.add_marker(folder)
