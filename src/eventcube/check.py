"""`check`: all that is wrong with a query, and what is probably a slip, without running it."""

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
from eventcube.options import Options, Settings, invalid_argument, options
from eventcube.plan.advice import advise
from eventcube.plan.bind import bind
from eventcube.plan.suspicions import missing_window, suspicions
from eventcube.schema import INTERNAL, EventSchema, Kind, kind_of
from eventcube.settings import takes_settings
from eventcube.slips import Spelling, as_argument, counted_times, other_source, perhaps_untyped

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Check:
    """What `check` found: errors, with which the query does not run, and warnings, with which it does.

    It is true if there are no errors. `query` is the query as it was read, or None if it could not be.
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
        found = [*self.rendered(self.errors, "error"), *self.rendered(self.warnings, "warning")]
        laid_out = [print_query(self.query)] if self.query is not None and self.ok else []
        return "\n\n".join([*found, *laid_out, self._verdict()])

    def __repr__(self) -> str:
        codes = [d.code for d in (*self.errors, *self.warnings)]
        return f"<Check: {self._verdict()}{': ' + ', '.join(codes) if codes else ''}>"

    def rendered(self, problems: Iterable[Diagnostic], label: str) -> list[str]:
        """Problems as they are shown to a person, each with its place in the query."""
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
    """All that is wrong with a query, and what is probably a slip; nothing is raised for it.

    Events are whatever `match` takes, or just their Arrow schema. Without events only the query is looked at. A frame
    in this process is looked at as well: which types its events have, which rows cannot be used, and whether its times
    are where they belong; a Spark DataFrame is not read.
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
    """`check` for events with these columns that come in batches, of which those that `looked_at` names are enough.

    Without options, `wrong_settings` says why there are none. `sources` are the names that the input goes by, `shown`
    is the one for messages; settings are spelled as `spell` does.
    """
    if not isinstance(query, str | Query):
        raise invalid_argument("query", query, "one query as text")
    text, source = (query.text, query.source) if isinstance(query, Query) else (str(query), "query")
    against = "the query alone" if columns is None else "with the columns of the events"
    found = Check(None, (), (), text, source, against)
    try:
        parsed = parse(query) if isinstance(query, str) else query
    except QueryError as error:
        return replace(found, errors=tuple(error.diagnostics))
    errors = list(wrong_settings)
    schema = None if options is None else _attempt(lambda: _schema(parsed, columns, options), errors)
    concepts = None if options is None else options.concepts
    bound = None if schema is None else _attempt(lambda: bind(parsed, schema, concepts), errors)
    _attempt(lambda: check_result_columns(parsed), errors)
    # A query that does not fit the columns may have other slips, too.
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
    return replace(found, query=parsed, errors=tuple(errors), warnings=tuple(warnings), against=against)


def _attempt(call: Callable[[], _Result], errors: list[Diagnostic]) -> _Result | None:
    """What the call gives; None if something is wrong, which is put with the errors."""
    try:
        return call()
    except QueryError as error:
        errors += error.diagnostics
    except EventCubeError as error:
        errors.append(Diagnostic(error.code, error.message, hint=error.hint))
    return None


def _schema(query: Query, columns: pa.Schema | None, chosen: Options) -> EventSchema:
    """The columns and their parts; if they are not known, columns that allow whatever is done with them."""
    if columns is not None:
        return chosen.schema(columns)
    # Whether there are types to group by is not known, either.
    chosen = replace(chosen, type=chosen.type or INTERNAL + "type")
    roles = (chosen.time, *chosen.partition_by, *chosen.order_by)
    known = {**dict.fromkeys(roles, pa.null()), str(chosen.type): pa.string()}
    return chosen.schema(mentioned_columns(query, known), internal=True)


def mentioned_columns(query: Query, known: Mapping[str, pa.DataType]) -> pa.Schema:
    """The known columns and those that the query names, of which it is not known what is in them."""
    fields = dict(known) | {column.name: pa.null() for column in query.partition_by if column.name not in known}
    todo: list[object] = [query]
    while todo:
        node = todo.pop(0)
        if isinstance(node, Attribute):
            fields.setdefault(node.name, pa.null())
        todo += children(node)
    return pa.schema(list(fields.items()))


def looked_at(columns: pa.Schema, time: str, type_: str | None) -> list[str]:
    """The columns of events whose values are looked at: time and type, or all text where no type is named."""
    wanted = {time, type_} if type_ is not None else {time, *(f.name for f in columns if kind_of(f.type) is Kind.TEXT)}
    return [name for name in columns.names if name in wanted]
