"""Reads states of version 1, in which every query had events of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.saved import DamagedStateError, check_fields, numbers
from eventcube.errors import OptionError
from eventcube.plan.workload import WorkloadQuery
from eventcube.runtime.workload import Workload, read_counters

_ROW_NUMBERS, _ROW_FLAGS = ("ts", "seq", "pos", "rank"), ("done", "ahead")


def upgrade(
    header: Mapping[str, Any], tables: dict[str, pa.Table], workload: Workload | None
) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables that version 2 would have written."""
    check_fields(header, {"version", "fingerprint", "finished", "counters", "engines", "tables"}, {"ingest"})
    new = {"version": 2, "fingerprint": header["fingerprint"], "finished": header["finished"], "tables": []}
    if workload is None:
        read_counters(header["counters"])
        check_fields(header["engines"], ())
        return new, tables
    ingest = header["ingest"]
    check_fields(ingest, {"schema", "watermark", "latest", "rank"})
    check_fields(header["engines"], workload.plan.queries)
    held, aside = (tables.pop(name, None) for name in ("held", "aside"))
    if held is None or aside is None:
        raise DamagedStateError("the tables of held and skipped rows are missing")
    upgraded = {"ingest/held": held, "ingest/aside": aside}
    parts: dict[str, Any] = {
        "ingest": {n: ingest[n] for n in ("watermark", "latest", "rank")}
        | {"arrived": held.num_rows, "skipped_rows": aside.num_rows, "drained": 0}
    }
    counters, totals = {}, [0] * len(workload.plan.partitionings)
    own = _own_stacks(workload)
    rows: list[_Rows] = []
    relevant = 0
    for name, query in workload.plan.queries.items():
        saved = header["engines"][name]
        check_fields(saved, {"sequence", "position", "counters", "left"})
        counters[name] = read_counters(saved["counters"]).as_dict() | {"relevant": 0}
        relevant += read_counters(saved["counters"]).relevant
        mine = {k.removeprefix(f"{name}/"): tables.pop(k) for k in list(tables) if k.startswith(f"{name}/")}
        number = query.arrangement.positions
        if number is not None:
            totals[number] = saved["position"]
            if "positions" in mine:
                upgraded[f"events/positions{number}"] = mine.pop("positions")
        if "rows" in mine or "payload" in mine:
            rows.append(_Rows(query, own[name], mine.pop("rows", None), mine.pop("payload", None)))
        parts[f"query/{name}"] = _sink(query, saved["left"])
        upgraded |= {f"query/{name}/{k}": table for k, table in mine.items()}
    if tables:
        raise DamagedStateError(f"nothing has a table {min(tables)!r}")
    merged = _merged(rows, workload)
    upgraded |= merged
    count = merged["events/rows"].num_rows if merged else 0
    parts["events"] = {"sequence": count, "watermark": ingest["watermark"], "totals": totals}
    new["schema"] = ingest["schema"]
    new["workload"] = {
        "batches": 0,
        "since": -1,
        "counters": header["counters"],
        "shared": Counters(relevant=relevant).as_dict(),
        "queries": counters,
        "parts": parts,
    }
    return new, upgraded


def _sink(query: WorkloadQuery, left: Any) -> dict[str, Any]:
    sink = query.plan.sink
    if sink.limit is not None and sink.name == "earliest":
        return {"left": left}
    if left is not None:
        raise DamagedStateError("a query without LIMIT has a number of matches left")
    return {"whole": True} if sink.name == "groups" else {}


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


def _merged(rows: list[_Rows], workload: Workload) -> dict[str, pa.Table]:
    """The events of all queries in order of time; one that several queries had retained is there several times."""
    if not rows:
        return {}
    plan, schema = workload.plan, workload.schema.columns
    ts, rank = np.concatenate([r.ts for r in rows]), np.concatenate([r.rank for r in rows])
    order = np.lexsort([rank, ts])
    columns = {"ts": pa.array(ts[order]), "seq": pa.array(np.arange(len(ts)))}
    if workload.schema.order_by:
        columns["rank"] = pa.array(rank[order])
    for i in range(len(plan.partitionings)):
        columns[f"position{i}"] = pa.array(np.concatenate([r.positions for r in rows])[order])
    for number in range(len(plan.stacks)):
        parts = [r.stacks.get(number, np.zeros(r.size, np.bool_)) for r in rows]
        columns[f"stack{number}"] = pa.array(np.concatenate(parts)[order])
    fields = [schema.field(name) for name in plan.columns]
    payloads = [_with_all(r, pa.schema(fields)) for r in rows]
    events = pa.concat_tables(payloads).take(pa.array(order)) if fields else pa.table({})
    return {"events/rows": pa.table(columns), "events/events": events}


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
