"""Events as they are saved, read again and checked: they have the order that the engine relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import codes_of
from eventcube.engine.kernels import Ints
from eventcube.engine.payload import Payload
from eventcube.engine.rows import Rows
from eventcube.engine.saved import BOUND, DamagedStateError, Saved, check_ascending, check_range
from eventcube.plan.workload import WorkloadPlan

if TYPE_CHECKING:
    from eventcube.engine.state import State


def row_columns(plan: WorkloadPlan, events: pa.Schema, *, ranked: bool) -> pa.Schema:
    """The columns of saved rows: numbers, in which stacks they are, and what is kept of the events."""
    places = [f"position{i}" for i in range(len(plan.partitionings))]
    names = ["ts", "seq", *(["rank"] if ranked else []), *places]
    stacks = pa.field(f"{len(plan.stacks)} stacks", pa.binary(-(-len(plan.stacks) // 8)))
    return pa.schema([*(pa.field(n, pa.int64()) for n in names), stacks, *(events.field(n) for n in plan.columns)])


def rows_table(rows: Rows, columns: pa.Schema, *, ranked: bool) -> pa.Table:
    """Rows as they are saved: how much each number is above that of the row before, and a bit for each stack."""
    arrays = (rows.ts, rows.seq, *((rows.rank,) if ranked else ()), *rows.positions)
    steps = [pa.array(_steps(array)) for array in arrays]
    bits = np.zeros((len(rows), -(-len(rows.stacks) // 8)), np.uint8)
    for i, stack in enumerate(rows.stacks):
        bits[stack, i // 8] |= 1 << i % 8
    stacks = pa.Array.from_buffers(pa.binary(bits.shape[1]), len(rows), [None, pa.py_buffer(bits)])
    return pa.Table.from_arrays([*steps, stacks, *rows.payload.table.columns], schema=columns)


def _steps(numbers: Ints) -> Ints:
    steps = numbers.copy()
    steps[1:] -= numbers[:-1]
    return steps


def read_rows(state: State, saved: Saved, sequence: int, watermark: int, rank: int | None) -> Rows:
    """The saved events that follow those of a state; all are before the watermark, and none has a later rank."""
    plan, ranked = state.plan, rank is not None
    table = saved.take("rows", row_columns(plan, state.columns, ranked=ranked)).combine_chunks()
    if not table.num_rows:
        return state.rows.slice(0, 0)
    first = table.num_columns - len(plan.columns)
    if any(column.null_count for column in table.columns[:first]):
        raise DamagedStateError("a number is null")
    *arrays, stacks = table.columns[:first]
    ts, seq, *places = (np.cumsum(np.array(steps, np.int64)) for steps in arrays)
    ranks = places.pop(0) if ranked else ts
    bits = np.frombuffer(stacks.chunk(0).buffers()[1], np.uint8)[: table.num_rows * stacks.type.byte_width]
    bits = bits.reshape(table.num_rows, stacks.type.byte_width)
    rows = Rows(
        ts,
        seq,
        ranks,
        tuple(places),
        tuple(np.flatnonzero(bits[:, i // 8] & 1 << i % 8) for i in range(len(plan.stacks))),
        Payload(table.select(range(first, table.num_columns)), table.num_rows),
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
