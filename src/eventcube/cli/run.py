"""`eventcube run`: runs a query over files of events."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import click
import pyarrow as pa

from eventcube.cli.compiling import compile_loops
from eventcube.cli.input_warnings import warn_of_missing_type_column, warn_of_source, warn_of_time_unit
from eventcube.cli.inputs import FORMATS, find_inputs, format_by_name
from eventcube.cli.outputs import is_file_name, refuse_existing, refuse_overlap, refuse_unknown_ending, result_format
from eventcube.cli.query import read_query
from eventcube.cli.screen import show_matches
from eventcube.cli.settings import EVENT_SETTINGS, takes_options
from eventcube.cli.summary import Summary
from eventcube.cli.survey import Check, Survey, check_survey
from eventcube.cli.temporary import remove
from eventcube.options import Options

SHOWN_MATCHES = 20


class Runner(Protocol):
    """A query to run in process or on Spark. `columns` are those of the events, `schema` is that of the matches.

    `start_seconds` is the time Spark took to start.
    """

    columns: pa.Schema
    schema: pa.Schema
    start_seconds: float

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters so far."""

    def sample(self, columns: list[str], most: int) -> pa.Table:
        """Some of the events, with these columns only."""

    @property
    def survey(self) -> Survey:
        """Counts over the input; available when `check` is called."""

    def first(self, most: int, check: Check) -> tuple[pa.Table, int]:
        """The earliest matches, and the number of all."""

    def write_file(self, path: Path | None, format_: str, check: Check) -> int:
        """Write all matches to one file, or to standard output; returns their number."""

    def write_folder(self, path: Path, format_: str, check: Check) -> int:
        """Write all matches into a folder; returns their number."""

    def write_set_aside(self, path: Path, format_: str) -> None:
        """Write the skipped rows, with the reason."""

    def close(self) -> None:
        """Release the session and files."""


@click.command(short_help="Ask a query of Parquet, CSV or JSON files.")
@click.argument("query")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--out", type=click.Path(), help="Where matches go: a file (.parquet, .csv, .jsonl), or a folder.")
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FORMATS, "screen"]),
    help="The format of the matches; by default as --out is called (a folder: parquet), and the screen without --out.",
)
@click.option(
    "--input-format", type=click.Choice(list(FORMATS)), help="The format of the input, if its name does not say."
)
@takes_options(*EVENT_SETTINGS, "limit", "strategy", "sharing")
@click.option("--flat", is_flag=True, help="A column a_ts, a_id, … for each column of an event a, instead of a struct.")
@click.option("--master", default="local[*]", show_default=True, help="The Spark master.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
@click.option("--no-spark", is_flag=True, help="Run in this process on one core: quickest for small inputs.")
@click.option("--set-aside", type=click.Path(), help="Where to write skipped rows, with the reason (no time, no type).")
@click.option("--overwrite", is_flag=True, help="Replace what is at --out and --set-aside.")
@click.option("--allow-missing-types", is_flag=True, help="Run even if no event has a type that the query names.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object; matches need --out.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary.")
def run(
    query: str,
    inputs: tuple[str, ...],
    out: str | None,
    format_: str | None,
    input_format: str | None,
    options: Options,
    flat: bool,
    master: str,
    conf: tuple[str, ...],
    no_spark: bool,
    set_aside: str | None,
    overwrite: bool,
    allow_missing_types: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find every match of QUERY in the events of INPUT, and write or show it.

    \b
    QUERY: the query itself, or a text file with one query (its name ends in .neel by convention).
    INPUT: Parquet, CSV (with a header) or JSON lines; files, folders or globs, all of one format.
    Example:
      eventcube run 'PATTERN SEQ(Login a, !Logout b, Login c) WHERE a.user = c.user WITHIN 1 hour' \\
          events.csv --type kind --out matches.parquet

    An --out that ends in .parquet, .csv or .jsonl is one file; a name without an ending, or with / at its end, is a
    folder, written in parallel: best for many matches. In CSV an event r becomes columns r.ts, r.id, … (with --flat
    r_ts, r_id, …, as in every format), and a duration seconds. --format csv or jsonl without --out goes to
    standard output. Rows without a time or a type are skipped and counted. An input without any event, or a type
    that no event has, is a mistake (exit code 2).
    """
    begun = clock.monotonic()
    compile_seconds = 0.0
    parsed = read_query(query)
    format_ = result_format(out, format_, as_json)
    refuse_unknown_ending(set_aside, "--set-aside")
    files = find_inputs(inputs, input_format)
    warn_of_source(parsed, files)
    refuse_overlap(files, out, set_aside)
    for path in (out, set_aside):
        refuse_existing(path, overwrite)
    runner: Runner
    if no_spark:
        from eventcube.cli.in_process import InProcess

        loaded = clock.monotonic()
        runner = InProcess(files, parsed, options, flat=flat, quiet=quiet or as_json)
    else:
        from eventcube.cli.on_spark import OnSpark

        loaded = clock.monotonic()
        runner = OnSpark(files, parsed, options, master, conf, flat=flat, quiet=quiet or as_json)
    try:
        warn_of_missing_type_column(parsed, options, runner.columns, runner.sample)
        warn_of_time_unit(options, runner.columns, runner.sample)

        def check() -> None:
            check_survey(runner.survey, parsed, files.shown, options, allow_missing_types)

        if no_spark or master.startswith("local"):
            compile_seconds = compile_loops(quiet=quiet or as_json)
        matches = _output_matches(runner, out, format_, check)
        survey = runner.survey
        skipped = sum(survey.set_aside.values())
        if set_aside and skipped:
            runner.write_set_aside(Path(set_aside), format_by_name(set_aside) or "parquet")
        elif set_aside:
            # Remove the skipped rows of an earlier run, which would be taken for those of this one.
            remove(Path(set_aside))
        ended = clock.monotonic()
    finally:
        runner.close()
    summary = Summary(
        survey.events,
        skipped,
        matches,
        ended - loaded - runner.start_seconds - compile_seconds,
        out,
        set_aside if skipped else None,
        survey.set_aside,
        bool(parsed.agg),
        {name: count for name, count in runner.counters.items() if name.startswith(("inner_", "view_"))},
        loaded - begun + runner.start_seconds,
        compile_seconds,
        not no_spark,
    )
    if as_json:
        click.echo(summary.as_json())
    elif not quiet:
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
