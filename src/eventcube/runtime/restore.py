"""Restores a saved state into a runtime, all of it or nothing.

A state with a correct checksum may still be forged or made by a faulty program. So every invariant of the engine is
checked, and a state that breaks one is refused before the runtime changes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.columns import codes_of
from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.engine.kernels import Ints
from eventcube.engine.limit import Earliest
from eventcube.engine.rows import Rows
from eventcube.engine.sinks.earliest import EarliestSink
from eventcube.engine.sinks.groups import GroupSink
from eventcube.errors import EventCubeError, OptionError
from eventcube.plan.logical import LogicalQuery
from eventcube.runtime.ingest import REASON, Ingest, read_times
from eventcube.runtime.snapshot import ROW_FLAGS, ROW_NUMBERS, damaged, read
from eventcube.runtime.workload import Workload

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime

# The bound of times, positions and sequence numbers, on both sides of 0.
_BOUND = 2**62
_MAX_INT64 = 2**63 - 1

Tables = dict[str, pa.Table]


def load(state: bytes, runtime: Runtime) -> None:
    """Restore a saved state into a runtime."""
    header, tables = read(state)
    _check_fields(header, {"version", "fingerprint", "finished", "counters", "engines", "tables"}, {"ingest"})
    if header["fingerprint"] != runtime.fingerprint:
        raise OptionError(
            "the state is of other queries or settings",
            code="EC412",
            hint="restore it into a Runtime made with the same queries, columns and options",
        )
    if not isinstance(header["finished"], bool):
        raise damaged("finished is neither true nor false")
    counters = _counters(header["counters"])
    workload: Workload | None = None
    queries: dict[str, LogicalQuery] = {}
    if "ingest" in header:
        columns = _columns(header["ingest"])
        if runtime.workload is not None and not runtime.workload.schema.columns.equals(columns):
            raise OptionError(
                "the state is of events with other columns",
                code="EC412",
                hint="restore it into a Runtime made without schema=, or with the schema it was saved with",
            )
        try:
            workload, queries = runtime.plan(columns, counters)
        except EventCubeError as error:
            raise damaged(f"the queries cannot have run over its columns: {error.message}") from None
        _restore_ingest(workload.ingest, header["ingest"], tables)
    engines = {} if workload is None else workload.engines
    _check_fields(header["engines"], engines)
    for name, engine in engines.items():
        assert workload is not None
        query_tables = {part: tables.pop(f"{name}/{part}") for part in _PARTS if f"{name}/{part}" in tables}
        _restore_engine(engine, header["engines"][name], query_tables, workload.ingest)
    if tables:
        raise damaged(f"nothing has a table {min(tables)!r}")
    runtime.use_workload(workload, queries)
    runtime._finished, runtime._running = header["finished"], None


_PARTS = ("payload", "rows", "positions", "groups", "limit", "limit_keys")


def _check_fields(value: Any, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Refuse a value that is not an object with exactly these fields."""
    required = set(needed)
    if not isinstance(value, dict) or not required <= set(value) <= required | set(optional):
        raise damaged(f"its header needs the fields {', '.join(sorted(required))}, and no others")


def _integer(value: Any, least: int, most: int, name: str) -> int:
    if type(value) is not int or not least <= value <= most:
        raise damaged(f"{name} is no whole number from {least} to {most}")
    return value


def _counters(saved: Any) -> Counters:
    """The saved counters; those that a later release added are 0."""
    _check_fields(saved, (), [f.name for f in fields(Counters)])
    return Counters(**{name: _integer(value, 0, _MAX_INT64, name) for name, value in saved.items()})


def _columns(saved: Any) -> pa.Schema:
    """The event columns of the saved state."""
    _check_fields(saved, {"schema", "watermark", "latest", "rank"})
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(saved["schema"], validate=True)))
    except (pa.ArrowException, ValueError, TypeError, OSError) as error:
        raise damaged(f"its columns cannot be read: {error}") from None


def _take(tables: Tables, name: str, columns: pa.Schema) -> pa.Table:
    """Remove and return a required table, which must have these columns."""
    table = tables.pop(name, None)
    if table is None:
        raise damaged(f"the table {name} is missing")
    if table.schema.names != columns.names or table.schema.types != columns.types:
        raise damaged(f"the table {name} has other columns")
    return table


def _numbers(table: pa.Table, names: Iterable[str]) -> dict[str, Any]:
    """Columns as arrays, without nulls."""
    if any(table.column(name).null_count for name in names):
        raise damaged("a number is null")
    return {name: np.array(table.column(name)) for name in names}


def _restore_ingest(ingest: Ingest, saved: Mapping[str, Any], tables: Tables) -> None:
    columns = ingest.schema.columns
    ingest.watermark = _integer(saved["watermark"], -_BOUND, _BOUND, "watermark")
    ingest.latest = _integer(saved["latest"], -_BOUND, _BOUND, "latest")
    ingest.rank = _integer(saved["rank"], 0, _BOUND, "rank")
    held = _take(tables, "held", columns)
    skipped = _take(tables, "aside", columns.append(pa.field(REASON, pa.string())))
    ingest.skipped = [skipped] if skipped.num_rows else []
    if not held.num_rows:
        return
    ts, valid = read_times(held.column(ingest.schema.time), ingest.schema)
    if valid is not None and not valid.all():
        raise damaged("an event has no time")
    if ts.min() < ingest.watermark or ts.max() > ingest.latest:
        raise damaged("an event was held that was late, or later than the latest")
    ingest.held, ingest.held_ts = [held], [ts]


