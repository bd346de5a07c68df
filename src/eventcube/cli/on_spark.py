"""Runs a query on Spark."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time as clock
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eventcube.cli.arrow_input import check_parquet, refuse_empty, text_columns
from eventcube.cli.inputs import Inputs
from eventcube.cli.progress import Reading, working
from eventcube.cli.result_files import new_folder, write_batches
from eventcube.cli.settings import Settings
from eventcube.cli.survey import Survey, first, wanted_types
from eventcube.engine.counters import Counts
from eventcube.errors import EventCubeError, InputError, OptionError
from eventcube.language.syntax import Query
from eventcube.match import match, set_aside
from eventcube.runtime.ingest import REASON
from eventcube.schema import Kind, kind_of
from eventcube.spark import files, survey
from eventcube.spark.columns import arrow_schema, quoted
from eventcube.spark.failures import plain_failures
from eventcube.spark.session import start_session
from eventcube.spark.tasks import running_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Spark:
    """A session for one command; what Spark itself prints and logs goes to a file, so that messages can be read."""

    def __init__(self, master: str, settings: dict[str, str], *, quiet: bool) -> None:
        self.quiet = quiet
        self.failed = False
        descriptor, log = tempfile.mkstemp(prefix="eventcube-spark-", suffix=".log")
        self.log = Path(log)
        self._handler = logging.FileHandler(log)
        logging.getLogger().addHandler(self._handler)
        try:
            with working(f"starting Spark ({master})", quiet=quiet), _stderr_to(descriptor), plain_failures(log):
                self.session: SparkSession = start_session(master, settings)
        except BaseException as error:
            self.failed = log in str(error)
            self._forget()
            if self.failed and isinstance(error, InputError):
                raise InputError(f"cannot start Spark on {master}", code="EC330", hint=error.hint) from None
            raise
        if threading.current_thread() is threading.main_thread():
            # PySpark's own would call the JVM in the middle of another call. Stopping the session ends its jobs, too.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.begun = clock.monotonic()

    def working(self, title: str) -> AbstractContextManager[None]:
        """Show how far Spark is while the block runs, and tell plainly what it could not do."""

        def poll() -> Reading:
            stages, done, tasks = running_tasks(self.session)
            return Reading(done, tasks or None, f"{done}/{tasks} tasks" if stages else "")

        @contextmanager
        def block() -> Iterator[None]:
            try:
                with plain_failures(str(self.log)), working(title, poll, quiet=self.quiet):
                    yield
            except EventCubeError as error:
                self.failed = str(self.log) in (error.hint or "")
                raise
            except Exception as error:
                self.failed = not isinstance(error, BrokenPipeError)
                raise

        return block()

    def close(self) -> None:
        """Stop the session; Spark's messages are kept only if something failed."""
        try:
            self.session.stop()
        finally:
            self._forget()

    def _forget(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        if not self.failed:
            self.log.unlink(missing_ok=True)


class OnSpark:
    """One query over files; see `Runner`."""

    def __init__(
        self, inputs: Inputs, query: Query, settings: Settings, master: str, conf: tuple[str, ...], *, quiet: bool
    ) -> None:
        self.query, self.settings = query, settings
        configured = dict(_key_value(item) for item in conf)
        refuse_empty(inputs)
        nanoseconds = check_parquet(inputs)
        with working(f"looking at {inputs.shown}", quiet=quiet):
            columns = text_columns(inputs)
        self.spark = Spark(master, configured, quiet=quiet)
        self.begun = self.spark.begun
        self.counters = Counts()
        try:
            with self.spark.working(f"looking at {inputs.shown}"):
                paths = [p if "://" in p else str(Path(p).resolve()) for p in inputs.paths]
                self.read: DataFrame = files.read_files(self.spark.session, paths, inputs.format, columns, nanoseconds)
                self.events = self.read.drop(files.CORRUPT)
                self.columns = arrow_schema(self.events)
                self.matches: DataFrame = match(self.events, query, counters=self.counters, **settings.for_match())
                self.schema = arrow_schema(self.matches)
        except BaseException:
            self.close()
            raise

    def sample(self, columns: list[str], most: int) -> pa.Table:
        """Some of the events, with these columns only."""
        with self.spark.working("looking at some events"):
            return self.events.select(*map(quoted, columns)).limit(most).toArrow()

    def survey(self) -> Survey:
        """What the input holds."""
        named = self.settings
        wanted = wanted_types(self.query, named.concepts) if named.type is not None else {}
        with self.spark.working("counting events"):
            events, usable, missing = survey.count_events(self.events, named.time, named.type, wanted)
            reasons = {}
            if usable < events or kind_of(self.columns.field(named.time).type) is Kind.TEXT:
                reasons = survey.count_reasons(self._aside(), REASON)
            types = first(survey.some_types(self.events, named.type)) if missing and named.type else ()
        return Survey(events, reasons, missing, types)

    def first(self, most: int) -> tuple[pa.Table, int]:
        """The earliest matches, and how many there are."""
        order = self.schema.names if self.query.agg else ["end", "start"]
        with self.spark.working("matching"):
            return files.first_rows(self.matches, order, most)

    def write_file(self, path: Path | None, format_: str) -> int:
        """Write all matches to one file, or to standard output."""
        with self.spark.working("matching"), closing(files.collect_batches(self.matches)) as batches:
            return write_batches(batches, self.schema, format_, path)

    def write_folder(self, path: Path, format_: str) -> int:
        """Write all matches into a folder, in parallel."""
        with self.spark.working("matching"), new_folder(path.resolve()) as folder:
            return files.write_folder(self.matches, str(folder), format_)

    def write_set_aside(self, path: Path, format_: str) -> None:
        """Write the rows that cannot be used, with the reason."""
        aside = self._aside()
        with self.spark.working("writing what was set aside"), closing(files.collect_batches(aside)) as batches:
            write_batches(batches, arrow_schema(aside), format_, path)

    def close(self) -> None:
        """Stop Spark."""
        self.spark.close()

    def _aside(self) -> DataFrame:
        named = self.settings
        aside: DataFrame = set_aside(self.read, time=named.time, type=named.type, time_unit=named.time_unit)
        return aside


def _key_value(item: str) -> tuple[str, str]:
    key, sign, value = item.partition("=")
    if not sign:
        raise OptionError(f"--conf needs KEY=VALUE, not {item!r}", code="EC424", hint="--conf spark.driver.memory=4g")
    return key.strip(), value.strip()


@contextmanager
def _stderr_to(descriptor: int) -> Iterator[None]:
    """What processes started meanwhile write to standard error goes to a file; they keep it."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(descriptor)
