"""Runs queries over files, in this process or on Spark, and writes or shows what they find."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pyarrow as pa

from eventcube.cli.compiling import compile_loops
from eventcube.cli.input_warnings import warn_of_missing_type_column, warn_of_source, warn_of_time_unit
from eventcube.cli.inputs import Inputs, find_inputs, format_by_name
from eventcube.cli.outputs import is_file_name, refuse_existing, refuse_overlap, refuse_unknown_ending, result_format
from eventcube.cli.query import Asked, each_query
from eventcube.cli.result_files import new_folder, write_batches
from eventcube.cli.run_options import RunOptions
from eventcube.cli.runner import Runner
from eventcube.cli.screen import show_counts, show_matches
from eventcube.cli.summary import WORK, Summary
from eventcube.cli.survey import Check, check_survey
from eventcube.cli.temporary import remove
from eventcube.errors import InputError
from eventcube.language.printer import print_line
from eventcube.language.syntax import Query
from eventcube.options import Options

SHOWN_MATCHES = 20


@dataclass(frozen=True, slots=True)
class Job:
    """Files to read, and the format of what is written; checked before anything runs."""

    inputs: Inputs
    format_: str
    less: Inputs | None = None


def prepare(arguments: Sequence[str], asked: Asked, how: RunOptions, *, counting: bool = False) -> Job:
    """Find the files, and refuse outputs that cannot be written, or would overwrite something."""
    # Counts are part of the summary.
    format_ = result_format(how.out, how.format_, how.as_json and not counting)
    refuse_unknown_ending(how.set_aside, "--set-aside")
    files = find_inputs(arguments, how.input_format)
    warn_of_source(each_query(asked), files)
    refuse_overlap((*files.paths, *files.files), {"--out": how.out, "--set-aside": how.set_aside})
    for path in (how.out, how.set_aside):
        refuse_existing(path, how.overwrite)
    return Job(files, format_, None if how.less is None else _rows_to_leave_out(how.less))


def _rows_to_leave_out(path: str) -> Inputs | None:
    """The files of rows to leave out; None if a stream made the folder, and wrote none."""
    try:
        found = find_inputs([path])
    except InputError as error:
        if error.code != "EC322":
            raise
        return None
    # Files, not folders, whose names would become a column.
    return found if found.remote else replace(found, paths=found.files)


def run_queries(
    asked: Asked,
    job: Job,
    options: Options,
    how: RunOptions,
    *,
    flat: bool = False,
    counting: bool = False,
    levels: bool = False,
) -> None:
    """Find all matches, and write or show them, with a summary.

    With `counting` only their number, with `levels` the numbers at every level.
    """
    begun = clock.monotonic()
    compile_seconds = 0.0
    queries = each_query(asked)
    runner: Runner
    if how.no_spark:
        from eventcube.cli.in_process import InProcess

        loaded = clock.monotonic()
        runner = InProcess(
            job.inputs,
            asked,
            options,
            less=job.less,
            flat=flat,
            counting=counting,
            levels=levels,
            quiet=how.silent,
        )
    else:
        from eventcube.cli.on_spark import OnSpark

        loaded = clock.monotonic()
        runner = OnSpark(
            job.inputs,
            asked,
            options,
            how.master,
            how.conf,
            less=job.less,
            flat=flat,
            counting=counting,
            levels=levels,
            quiet=how.silent,
        )
    try:
        warn_of_missing_type_column(queries, options, runner.columns, runner.sample)
        warn_of_time_unit(options, runner.columns, runner.sample)

        def check() -> None:
            check_survey(runner.survey, queries, job.inputs.shown, options, how.allow_missing_types)

        if how.no_spark or how.master.startswith("local"):
            compile_seconds = compile_loops(quiet=how.silent)
        counts = runner.counts(check) if counting else {}
        if counting:
            _output_counts(counts, asked, job, how)
        matches = (
            sum(count or 0 for count in counts.values())
            if counting
            else _output_matches(runner, how.out, job.format_, check)
        )
        survey = runner.survey
        skipped = sum(survey.set_aside.values())
        if how.set_aside and skipped:
            runner.write_set_aside(Path(how.set_aside), format_by_name(how.set_aside) or "parquet")
        elif how.set_aside:
            # Remove the skipped rows of an earlier run, which would be taken for those of this one.
            remove(Path(how.set_aside))
        ended = clock.monotonic()
    finally:
        runner.close()
    summary = Summary(
        events=survey.events,
        left_out=runner.left_out,
        set_aside=skipped,
        matches=matches,
        seconds=ended - loaded - runner.start_seconds - compile_seconds,
        out=how.out,
        set_aside_out=how.set_aside if skipped else None,
        set_aside_reasons=survey.set_aside,
        grouped=levels or (isinstance(asked, Query) and bool(asked.agg)),
        nested={name: count for name, count in runner.counters.items() if name.startswith(("inner_", "view_"))},
        start_seconds=loaded - begun + runner.start_seconds,
        compile_seconds=compile_seconds,
        on_spark=not how.no_spark,
        queries=len(queries),
        counts=counts,
        work={name: runner.counters[name] for name in WORK},
    )
    if how.as_json:
        click.echo(summary.as_json())
    elif not how.quiet:
        click.echo(summary.as_text(), err=True)


def _output_matches(runner: Runner, out: str | None, format_: str, check: Check) -> int:
    if format_ == "screen":
        matches, total = runner.first(SHOWN_MATCHES, check)
        show_matches(matches, total)
        return total
    if out is None:
        return runner.write_file(None, format_, check)
    write = runner.write_file if is_file_name(out) else runner.write_folder
    return write(Path(out), format_, check)


def _output_counts(counts: Mapping[str, int | None], asked: Asked, job: Job, how: RunOptions) -> None:
    """A row for each query: its name, the number of its matches, and its text after PATTERN."""
    texts = [print_line(query) for query in each_query(asked)]
    numbers = pa.array(counts.values(), pa.int64())
    table = pa.table({"query": list(counts), "matches": numbers, "pattern": texts})
    if job.format_ == "screen":
        if not how.as_json:
            show_counts(table)
    elif how.out is None or is_file_name(how.out):
        write_batches(table.to_batches(), table.schema, job.format_, None if how.out is None else Path(how.out))
    else:
        with new_folder(Path(how.out)) as folder:
            write_batches(table.to_batches(), table.schema, job.format_, folder / f"part-00000.{job.format_}")
