"""`eventcube check`: is a query right, and does it fit the events?"""

from __future__ import annotations

import click

from eventcube.cli.columns import input_columns, parse_columns
from eventcube.cli.inputs import FORMATS, find_inputs
from eventcube.cli.query import read_query
from eventcube.cli.settings import event_options, make_settings
from eventcube.errors import OptionError
from eventcube.language.printer import print_query
from eventcube.language.syntax import Component
from eventcube.options import options
from eventcube.plan.bind import bind


@click.command(short_help="Tell all that is wrong with a query.")
@click.argument("query")
@click.option("--schema", "schema", multiple=True, metavar="INPUT", help="Files whose columns the query should fit.")
@click.option("--columns", help="The columns, as in SQL: 'ts timestamp, kind string, price double'.")
@click.option(
    "--input-format", type=click.Choice(list(FORMATS)), help="The format of the files, if their name does not say."
)
@event_options
def check(
    query: str,
    schema: tuple[str, ...],
    columns: str | None,
    input_format: str | None,
    time: str,
    type_: str | None,
    partition_by: str | None,
    order_by: str | None,
    concepts: str | None,
    time_unit: str,
) -> None:
    """Check QUERY (a file, or the text itself): its syntax, and with --schema or --columns also that it fits them.

    Prints the query in its normal form and "ok", or all that is wrong (exit code 2). Starts no Spark.

    \b
    Example:
      eventcube check 'PATTERN SEQ(Login a, Login b) WHERE a.user = b.user WITHIN 1 hour' \\
          --type kind --columns 'ts timestamp, kind string, user string'
    """
    parsed = read_query(query)
    if schema and columns:
        raise OptionError("--schema and --columns say the same twice", code="EC422", hint="leave out one of them")
    if schema or columns:
        found = parse_columns(columns) if columns else input_columns(find_inputs(schema, input_format))
        settings = make_settings(time, type_, partition_by, order_by, concepts, time_unit).for_match()
        hierarchy = settings.pop("concepts")
        bind(parsed, options(**settings).schema(found), hierarchy)
    if parsed.within is None and not isinstance(parsed.pattern, Component):
        click.echo("warning: the query has no WITHIN: it can be slow, and find very much", err=True)
        click.echo("hint: add, say, WITHIN 10 minutes", err=True)
    click.echo(print_query(parsed))
    click.echo(
        "ok" if schema or columns else "ok (syntax only; --schema or --columns checks that it fits the events)",
        err=True,
    )
