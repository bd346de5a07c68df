"""Settings of a Spark session that eventcube listens to; all can be changed while the session runs."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from eventcube.errors import OptionError
from eventcube.spark.columns import is_connect
from eventcube.spark.runs import Budget

# In how many tasks a match runs; by default two for each core.
PARTITIONS = "spark.eventcube.partitions"
# How much a task holds in memory before it sorts on disk, say 512m.
TASK_MEMORY = "spark.eventcube.taskMemory"

# A Connect client cannot see the cores of its server.
_CONNECT_PARTITIONS = 16
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def partitions(frame: DataFrame) -> int:
    """The number of tasks that events are spread over."""
    session = frame.sparkSession
    given = session.conf.get(PARTITIONS, None)
    if given is not None:
        if not given.isdigit() or int(given) < 1:
            raise OptionError(f"{PARTITIONS} is {given!r}, not a number of tasks", code="EC446", hint="write, say, 16")
        return int(given)
    return _CONNECT_PARTITIONS if is_connect(frame) else 2 * session.sparkContext.defaultParallelism


def budget(frame: DataFrame) -> Budget:
    """How much a task may hold in memory."""
    given = frame.sparkSession.conf.get(TASK_MEMORY, None)
    if given is None:
        return Budget()
    read = re.fullmatch(r"(\d+)([kmg]?)b?", given.strip().lower())
    if read is None or int(read[1]) < 1:
        raise OptionError(f"{TASK_MEMORY} is {given!r}, not an amount of memory", code="EC446", hint="write, say, 512m")
    size = int(read[1]) * _UNITS[read[2]]
    # Narrow rows cost the engine more than their bytes.
    return Budget(rows=max(1, size // 64), bytes=size)
