"""`check`: all errors and probable mistakes of a query, without running it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar, Unpack

import pyarrow as pa

from eventcube import markup
from eventcube.errors import Diagnostic, EventCubeError, QueryError
from eventcube.language.check import check_result_columns
from eventcube.language.parse import parse
from eventcube.language.printer import print_query
from eventcube.language.syntax import Attribute, Query
from eventcube.nodes import children
from eventcube.options import Options, Settings, StrategyChoice, invalid_argument, options
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
        problems = [*self.rendered(self.errors, "error"), *self.rendered(self.warnings, "warning")]
        query = [print_query(self.query)] if self.query is not None and self.ok else []
        return "\n\n".join([*problems, *query, self._verdict()])

    def __repr__(self) -> str:
        codes = [d.code for d in (*self.errors, *self.warnings)]
        return f"<Check: {self._verdict()}{': ' + ', '.join(codes) if codes else ''}>"

    def rendered(self, problems: Iterable[Diagnostic], label: str) -> list[str]:
        """Problems as text, each with its place in the query."""
        placed = problems if self.text else (replace(p, span=None) for p in problems)
        return [p.render(self.text, self.source, label) for p in placed]

    def _verdict(self) -> str:
        errors, warnings = len(self.errors), len(self.warnings)
        counts = [f"{n} {word}{'s' * (n > 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
        return f"{', '.join(counts) or 'ok'} ({self.against})"

    def _repr_html_(self) -> str:
        pieces = [markup.heading(self._verdict())]
        for problems, label in ((self.errors, "error"), (self.warnings, "warning")):
            pieces += [markup.laid_out(text) for text in self.rendered(problems, label)]
        if self.query is not None and self.ok:
            pieces.append(markup.query(print_query(self.query)))
        return markup.page(*pieces)


@takes_settings
def check(query: str | Query, events: Any = None, **settings: Unpack[Settings]) -> Check:
    """All errors and probable mistakes of a query; nothing is raised.

    Events are whatever `match` takes, or just their Arrow schema; without events only the query is checked. The rows of
    a frame in this process are checked, too: missing types, unusable rows, unlikely times. A Spark DataFrame is not
    read.
    """
    errors: list[Diagnostic] = []
    chosen = _attempt(lambda: options(**settings), errors)
    if events is None or isinstance(events, pa.Schema):
        return examine(query, events, iter(()), chosen, errors)
    from eventcube.explain import columns_of
    from eventcube.runtime.frames import is_spark, to_arrow

    if is_spark(events):
        from eventcube.spark.source import source_names

        return examine(query, columns_of(events), iter(()), chosen, errors, sources=source_names(events))
    table = to_arrow(events)
    return examine(query, table.schema, iter((table,)), chosen, errors)


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
) -> Check:
    """`check` for events in batches, which need only the columns of `inspected_columns`.

    `wrong_settings` has the errors if options is None. `sources` are the names of the input, `shown` is its name in
    messages; `spell` writes the names of settings in messages.
    """
    if not isinstance(query, str | Query):
        raise invalid_argument("query", query, "one query as text")
    text, source = (query.text, query.source) if isinstance(query, Query) else (str(query), "query")
    against = "the query alone" if columns is None else "with the columns of the events"
    result = Check(None, (), (), text, source, against)
    try:
        parsed = parse(query) if isinstance(query, str) else query
    except QueryError as error:
        return replace(result, errors=tuple(error.diagnostics))
    errors = list(wrong_settings)
    schema = None if options is None else _attempt(lambda: _schema(parsed, columns, options), errors)
    concepts = None if options is None else options.concepts
    bound = None if schema is None else _attempt(lambda: bind(parsed, schema, concepts), errors)
    _attempt(lambda: check_result_columns(parsed), errors)
    if options is not None and (options.limit is not None or options.strategy != StrategyChoice()):
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
