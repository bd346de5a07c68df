"""Settings of Spark that cannot be used are refused with the value."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from eventcube.errors import OptionError
from eventcube.spark.settings import PARTITIONS, TASK_MEMORY, budget, partitions


def frame(**settings: str) -> Any:
    return SimpleNamespace(sparkSession=SimpleNamespace(conf=settings))


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
def test_a_number_of_tasks_that_is_none(value: str) -> None:
    with pytest.raises(OptionError, match=f"EC446.*{PARTITIONS} is '{value}', not a number of tasks"):
        partitions(frame(**{PARTITIONS: value}))


@pytest.mark.parametrize("value", ["0", "-1m", "512 apples", "1.5g", ""])
def test_an_amount_of_memory_that_is_none(value: str) -> None:
    with pytest.raises(OptionError, match=f"EC446.*{TASK_MEMORY} is '{value}', not an amount of memory"):
        budget(frame(**{TASK_MEMORY: value}))


def test_what_can_be_used() -> None:
    assert partitions(frame(**{PARTITIONS: "3"})) == 3
    assert budget(frame(**{TASK_MEMORY: "512m"})).bytes == 512 << 20
