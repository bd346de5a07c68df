"""The columns that queries speak of, with the kinds that their values most likely have.

How queries relate depends on columns hardly ever, so that a cube can tell it before it has seen an event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import pyarrow as pa

from eventcube.errors import BindError, Diagnostic, QueryError, Span
from eventcube.language import syntax as s
from eventcube.nodes import walk
from eventcube.options import MeaningSettings
from eventcube.schema import INTERNAL, EventSchema, names

# What helps where kinds cannot be guessed.
GIVE_COLUMNS = "give Cube(…, columns=events.schema)"
# The columns of time and type where no setting names them; no query sees them.
_TIME, _TYPE = INTERNAL + "time", INTERNAL + "type"
_TIMES = frozenset({"ts", "time", "timestamp"})
_OF_TEXT = frozenset({"LOWER", "UPPER", "LENGTH"})
_OF_TIMES = frozenset({"YEAR", "MONTH", "DAY", "WEEKDAY", "HOUR", "MINUTE", "DATE"})


def guessed_schema(
    queries: Iterable[s.Query], settings: MeaningSettings, known: pa.Schema | None = None
) -> EventSchema:
    """A schema that the queries most likely fit, with the columns that settings name; `known` ones are not guessed."""
    found = list(queries)
    time, type_ = settings.get("time", _TIME), settings.get("type", _TYPE)
    keys, ties = names(settings.get("partition_by")), names(settings.get("order_by"))
    mentioned = {node.name for query in found for node in walk(query) if isinstance(node, s.Attribute | s.Column)}
    types: dict[str, pa.DataType] = {}
    # A comparison of two columns tells the one what the other is; a few rounds reach along chains of them.
    for _ in range(4):
        for query in found:
            for node in walk(query):
                _note(node, types)
    columns = {name: types.get(name) or _by_name(name) for name in sorted({*mentioned, *keys, *ties})}
    roles = {time: pa.int64() if types.get(time) == pa.float64() else pa.timestamp("us")}
    if type_ is not None:
        roles[type_] = pa.string()
    if known is None:
        columns |= roles
    else:
        columns = {field.name: field.type for field in known}
        columns |= {name: role for name, role in roles.items() if name.startswith(INTERNAL)}
    return EventSchema(pa.schema(columns), time, type_, keys, ties)


def not_guessed(error: QueryError, queries: Collection[s.Query], schema: EventSchema) -> BindError:
    """The error for queries that do not fit guessed kinds of columns, with the places where they do not."""
    query = next(query for query in queries if (query.text, query.source) == (error.text, error.source))

    def told(problem: Diagnostic) -> Diagnostic:
        span = problem.span or s.NOWHERE
        inside = [node for node in walk(query) if isinstance(node, s.Attribute) and _is_inside(node.span, span)]
        kinds = {node.name: schema.kind(node.name).value for node in inside if node.name in schema.columns.names}
        elsewhere = "".join(f"; otherwise {name} is taken for {kind}" for name, kind in kinds.items())
        message = f"the kinds of columns cannot be guessed: {problem.message}"
        return replace(problem, code="EC468", message=message, hint=GIVE_COLUMNS + elsewhere)

    others = [not_guessed(other, queries, schema) for other in error.others]
    return BindError(map(told, error.diagnostics), error.text, error.source, others)


def _is_inside(part: Span, whole: Span) -> bool:
    return whole.start <= part.start and part.end <= whole.end


def of_any_kind(schema: EventSchema) -> EventSchema:
    """The schema with columns whose values fit every operation."""
    kinds = {name: pa.string() if name == schema.type else pa.null() for name in schema.columns.names}
    return replace(schema, columns=pa.schema(kinds))


def _by_name(name: str) -> pa.DataType:
    return pa.timestamp("us") if name.lower() in _TIMES else pa.float64()


def _note(node: object, types: dict[str, pa.DataType]) -> None:
    """Take note of what a node says of columns."""
    match node:
        case s.Comparison(_, left, right):
            _alike([left, right], types)
        case s.In(value, choices):
            _alike([value, *choices], types)
        case s.Between(value, low, high):
            _alike([value, low, high], types)
        case s.Like(s.Attribute() as attribute):
            types.setdefault(attribute.name, pa.string())
        case s.Truth(s.Attribute() as attribute):
            types.setdefault(attribute.name, pa.bool_())
        case s.Every(s.Attribute() as attribute):
            types.setdefault(attribute.name, pa.timestamp("us"))
        case s.Call(function, arguments):
            for argument in arguments:
                if isinstance(argument, s.Attribute) and function in _OF_TEXT | _OF_TIMES:
                    types.setdefault(argument.name, pa.string() if function in _OF_TEXT else pa.timestamp("us"))


def _alike(values: Iterable[s.Value], types: dict[str, pa.DataType]) -> None:
    """Values that are compared with each other have types alike."""
    known = next((kind for value in values if (kind := _type(value, types)) is not None), None)
    for value in values:
        if known is None:
            return
        if isinstance(value, s.Attribute):
            types.setdefault(value.name, known)
        elif pa.types.is_duration(known) and isinstance(value, s.Arithmetic):
            for side in (value.left, value.right):
                if isinstance(side, s.Attribute):
                    types.setdefault(side.name, pa.timestamp("us"))


def _type(value: s.Value, types: dict[str, pa.DataType]) -> pa.DataType | None:
    """The type of a value, if something is known of it."""
    match value:
        case s.Attribute(name=name):
            return types.get(name) or (pa.timestamp("us") if name.lower() in _TIMES else None)
        case s.Literal(value=bool()):
            return pa.bool_()
        case s.Literal(value=str()):
            return pa.string()
        case s.Literal(value=int() | float()):
            return pa.float64()
        case s.Duration():
            return pa.duration("us")
        case s.Timestamp():
            return pa.timestamp("us")
    return None
