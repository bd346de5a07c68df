"""`Workload`: the queries of a workload file, ready to run, with the options of the command line and of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eventcube.errors import Diagnostic, QueryError, Span
from eventcube.language.identifiers import write_name
from eventcube.language.parse import parse
from eventcube.language.printer import print_window
from eventcube.language.syntax import Query
from eventcube.options import Options, options
from eventcube.workload_files.content import Window, WorkloadFile


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries by name, and the options to run them with; `settings` has those that were written."""

    queries: dict[str, Query]
    options: Options
    settings: dict[str, Any]


def read_workload(path: str, given: Mapping[str, Any] | None = None) -> Workload:
    """The workload in a file; `given` settings win over those of the file.

    All mistakes are raised as one, in the order of the file.
    """
    file = WorkloadFile(path)
    settings: dict[str, Any] = {"concepts": file.concepts, **file.settings, **(given or {})}
    chosen = options(**settings)
    queries: dict[str, Query] = {}
    mistakes: list[tuple[int, QueryError]] = [*file.mistakes()]
    for name, text in file.queries.items():
        try:
            queries[name] = _read_query(name, text, file.within, chosen)
        except QueryError as error:
            mistakes.append((file.places[name], error))
    if mistakes:
        first, *others = (error for _, error in sorted(mistakes, key=lambda mistake: mistake[0]))
        first.others = tuple(others)
        raise first
    return Workload(queries, chosen, settings)


def _read_query(name: str, text: str, window: Window | None, options: Options) -> Query:
    query = parse(text, name)
    problems = list(_contradictions(name, query, window, options))
    if problems:
        raise QueryError(problems, text, name)
    return _completed(query, window, options)


def _contradictions(name: str, query: Query, window: Window | None, options: Options) -> Iterator[Diagnostic]:
    """What a query says otherwise than the workload does."""
    advice = "leave out one of the two, or make them agree"
    if window is not None and query.within is not None and query.within != window:
        texts = [print_window(one) for one in (query.within, window)]
        message = f"query {name} says WITHIN {texts[0]}, and the workload says within: {texts[1]}"
        yield Diagnostic("EC473", message, query.within.span, advice)
    columns = [column.name for column in query.partition_by]
    if columns and options.partition_by and set(columns) != set(options.partition_by):
        texts = [", ".join(map(write_name, names)) for names in (columns, options.partition_by)]
        message = f"query {name} says PARTITION BY {texts[0]}, and the setting partition_by says {texts[1]}"
        yield Diagnostic(
            "EC474", message, Span(query.partition_by[0].span.start, query.partition_by[-1].span.end), advice
        )


def _completed(query: Query, window: Window | None, options: Options) -> Query:
    """The query with the window of the workload, if it has none of its own.

    What it says of partitions is an option already, which the graph of a cube does not know.
    """
    if window is not None and query.within is None:
        query = parse(f"{query.text.rstrip().removesuffix(';')}\nWITHIN {print_window(window)}", query.source)
    return replace(query, partition_by=()) if options.partition_by else query
