"""The results of several queries in one table: its schema, writing to it, and reading one query from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import InputError, OptionError
from eventcube.language.check import check_result_columns as check_result_columns
from eventcube.language.check import positive as positive
from eventcube.language.syntax import Query, Variable
from eventcube.schema import EventSchema

# The field of an event in a shared result that names its variable.
VARIABLE = "variable"


def check_shareable(queries: Mapping[str, Query]) -> None:
    """Refuse queries that return values instead of events: each needs columns of its own."""
    for name, query in queries.items():
        if query.agg or any(not isinstance(i.value, Variable) for i in query.returns):
            raise OptionError(
                f"query {name!r} computes values, which do not fit a result shared with other queries",
                code="EC408",
                hint="ec.match_all, or Runtime(…, separate=True), gives each query a result of its own; "
                "or let this one return events",
            )


def long_schema(schema: EventSchema) -> pa.Schema:
    """The columns of a shared result: query, start, end, and the events with their variables."""
    if VARIABLE in schema.visible.names:
        raise InputError(
            f"events have a column {VARIABLE!r}, which a result shared by several queries needs for itself",
            code="EC315",
            hint="rename it, or run each query alone",
        )
    event = pa.struct([pa.field(VARIABLE, pa.string(), False), *schema.visible])
    return pa.schema(
        [
            pa.field("query", pa.string(), nullable=False),
            pa.field("start", schema.time_type, nullable=False),
            pa.field("end", schema.time_type, nullable=False),
            pa.field("events", pa.list_(pa.field("item", event, nullable=False)), nullable=False),
        ]
    )


def long_form(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """One query's matches as rows of the shared result; unbound variables are left out."""
    rows = batch.num_rows
    variables = batch.schema.names[2:]
    event_type = schema.field("events").type.value_type
    structs, bound = [], []
    for variable in variables:
        events = batch.column(variable)
        label = pa.array([variable]).take(pa.array(np.zeros(rows, np.int64)))
        structs.append(pa.StructArray.from_arrays([label, *events.flatten()], fields=list(event_type)))
        bound.append(np.asarray(events.is_valid()))
    is_bound = np.stack(bound, axis=1)
    # Events are ordered by variable; the lists need them by match.
    index = np.arange(rows)[:, None] + rows * np.arange(len(variables))[None, :]
    values = pa.concat_arrays(structs).take(pa.array(index[is_bound]))
    offsets = np.concatenate([[0], np.cumsum(is_bound.sum(axis=1))]).astype(np.int32)
    events = pa.ListArray.from_arrays(pa.array(offsets), values, type=schema.field("events").type)
    label = pa.array([name]).take(pa.array(np.zeros(rows, np.int64)))
    return pa.RecordBatch.from_arrays([label, batch.column("start"), batch.column("end"), events], schema=schema)


def wide_form(table: pa.Table, name: str, variables: list[str]) -> pa.Table:
    """The matches of one query of a shared result, with a column for each variable."""
    matches = table.filter(pc.equal(table.column("query"), name)).combine_chunks()
    columns = {"start": matches.column("start"), "end": matches.column("end")}
    lists = matches.column("events").combine_chunks()
    lists = pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists
    parent, events = lists.value_parent_indices(), lists.flatten()
    fields = [f for f in events.type if f.name != VARIABLE]
    for variable in variables:
        is_variable = np.asarray(pc.equal(pc.struct_field(events, VARIABLE), variable))
        row = np.full(matches.num_rows, -1, np.int64)
        row[np.asarray(parent)[is_variable]] = np.flatnonzero(is_variable)
        bound = events.take(pa.array(row, mask=row < 0))
        arrays = [pc.struct_field(bound, f.name) for f in fields]
        columns[variable] = pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(row < 0))
    return pa.table(columns)
