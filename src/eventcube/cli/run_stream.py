"""Runs a query over a stream on Spark until it is stopped, or with --once until it has taken what there is."""

from __future__ import annotations

import tempfile
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventcube.cli.compiling import compile_loops
from eventcube.cli.on_spark import Spark, spark_settings
from eventcube.cli.outputs import refuse_overlap
from eventcube.cli.query import Asked
from eventcube.cli.stream_options import StreamOptions
from eventcube.cli.stream_output import ScreenSink, WriteBatch
from eventcube.cli.stream_source import FileSource, Topic, TopicSource, find_source, read_topic
from eventcube.cli.stream_status import StatusLine, StreamSummary
from eventcube.cli.watch_stream import watch_stream
from eventcube.errors import InputError, OptionError
from eventcube.options import Options, microseconds
from eventcube.signals import signals_wait
from eventcube.spark.batch import match_stream
from eventcube.spark.checkpoint import changed_queries, stored_origin
from eventcube.spark.columns import ZONE_SETTING
from eventcube.spark.groups_stream import is_for_update
from eventcube.spark.kafka import to_kafka
from eventcube.spark.metrics import StreamMetrics
from eventcube.spark.origin import Origin
from eventcube.spark.sinks import BatchFolders
from eventcube.spark.unfinished_start import remove_unfinished_start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def run_stream(asked: Asked, source: str, options: Options, how: StreamOptions) -> None:
    """Run the queries over the source; a signal that stops them is handled once all is closed."""
    begun = clock.monotonic()
    _check(how)
    events = find_source(source, options, how)
    refuse_overlap(events.names, {"--out": how.out, "--late": how.late, "--checkpoint": how.checkpoint})
    _refuse_other_results(how)
    if how.master.startswith("local"):
        compile_loops(quiet=how.silent)
    spark = Spark(how.master, spark_settings(how.conf), quiet=how.silent)
    try:
        with signals_wait() as signals, _checkpoint(how) as checkpoint:
            how = replace(how, checkpoint=checkpoint)
            try:
                summary = _Stream(spark, signals, how).run(asked, events, options, clock.monotonic() - begun)
            except InputError as error:
                raise events.explained(error) from None
            if how.as_json:
                click.echo(summary.as_json())
            elif not how.quiet:
                click.echo(summary.as_text(), err=True)
    finally:
        spark.close()


def _check(how: StreamOptions) -> None:
    """Refuse options that cannot be read, or do not go together."""
    microseconds(how.trigger)
    if how.out is None:
        if how.as_json:
            raise OptionError("--json prints the summary, so matches need --out", code="EC420", hint="--out matches")
        if how.format_ not in (None, "jsonl"):
            raise OptionError(
                f"{how.format_} cannot go to the screen", code="EC420", hint="--format jsonl can, or say where: --out"
            )
    elif how.checkpoint is None:
        raise OptionError(
            "--out needs --checkpoint: what was written already must be known at the next start",
            code="EC602",
            hint="name a folder that stays: --checkpoint checkpoint",
        )
    if how.late is not None and (how.out is None or "://" in how.out):
        raise OptionError("--late needs --out with a folder", code="EC602", hint="--out matches --late late")


def _refuse_other_results(how: StreamOptions) -> None:
    """Refuse folders with files of others: a reader would take them for results of this stream."""
    for path in (how.out, how.late):
        if path is None or "://" in path or not Path(path).exists():
            continue
        if not Path(path).is_dir():
            raise OptionError(f"{path} is a file, and matches go to a folder", code="EC421", hint="name another one")
        others = sorted(f.name for f in Path(path).iterdir() if not f.name.startswith((".", "_", "batch=")))
        if others:
            raise OptionError(
                f"{path} holds more than a stream wrote ({others[0]})", code="EC421", hint="name a new folder"
            )


@contextmanager
def _checkpoint(how: StreamOptions) -> Iterator[str]:
    """The checkpoint, which for matches on the screen can be one that goes at the end."""
    if how.checkpoint is not None:
        yield how.checkpoint
        return
    if not how.silent:
        click.echo("no --checkpoint: the next start begins anew", err=True)
    with tempfile.TemporaryDirectory(prefix="eventcube-checkpoint-", ignore_cleanup_errors=True) as folder:
        yield folder


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream on a session; `signals` are those that came so far."""

    spark: Spark
    signals: list[int]
    how: StreamOptions

    def run(
        self, asked: Asked, source: FileSource | TopicSource, options: Options, start_seconds: float
    ) -> StreamSummary:
        """Run until the end, or until a signal comes."""
        how, begun = self.how, clock.monotonic()
        status = StatusLine(quiet=how.silent)
        metrics = StreamMetrics(self.spark.session, log=how.metrics, port=how.metrics_port)
        if metrics.port is not None and not how.silent:
            click.echo(f"metrics at http://127.0.0.1:{metrics.port}/metrics", err=True)
        try:
            with self.spark.plain_failures():
                conf = dict(item.split("=", 1) for item in how.conf)
                events = source.read(self.spark.session, keep_zone=ZONE_SETTING in conf)
                topic = None if how.out is None else read_topic(how.out)
                chosen = replace(options, keep_late=how.late is not None, match_id=topic is not None)
                matches, origin = match_stream(events, asked, chosen)
                self._check_checkpoint(origin)
                sink = self._sink(status) if topic is None else topic
                query = self._start(matches, sink)
            try:
                with self.spark.plain_failures():
                    totals = watch_stream(query, metrics, status, self.signals)
            except Exception:
                # Such as that the reader of our output went away.
                if isinstance(sink, ScreenSink) and sink.error is not None:
                    raise sink.error from None
                raise
            seconds = clock.monotonic() - begun
            summary = StreamSummary.of(totals, seconds, start_seconds, stopped=bool(self.signals))
            return replace(summary, out=how.out, late_out=how.late, checkpoint=how.checkpoint)
        finally:
            metrics.close()

    def _check_checkpoint(self, origin: Origin) -> None:
        """Refuse a checkpoint that the stream cannot go on from, and say which queries come and go.

        Else only a micro-batch with rows would tell.
        """
        assert self.how.checkpoint is not None
        before = stored_origin(self.spark.session, _path(self.how.checkpoint))
        if before is None:
            return
        before.followed_by(origin)
        if not self.how.silent and (changed := changed_queries(before, origin)):
            click.echo(f"the checkpoint has other queries; {changed}", err=True)

    def _sink(self, status: StatusLine) -> WriteBatch:
        how = self.how
        if how.out is None:
            return ScreenSink(status, as_json=how.format_ == "jsonl")
        return BatchFolders(
            _path(how.out), late=None if how.late is None else _path(how.late), format=how.format_ or "parquet"
        )

    def _start(self, matches: DataFrame, sink: WriteBatch | Topic) -> StreamingQuery:
        changes = is_for_update(matches)
        assert self.how.checkpoint is not None
        remove_unfinished_start(self.spark.session, _path(self.how.checkpoint))
        if isinstance(sink, Topic):
            writer = to_kafka(matches).writeStream.format("kafka").option("kafka.bootstrap.servers", sink.servers)
            writer = writer.option("topic", sink.name)
        else:
            writer = matches.writeStream.foreachBatch(sink)
        writer = writer.outputMode("update" if changes else "append")
        writer = writer.option("checkpointLocation", _path(self.how.checkpoint))
        trigger = (
            writer.trigger(availableNow=True)
            if self.how.once
            else writer.trigger(processingTime=f"{microseconds(self.how.trigger) // 1000} milliseconds")
        )
        return trigger.start()


def _path(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())
