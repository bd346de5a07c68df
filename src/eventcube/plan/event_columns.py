"""The events of matches as plain columns: `a_ts`, `a_id`, … in place of a struct `a`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from eventcube.errors import OptionError
from eventcube.language.printer import column_name
from eventcube.language.syntax import Component, Not, Pattern, Query, Variable


@dataclass(frozen=True, slots=True)
class PlainColumn:
    """A column of a flat table: a column of the matches, or one field of a column of events."""

    name: str
    column: str
    field: str | None = None

    def __str__(self) -> str:
        return self.column if self.field is None else f"{self.column}.{self.field}"


def positive(pattern: Pattern) -> Iterator[Component]:
    """The components that a match binds, in the order of the text."""
    if isinstance(pattern, Component):
        yield pattern
        return
    for part in pattern.parts:
        if not isinstance(part, Not):
            yield from positive(part)


def event_columns(query: Query) -> list[str]:
    """The columns of a query's matches that hold whole events."""
    if query.agg:
        return [] if query.per is None else [query.per.name]
    if query.returns:
        return [column_name(item) for item in query.returns if isinstance(item.value, Variable)]
    return [component.name for component in positive(query.pattern)]


def plain_columns(matches: pa.Schema, events: Collection[str], separator: str = "_") -> list[PlainColumn]:
    """The columns of matches, with each column of events replaced by one column for each field."""
    columns: list[PlainColumn] = []
    for field in matches:
        if field.name in events:
            columns += [PlainColumn(f"{field.name}{separator}{f.name}", field.name, f.name) for f in field.type]
        else:
            columns.append(PlainColumn(field.name, field.name))
    return columns


def flat_columns(matches: pa.Schema, events: Collection[str], *, ignore_case: bool = False) -> list[PlainColumn]:
    """The columns of the flat table of matches; an error if two have the same name."""
    known: dict[str, PlainColumn] = {}
    for column in plain_columns(matches, events):
        before = known.setdefault(column.name.lower() if ignore_case else column.name, column)
        if before is not column:
            inner = column if column.field is not None else before
            raise OptionError(
                f"in a flat table {before} and {column} would both be called {column.name!r}",
                code="EC433",
                hint=f"name one of them otherwise, in RETURN: {inner} AS other_name",
            )
    return list(known.values())


def plain_schema(matches: pa.Schema, columns: Iterable[PlainColumn]) -> pa.Schema:
    """The columns of the flat table, with their types."""
    fields = []
    for column in columns:
        field = matches.field(column.column)
        if column.field is not None:
            inner = field.type.field(column.field)
            field = inner.with_nullable(inner.nullable or field.nullable)
        fields.append(field.with_name(column.name))
    return pa.schema(fields)


def plain_batch(matches: pa.RecordBatch, columns: Iterable[PlainColumn]) -> pa.RecordBatch:
    """The matches as rows of the flat table; an event that was not taken gives nulls."""
    # `flatten` keeps the nulls of the struct, which `field` would lose.
    fields = {c.column: matches.column(c.column).flatten() for c in columns if c.field is not None}
    arrays = [
        matches.column(c.column)
        if c.field is None
        else fields[c.column][matches.schema.field(c.column).type.get_field_index(c.field)]
        for c in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=plain_schema(matches.schema, columns))


def struct_columns(schema: pa.Schema) -> list[str]:
    """The columns that hold structs, of events or not."""
    return [field.name for field in schema if pat.is_struct(field.type)]
