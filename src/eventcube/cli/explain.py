"""`eventcube explain`: how a query would run."""

from __future__ import annotations

import click
import pyarrow as pa

from eventcube.check import mentioned_columns
from eventcube.cli.columns import input_columns, parse_columns
from eventcube.cli.compiling import compile_loops
from eventcube.cli.inputs import FORMATS, find_inputs
from eventcube.cli.query import read_query
from eventcube.cli.settings import takes_options
from eventcube.errors import OptionError
from eventcube.options import MEANING_SETTINGS, Options, StrategyChoice
from eventcube.plan import explain as plan
from eventcube.plan.parts import nested


@click.command(short_help="Show how a query would run.")
@click.argument("query")
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option("--columns", help="The columns, as in SQL, instead of INPUT: 'ts timestamp, kind string, price double'.")
@click.option("--input-format", type=click.Choice(list(FORMATS)), help="The format of INPUT, if its name does not say.")
@takes_options(*MEANING_SETTINGS, "strategy", "flat_strategy", "aggregates")
@click.option("--analyze", is_flag=True, help="Run it over INPUT in this process, and show what was counted.")
def explain(
    query: str,
    inputs: tuple[str, ...],
    columns: str | None,
    input_format: str | None,
    options: Options,
    analyze: bool,
) -> None:
    """Show the plan of QUERY (a file, or the text itself) over INPUT: keys, predicates, steps and the result's columns.

    Without INPUT or --columns, the columns that the query names are assumed to exist. Starts no Spark. With --analyze
    the query is run, and its counters stand beside the cost model's estimates for each strategy.

    \b
    Example:
      eventcube explain 'PATTERN SEQ(Login a, !Logout b, Login c) WHERE a.user = c.user WITHIN 1 hour' --type kind
    """
    parsed = read_query(query)
    if inputs and columns:
        raise OptionError("INPUT and --columns say the same twice", code="EC422", hint="leave out one of them")
    if inputs:
        schema = input_columns(find_inputs(inputs, input_format), options.time)
    else:
        known = {options.time: pa.timestamp("us"), **({options.type: pa.string()} if options.type is not None else {})}
        schema = parse_columns(columns) if columns else mentioned_columns(parsed, known)
    if analyze or options.strategy != StrategyChoice() or any(nested(parsed.pattern)):
        # Imports the strategies, which takes a while.
        from eventcube.cli.arrow_input import read_events
        from eventcube.explain import explain_query

        if analyze and not inputs:
            raise OptionError("--analyze needs events", code="EC419", hint="name an INPUT")
        events = read_events(find_inputs(inputs, input_format), options.time) if analyze else schema
        if analyze:
            compile_loops()
        click.echo(explain_query(parsed, events, options, analyze=analyze))
        return
    click.echo(plan.explain(parsed, schema, options))
