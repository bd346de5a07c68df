"""The columns that queries speak of, with the kinds that their values most likely have.

How queries relate depends on columns hardly ever, so that a cube can tell it before it has seen an event.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from eventcube.language import syntax as s
from eventcube.nodes import walk
from eventcube.schema import EventSchema

# The columns of time and type, whose names no query can have.
TIME, TYPE = "\0time", "\0type"
_TIMES = frozenset({"ts", "time", "timestamp"})
_OF_TEXT = frozenset({"LOWER", "UPPER", "LENGTH"})
_OF_TIMES = frozenset({"YEAR", "MONTH", "DAY", "WEEKDAY", "HOUR", "MINUTE", "DATE"})


def guessed_schema(queries: Iterable[s.Query], known: pa.Schema | None = None) -> EventSchema:
    """A schema that the queries most likely fit; of `known` columns nothing is guessed."""
    found = list(queries)
    names = {node.name for query in found for node in walk(query) if isinstance(node, s.Attribute | s.Column)}
    types: dict[str, pa.DataType] = {}
    # A comparison of two columns tells the one what the other is; a few rounds reach along chains of them.
    for _ in range(4):
        for query in found:
            for node in walk(query):
                _note(node, types)
    columns = {name: types.get(name) or _by_name(name) for name in sorted(names)}
    if known is not None:
        columns = {field.name: field.type for field in known}
    return EventSchema(pa.schema({TIME: pa.timestamp("us"), TYPE: pa.string(), **columns}), TIME, TYPE)


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
