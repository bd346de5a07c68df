"""Reads saved events, and checks that they have the order that the engine relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import codes_of
from eventcube.engine.kernels import Ints
from eventcube.engine.payload import Payload
from eventcube.engine.rows import Rows
from eventcube.engine.saved import BOUND, DamagedStateError, Saved, check_ascending, check_range, numbers

if TYPE_CHECKING:
    from eventcube.engine.state import State


def read_rows(state: State, saved: Saved, sequence: int, watermark: int, rank: int | None) -> Rows:
    """The saved events that follow those of a state; all are before the watermark, and none has a later rank."""
    plan, events = state.plan, state.columns
    places = [f"position{i}" for i in range(len(plan.partitionings))]
    stacks = [f"stack{i}" for i in range(len(plan.stacks))]
    names = ["ts", "seq", *([] if rank is None else ["rank"]), *places]
    fields = [*(pa.field(n, pa.int64()) for n in names), *(pa.field(n, pa.bool_()) for n in stacks)]
    table = saved.take("rows", pa.schema(fields))
    payload = saved.take("events", pa.schema([events.field(name) for name in plan.columns]))
    # Some queries need no columns, and a table without columns has no length.
    if plan.columns and payload.num_rows != table.num_rows:
        raise DamagedStateError("there are more or fewer rows than events")
    arrays = numbers(table, table.column_names)
    ts = arrays["ts"]
    rows = Rows(
        ts,
        arrays["seq"],
        ts if rank is None else arrays["rank"],
        tuple(arrays[name] for name in places),
        tuple(np.flatnonzero(arrays[name]) for name in stacks),
        Payload(payload.combine_chunks(), table.num_rows),
    )
    _check(state, rows, sequence, watermark)
    if rank is not None:
        check_range(rows.rank, 0, rank, "rank")
    return rows


def _check(state: State, rows: Rows, sequence: int, watermark: int) -> None:
    if not len(rows):
        return
    before = state.rows
    check_range(rows.ts, -BOUND, watermark - 1, "ts")
    check_range(rows.seq, state.sequence, sequence - 1, "seq")
    joint = before.append(rows) if len(before) else rows
    check_ascending(joint.ts, 0, "ts")
    check_ascending(joint.rank, 0, "rank")
    check_ascending(joint.seq, 1, "seq")
    if (np.diff(joint.rank)[np.diff(joint.ts) > 0] <= 0).any():
        raise DamagedStateError("rank does not follow ts")
    if state.gapless and (np.diff(joint.seq) != 1).any():
        raise DamagedStateError("seq has gaps")
    for positions, places in zip(state.positions, joint.positions, strict=True):
        check_range(places, 0, BOUND, "position")
        if not positions.partition_by:
            check_ascending(places, 1, "position")
            check_range(places, 0, max(positions.total - 1, 0), "position")
        else:
            _check_by_partition(joint, positions.partition_by, places)
            if (places >= positions.totals_of(joint.payload)).any():
                raise DamagedStateError("a position is beyond the number of events")


def _check_by_partition(rows: Rows, partition_by: tuple[str, ...], places: Ints) -> None:
    codes, _ = codes_of([rows.payload.column(name) for name in partition_by], nulls_match=True)
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    if (same & (np.diff(places[order]) < 1)).any():
        raise DamagedStateError("position does not ascend")
