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
from eventcube.spark.pack import EVENTS, PACKED, TASK, Pack, unpacked
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
    found = sent(Pack(3, slices_of(table, window, width, behind, ahead)), table)
    rows = Counter((row["id"], row[SLICE], row[HALO]) for own in found.values() for row in own)
    assert rows == needed(times, window, width, behind, ahead)
    assert all(row[SLICE] % 3 == task for task, own in found.items() for row in own)


def test_a_column_can_say_which_task_an_event_goes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "_ROWS", 16)
    monkeypatch.setattr(pack, "_ROWS_PER_TASK", 1)
    rng = Random(4)
    tasks = [rng.choice([0, 1, 4]) for _ in range(100)]
    table = events_at(list(range(100))).append_column(TASK, pa.array(tasks, pa.int32()))
    found = sent(Pack(5), table)
    assert found == {t: [{"ts": i, "id": i} for i in range(100) if tasks[i] == t] for t in (0, 1, 4)}
    assert len(list(Pack(5)(iter(table.to_batches(max_chunksize=7))))) == 5


def test_nothing_to_pack() -> None:
    table = events_at([None, EXTREME])
    assert list(Pack(2)(iter([]))) == []
    assert sent(Pack(2, slices_of(table, 1, 2, True, True)), table) == {}


def test_packs_keep_what_is_in_them_in_line_with_memory() -> None:
    table = pa.table({"s": ["a", None, "bcd"] * 5, TASK: pa.array([0, 1, 2] * 5, pa.int32())})
    for batch in Pack(3)(iter(table.to_batches())):
        assert all(len(packed.as_buffer()) % 8 == 0 for packed in batch.column(EVENTS))
