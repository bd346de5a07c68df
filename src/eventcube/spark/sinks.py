"""A sink of streams, for `foreachBatch`: folders of files that every reader can trust.

Spark's own file sink leaves the files of attempts that failed, and only Spark's reader knows which these are. Here a
folder appears whole, takes the place of what an earlier attempt left, and nothing else is where readers look.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from eventcube.errors import InputError, OptionError
from eventcube.schema import LATE_ROWS
from eventcube.spark.columns import column, is_connect, quoted
from eventcube.spark.files import write_folder

FORMATS = ("parquet", "jsonl", "csv")
# Readers pass over names that begin with a dot or an underscore.
_ATTEMPTS = ".attempts"
_STREAM = "_stream"
_QUERY_ID = "sql.streaming.queryId"


class BatchFolders:
    """Writes the rows of each micro-batch to a folder `path/batch=N`; a micro-batch without rows has none.

    A micro-batch that runs again replaces its folder. So readers of `path` see every row once, and never a part of a
    micro-batch. `late` is a second folder, for the late rows of `keep_late=True`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, late: str | os.PathLike[str] | None = None, format: str = "parquet"
    ) -> None:
        if format not in FORMATS:
            raise OptionError(
                f"batches cannot be written as {format!r}", code="EC420", hint=f"one of {', '.join(FORMATS)}"
            )
        self.format = format
        self.path, self.late = os.fspath(path), None if late is None else os.fspath(late)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write a micro-batch; Spark calls this."""
        if self.late is None:
            self._write(rows, self.path, batch)
            return
        if LATE_ROWS not in rows.columns:
            raise OptionError(
                f"there is no column {LATE_ROWS!r} with late rows to write to {self.late}",
                code="EC497",
                hint="ec.match(stream, …, keep_late=True)",
            )
        # Each folder takes a job, and what is not kept would run again for the second.
        rows = rows.persist()
        try:
            late = column(LATE_ROWS)
            self._write(rows.where(late.isNull()).drop(LATE_ROWS), self.path, batch)
            self._write(rows.where(late.isNotNull()).select(f"{quoted(LATE_ROWS)}.*"), self.late, batch)
        finally:
            rows.unpersist()

    def _write(self, rows: DataFrame, path: str, batch: int) -> None:
        folder = _Folder(rows.sparkSession, path)
        with folder.attempt() as attempt:
            folder.check_stream(f"{attempt}/stream")
            count = write_folder(rows, f"{attempt}/new", self.format)
            folder.put(f"{attempt}/new" if count else None, f"batch={batch}", f"{attempt}/old")


class _Folder:
    """A folder on any file system that Spark can write to."""

    def __init__(self, session: SparkSession, path: str) -> None:
        if is_connect(session):
            raise OptionError("BatchFolders needs Spark's file system, which Spark Connect does not give", code="EC483")
        self._context = session.sparkContext
        assert self._context._jvm is not None
        self._path = self._context._jvm.org.apache.hadoop.fs.Path
        self.path = path
        self._files = self._path(path).getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def check_stream(self, new: str) -> None:
        """Refuse a folder with batches of another stream: their numbers begin at 0, too. `new` is a file to write."""
        query = self._context.getLocalProperty(_QUERY_ID)
        place = self._path(f"{self.path}/{_STREAM}")
        if query is None:
            return
        if not self._files.exists(place):
            output = self._files.create(self._path(new))
            output.write(bytearray(query.encode()))
            output.close()
            self._move(self._path(new), place)
            return
        stream = self._files.open(place)
        try:
            owner = bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()
        if owner != query:
            raise InputError(
                f"{self.path} has the batches of another stream, whose numbers are the same",
                code="EC484",
                hint="give this stream another folder, or remove this one; a new checkpoint makes a new stream",
            )

    @contextmanager
    def attempt(self) -> Iterator[str]:
        """A folder for the files of this attempt; what attempts leave that were killed is removed."""
        attempts = self._path(f"{self.path}/{_ATTEMPTS}")
        self._files.delete(attempts, True)
        try:
            yield f"{self.path}/{_ATTEMPTS}/{secrets.token_hex(8)}"
        finally:
            self._files.delete(attempts, True)

    def put(self, new: str | None, name: str, old: str) -> None:
        """Put a new folder in the place of one that may be there, which is moved away first."""
        place = self._path(f"{self.path}/{name}")
        if self._files.exists(place):
            self._files.mkdirs(self._path(old).getParent())
            self._move(place, self._path(old))
        if new is not None:
            self._move(self._path(new), place)

    def _move(self, source: Any, place: Any) -> None:
        if not self._files.rename(source, place):
            raise InputError(f"{source.toString()} could not be moved to {place.toString()}", code="EC426")