def _restore_engine(engine: Engine, saved: Any, tables: Tables, ingest: Ingest) -> None:
    _check_fields(saved, {"sequence", "position", "counters", "left"})
    engine.sequence = _integer(saved["sequence"], 0, _BOUND, "sequence")
    engine.position = _integer(saved["position"], 0, _BOUND, "position")
    engine.counters = _counters(saved["counters"])
    schema = engine.plan.schema
    if "rows" in tables or "payload" in tables:
        engine.rows = _rows(engine, tables, ingest)
    if "positions" in tables and engine.by_count and schema.partition_by:
        keys = [pa.field(f"k{i}", schema.columns.field(k).type) for i, k in enumerate(schema.partition_by)]
        engine.positions = _take(tables, "positions", pa.schema([*keys, pa.field("n", pa.int64())]))
        _check_range(_numbers(engine.positions, ["n"])["n"], 0, _BOUND, "n")
    sink = engine.sink
    if "groups" in tables and isinstance(sink, GroupSink):
        sink.groups = Groups(sink.groups.results, _take(tables, "groups", _group_columns(engine, sink)))
    if isinstance(sink, EarliestSink):
        sink.earliest.left = _integer(saved["left"], 0, sink.earliest.left, "left")
        if engine.plan.forward and ("limit" in tables or "limit_keys" in tables):
            sink.earliest.held = _held_matches(engine, sink.earliest, tables)
    elif saved["left"] is not None:
        raise damaged("a query without LIMIT has a number of matches left")
    if tables:
        raise damaged(f"a query cannot have a table {min(tables)!r}")


def _rows(engine: Engine, tables: Tables, ingest: Ingest) -> Rows:
    """The retained rows of a query, checked for the order that the engine needs."""
    events, scan = engine.plan.schema.columns, engine.scan
    slots = [f"member{i}" for i in range(len(scan.components))]
    numbers = [pa.field(name, pa.int64()) for name in ROW_NUMBERS]
    table = _take(tables, "rows", pa.schema([*numbers, *(pa.field(n, pa.bool_()) for n in (*ROW_FLAGS, *slots))]))
    columns = pa.schema([events.field(name) for name in scan.columns])
    payload = _take(tables, "payload", columns)
    # Some queries need no columns, and a table without columns has no length.
    if columns.names and payload.num_rows != table.num_rows:
        raise damaged("the tables of one query have different lengths")
    if not table.num_rows:
        return Rows.none(events, scan.columns, len(slots))
    arrays = _numbers(table, table.column_names)
    rows = Rows(
        **{name: arrays[name] for name in (*ROW_NUMBERS, *ROW_FLAGS)},
        member=np.stack([arrays[n] for n in slots]),
        payload=payload.combine_chunks(),
    )
    _check_order(engine, rows, ingest)
    return rows


def _check_order(engine: Engine, rows: Rows, ingest: Ingest) -> None:
    _check_range(rows.ts, -_BOUND, ingest.watermark - 1, "ts")
    _check_ascending(rows.ts, 0, "ts")
    _check_range(rows.seq, 0, engine.sequence - 1, "seq")
    _check_ascending(rows.seq, 1, "seq")
    if not engine.scan.sort_key and rows.seq[-1] - rows.seq[0] >= len(rows):
        # Without a sort key, row numbers are computed from sequence numbers.
        raise damaged("seq has gaps")
    if ingest.schema.order_by:
        _check_range(rows.rank, 0, ingest.rank, "rank")
        _check_ascending(rows.rank, 0, "rank")
    elif (rows.rank != rows.ts).any():
        raise damaged("rank is not the time")
    if not engine.by_count:
        if (rows.pos != rows.ts).any():
            raise damaged("pos is not the time")
        return
    _check_range(rows.pos, 0, _BOUND, "pos")
    partition = engine.scan.partition_by
    if not partition:
        _check_ascending(rows.pos, 1, "pos")
        return
    codes, _ = codes_of([rows.payload.column(name) for name in partition], nulls_match=True)
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    if (same & (np.diff(rows.pos[order]) < 1)).any():
        raise damaged("pos does not ascend")


def _check_range(values: Ints, least: int, most: int, name: str) -> None:
    if len(values) and not least <= values.min() <= values.max() <= most:
        raise damaged(f"{name} is not from {least} to {most}")


def _check_ascending(values: Ints, step: int, name: str) -> None:
    if (np.diff(values) < step).any():
        raise damaged(f"{name} does not ascend")


def _group_columns(engine: Engine, sink: GroupSink) -> pa.Schema:
    """The columns of partial groups."""
    groups = Groups(sink.groups.results)
    groups.add(*engine.nothing())
    assert groups.partial is not None
    return groups.partial.schema


def _held_matches(engine: Engine, earliest: Earliest, tables: Tables) -> tuple[pa.Table, list[Ints]]:
    """The matches that LIMIT holds back, with their sort keys."""
    nothing, output = engine.nothing()
    names = [f"key{i}" for i in range(len(earliest.sort_keys(nothing, output.store, output)))]
    matches = _take(tables, "limit", output.batch(nothing).schema)
    keys = _take(tables, "limit_keys", pa.schema([pa.field(name, pa.int64()) for name in names]))
    if matches.num_rows != keys.num_rows or matches.num_rows > earliest.left:
        raise damaged("more matches are held than are left, or some without their order")
    return matches, list(_numbers(keys, names).values())
