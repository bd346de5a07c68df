"""`eventcube cube`: asks the related queries of a workload file at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from eventcube.cli.columns import input_columns
from eventcube.cli.compiling import compile_loops
from eventcube.cli.inputs import Inputs, find_inputs
from eventcube.cli.outputs import refuse_existing
from eventcube.cli.result_files import plain_write_errors
from eventcube.cli.run_options import RunOptions, takes_run_options
from eventcube.cli.run_queries import prepare, run_queries
from eventcube.cli.settings import takes_given_settings
from eventcube.cli.temporary import temporary_file
from eventcube.errors import BindError, OptionError, QueryError
from eventcube.options import MEANING_SETTINGS
from eventcube.workload_files.workload import Workload, read_workload

if TYPE_CHECKING:
    from eventcube.cube.graph import CubeGraph
    from eventcube.options import MeaningSettings

SCREEN = "-"
# Endings of graphs: Mermaid, and JSON.
_MERMAID, _JSON = (".mmd", ".mermaid"), ".json"


@click.command(short_help="Ask related queries at once, and show how they relate.")
@click.argument("workload")
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option("--counts", is_flag=True, help="Count the matches of each query instead of finding them: far less work.")
@click.option(
    "--explain",
    is_flag=True,
    help="Show how the queries run over the first events, and which are computed from which, instead of matches.",
)
@click.option(
    "--graph",
    metavar="FILE",
    help="Write which queries refine which: as Mermaid (.mmd), as JSON (.json), or on the screen (-): as text, or with "
    "--json as JSON.",
)
@takes_given_settings(*MEANING_SETTINGS, "until", "limit", "strategy", "flat_strategy", "sharing", "aggregates")
@takes_run_options
def cube(
    workload: str,
    inputs: tuple[str, ...],
    counts: bool,
    explain: bool,
    graph: str | None,
    given: dict[str, Any],
    how: RunOptions,
) -> None:
    """Find the matches of all queries in WORKLOAD, a YAML file, in the events of INPUT. Related queries share work.

    \b
    WORKLOAD: queries by name, the hierarchy of types, and settings, which options on the command line replace.
    INPUT: as for `eventcube run`. Without one, only --graph makes sense.
    Example:
      eventcube cube moves.yaml readings.csv --counts

    \b
    moves.yaml:
      concepts:
        Texas: {Dallas: [DallasBus, DallasShelter], Austin: []}
        Oklahoma: [Tulsa]
      within: 1 hour                   # the window of queries that have none
      queries:
        north: PATTERN SEQ(Texas a, Oklahoma b)
        by_bus: PATTERN SEQ(DallasBus a, Tulsa b)
      settings:
        type: place
        partition_by: person

    Matches are rows of one table: query, start, end, and the events. --out, --format and the other options are those
    of `eventcube run`.
    """
    asked = read_workload(workload, given)
    _check_arguments(workload, inputs, counts, explain, graph, how)
    runs = bool(inputs) and (counts or not explain or how.out is not None or how.format_ is not None)
    if runs and not counts:
        _refuse_values(asked)
    job = prepare(inputs, asked.queries, how, counting=counts) if runs else None
    files = job.inputs if job is not None else find_inputs(inputs, how.input_format) if inputs else None
    if graph is not None:
        related = _graph(asked, files)
        if graph == SCREEN:
            click.echo(related.to_json() if how.as_json else str(related) + "\n" * bool(inputs))
    if explain and files is not None:
        compile_loops(quiet=how.silent)
        click.echo(_explanation(asked, files, counting=counts) + "\n" * runs)
    if job is not None:
        run_queries(asked.queries, job, asked.options, how, counting=counts)
    if graph not in (None, SCREEN):
        _write_graph(related, Path(graph))
        if not how.silent:
            click.echo(f"graph written to {graph}", err=True)


def _check_arguments(
    workload: str, inputs: tuple[str, ...], counts: bool, explain: bool, graph: str | None, how: RunOptions
) -> None:
    if not inputs:
        asked = {"--counts": counts, "--explain": explain, "--out": how.out, "--format": how.format_}
        option = next((name for name, value in asked.items() if value), None)
        if option is not None or graph is None:
            message = f"{option} needs events" if option else "there are no events"
            raise OptionError(
                message,
                code="EC475",
                hint="name an INPUT; without one, --graph FILE or --graph - shows how queries relate",
            )
    if graph is not None and graph != SCREEN:
        if not graph.lower().endswith((*_MERMAID, _JSON)):
            hint = "name a file that ends in .mmd or .json, or - for text on the screen"
            raise OptionError(f"--graph {graph} is neither Mermaid nor JSON", code="EC420", hint=hint)
        others = [path for path in (workload, how.out, how.set_aside, *inputs) if path is not None]
        if Path(graph).resolve() in (Path(path).resolve() for path in others):
            raise OptionError(f"--graph {graph} would write over another file of this run", code="EC422")
        refuse_existing(graph, how.overwrite)
    to_stdout = how.as_json or (how.out is None and how.format_ not in (None, "screen"))
    if inputs and to_stdout and (graph == SCREEN or explain):
        option = "--explain" if explain else "--graph -"
        other = "--json" if how.as_json else f"--format {how.format_}"
        raise OptionError(
            f"{option} and {other} would both go to standard output", code="EC422", hint="leave out one of them"
        )


def _refuse_values(asked: Workload) -> None:
    from eventcube.runtime.shared_result import check_shareable

    try:
        check_shareable(asked.queries)
    except OptionError as error:
        hint = "--counts counts its matches; `eventcube run` gives it a result of its own; or let it return events"
        raise OptionError(error.message, code=error.code, hint=hint) from None


def _graph(asked: Workload, files: Inputs | None) -> CubeGraph:
    """How the queries relate; the columns of the events are read only if their kinds cannot be guessed."""
    from eventcube.event_cube import Cube

    settings: MeaningSettings = {"concepts": asked.options.concepts, "partition_by": asked.options.partition_by}
    try:
        return Cube(asked.queries, **settings).graph
    except BindError as error:
        if error.code != "EC468":
            raise
        if files is None:
            raise _with_cli_advice(error) from None
        columns = input_columns(files, asked.options.time)
        return Cube(asked.queries, columns=columns, advise=False, **settings).graph


def _with_cli_advice(error: QueryError) -> BindError:
    """The error for kinds of columns that cannot be guessed, with what helps on the command line."""
    from eventcube.cube.columns import GIVE_COLUMNS

    problems = [replace(p, hint=(p.hint or "").replace(GIVE_COLUMNS, "name an INPUT")) for p in error.diagnostics]
    return BindError(problems, error.text, error.source, map(_with_cli_advice, error.others))


def _write_graph(graph: CubeGraph, path: Path) -> None:
    text = graph.to_json() + "\n" if path.suffix.lower() == _JSON else graph.to_mermaid()
    with plain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _explanation(asked: Workload, files: Inputs, *, counting: bool) -> str:
    """How the queries run, from the first events."""
    from eventcube.cli.arrow_input import scan_events
    from eventcube.explain import SAMPLED_EVENTS, explain_queries
    from eventcube.match import counting_queries

    options = asked.options
    columns = input_columns(files, options.time)
    first: list[pa.Table] = []
    for table in scan_events(files, columns.names, options.time):
        first.append(table.slice(0, SAMPLED_EVENTS - sum(t.num_rows for t in first)))
        if sum(t.num_rows for t in first) >= SAMPLED_EVENTS:
            break
    queries: Mapping[str, Any] = asked.queries
    if counting:
        queries, options = counting_queries(queries), replace(options, limit=None)
    text = str(explain_queries(queries, pa.concat_tables(first) if first else columns, options))
    return text if ": computed from " in text else f"{text}\nno query is computed from the matches of another"
