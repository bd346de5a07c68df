"""Buckets over micro-batches: matches once, as in one batch, whatever is lost on the way; and small state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest
from tests.differential.compare import DisagreementError, keys_of, oracle_matches, read_settings
from tests.differential.knobs import in_chunks
from tests.differential.rows import compare_rows, shown
from tests.differential.streamed import gives_once
from tests.oracle.clauses import with_results
from tests.oracle.generate import Case, random_case, to_arrow
from tests.unit.spark.buckets import FakeStream, bucket_task

from eventcube.engine import aggregate
from eventcube.engine.execute import Execution
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.spark.chunks import PER_TIER
from eventcube.spark.processor import LIVE

PAIR = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 10 ms"
END = 10**15


def cases(count: int) -> Iterator[tuple[int, Case]]:
    """Cases with a window, as streams need it."""
    for seed in range(10 * count):
        case = random_case(seed)
        if case.query.limit is None and case.query.within is not None and case.events:
            yield seed, case
            count -= 1
            if not count:
                return


def answers(case: Case, rng: Random, *, late: bool = False) -> tuple[FakeStream, list[pa.RecordBatch]]:
    """The results of a stream cut into micro-batches, some of which fail; `late`: some rows are, and are given."""
    table, chosen = to_arrow(case.events), options(**read_settings(case.options))
    stream = FakeStream(bucket_task({"q": case.query}, table.schema, chosen, keep_late=late))
    times = table.column("ts").cast(pa.int64()).to_pylist()
    lateness = 0 if late else max(max(times[: i + 1]) - time for i, time in enumerate(times))
    found: list[pa.RecordBatch] = []
    start, watermark = 0, 0
    while watermark < END:
        rows = table.slice(start, rng.choice([0, 1, 2, 5]))
        watermark = END if start >= len(times) else max([watermark, *((t - lateness) // 1000 for t in times[:start])])
        if rng.random() < 0.2:
            stream.workers[rng.randrange(2)].clear()
        if rng.random() < 0.2:
            stream.run(rows, watermark, commit=False, worker=rng.randrange(2))
        found += stream.run(rows, watermark, worker=rng.randrange(2))
        start += rows.num_rows
    return stream, found


def all_decided(stream: FakeStream) -> bool:
    """Whether a watermark after all events decides all matches: no window of events has to be waited for."""
    plan = next(iter(stream.task.plan.queries.values())).plan
    return not (plan.forward and plan.scan.by_count)


def test_random_streams_have_the_matches_of_the_oracle() -> None:
    total = 0
    for seed, case in cases(300):
        expected = Counter(oracle_matches(*case))
        stream, batches = answers(case, Random(seed))
        found = Counter(key for batch in batches for key in keys_of(case.query, batch))
        if found != expected if all_decided(stream) else found - expected:
            raise DisagreementError(f"seed {seed}: {case.query.text}\nexpected {expected}\nfound {found}")
        total += found.total()
    assert total > 300


def test_random_streams_have_the_matches_of_the_oracle_over_all_rows_but_the_late_ones() -> None:
    total = late = 0
    for seed, case in cases(300):
        stream, batches = answers(case, Random(seed), late=True)
        rows = [row for batch in batches for row in batch.column("late").to_pylist() if row is not None]
        left = Counter(row["id"] for row in rows)
        assert len(rows) == sum(did["late"] for did in stream.did)
        in_time = case._replace(events=[event for event in case.events if not left[event.id]])
        assert len(in_time.events) == len(case.events) - len(rows)
        expected = Counter(oracle_matches(*in_time))
        matches = [batch.filter(batch.column("late").is_null()) for batch in batches]
        found = Counter(key for batch in matches for key in keys_of(case.query, batch))
        if found != expected if all_decided(stream) else found - expected:
            raise DisagreementError(f"seed {seed}: {case.query.text}\nexpected {expected}\nfound {found}")
        total, late = total + found.total(), late + len(rows)
    assert total > 200
    assert late > 200


def test_random_streams_return_the_rows_and_groups_of_the_oracle() -> None:
    total = groups = 0
    for seed, case in cases(500):
        rng = Random(seed)
        query = with_results(rng, case.query, case.options)
        if query.limit is not None or query.having:
            continue
        stream, batches = answers(case._replace(query=query), rng)
        if not all_decided(stream):
            continue
        if query.agg and not gives_once(query):
            # What comes last for a group is its row.
            latest = {
                tuple(shown(column)[i] for column in batch.columns[: len(query.group_by)]): batch.slice(i, 1)
                for batch in batches
                for i in range(batch.num_rows)
            }
            batches = list(latest.values())
            if not batches and not query.group_by:
                # A batch gives a row for no matches, a stream gives none as long as nothing changes.
                assert not oracle_matches(*case)
                continue
            groups += len(batches)
        total += compare_rows(query, case.events, case.options, batches)
    assert total > 500
    assert groups > 100


def events(*rows: tuple[str, int, int]) -> pa.Table:
    """Events of a type, at a millisecond, with a key."""
    kinds, times, keys = zip(*rows, strict=True) if rows else ((), (), ())
    micros = [time * 1000 for time in times]
    columns = {"type": pa.array(kinds, pa.string()), "ts": pa.array(micros, pa.timestamp("us")), "k": keys}
    return pa.table({**columns, "k": pa.array(keys, pa.int64())})


def stream_of(query: str, buckets: int = 1) -> FakeStream:
    return FakeStream(bucket_task({"q": parse(query)}, events().schema, options(type="type"), buckets))


class TestLateness:
    def test_a_row_at_the_watermark_is_not_late(self) -> None:
        stream = stream_of(PAIR)
        stream.run(events(("A", 95, 1)), 0)
        assert stream.run(events(("B", 100, 1), ("B", 99, 1)), 100) == []
        (found,) = stream.run(None, 101)
        assert found.column("b").to_pylist()[0]["ts"].microsecond == 100_000
        assert found.num_rows == 1

    def test_late_is_what_the_watermark_says_and_not_the_latest_event_of_the_bucket(self) -> None:
        stream = stream_of(PAIR)
        stream.run(events(("A", 500, 1)), 0)
        stream.run(events(("A", 95, 1), ("B", 100, 1)), 90)
        assert sum(batch.num_rows for batch in stream.run(None, 1000)) == 1

    def test_late_rows_are_counted_and_not_kept(self) -> None:
        stream = stream_of(PAIR)
        stream.run(events(("A", 95, 1)), 90)
        stream.run(events(("B", 96, 1), ("B", 10, 1)), 100)
        (copy,) = LIVE.values()
        assert stream.did[-1]["late"] == 2
        assert copy.bucket.workload.ingest.skipped_table().num_rows == 0


class TestTimers:
    def test_a_trailing_negation_is_closed_by_the_watermark_alone(self) -> None:
        stream = stream_of("PATTERN SEQ(A a, !B b) WITHIN 10 ms")
        stream.run(events(("A", 100, 1)), 0)
        assert stream.run(None, 100) == []
        assert stream.run(None, 110) == []
        assert sum(batch.num_rows for batch in stream.run(None, 111)) == 1

    def test_nothing_is_due_when_nothing_is_left(self) -> None:
        stream = stream_of(PAIR)
        stream.run(events(("A", 100, 1)), 0)
        assert stream.committed.timers == {1}
        stream.run(None, 1000)
        assert stream.committed.timers == set()
        assert stream.stored < 1000


class TestState:
    def test_what_left_the_window_does_not_stay(self) -> None:
        stream = stream_of(PAIR)
        sizes = []
        for i in range(200):
            rows = [("AB"[j % 2], i * 100 + j, j % 7) for j in range(100)]
            stream.run(events(*rows), max(0, i * 100 - 1))
            sizes.append(stream.stored)
            assert stream.chunks <= 3 * PER_TIER
        assert max(sizes[10:]) < 2 * sizes[5]

    def test_a_large_window_is_not_written_again_by_each_micro_batch(self) -> None:
        stream = stream_of("PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 1 hour")
        numbers = set()
        for i in range(100):
            stream.run(events(("A", i * 10, i)), max(0, (i - 1) * 10))
            numbers.add(tuple(sorted(stream.committed.states["chunks"].values)))
        assert stream.chunks > 2
        # Each micro-batch writes a chunk: the first ones stay, or few large ones take their place.
        assert max(sum(number in chunks for chunks in numbers) for number in set().union(*numbers)) > 10


def test_groups_with_distinct_values_that_were_partly_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "_FOLD_ROWS", 1)
    monkeypatch.setattr(Execution, "_bind", in_chunks(1))
    stream = stream_of("PATTERN SEQ(A a, B b) WITHIN 1 hour GROUPBY a.k AGG COUNT(*) AS n, COUNT(DISTINCT b.k) AS d")
    for start in (100, 200):
        rows = [("AB"[i % 2], start + i, i % 3) for i in range(20)]
        stream.run(events(*rows), start)
    found = {(row["a.k"], row["n"], row["d"]) for batch in stream.run(None, 300) for row in batch.to_pylist()}
    assert found == {(0, 84, 3), (1, 60, 3), (2, 66, 3)}


class TestOrigin:
    def test_another_number_of_buckets(self) -> None:
        self._refused(stream_of(PAIR, buckets=4), "EC494", "4 buckets")

    def test_another_query(self) -> None:
        self._refused(stream_of("PATTERN SEQ(A a, B b) WITHIN 10 ms"), "EC412", "query 'q' was")

    def test_other_columns(self) -> None:
        task = bucket_task({"q": parse(PAIR)}, events().schema.append(pa.field("x", pa.int8())), options(type="type"))
        self._refused(FakeStream(task), "EC412", "column 'x' is missing here")

    def test_columns_in_another_order(self) -> None:
        task = bucket_task({"q": parse(PAIR)}, pa.schema(reversed([*events().schema])), options(type="type"))
        self._refused(FakeStream(task), "EC412", "the order is another: column 'k' was where 'type' is")

    def test_columns_that_could_be_null(self) -> None:
        required = pa.schema([field.with_nullable(False) for field in events().schema])
        after = FakeStream(bucket_task({"q": parse(PAIR)}, required, options(type="type")))
        self._refused(stream_of(PAIR), "EC412", "column 'type' was string, and is string not null", after)

    def test_columns_that_can_be_null_now(self) -> None:
        """Columns of a source are required at first; without the requirement the state goes on, and is saved so."""
        required = pa.schema([field.with_nullable(False) for field in events().schema])
        stream = FakeStream(bucket_task({"q": parse(PAIR)}, required, options(type="type")))
        stream.run(events(("A", 1, 1)).cast(required), 0)
        for time in (2, 3):
            after = stream_of(PAIR)
            after.committed = stream.committed
            table = events(("B", time, 1), ("B", time, 1))
            keys = pa.array([1, None], pa.int64())
            after.run(table.set_column(2, "k", keys), 0)
            stream = after
        found = [row["b"]["ts"] for batch in stream.run(None, 100) for row in batch.to_pylist()]
        assert [time.microsecond for time in found] == [2000, 3000]

    def _refused(self, before: FakeStream, code: str, message: str, after: FakeStream | None = None) -> None:
        before.run(before.task.schema.columns.empty_table(), 0)
        columns = before.task.schema.columns
        row = pa.Table.from_pylist([{"type": "A", "ts": 0, "k": 1}], columns)
        before.run(row, 0)
        stream = after or stream_of(PAIR)
        stream.committed = before.committed
        with pytest.raises(OptionError, match=message) as caught:
            stream.run(events(("A", 1, 1)), 0)
        assert caught.value.code == code
