"""Reads states of version 1, in which every query had events of its own.

They were a magic string, the length of a header, a checksum, the header as JSON, and an Arrow stream for each table.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from eventcube.engine.payload import Payload
from eventcube.engine.rows import Rows
from eventcube.engine.saved import DamagedStateError, check_fields, listed, numbers, read_counters
from eventcube.engine.saved_rows import row_columns, rows_table
from eventcube.errors import OptionError
from eventcube.plan.workload import WorkloadQuery
from eventcube.runtime.workload import Workload

MAGIC = b"eventcube state\n"
_START = len(MAGIC) + 16
_ALIGNMENT = 64
_ROW_NUMBERS, _ROW_FLAGS = ("ts", "seq", "pos", "rank"), ("done", "ahead")


def read(state: bytes) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables of a state, each valid by itself."""
    length, checksum = (int.from_bytes(state[i : i + 8], "little") for i in (len(MAGIC), len(MAGIC) + 8))
    if zlib.crc32(memoryview(state)[_START:]) != checksum:
        raise DamagedStateError("its checksum is another")
    if length > len(state) - _START or (_START + length) % _ALIGNMENT:
        raise DamagedStateError("its header has another length")
    try:
        header = json.loads(state[_START : _START + length])
    except (ValueError, RecursionError) as error:
        raise DamagedStateError(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict) or header.get("version") != 1:
        raise DamagedStateError("its header has another version")
    names = header.get("tables")
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise DamagedStateError("its header does not list its tables")
    source = pa.BufferReader(pa.py_buffer(state)[_START + length :])
    try:
        tables = {name: pa.ipc.open_stream(source).read_all() for name in names}
        for table in tables.values():
            table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DamagedStateError(str(error)) from None
    if source.tell() != source.size():
        raise DamagedStateError("there is more in it than its header says")
    return header, tables


def schema_of(header: Mapping[str, Any]) -> Any:
    """The columns of the events, as they were saved; None if there were none yet."""
    ingest = header.get("ingest")
    if ingest is None:
        return None
    check_fields(ingest, {"schema", "watermark", "latest", "rank"})
    return ingest["schema"]


