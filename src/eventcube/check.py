"""`check`: all errors and probable mistakes of a query, without running it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar, Unpack, overload

import pyarrow as pa

from eventcube import markup
from eventcube.errors import Diagnostic, EventCubeError, QueryError
from eventcube.language.check import check_result_columns
from eventcube.language.parse import parse
from eventcube.language.printer import print_query
from eventcube.language.syntax import Attribute, Query
from eventcube.nodes import children
from eventcube.options import AUTO, Options, Settings, StrategyChoice, invalid_argument, options
from eventcube.plan.advice import advise
from eventcube.plan.bind import bind
from eventcube.plan.planned import plan_query
from eventcube.plan.suspicions import missing_window, suspicions
from eventcube.schema import INTERNAL, EventSchema, Kind, kind_of
from eventcube.settings import takes_settings
from eventcube.slips import Spelling, as_argument, counted_times, other_source, perhaps_untyped

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Check:
    """The errors and warnings of a query; with errors it cannot run.

    It is true if there are no errors. `query` is the parsed query, or None if it has syntax errors.
    """

    query: Query | None
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    text: str
    source: str = "query"
    against: str = "the query alone"

    @property
    def ok(self) -> bool:
        """Whether the query can run."""
        return not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        query = [print_query(self.query)] if self.query is not None and self.ok else []
        return "\n\n".join([*self.problems, *query, self.verdict])

    def __repr__(self) -> str:
        codes = [d.code for d in (*self.errors, *self.warnings)]
        return f"<Check: {self.verdict}{': ' + ', '.join(codes) if codes else ''}>"

    @property
    def problems(self) -> list[str]:
        """All errors and warnings as text."""
        return [*self.rendered(self.errors, "error"), *self.rendered(self.warnings, "warning")]

    def rendered(self, problems: Iterable[Diagnostic], label: str) -> list[str]:
        """Problems as text, each with its place in the query."""
        placed = problems if self.text else (replace(p, span=None) for p in problems)
        return [p.render(self.text, self.source, label) for p in placed]

    @property
    def verdict(self) -> str:
        """How many errors and warnings there are, and what the query was checked against."""
        errors, warnings = len(self.errors), len(self.warnings)
        counts = [f"{n} {word}{'s' * (n > 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
        return f"{', '.join(counts) or 'ok'} ({self.against})"

    def _repr_html_(self) -> str:
        pieces = [markup.heading(self.verdict), *map(markup.laid_out, self.problems)]
        if self.query is not None and self.ok:
            pieces.append(markup.query(print_query(self.query)))
        return markup.page(*pieces)


class Checks(dict[str, Check]):
    """The checks of several queries by name; true if all of them can run."""

    @property
    def ok(self) -> bool:
        """Whether all queries can run."""
        return all(self.values())

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n\n".join("\n".join([f"{name}: {found.verdict}", *found.problems]) for name, found in self.items())

    def __repr__(self) -> str:
        return f"<Checks: {', '.join(f'{name}: {found.verdict}' for name, found in self.items())}>"

    def _repr_html_(self) -> str:
        pieces = []
        for name, found in self.items():
            pieces += [markup.heading(f"{name}: {found.verdict}"), *map(markup.laid_out, found.problems)]
        return markup.page(*pieces)


@overload
def check(query: str | Query, events: Any = ..., **settings: Unpack[Settings]) -> Check: ...


@overload
def check(
    query: list[str | Query] | tuple[str | Query, ...] | Mapping[str, str | Query],
    events: Any = ...,
    **settings: Unpack[Settings],
) -> Checks: ...


@takes_settings
def check(query: Any, events: Any = None, **settings: Unpack[Settings]) -> Check | Checks:
    """All errors and probable mistakes of a query, or of each of several by name; nothing is raised.

    Events are whatever `match` takes, or just their Arrow schema; without events only the query is checked. The rows of
    a frame in this process are checked, too: missing types, unusable rows, unlikely times. A Spark DataFrame is not
    read.
    """
    errors: list[Diagnostic] = []
    chosen = _attempt(lambda: options(**settings), errors)
    columns, batches, sources = _input(events)
    if isinstance(query, str | Query):
        return examine(query, columns, iter(batches), chosen, errors, sources=sources)
    from eventcube.runtime.queries import named_queries

    return Checks(
        {
            name: examine(one, columns, iter(batches), chosen, errors, sources=sources, source=name)
            for name, one in named_queries(query).items()
        }
    )


def _input(events: Any) -> tuple[pa.Schema | None, tuple[pa.Table, ...], Collection[str]]:
    """The columns of events, their rows if they are in this process, and the names of the input."""
    if events is None or isinstance(events, pa.Schema):
        return events, (), ()
    from eventcube.explain import columns_of
    from eventcube.runtime.frames import is_spark, to_arrow

    if is_spark(events):
        from eventcube.spark.source import source_names

        return columns_of(events), (), source_names(events)
    table = to_arrow(events)
    return table.schema, (table,), ()


def examine(
    query: str | Query,
    columns: pa.Schema | None,
    batches: Iterator[pa.Table],
    options: Options | None,
    wrong_settings: Sequence[Diagnostic] = (),
    *,
    sources: Collection[str] = (),
    shown: str | None = None,
    spell: Spelling = as_argument,
    source: str = "query",
) -> Check:
    """`check` for events in batches, which need only the columns of `inspected_columns`.

    `wrong_settings` has the errors if options is None. `sources` are the names of the input, `shown` is its name in
    messages; `spell` writes the names of settings in messages. `source` is the name of a query that is text.
    """
    if not isinstance(query, str | Query):
        raise invalid_argument("query", query, "one query as text")
    text, source = (query.text, query.source) if isinstance(query, Query) else (str(query), source)
    against = "the query alone" if columns is None else "with the columns of the events"
    result = Check(None, (), (), text, source, against)
    try:
        parsed = parse(query, source) if isinstance(query, str) else query
    except QueryError as error:
        return replace(result, errors=tuple(error.diagnostics))
    errors = list(wrong_settings)
    schema = None if options is None else _attempt(lambda: _schema(parsed, columns, options), errors)
    concepts = None if options is None else options.concepts
    bound = None if schema is None else _attempt(lambda: bind(parsed, schema, concepts), errors)
    _attempt(lambda: check_result_columns(parsed), errors)
    chosen = options is not None and (options.strategy != StrategyChoice() or options.flat_strategy != AUTO)
    if options is not None and (chosen or options.limit is not None):
        _attempt(lambda: _check_options(parsed, schema if bound is not None else None, options), errors)
    # A query that does not fit the columns may have other mistakes, too.
    warnings = suspicions(parsed) if bound is None else [*missing_window(parsed), *advise(bound)]
    from_ = other_source(parsed, sources, shown or ", ".join(sources))
    warnings += [from_] if from_ is not None else []
    first = next(batches, None) if schema is not None else None
    if schema is not None and first is not None:
        from eventcube.runtime.adviser import inspect

        against = "with the events"
        if_zoned = () if bound is None else bound.warnings_if_zoned
        warnings += inspect(parsed, schema, concepts, chain((first,), batches), spell, if_zoned)
    elif columns is not None and bound is not None:
        forgotten = perhaps_untyped(bound, spell)
        warnings += [forgotten] if forgotten is not None else []
        against += counted_times(bound.schema, spell)
    return replace(result, query=parsed, errors=tuple(errors), warnings=tuple(warnings), against=against)


def _check_options(query: Query, schema: EventSchema | None, options: Options) -> None:
    """Refuse a limit and strategies that do not fit the query."""
    # Imports the strategies, which takes a while.
    from eventcube.runtime.queries import check_options

    check_options({query.source: query}, options)
    if schema is not None:
        plan_query(query, schema, options)


def _attempt(call: Callable[[], _Result], errors: list[Diagnostic]) -> _Result | None:
    """The result of the call; None if it fails, with its errors added to the list."""
    try:
        return call()
    except QueryError as error:
        errors += error.diagnostics
    except EventCubeError as error:
        errors.append(Diagnostic(error.code, error.message, hint=error.hint))
    return None


def _schema(query: Query, columns: pa.Schema | None, chosen: Options) -> EventSchema:
    """The schema of the events; for unknown columns, of null types that fit every operation."""
    if columns is not None:
        return chosen.schema(columns)
    # A type column may exist, too.
    chosen = replace(chosen, type=chosen.type or INTERNAL + "type")
    roles = (chosen.time, *chosen.partition_by, *chosen.order_by)
    known = {**dict.fromkeys(roles, pa.null()), str(chosen.type): pa.string()}
    return chosen.schema(mentioned_columns(query, known), internal=True)


def mentioned_columns(query: Query, known: Mapping[str, pa.DataType]) -> pa.Schema:
    """The known columns, and those that the query names, with the type null."""
    fields = dict(known) | {column.name: pa.null() for column in query.partition_by if column.name not in known}
    queue: list[object] = [query]
    while queue:
        node = queue.pop(0)
        if isinstance(node, Attribute):
            fields.setdefault(node.name, pa.null())
        queue += children(node)
    return pa.schema(list(fields.items()))


def inspected_columns(columns: pa.Schema, time: str, type_: str | None) -> list[str]:
    """The columns whose values `examine` reads: time and type, or all text columns if no type is named."""
    wanted = {time, type_} if type_ is not None else {time, *(f.name for f in columns if kind_of(f.type) is Kind.TEXT)}
    return [name for name in columns.names if name in wanted]
