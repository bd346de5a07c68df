"""Groups by buckets of time: given once, as soon as no match to come can fall into them, and dropped then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from eventcube.runtime import Runtime

MINUTE = 60_000_000


def events(*rows: tuple[int, str], zone: str | None = None) -> pa.Table:
    """Events by their minutes and kinds, numbered."""
    times = pa.array([minutes * MINUTE for minutes, _ in rows], pa.timestamp("us", zone))
    return pa.table({"ts": times, "kind": [kind for _, kind in rows], "x": range(len(rows))})


def taken(batches: Iterator[Any]) -> list[tuple[Any, ...]]:
    """The rows of batches, times in minutes."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(tuple(_minutes(v) if isinstance(v, datetime) else v for v in row.values()) for row in rows)


def _minutes(moment: datetime) -> int:
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()) // 60


def runtime(query: str, **settings: Any) -> Runtime:
    return Runtime(query, type="kind", advise=False, **settings)


PAIR = "PATTERN SEQ(A a, B b) WITHIN 5 minutes GROUPBY {} EVERY 10 minutes AS since AGG COUNT(*) AS n"


@pytest.mark.parametrize(
    ("query", "watermark"),
    [
        pytest.param(PAIR.format("b.ts"), 10, id="the last event"),
        pytest.param(PAIR.format("a.ts"), 15, id="another event"),
        pytest.param(PAIR.format("b.ts").replace("B b)", "B b, !C c)"), 15, id="something looks ahead"),
        pytest.param(PAIR.format("b.ts").replace("SEQ", "AND"), 15, id="either may be last"),
        pytest.param(PAIR.format("b.ts").replace("5 minutes", "9 events"), 10, id="a window of events"),
        pytest.param(PAIR.format("a.ts").replace(" AS since", " AS since, b.ts EVERY 1 minute"), 5, id="two buckets"),
    ],
)
def test_a_group_is_final_once_no_match_can_fall_into_it(query: str, watermark: int) -> None:
    run = runtime(query)
    assert taken(run.push(events((1, "A"), (4, "B")))) == []
    assert taken(run.advance((watermark * MINUTE) - 1)) == []
    (row,) = taken(run.advance(watermark * MINUTE))
    assert (row[0], row[-1]) == (0, 1)
    assert taken(run.finish()) == []


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(PAIR.format("a.ts").replace("5 minutes", "9 events"), id="not the last of a window of events"),
        pytest.param(PAIR.format("b.ts").replace("SEQ(A a, B b)", "SEQ(A a, OR(B b, C c))"), id="may not be there"),
        pytest.param(PAIR.format("b.t").replace("GROUPBY", "GROUPBY"), id="another time"),
        pytest.param(PAIR.format("b.ts + 1 minute"), id="a computed time"),
    ],
)
def test_other_groups_have_no_end(query: str) -> None:
    run = runtime(query)
    rows = events((1, "A"), (4, "B"), (30, "C"))
    assert taken(run.push(rows.append_column("t", rows.column("ts")))) == []
    assert taken(run.advance(10**15)) == []
    assert len(taken(run.finish())) == 1


def test_groups_leave_the_state() -> None:
    run = runtime(PAIR.format("b.ts"))
    sizes = []
    for hour in range(50):
        rows = [(60 * hour + i, "AB"[i % 2]) for i in range(0, 60, 2)] + [(60 * hour + i, "B") for i in range(1, 60, 2)]
        assert len(taken(run.push(events(*sorted(rows))))) in (5, 6)
        sizes.append(len(run.snapshot()))
    assert max(sizes) < 1.1 * sizes[1]


def test_a_restored_state_gives_no_group_twice() -> None:
    query = PAIR.format("b.ts")
    run, rows = runtime(query), [(1, "A"), (4, "B"), (9, "A"), (11, "B"), (12, "B"), (25, "A"), (26, "B"), (45, "A")]
    states, found = [run.snapshot()], []
    for i, row in enumerate(rows):
        version = run.version
        found += taken(run.push(events(row)))
        states.append(run.snapshot(version))
        whole = runtime(query)
        expected = taken(iter([*whole.push(events(*rows[: i + 1])), *whole.finish()]))
        # From a state and all changes after it, and from the state that there is now.
        for saved in (states, [run.snapshot()]):
            again = runtime(query)
            again.restore(*saved)
            assert sorted([*found, *taken(again.finish())]) == expected
    assert found == [(0, 1), (10, 2), (20, 1)]


def test_having_is_tested_when_a_group_is_final() -> None:
    run = runtime(f"{PAIR.format('b.ts')} HAVING n = 1")
    assert taken(run.push(events((1, "A"), (4, "B"), (5, "B"), (11, "A"), (12, "B"), (40, "C")))) == [(10, 1)]
    assert taken(run.finish()) == []


def test_late_rows_of_a_group_wait_for_the_watermark() -> None:
    run = runtime(PAIR.format("b.ts"), lateness="30 minutes")
    assert taken(run.push(events((1, "A"), (20, "C"), (4, "B")))) == []
    assert taken(run.push(events((39, "C"), (5, "B")))) == []
    assert taken(run.push(events((40, "C")))) == [(0, 2)]


def test_where_clocks_go_back_the_bucket_is_as_long_as_they_show_it() -> None:
    # In Berlin 02:00 to 04:00 takes three hours on that day.
    start = int(datetime(2024, 10, 27, tzinfo=UTC).timestamp()) // 60
    run = runtime(PAIR.format("b.ts").replace("10 minutes AS", "2 hours AS"))
    first = events((start + 1, "A"), (start + 2, "B"), (start + 150, "A"), (start + 151, "B"), zone="Europe/Berlin")
    assert taken(run.push(first)) == []
    assert taken(run.advance((start + 180) * MINUTE - 1)) == []
    assert taken(run.advance((start + 180) * MINUTE)) == [(start, 2)]


def test_several_queries_give_their_groups_each() -> None:
    queries = {
        "by last": PAIR.format("b.ts"),
        "by first": PAIR.format("a.ts"),
        "all": "PATTERN SEQ(A a, B b) WITHIN 1 h AGG COUNT(*)",
    }
    run = Runtime(queries, type="kind", advise=False, separate=True)
    found = [(name, *row) for name, b in run.push(events((1, "A"), (4, "B"), (12, "C"))) for row in taken(iter([b]))]
    assert found == [("by last", 0, 1)]
    found = [(name, *row) for name, b in run.finish() for row in taken(iter([b]))]
    assert found == [("by first", 0, 1), ("all", 1)]
