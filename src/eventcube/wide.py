"""`wide`: the matches of one query out of a result that several share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.printer import column_name
from eventcube.language.syntax import Component, Not, Pattern, Query
from eventcube.runtime.frames import from_arrow, is_spark, to_arrow
from eventcube.runtime.many import wide_form


def wide(matches: Any, name: str, query: str | Query | Sequence[str]) -> Any:
    """The matches of the query of that name: `start`, `end` and a column for each variable, null where not taken.

    Which variables there are is said by the query, as text or parsed, or by a list of names.
    """
    if isinstance(query, str):
        query = parse(query)
    variables = _variables(query) if isinstance(query, Query) else list(query)
    if is_spark(matches):
        from eventcube.spark.wide import wide_frame

        return wide_frame(matches, name, variables)
    table = to_arrow(matches)
    if table.schema.names != ["query", "start", "end", "events"]:
        raise OptionError(
            "this is not the result of several queries", code="EC411", hint="match with a list or dict of queries"
        )
    if not pa.types.is_list(table.schema.field("events").type):
        # A pandas frame without rows does not know what an event is.
        nothing = pa.table({v: pa.nulls(0) for v in variables})
        empty = table.select(["start", "end"]).slice(0, 0)
        return from_arrow(pa.table({**_columns(empty), **_columns(nothing)}), matches)
    return from_arrow(wide_form(table, name, variables), matches)


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _variables(query: Query) -> list[str]:
    """The columns of a query's own result that hold events."""
    return [column_name(item) for item in query.returns] or [c.name for c in _positive(query.pattern)]


def _positive(pattern: Pattern) -> Iterator[Component]:
    if isinstance(pattern, Component):
        yield pattern
        return
    for part in pattern.parts:
        if not isinstance(part, Not):
            yield from _positive(part)
