"""The groups of a stream, which change with each match: writing them in append mode is refused.

Spark does not see to it. The DataFrame of groups refuses at once, but what is made of it, by a `select`, a view or SQL,
is a DataFrame like others. So a listener notes the mode of each query where the tasks of the query can read it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventcube.errors import OptionError
from eventcube.plan.planned import Planned
from eventcube.spark.columns import is_connect

_MODE = "eventcube.outputMode"
# The sessions that have a listener.
_listening: set[str] = set()


def changes_rows(plan: Planned) -> bool:
    """Whether a stream gives rows of a query again: groups of which the watermark tells no end."""
    return bool(plan.logical.results.agg) and plan.logical.results.per is None and not plan.physical.sink.closing


def is_for_update(frame: DataFrame) -> bool:
    """Whether a frame must be written in update mode."""
    return isinstance(frame, _Groups)


def for_update_only(frame: DataFrame) -> DataFrame:
    """The same frame, which refuses to be written in append mode, as do the tasks of queries that use it."""
    _listen(frame.sparkSession)
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
        _refuse_unless_update(mode or self._mode)


def check_mode() -> None:
    """Refuse in a task to give groups to a query of another mode than update, if its mode was noted."""
    context = TaskContext.get()
    mode = None if context is None else context.getLocalProperty(_MODE)
    if mode is not None:
        _refuse_unless_update(mode)


def _refuse_unless_update(mode: str) -> None:
    if mode.lower() != "update":
        raise OptionError(
            f"the groups of AGG cannot be written in {mode} mode: a group gets a new row whenever it "
            "changes, and none is ever final, as these groups have no time at which they end",
            code="EC498",
            hint='writeStream.outputMode("update"), to a sink that replaces rows, as foreachBatch can; '
            "or groups that end: GROUPBY b.ts EVERY 1 hour, with the time column of an event",
        )


def _listen(session: SparkSession) -> None:
    """Note the modes of the session's queries from now on."""
    if is_connect(session):
        return
    name = session._jsparkSession.sessionUUID()
    if name not in _listening:
        session.streams.addListener(_NoteMode(session))
        _listening.add(name)


class _NoteMode(StreamingQueryListener):
    """Notes the mode of a query in a property that its tasks inherit: Spark calls this in the thread of the query."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - as Spark calls it
        """Note the mode; if Spark does not tell it, what is written is as its user says."""
        with suppress(Py4JError):
            query = self._session._jsparkSession.streams().get(str(event.id)).streamingQuery()
            self._session.sparkContext.setLocalProperty(_MODE, query.outputMode().toString().lower())

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing to note."""
