"""Events packed for the shuffle and unpacked again: each where it is needed, and as it was."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eventcube.options import options
from eventcube.schema import HALO
from eventcube.spark import pack
from eventcube.spark.pack import EVENTS, PACKED, TASK, Pack, PackBuckets, Spread, unpacked
from eventcube.spark.slices import SLICE, WIDEST, Slices, slice_width

EXTREME = 2**62
SIDES = [(True, False), (False, True), (True, True)]


def events_at(times: list[int | None]) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64()), "id": pa.array(range(len(times)), pa.int64())})


def slices_of(table: pa.Table, window: int, width: int, behind: bool, ahead: bool) -> Slices:
    return Slices(options().schema(table.schema), window, width, behind, ahead)


def sent(work: Pack, table: pa.Table, rows: int = 7) -> dict[int, list[dict[str, int]]]:
    """What each task gets of a table that comes in batches of so many rows."""
    found: dict[int, list[dict[str, int]]] = {}
    for batch in work(iter(table.to_batches(max_chunksize=rows))):
        assert batch.schema == PACKED
        for task in batch.column(TASK).to_pylist():
            own = batch.filter(pa.array(np.asarray(batch.column(TASK)) == task))
            for events in unpacked(iter([own])):
                found.setdefault(task, []).extend(events.to_pylist())
    return found


def needed(times: list[int | None], window: int, width: int, behind: bool, ahead: bool) -> Counter[tuple[int, ...]]:
    """Each event with the slices that need it, found one by one."""
    found: Counter[tuple[int, ...]] = Counter()
    for number, ts in enumerate(times):
        if ts is None or abs(ts) >= EXTREME:
            continue
        own = ts // width
        found[number, own, 0] += 1
        if behind and (ts + window) // width != own:
            found[number, (ts + window) // width, -1] += 1
        if ahead and (ts - window) // width != own:
            found[number, (ts - window) // width, 1] += 1
    return found


@pytest.mark.parametrize(("behind", "ahead"), SIDES)
@pytest.mark.parametrize(("window", "width"), [(0, 5), (3, 10), (10, 10), (1, 1), (WIDEST, slice_width(WIDEST))])
def test_every_slice_gets_its_events_and_those_around_it(window: int, width: int, behind: bool, ahead: bool) -> None:
    rng = Random(3)
    times: list[int | None] = [rng.randrange(-60, 60) for _ in range(200)]
    times += [None, 0, 0, -1, EXTREME - 1, EXTREME, 1 - EXTREME, -EXTREME, 2**63 - 1, -(2**63)]
    table = events_at(times)
    found = sent(Pack(slices_of(table, window, width, behind, ahead), 3), table)
    rows = Counter((row["id"], row[SLICE], row[HALO]) for own in found.values() for row in own)
    assert rows == needed(times, window, width, behind, ahead)
    assert all(row[SLICE] % 3 == task for task, own in found.items() for row in own)


def test_many_events_are_packed_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "_ROWS", 16)
    monkeypatch.setattr(pack, "_ROWS_PER_TASK", 1)
    table = events_at(list(range(100)))
    work = Pack(slices_of(table, 1, 10, behind=True, ahead=False), 4)
    assert len(list(work(iter(table.to_batches(max_chunksize=7))))) == 5
    own = [row["id"] for rows in sent(work, table).values() for row in rows if row[HALO] == 0]
    assert sorted(own) == list(range(100))


def test_nothing_to_pack() -> None:
    table = events_at([None, EXTREME])
    work = Pack(slices_of(table, 1, 2, behind=True, ahead=True), 2)
    assert list(work(iter([]))) == []
    assert sent(work, table) == {}


def test_what_is_in_packs_is_in_line_with_memory() -> None:
    table = events_at([0, 1, 2, 3, 4]).append_column("s", pa.array(["a", None, "bcd", "", "e"]))
    for batch in Pack(slices_of(table, 1, 1, behind=True, ahead=True), 3)(iter(table.to_batches())):
        assert all(len(packed.as_buffer()) % 8 == 0 for packed in batch.column(EVENTS))


class TestBuckets:
    """Events of a stream, packed for the buckets of several passes."""

    SPREADS = (Spread("b0", (10, 11), ("id", "ts")), Spread("b1", (1_000_000,), ("id",)))

    def packed(self, *batches: pa.RecordBatch) -> dict[int, list[list[dict[str, int]]]]:
        """What each bucket gets, pack by pack; an empty list where there are no events."""
        rows: dict[int, list[list[dict[str, int]]]] = {}
        for batch in PackBuckets(self.SPREADS, "other")(iter(batches)):
            assert batch.schema == PACKED
            for name, data in zip(batch.column(TASK).to_pylist(), batch.column(EVENTS), strict=True):
                table = pa.ipc.open_stream(data.as_buffer()).read_all() if data.as_py() else pa.table({})
                rows.setdefault(name, []).append(table.to_pylist())
        return rows

    def batch(self, *rows: tuple[int, int | None, int | None]) -> pa.RecordBatch:
        ids, first, second = zip(*rows, strict=True)
        columns = {"b0": first, "b1": second}
        buckets = {name: pa.array(numbers, pa.int32()) for name, numbers in columns.items()}
        return pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64()), "ts": pa.array(ids, pa.int64()), **buckets})

    def test_an_event_goes_to_its_bucket_of_each_pass_that_takes_it(self) -> None:
        assert self.packed(self.batch((1, 0, None), (2, 1, 0), (3, None, 0))) == {
            10: [[{"id": 1, "ts": 1}]],
            11: [[{"id": 2, "ts": 2}]],
            # The first pass takes the first of these, too.
            1_000_000: [[{"id": 2, "other": True}, {"id": 3, "other": False}]],
        }

    def test_buckets_without_events_get_an_empty_row(self) -> None:
        assert self.packed() == {10: [[]], 11: [[]], 1_000_000: [[]]}
        assert self.packed(self.batch((1, 0, None))) == {10: [[{"id": 1, "ts": 1}]], 11: [[]], 1_000_000: [[]]}
