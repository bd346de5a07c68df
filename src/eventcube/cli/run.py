"""`eventcube run`: runs a query over files of events."""

from __future__ import annotations

import click

from eventcube.cli.query import read_query
from eventcube.cli.run_options import RunOptions, takes_run_options
from eventcube.cli.run_queries import prepare, run_queries
from eventcube.cli.settings import takes_options
from eventcube.options import MEANING_SETTINGS, Options


@click.command(short_help="Ask a query of Parquet, CSV or JSON files.")
@click.argument("query")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@takes_options(*MEANING_SETTINGS, "until", "limit", "strategy", "flat_strategy", "aggregates")
@click.option("--flat", is_flag=True, help="A column a_ts, a_id, … for each column of an event a, instead of a struct.")
@takes_run_options
def run(query: str, inputs: tuple[str, ...], options: Options, flat: bool, how: RunOptions) -> None:
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
    parsed = read_query(query)
    run_queries(parsed, prepare(inputs, parsed, how), options, how, flat=flat)
