"""A checkpoint in which no micro-batch was planned yet, as a driver leaves it that is killed at its first one.

Spark refuses it for ever: beside no plan of a micro-batch there must be no file, not even one that was being written.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

# The folders that Spark wants to be empty before the first micro-batch.
_PLANS = ("offsets", "commits")
_STATE = "state"
# What Spark writes before it renames it, and the checksum of that.
_UNFINISHED = re.compile(r"\.+\d+\.[0-9a-f-]+\.tmp(\.crc)?")


def remove_unfinished_start(session: SparkSession, checkpoint: str) -> bool:
    """Remove the unfinished files of a checkpoint that has nothing else of any micro-batch; tells whether it had some.

    A checkpoint with a plan, a commit, state, or a file that is not known stays as it is.
    """
    assert session.sparkContext._jvm is not None
    path: Any = session.sparkContext._jvm.org.apache.hadoop.fs.Path
    files = path(checkpoint).getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def found(folder: str) -> list[Any]:
        place = path(f"{checkpoint}/{folder}")
        return [status.getPath() for status in files.listStatus(place)] if files.exists(place) else []

    unfinished = [file for folder in _PLANS for file in found(folder)]
    if found(_STATE) or not all(_UNFINISHED.fullmatch(file.getName()) for file in unfinished):
        return False
    for file in unfinished:
        files.delete(file, False)
    return bool(unfinished)
