"""The groups of a stream, which change with each match: writing them in append mode is refused."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventcube.errors import OptionError
from eventcube.plan.planned import Planned
from eventcube.spark.columns import is_connect


def changes_rows(plan: Planned) -> bool:
    """Whether a stream gives rows of a query again: groups of which the watermark tells no end."""
    return bool(plan.logical.results.agg) and plan.logical.results.per is None and not plan.physical.sink.closing


def is_for_update(frame: DataFrame) -> bool:
    """Whether a frame must be written in update mode."""
    return isinstance(frame, _Groups)


def for_update_only(frame: DataFrame) -> DataFrame:
    """The same frame, which refuses to be written in append mode: Spark itself does not see to it."""
    if not is_connect(frame):
        frame.__class__ = type("DataFrame", (_Groups, type(frame)), {})
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
                "changes, and none is ever final, as these groups have no time at which they end",
                code="EC498",
                hint='writeStream.outputMode("update"), to a sink that replaces rows, as foreachBatch can; '
                "or groups that end: GROUPBY b.ts EVERY 1 hour, with the time column of an event",
            )
