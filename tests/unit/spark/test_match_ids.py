"""Ids of matches: the same whenever a match is written again, and never the same for another one."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.compare import keys_of, read_settings
from tests.oracle.clauses import with_results
from tests.oracle.generate import Case, to_arrow
from tests.unit.spark.buckets import FakeStream, bucket_task
from tests.unit.spark.test_bucket import END, all_decided, cases

from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.runtime.read_columns import content_keys
from eventcube.schema import MATCH_ID


def shuffled(table: pa.Table, rng: Random) -> pa.Table:
    return table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64()))


def streamed(case: Case, rng: Random) -> tuple[FakeStream, pa.Table]:
    """The matches of a stream cut at random: attempts fail, workers lose what they have, packs come in any order."""
    table, chosen = to_arrow(case.events), options(**read_settings(case.options))
    stream = FakeStream(bucket_task({"q": case.query}, table.schema, chosen, match_id=True))
    times = table.column("ts").cast(pa.int64()).to_pylist()
    lateness = max(max(times[: i + 1]) - time for i, time in enumerate(times))
    batches, start, watermark = [stream.task.result.empty_table()], 0, 0
    while watermark < END:
        rows = table.slice(start, rng.choice([0, 1, 2, 5, 9]))
        watermark = END if start >= len(times) else max([watermark, *((t - lateness) // 1000 for t in times[:start])])
        if rng.random() < 0.3:
            stream.workers[rng.randrange(2)].clear()
        failed = None
        if rng.random() < 0.5:
            failed = stream.run(shuffled(rows, rng), watermark, commit=False, worker=rng.randrange(2))
        written = stream.run(shuffled(rows, rng), watermark, worker=rng.randrange(2))
        if failed is not None:
            assert Counter(rows_of(failed)) == Counter(rows_of(written))
        batches += map(pa.Table.from_batches, ([batch] for batch in written))
        start += rows.num_rows
    return stream, pa.concat_tables(batches)


def rows_of(batches: list[pa.RecordBatch]) -> list[str]:
    return [str(row) for batch in batches for row in batch.to_pylist()]


def test_a_match_has_its_own_id_however_the_stream_is_cut_and_whatever_is_run_again() -> None:
    total = 0
    for seed, case in cases(300):
        found = []
        for attempt in range(2):
            stream, matches = streamed(case, Random(f"{seed} {attempt}"))
            ids = matches.column(MATCH_ID).to_pylist()
            assert len(set(ids)) == len(ids), f"seed {seed}: {case.query.text}"
            keys = [key for batch in matches.to_batches() for key in keys_of(case.query, batch)]
            found.append(dict(zip(ids, keys, strict=True)))
        if all_decided(stream):
            assert found[0] == found[1], f"seed {seed}: {case.query.text}"
        total += len(found[0])
    assert total > 300


def test_matches_that_return_the_same_have_ids_of_their_own() -> None:
    total = equal = 0
    for seed, case in cases(300):
        rng = Random(seed)
        query = with_results(rng, case.query, case.options)
        if query.agg or query.limit is not None:
            continue
        stream, matches = streamed(case._replace(query=query), rng)
        ids = matches.column(MATCH_ID).to_pylist()
        assert len(set(ids)) == len(ids)
        if all_decided(stream):
            _, again = streamed(case._replace(query=query), rng)
            assert Counter(map(str, matches.to_pylist())) == Counter(map(str, again.to_pylist()))
        values = Counter(map(str, matches.drop_columns([MATCH_ID]).to_pylist()))
        total, equal = total + len(ids), equal + sum(n - 1 for n in values.values())
    assert total > 300
    assert equal > 20


def events(count: int, *, rng: Random | None = None) -> pa.Table:
    """Events at few times, many of them with all columns equal, and some that only a list tells apart."""
    rng = rng or Random(1)
    rows = [(rng.choice("AB"), 1000 * rng.randrange(4), [rng.randrange(3)]) for _ in range(count)]
    kinds, times, tags = zip(*rows, strict=True)
    return pa.table(
        {
            "type": pa.array(kinds, pa.string()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "tags": pa.array(tags, pa.list_(pa.int64())),
        }
    )


def test_events_that_are_the_same_or_differ_only_in_a_list() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 10 ms RETURN a, b"
    found = []
    for seed in range(5):
        rng, table = Random(seed), events(40)
        stream = FakeStream(bucket_task({"q": parse(query)}, table.schema, options(type="type"), match_id=True))
        batches = stream.run(shuffled(table, rng), 0) + stream.run(None, END)
        ids = [row[MATCH_ID] for batch in batches for row in batch.to_pylist()]
        assert len(set(ids)) == len(ids) > 50
        found.append(Counter(rows_of(batches)))
    assert all(rows == found[0] for rows in found)


def test_queries_that_share_work_have_ids_of_their_own() -> None:
    queries = {
        "care": parse("PATTERN SEQ(A a, OR(C c, D d), B b) WITHIN 10 ms"),
        "pair": parse("PATTERN SEQ(A a, B b) WITHIN 10 ms"),
        "nested": parse("PATTERN SEQ(A a, AND(C c, D d), B b) WITHIN 10 ms"),
        "alone": parse("PATTERN SEQ(A a, !AND(C c, D d), B b) WITHIN 10 ms"),
    }
    table = events(1).schema.empty_table()
    rng = Random(3)
    kinds = [rng.choice("ABCD") for _ in range(60)]
    times = pa.array([rng.randrange(20) * 1000 for _ in kinds], table.schema.field("ts").type)
    table = pa.table([pa.array(kinds), times, pa.array([[]] * 60, pa.list_(pa.int64()))], schema=table.schema)
    found = []
    for seed in range(3):
        stream = FakeStream(bucket_task(queries, table.schema, options(type="type"), match_id=True))
        batches = stream.run(shuffled(table, Random(seed)), 0) + stream.run(None, END)
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert {row["query"] for row in rows} == queries.keys()
        assert all(row[MATCH_ID].startswith(f"{row['query']}/0/") for row in rows)
        assert len({row[MATCH_ID] for row in rows}) == len(rows)
        found.append(Counter(map(str, rows)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, -0.0, None, float("nan"), 1.5]),
        pa.array([0, None, -1, 2**63 - 1]),
        pa.array([False, None, True]),
        pa.array(["", None, "x", "None"]),
        pa.array([b"", None, b"\0"]),
        pa.array([[1], [], None, [None]], pa.list_(pa.int8())),
        pa.array([0, None, 2**64 - 1], pa.uint64()),
        pa.array([1, None, 2], pa.timestamp("ns")),
        pa.array([1, None, 2], pa.date32()),
        pa.array(["1.00", None, "123456789012345678901.00"]).cast(pa.decimal128(30, 2)),
    ],
)
def test_content_keys_tell_all_values_apart(values: pa.Array) -> None:
    keys = content_keys(pa.table({"x": pa.chunked_array([values, values])}))
    rows = list(zip(*(np.asarray(key).tolist() for key in keys), strict=True))
    assert rows[: len(values)] == rows[len(values) :]
    assert len(set(rows)) == len(values)
