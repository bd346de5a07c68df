"""Events in order of time from memory and from runs on disk; no Spark needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import eventcube as ec
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.planned import plan_query
from eventcube.plan.workload import plan_workload
from eventcube.schema import EventSchema
from eventcube.spark import external_sort
from eventcube.spark.external_sort import Budget, Sorter, in_order
from eventcube.spark.limit import tie_breakers
from eventcube.spark.task import MatchTask, PlanGroup

TINY = Budget(rows=100)
AMPLE = Budget()


def shuffled(count: int, span: int, seed: int = 3) -> list[pa.RecordBatch]:
    """Events in no order, in batches."""
    rng = Random(seed)
    table = pa.table(
        {
            "ts": pa.array([rng.randrange(span) if rng.random() > 0.01 else None for _ in range(count)], pa.int64()),
            "type": [rng.choice("ABC") for _ in range(count)],
            "k": [rng.randrange(4) for _ in range(count)],
            "id": list(range(count)),
        }
    )
    return table.to_batches(max_chunksize=37)


@pytest.fixture(autouse=True)
def _small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_sort, "_READ_ROWS", 10)
    monkeypatch.setattr(external_sort, "PIECE_ROWS", 64)
    monkeypatch.setattr(external_sort, "_BATCH_ROWS", 50)
    monkeypatch.setattr(external_sort, "_SAMPLED", 4)


def test_pieces_from_runs_are_complete_and_in_order() -> None:
    batches = shuffled(2000, span=300)
    schema = EventSchema(batches[0].schema, "ts")
    pieces = list(in_order(iter(batches), Sorter(schema), TINY, lambda: 0))
    assert len(pieces) > 5
    ids = [i for piece in pieces for i in piece.column("id").to_pylist()]
    assert sorted(ids) == sorted(r["id"] for b in batches for r in b.to_pylist() if r["ts"] is not None)
    ends = [(p.column("ts")[0].as_py(), p.column("ts")[-1].as_py()) for p in pieces]
    assert all(before[1] < after[0] for before, after in pairwise(ends))


def pieces_of(table: pa.Table, batch: int, kept: int = 0, values: tuple[str, ...] = ()) -> list[pa.Table]:
    """The pieces of a table that comes in batches of a size and fits in memory, checked to be all of it."""
    schema = EventSchema(table.schema, "ts")
    batches = iter(table.to_batches(max_chunksize=batch))
    pieces = list(in_order(batches, Sorter(schema, values), AMPLE, lambda: kept))
    assert all(piece.num_rows for piece in pieces)
    ids = [i for piece in pieces for i in piece.column("id").to_pylist()]
    assert sorted(ids) == sorted(row["id"] for row in table.to_pylist() if row["ts"] is not None)
    spans = [pc.min_max(piece.column("ts")).as_py() for piece in pieces]
    assert all(before["max"] < after["min"] for before, after in pairwise(spans))
    return pieces


@pytest.mark.parametrize("batch", [1, 7, 50, 1000, 5000])
@pytest.mark.parametrize("span", [1, 30, 3000, 10**9])
def test_pieces_from_memory_are_complete_and_follow_each_other(span: int, batch: int) -> None:
    table = pa.Table.from_batches(shuffled(2000, span))
    pieces = pieces_of(table, batch)
    assert len(pieces) == 1 if span == 1 else len(pieces) > 5
    # No smaller than what is kept.
    assert len(pieces_of(table, batch, kept=500)) <= 5
    for order in ("ascending", "descending"):
        pieces_of(table.sort_by([("ts", order)]), batch)


def test_files_that_follow_each_other_are_cut_without_a_copy() -> None:
    table = pa.table({"ts": range(1000), "type": ["A"] * 1000, "id": range(1000)})
    files = [table.slice(start, 200) for start in (400, 0, 800, 600, 200)]
    # Some batches have the end of one file and the beginning of another.
    batches = pa.concat_tables(files).combine_chunks().to_batches(max_chunksize=70)
    pieces = list(in_order(iter(batches), Sorter(EventSchema(table.schema, "ts")), AMPLE, lambda: 0))
    assert [ts for piece in pieces for ts in piece.column("ts").to_pylist()] == list(range(1000))
    source = batches[0].column(0).buffers()[1]
    held = range(source.address, source.address + 8 * 1000)
    assert all(chunk.buffers()[1].address in held for piece in pieces for chunk in piece.column("ts").chunks)


def test_values_order_events_of_equal_time_in_memory() -> None:
    table = pa.Table.from_batches(shuffled(1000, span=40))
    pieces = pieces_of(table, 30, values=("k", "id"))
    found = [(r["ts"], r["k"], r["id"]) for piece in pieces for r in piece.to_pylist()]
    assert found == sorted(found)


def test_nothing_and_unusable_times_make_no_pieces() -> None:
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "id": pa.int64()})
    sorter = Sorter(EventSchema(schema, "ts"))
    untimed = pa.table({"ts": [None] * 120, "type": ["A"] * 120, "id": range(120)}, schema)
    for batches in ([], schema.empty_table().to_batches(), untimed.to_batches(max_chunksize=30)):
        assert list(in_order(iter(batches), sorter, AMPLE, lambda: 0)) == []


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 4 us",
        "PATTERN SEQ(!C c, A a, B b, !C d) WITHIN 3 us",
        "PATTERN SEQ(A a, B b) WITHIN 5 events",
    ],
)
def test_a_partition_larger_than_memory_gives_the_same_matches(query: str) -> None:
    batches = shuffled(3000, span=6000)
    assert _found(query, batches, TINY) == _found(query, batches, AMPLE) != []


def test_one_hot_key_and_one_moment_fit_in_runs() -> None:
    table = pa.table({"ts": [7] * 150 + [8] * 150, "type": ["A"] * 150 + ["B"] * 150, "k": [1] * 300, "id": range(300)})
    query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 5 us"
    assert len(_found(query, table.to_batches(max_chunksize=50), TINY)) == 22_500


def test_files_have_no_name_and_are_closed_when_the_task_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    batches = shuffled(2000, span=300)
    before = _open_files()
    pieces = in_order(iter(batches), Sorter(EventSchema(batches[0].schema, "ts")), TINY, lambda: 0)
    next(pieces)
    assert list(tmp_path.iterdir()) == []
    assert _open_files() >= before
    pieces.close()
    assert _open_files() == before


def test_files_are_closed_when_reading_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    before = _open_files()

    def broken() -> Iterator[pa.RecordBatch]:
        yield from shuffled(500, span=300)
        raise OSError("the connection is gone")

    schema = EventSchema(shuffled(1, 1)[0].schema, "ts")
    with pytest.raises(OSError, match="connection"):
        list(in_order(broken(), Sorter(schema), TINY, lambda: 0))
    assert _open_files() == before


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 1


def _found(query: str, batches: list[pa.RecordBatch], budget: Budget) -> list[object]:
    settings = options(type="type")
    schema = settings.schema(batches[0].schema)
    plan = plan_query(parse(query), schema, settings).physical
    ties = tie_breakers(plan) if plan.scan.by_count else ()
    work = MatchTask((PlanGroup(plan_workload({"q1": plan})),), schema, True, plan.sink.schema, ties, budget)
    return sorted(tuple(map(str, row.values())) for batch in work(iter(batches)) for row in batch.to_pylist())


def test_in_memory_agrees_with_match() -> None:
    batches = shuffled(3000, span=6000)
    query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 4 us"
    expected = ec.match(pa.Table.from_batches(batches), query, type="type").to_pylist()
    assert _found(query, batches, AMPLE) == sorted(tuple(map(str, row.values())) for row in expected)
