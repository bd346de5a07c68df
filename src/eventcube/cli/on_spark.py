"""Runs queries on Spark."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time as clock
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eventcube.cli.arrow_input import check_parquet, refuse_empty, text_columns
from eventcube.cli.csv_survey import CsvSurvey
from eventcube.cli.input_warnings import warn_of_unfound
from eventcube.cli.inputs import Inputs
from eventcube.cli.parquet_times import zone_of_times
from eventcube.cli.progress import Reading, working
from eventcube.cli.query import Asked, each_query
from eventcube.cli.result_files import new_folder, write_batches
from eventcube.cli.survey import Check, Survey, first, wanted_by_any
from eventcube.engine.counters import within_limit
from eventcube.engine.counts import Counts
from eventcube.errors import EventCubeError, EventCubeWarning, InputError, OptionError
from eventcube.language.syntax import Query
from eventcube.match import count_levels, count_matches, find_matches, find_skipped, limits_of
from eventcube.options import Options
from eventcube.runtime.ingest import REASON
from eventcube.runtime.queries import queries_by_name
from eventcube.slips import are_many
from eventcube.spark import files, survey
from eventcube.spark.columns import ZONE_SETTING, arrow_schema, quoted
from eventcube.spark.failures import plain_failures
from eventcube.spark.left_out import LeftOut
from eventcube.spark.progress import running_tasks
from eventcube.spark.session import PATIENCE_SECONDS, end_jvm, start_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# By default Spark writes times in 96 bits, which other programs read as times without a zone.
_MICROSECOND_TIMES = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


class Spark:
    """A session for one command; Spark's own output goes to a log file, away from our messages."""

    def __init__(self, master: str, settings: dict[str, str], *, quiet: bool) -> None:
        self.quiet = quiet
        self.failed = False
        self._open = True
        descriptor, log = tempfile.mkstemp(prefix="eventcube-spark-", suffix=".log")
        self.log = Path(log)
        self._handler = logging.FileHandler(log)
        begun = clock.monotonic()
        logging.getLogger().addHandler(self._handler)
        try:
            with working(f"starting Spark ({master})", quiet=quiet), _stderr_to(descriptor), plain_failures(log):
                self.session: SparkSession = start_session(master, settings)
        except BaseException as error:
            self.failed = log in str(error)
            self._close_log()
            if self.failed and isinstance(error, InputError):
                raise InputError(f"cannot start Spark on {master}", code="EC330", hint=error.hint) from None
            raise
        if threading.current_thread() is threading.main_thread():
            # PySpark's handler would call the JVM during another call. Stopping the session ends its jobs, too.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.start_seconds = clock.monotonic() - begun

    @contextmanager
    def working(self, title: str) -> Iterator[None]:
        """Show Spark's progress while the block runs, and turn its failures into plain errors."""

        def poll() -> Reading:
            stages, done, tasks = running_tasks(self.session)
            return Reading(done, tasks or None, f"{done}/{tasks} tasks" if stages else "")

        with self.plain_failures(), working(title, poll, quiet=self.quiet):
            yield

    @contextmanager
    def plain_failures(self) -> Iterator[None]:
        """Turn Spark's failures in the block into plain errors."""
        try:
            with plain_failures(str(self.log)):
                yield
        except (KeyboardInterrupt, SystemExit):
            self.abort()
            raise
        except EventCubeError as error:
            self.failed = str(self.log) in (error.hint or "")
            raise
        except Exception as error:
            self.failed = not isinstance(error, BrokenPipeError)
            raise

    def close(self) -> None:
        """Stop the session, once; the log file is kept only after a failure."""
        if self._open:
            self._open = False
            try:
                self.session.stop()
            finally:
                self._close_log()

    def abort(self) -> None:
        """End all jobs at once, so that nothing more is written.

        A JVM of our own is killed: to stop the session, it would wait for the running job.
        """
        if end_jvm(PATIENCE_SECONDS):
            self._open = False
            self._close_log()
        else:
            with suppress(Exception):
                self.close()

    def _close_log(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        if not self.failed:
            self.log.unlink(missing_ok=True)


class OnSpark:
    """One or more queries over files; see `Runner`."""

    def __init__(
        self,
        inputs: Inputs,
        asked: Asked,
        options: Options,
        master: str,
        conf: tuple[str, ...],
        *,
        less: Inputs | None = None,
        flat: bool = False,
        counting: bool = False,
        levels: bool = False,
        quiet: bool = False,
    ) -> None:
        self.asked, self.options, self.left_out, self._levels = asked, options, 0, levels
        configured = spark_settings(conf)
        refuse_empty(inputs)
        times = check_parquet(inputs, options.time)
        self._wanted = wanted_by_any(each_query(asked), options.concepts) if options.type is not None else {}
        csv_survey = CsvSurvey(options.time, options.type, self._wanted)
        with working(f"looking at {inputs.shown}", quiet=quiet):
            columns = text_columns(inputs, csv_survey.observe)
        self._csv_survey = None if columns is None else csv_survey.survey(columns, options.time_unit)
        self._observed_counts: Callable[[], Mapping[str, int]] | None = None
        self.spark = Spark(master, configured, quiet=quiet)
        self.start_seconds = self.spark.start_seconds
        # `survey` counts the rows.
        self.counters = Counts(rows=False)
        try:
            with self.spark.working(f"looking at {inputs.shown}"):
                self.read: DataFrame = files.read_files(
                    self.spark.session, _absolute(inputs), inputs.format, columns, times.nanoseconds
                )
                self.events = self.read.drop(files.CORRUPT)
                zone = self._remote_zone() if inputs.remote and inputs.format == "parquet" else times.zone
                if zone is not None and ZONE_SETTING not in configured:
                    files.use_zone(self.spark.session, zone)
                self.columns = arrow_schema(self.events)
                text = inputs.format != "parquet" and self._csv_survey is None
                events = self._observed_events() if text else self.events
                if less is not None:
                    events = self._without(events, less)
                with warnings.catch_warnings():
                    # `warn_of_missing_type_column` reads events, and knows better.
                    warnings.filterwarnings("ignore", r"\[EC505\]", EventCubeWarning)
                    self.matches: DataFrame = (
                        self._counted(events)
                        if counting or levels
                        else find_matches(events, asked, options, flat=flat, counters=self.counters)
                    )
                self.schema = arrow_schema(self.matches)
        except BaseException:
            self.close()
            raise

    def _without(self, events: DataFrame, less: Inputs) -> DataFrame:
        """The events without the rows to leave out."""
        rows = files.read_files(self.spark.session, _absolute(less), less.format, text_columns(less))
        left_out = LeftOut(self.events, rows.drop(files.CORRUPT))
        count, unfound = left_out.count(self.events)
        self.left_out = count - unfound
        warn_of_unfound(count, unfound)
        return left_out.without(events)

    def sample(self, columns: list[str], most: int) -> pa.Table:
        """Some of the events, with these columns only."""
        with self.spark.working("looking at some events"):
            return self.events.select(*map(quoted, columns)).limit(most).toArrow()

    @cached_property
    def survey(self) -> Survey:
        """Counts over the input; text that only Spark reads is counted while it is matched."""
        if self._csv_survey is not None:
            return self._csv_survey
        options = self.options
        with self.spark.working("counting events"):
            counts = self._observed_counts or partial(survey.count_events, self.events, self._survey_columns())
            events, reasons, missing = survey.read_survey(counts(), self._wanted)
            examples: dict[str, object] = {}
            if are_many(events, sum(reasons.values())):
                reasons, examples = survey.count_reasons(self._skipped_rows(), REASON, options.time)
            types = first(survey.some_types(self.events, options.type)) if missing and options.type else ()
        return Survey(events, reasons, examples, missing, types)

    def first(self, most: int, check: Check) -> tuple[pa.Table, int]:
        """The earliest matches, and the number of all."""
        grouped = self._levels or (isinstance(self.asked, Query) and self.asked.agg)
        order = self.schema.names if grouped else ["end", "start"]
        self._check(check, matched=False)
        with self.spark.working("matching"):
            result = files.first_rows(self.matches, order, most)
        self._check(check, matched=True)
        return result

    def counts(self, check: Check) -> dict[str, int | None]:
        """The number of matches of each query."""
        self._check(check, matched=False)
        with self.spark.working("matching"):
            found: dict[str, int | None] = {row["query"]: row["matches"] for row in self.matches.collect()}
        self._check(check, matched=True)
        limits = limits_of(queries_by_name(self.asked), self.options.limit)
        return {name: within_limit(count, limits.get(name)) for name, count in found.items()}

    def write_file(self, path: Path | None, format_: str, check: Check) -> int:
        """Write all matches to one file, or to standard output."""
        self._check(check, matched=False)
        with ExitStack() as stack:
            with self.spark.working("matching"):
                batches = stack.enter_context(files.computed(self.matches))
            self._check(check, matched=True)
            with self.spark.working("writing matches"):
                return write_batches(batches, self.schema, format_, path)

    def write_folder(self, path: Path, format_: str, check: Check) -> int:
        """Write all matches into a folder, in parallel."""
        self._check(check, matched=False)
        # The temporary folder is removed last, when no job can write to it any more.
        with new_folder(path.resolve()) as folder:
            with self.spark.working("matching"):
                rows = files.write_folder(self.matches, str(folder), format_)
            self._check(check, matched=True)
            return rows

    def write_set_aside(self, path: Path, format_: str) -> None:
        """Write the skipped rows, with the reason."""
        rows = self._skipped_rows()
        with self.spark.working("writing the skipped rows"), files.computed(rows) as batches:
            write_batches(batches, arrow_schema(rows), format_, path)

    def close(self) -> None:
        """Stop Spark."""
        self.spark.close()

    def _counted(self, events: DataFrame) -> DataFrame:
        queries = queries_by_name(self.asked)
        if self._levels:
            cells: DataFrame = count_levels(events, queries, self.options, counters=self.counters)
            return cells
        counts: DataFrame = count_matches(events, queries, replace(self.options, limit=None), counters=self.counters)
        return counts

    def _check(self, check: Check, *, matched: bool) -> None:
        """Check the input as soon as it is counted: before matching, or after it, if matching counts it."""
        if matched == (self._observed_counts is not None):
            check()

    def _observed_events(self) -> DataFrame:
        """The events, counted while a job reads them; parsing text a second time would cost far more."""
        self.options.schema(self.columns)
        events, self._observed_counts = survey.observed(self.events, self._survey_columns())
        return events

    def _remote_zone(self) -> str | None:
        """The zone of times in Parquet files that only Spark can open."""
        columns = files.stored_schema(self.read)
        return None if columns is None else zone_of_times(columns, self.options.time)

    def _survey_columns(self) -> list[Column]:
        options = self.options
        return survey.survey_columns(self.events, options.time, options.type, options.time_unit, self._wanted)

    def _skipped_rows(self) -> DataFrame:
        skipped: DataFrame = find_skipped(self.read, self.options)
        return skipped


def _absolute(inputs: Inputs) -> list[str]:
    """The paths of an input, as a JVM in another folder finds them."""
    return [path if "://" in path else str(Path(path).resolve()) for path in inputs.paths]


def spark_settings(conf: Iterable[str]) -> dict[str, str]:
    """Settings of Spark from those on the command line."""
    return {**_MICROSECOND_TIMES, **dict(_key_value(item) for item in conf)}


def _key_value(item: str) -> tuple[str, str]:
    key, sign, value = item.partition("=")
    if not sign:
        raise OptionError(f"--conf needs KEY=VALUE, not {item!r}", code="EC424", hint="--conf spark.driver.memory=4g")
    return key.strip(), value.strip()


@contextmanager
def _stderr_to(descriptor: int) -> Iterator[None]:
    """Redirect standard error to a file for processes that the block starts, as long as they run."""
    sys.stderr.flush()
    original = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.close(descriptor)
