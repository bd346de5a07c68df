"""Counts at every level of the hierarchy: what queries are asked for them, and the table of their cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import OptionError
from eventcube.language.check import positive
from eventcube.language.printer import column_name
from eventcube.language.syntax import Aggregate, Item, Levels, Query

QUERY, MATCHES = "query", "matches"


def levels_queries(queries: Mapping[str, Query]) -> dict[str, Query]:
    """The queries whose groups are cells: one for each combination of types of their components, at all levels."""
    return {name: _levels_query(name, query) for name, query in queries.items()}


def _levels_query(name: str, query: Query) -> Query:
    """The query with its own aggregates, or with the number of matches."""
    if query.per is not None:
        raise OptionError(
            f"query {name!r} has rows PER {query.per.name}, which are not added up by type",
            code="EC478",
            hint="leave PER out",
        )
    drilled = (component.name for component in positive(query.pattern) if component.type is not None)
    levels = tuple(Item(Levels(variable)) for variable in drilled)
    agg = query.agg or (Aggregate("COUNT", alias=MATCHES),)
    others = [*map(column_name, query.group_by), *map(column_name, agg)]
    columns = Counter([QUERY, *_level_columns(levels), *others])
    twice = next((column for column, times in columns.items() if times > 1), None)
    if twice is not None:
        raise OptionError(
            f"the counts of query {name!r} at every level have two columns {twice!r}",
            code="EC476",
            hint="give the key, the aggregate or the variable of that name another one: GROUPBY … AS, AGG … AS",
        )
    return replace(query, group_by=(*levels, *query.group_by), agg=agg, returns=(), limit=None)


def _level_columns(items: Iterable[Item]) -> list[str]:
    names = [column_name(item) for item in items if isinstance(item.value, Levels)]
    return [column for name in names for column in (name, f"{name}_level")]


def levels_schema(queries: Mapping[str, Query], results: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of the cells of all queries, with those of each: types and levels first."""
    types = {QUERY: pa.string()}
    first = [QUERY]
    for name, query in queries.items():
        first += _level_columns(query.group_by)
        for field in results[name]:
            known = types.setdefault(field.name, field.type)
            if known != field.type:
                raise OptionError(
                    f"column {field.name!r} would be {known} and, in query {name!r}, {field.type}",
                    code="EC477",
                    hint="give it another name in one of the queries, or count one at a time: levels='name'",
                )
    return pa.schema([pa.field(name, types[name], name != QUERY) for name in dict.fromkeys([*first, *types])])


def in_columns(name: str, cells: pa.RecordBatch, schema: pa.Schema, limit: int | None) -> pa.RecordBatch:
    """The cells of one query in the columns of all, and no number of matches above its limit."""
    rows = cells.num_rows
    columns = {QUERY: pa.repeat(name, rows), **dict(zip(cells.schema.names, cells.columns, strict=True))}
    if limit is not None:
        columns[MATCHES] = pc.min_element_wise(columns[MATCHES], limit)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
