"""`eventcube check`: reports errors and probable mistakes of a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import click
import pyarrow as pa

from eventcube.check import examine, inspected_columns
from eventcube.cli.columns import input_columns, parse_columns
from eventcube.cli.input_warnings import input_names
from eventcube.cli.inputs import FORMATS, Inputs, find_inputs
from eventcube.cli.query import read_query
from eventcube.cli.settings import takes_options
from eventcube.errors import OptionError
from eventcube.language.printer import print_query
from eventcube.options import MEANING_SETTINGS, Options
from eventcube.slips import as_flag

_MISTAKE = 2


@click.command(short_help="Tell all that is wrong with a query.")
@click.argument("query")
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option("--schema", "schema", multiple=True, metavar="INPUT", help="The same as INPUT.")
@click.option("--columns", help="The columns, as in SQL, instead of INPUT: 'ts timestamp, kind string, price double'.")
@click.option("--input-format", type=click.Choice(list(FORMATS)), help="The format of INPUT, if its name does not say.")
@takes_options(*MEANING_SETTINGS)
@click.pass_context
def check(
    context: click.Context,
    query: str,
    inputs: tuple[str, ...],
    schema: tuple[str, ...],
    columns: str | None,
    input_format: str | None,
    options: Options,
) -> None:
    """Check QUERY (a file, or the text itself): its syntax, its conditions, and that it fits the columns and events.

    Prints the query in its normal form and "ok", or all errors (exit code 2). Warns of probable mistakes. With INPUT,
    the times and types of its events are checked, too. Starts no Spark.

    \b
    Example:
      eventcube check 'PATTERN SEQ(Login a, Login b) WHERE a.user = b.user WITHIN 1 hour' \\
          --type kind --columns 'ts timestamp, kind string, user string'
    """
    parsed = read_query(query)
    paths = (*inputs, *schema)
    if paths and columns:
        raise OptionError("INPUT and --columns say the same twice", code="EC422", hint="leave out one of them")
    known, names, shown, batches = None, set[str](), None, iter(())
    if columns:
        known = parse_columns(columns)
    elif paths:
        files = find_inputs(paths, input_format)
        known, names, shown = input_columns(files, options.time), input_names(files), files.shown
        batches = _events(files, inspected_columns(known, options.time, options.type), options.time)
    result = examine(parsed, known, batches, options, sources=names, shown=shown, spell=as_flag)
    # A type that no event has is an error, as in `run`.
    missing = [replace(w, code="EC202") for w in result.warnings if w.code == "EC501"]
    warnings = [w for w in result.warnings if w.code != "EC501"]
    errors = [*result.errors, *missing]
    messages = [*result.rendered(warnings, "warning"), *result.rendered(errors, "error")]
    if messages:
        click.echo("\n\n".join(messages), err=True)
    if errors:
        context.exit(_MISTAKE)
    click.echo(print_query(parsed))
    click.echo("ok" if known is not None else "ok (INPUT or --columns checks that it fits the events)", err=True)


def _events(inputs: Inputs, columns: list[str], time: str) -> Iterator[pa.Table]:
    from eventcube.cli.arrow_input import scan_events

    return scan_events(inputs, columns, time)
