"""Settings of a Spark session for eventcube; all can be changed while the session runs."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from eventcube.errors import OptionError
from eventcube.spark.columns import is_connect
from eventcube.spark.external_sort import Budget

# The number of tasks of a match; by default two for each core.
PARTITIONS = "spark.eventcube.partitions"
# The memory of a task before it sorts on disk, say 512m.
TASK_MEMORY = "spark.eventcube.taskMemory"

# A Connect client does not know the cores of its server.
_CONNECT_PARTITIONS = 16
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def partitions(frame: DataFrame) -> int:
    """The number of tasks that events are spread over."""
    session = frame.sparkSession
    value = session.conf.get(PARTITIONS, None)
    if value is not None:
        if not value.isdigit() or int(value) < 1:
            raise OptionError(f"{PARTITIONS} is {value!r}, not a number of tasks", code="EC446", hint="write, say, 16")
        return int(value)
    return _CONNECT_PARTITIONS if is_connect(frame) else 2 * session.sparkContext.defaultParallelism


def budget(frame: DataFrame) -> Budget:
    """The memory that a task may use to sort."""
    value = frame.sparkSession.conf.get(TASK_MEMORY, None)
    if value is None:
        return Budget()
    parsed = re.fullmatch(r"(\d+)([kmg]?)b?", value.strip().lower())
    if parsed is None or int(parsed[1]) < 1:
        raise OptionError(f"{TASK_MEMORY} is {value!r}, not an amount of memory", code="EC446", hint="write, say, 512m")
    size = int(parsed[1]) * _UNITS[parsed[2]]
    # Narrow rows need more memory in the engine than their bytes.
    return Budget(rows=max(1, size // 64), bytes=size)
