"""Where the matches of `eventcube stream` go: a function for Spark's `foreachBatch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from eventcube.cli.result_files import write_batches
from eventcube.cli.run_queries import SHOWN_MATCHES
from eventcube.cli.screen import show_matches
from eventcube.cli.stream_status import StatusLine
from eventcube.spark import files
from eventcube.spark.columns import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WriteBatch = Callable[["DataFrame", int], None]


class ScreenSink:
    """Shows the matches of each micro-batch, or writes them to standard output as JSON lines.

    What went wrong is kept: Spark makes an error of its own of it.
    """

    def __init__(self, status: StatusLine, *, as_json: bool) -> None:
        self.status, self.as_json = status, as_json
        self.error: OSError | None = None

    def __call__(self, matches: DataFrame, batch: int) -> None:
        try:
            self._write(matches)
        except OSError as error:
            self.error = error
            raise

    def _write(self, matches: DataFrame) -> None:
        if self.as_json:
            with files.computed(matches) as batches, self.status.cleared():
                write_batches(batches, arrow_schema(matches), "jsonl", None)
            return
        order = [name for name in ("end", "start") if name in matches.columns] or matches.columns
        earliest, total = files.first_rows(matches, order, SHOWN_MATCHES)
        if total:
            with self.status.cleared():
                show_matches(earliest, total)