def upgrade(
    header: Mapping[str, Any], tables: dict[str, pa.Table], workload: Workload | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the tables that version 2 would have written."""
    check_fields(header, {"version", "fingerprint", "finished", "counters", "engines", "tables"}, {"ingest"})
    if header["finished"] is not False:
        raise DamagedStateError("no state was saved after the end")
    new = {"fingerprint": header["fingerprint"]}
    if workload is None:
        read_counters(header["counters"])
        check_fields(header["engines"], ())
        return new, tables
    ingest = header["ingest"]
    check_fields(header["engines"], workload.plan.queries)
    held, aside = (tables.pop(name, None) for name in ("held", "aside"))
    if held is None or aside is None:
        raise DamagedStateError("the tables of held and skipped rows are missing")
    upgraded = {"ingest/held": held, "ingest/aside": aside}
    own = _own_stacks(workload)
    rows: list[_Rows] = []
    events = {"watermark": ingest["watermark"]}
    queries: dict[int, dict[str, Any]] = {}
    relevant = 0
    for place, (name, query) in enumerate(workload.plan.queries.items()):
        saved = header["engines"][name]
        check_fields(saved, {"sequence", "position", "counters", "left"})
        counters = read_counters(saved["counters"])
        relevant, counters.relevant = relevant + counters.relevant, 0
        mine = {k.removeprefix(f"{name}/"): tables.pop(k) for k in list(tables) if k.startswith(f"{name}/")}
        number = query.arrangement.positions
        if number is not None:
            events |= {f"total{number}": saved["position"], f"whole{number}": 1}
            if "positions" in mine:
                upgraded[f"events/positions{number}"] = mine.pop("positions")
        if "rows" in mine or "payload" in mine:
            rows.append(_Rows(query, own[name], mine.pop("rows", None), mine.pop("payload", None)))
        queries[place] = counters.nonzero | _sink(query, saved["left"], mine)
        upgraded |= {f"{place}/{k}": table for k, table in mine.items()}
    if tables:
        raise DamagedStateError(f"nothing has a table {min(tables)!r}")
    if rows:
        upgraded["events/rows"] = _merged(rows, workload)
        events["sequence"] = upgraded["events/rows"].num_rows
    new["workload"] = {
        "batches": 0,
        "counters": header["counters"],
        "shared": {"relevant": relevant},
        "ingest": {n: ingest[n] for n in ("watermark", "latest", "rank")}
        | {"arrived": held.num_rows, "skipped_rows": aside.num_rows},
        "events": events,
        "queries": listed(queries),
    }
    return new | {"schema": ingest["schema"]}, upgraded


def _sink(query: WorkloadQuery, left: Any, tables: dict[str, pa.Table]) -> dict[str, Any]:
    sink = query.plan.sink
    if sink.limit is not None and sink.name == "earliest":
        return {"sink_left": left}
    if left is not None:
        raise DamagedStateError("a query without LIMIT has a number of matches left")
    if not sink.results.only_counts or "groups" not in tables:
        return {}
    counts = tables.pop("groups")
    if counts.column_names != [f"a{i}" for i in range(len(sink.results.agg))] or counts.num_rows != 1:
        raise DamagedStateError("the number of matches of a query is missing")
    return {"sink_count": counts.column(0)[0].as_py()}


def _own_stacks(workload: Workload) -> dict[str, dict[int, int]]:
    """For each query the slot of each of its stacks; refuses several queries if they share one, or count events."""
    users: dict[int, str] = {}
    own: dict[str, dict[int, int]] = {}
    for name, query in workload.plan.queries.items():
        own[name] = {number: slot for slot, number in enumerate(query.stacks)}
        for number in own[name]:
            shared = users.setdefault(number, name) != name
            if shared or (len(workload.plan.queries) > 1 and workload.plan.partitionings):
                raise OptionError(
                    "the state has version 1, in which each query kept events of its own, and these cannot be joined",
                    code="EC411",
                    hint="let the eventcube that saved it finish, or restore it into a runtime of one query",
                )
    return own


class _Rows:
    """The events that one query had retained."""

    def __init__(
        self, query: WorkloadQuery, slots: Mapping[int, int], rows: pa.Table | None, payload: pa.Table | None
    ) -> None:
        if rows is None or payload is None:
            raise DamagedStateError("a query has rows without events, or events without rows")
        members = [f"member{i}" for i in range(len(query.stacks))]
        names = [*_ROW_NUMBERS, *_ROW_FLAGS, *members]
        types = [pa.int64()] * len(_ROW_NUMBERS) + [pa.bool_()] * (len(_ROW_FLAGS) + len(members))
        if rows.column_names != names or rows.schema.types != types:
            raise DamagedStateError("the rows of a query have other columns")
        if payload.num_columns and payload.num_rows != rows.num_rows:
            raise DamagedStateError("the tables of one query have different lengths")
        arrays = numbers(rows, names)
        self.payload, self.size, self.query = payload, rows.num_rows, query
        self.ts, self.rank, self.positions = arrays["ts"], arrays["rank"], arrays["pos"]
        self.stacks = {number: arrays[f"member{slot}"] for number, slot in slots.items()}


def _merged(rows: list[_Rows], workload: Workload) -> pa.Table:
    """The events of all queries in order of time; one that several queries had retained is there several times."""
    plan, schema = workload.plan, workload.schema.columns
    ts, rank = np.concatenate([r.ts for r in rows]), np.concatenate([r.rank for r in rows])
    order = np.lexsort([rank, ts])
    stacks = []
    for number in range(len(plan.stacks)):
        members = np.concatenate([r.stacks.get(number, np.zeros(r.size, np.bool_)) for r in rows])
        stacks.append(np.flatnonzero(members[order]))
    columns = pa.schema([schema.field(name) for name in plan.columns])
    events = pa.concat_tables([_with_all(r, columns) for r in rows])
    merged = Rows(
        ts[order],
        np.arange(len(ts)),
        rank[order],
        tuple(np.concatenate([r.positions for r in rows])[order] for _ in plan.partitionings),
        tuple(stacks),
        Payload(events.take(pa.array(order)) if len(columns) else events, len(ts)),
    )
    ranked = bool(workload.schema.order_by)
    return rows_table(merged, row_columns(plan, schema, ranked=ranked), ranked=ranked)


def _with_all(rows: _Rows, columns: pa.Schema) -> pa.Table:
    """The columns of a query's events, with nulls for those that only other queries need."""
    payload = rows.payload
    try:
        arrays = [
            payload.column(f.name) if f.name in payload.column_names else pa.nulls(rows.size, f.type) for f in columns
        ]
        return pa.table(arrays, schema=columns)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DamagedStateError(f"the events of a query have other columns: {error}") from None
