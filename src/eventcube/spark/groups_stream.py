"""The groups of a stream, which change with each match: writing them in append mode is refused."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventcube.errors import OptionError
from eventcube.spark.columns import is_connect


def for_update_only(frame: DataFrame) -> DataFrame:
    """The same frame, which refuses to be written in append mode: Spark itself does not see to it."""
    if not is_connect(frame):
        # Under Spark's module, by which frames are told from others.
        kind = type(frame)
        frame.__class__ = type("DataFrame", (_Groups, kind), {"__module__": kind.__module__})
    return frame


class _Groups:
    """A streaming DataFrame of groups."""

    @property
    def writeStream(self) -> DataStreamWriter:  # noqa: N802 - as Spark calls it
        return _Writer(self)  # type: ignore[arg-type]


class _Writer(DataStreamWriter):
    """Writes groups in update mode."""

    _mode = "append"

    def outputMode(self, outputMode: str) -> DataStreamWriter:  # noqa: N802, N803
        self._mode = outputMode
        return super().outputMode(outputMode)

    def start(self, *args: Any, **options: Any) -> Any:
        self._check(options.get("outputMode"))
        return super().start(*args, **options)

    def toTable(self, *args: Any, **options: Any) -> Any:  # noqa: N802
        self._check(options.get("outputMode"))
        return super().toTable(*args, **options)

    def _check(self, mode: str | None) -> None:
        if (mode or self._mode).lower() != "update":
            raise OptionError(
                f"the groups of AGG cannot be written in {mode or self._mode} mode: a group gets a new row whenever it "
                "changes, and none is ever final, as groups have no time at which they end",
                code="EC498",
                hint='writeStream.outputMode("update"), to a sink that replaces rows, as foreachBatch can',
            )
