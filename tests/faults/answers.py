"""What a stream must give in the end: what a batch gives over the same rows, less the late ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

import eventcube as ec
from tests.faults.workloads import LOOKS_AHEAD, SECOND, SETTINGS, queries_of
from tests.spark.frames import rows_of


def check(
    workload: str, rows: pa.Table, found: pa.Table, reported: pa.Table, late: Sequence[int], watermark: int
) -> Mapping[str, int]:
    """Each row is used or reported as late, and each match that the watermark decides is there once; gives how many.

    `late` are the ids of the rows that came after the watermark of their micro-batch, as Spark wrote it down.
    """
    assert sorted(reported.column("id").to_pylist()) == sorted(late)
    is_late = pc.is_in(rows.column("id"), value_set=pa.array(late, pa.int64()))
    assert rows_of(reported.select(rows.column_names)) == rows_of(rows.filter(is_late))
    expected = answer(workload, rows.filter(pc.invert(is_late)), watermark)
    for name in queries_of(workload):
        want, have = (ids_of(table.filter(pc.equal(table.column("query"), name))) for table in (expected, found))
        assert not have - want, f"{name}: not in a batch, or twice: {sorted((have - want).elements())[:5]}"
        assert not want - have, f"{name}: lost: {sorted((want - have).elements())[:5]}"
        assert want.total() > 10, f"{name}: only {want.total()} matches"
    return {"rows": rows.num_rows, "late": len(late), "matches": found.num_rows}


def answer(workload: str, rows: pa.Table, watermark: int) -> pa.Table:
    """The matches of a batch, as far as a watermark decides them."""
    found = ec.match(rows, queries_of(workload), **SETTINGS)
    start, end = (found.column(name).cast(pa.int64()) for name in ("start", "end"))
    ahead = pa.array([LOOKS_AHEAD.get(name, 0) * SECOND for name in found.column("query").to_pylist()], pa.int64())
    return found.filter(pc.and_(pc.less(end, watermark), pc.less(start, pc.subtract(watermark, ahead))))


def ids_of(matches: pa.Table) -> Counter[tuple[int, ...]]:
    """Matches by the ids of their events."""
    return Counter(tuple(event["id"] for event in events) for events in matches.column("events").to_pylist())
