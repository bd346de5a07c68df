"""Events of idle partitions: found again when their partition gets events, and of no cost until then."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine import state as state_module
from eventcube.engine.idle_partitions import hashes_of

QUERY = "PATTERN SEQ(A a, B b) WITHIN 3 events"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, None, 3]), pa.array([3, None, 1])),
        (pa.array([0.0, float("nan"), 2.5]), pa.array([2.5, None, -0.0])),
        (pa.array(["a", None, "é"]), pa.array(["é", None, "a"])),
        (pa.array(["a", None, "é"]).dictionary_encode(), pa.array(["é", None, "a"]).dictionary_encode()),
        (pa.array([Decimal("1.50"), None, Decimal(2)]), pa.array([Decimal("2.00"), None, Decimal("1.5")])),
        (pa.array([5, None, 1000], pa.timestamp("ns")), pa.array([1999, None, 6], pa.timestamp("ns"))),
        (pa.array([1, None, 2], pa.date32()), pa.array([2, None, 1], pa.date32())),
        (pa.array([True, None, False]), pa.array([False, None, True])),
        (pa.nulls(3), pa.nulls(3)),
    ],
)
def test_equal_keys_have_equal_hashes_in_every_batch(one: pa.Array, other: pa.Array) -> None:
    first, second = (hashes_of([pa.chunked_array([a]), pa.chunked_array([a])]) for a in (one, other))
    assert first.tolist() == second.tolist()[::-1]
    assert len(set(first.tolist())) == (1 if pa.types.is_null(one.type) else 3)


def _events(start: int, keys: list[Any], types: str) -> pa.Table:
    return pa.table({"ts": range(start, start + len(keys)), "k": keys, "type": list(types)})


@pytest.mark.parametrize("query", [QUERY, "PATTERN SEQ(A a, B b, !C c) WITHIN 3 events"])
def test_a_batch_goes_over_the_partitions_it_touches(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "_MIN_ACTIVE", 16)
    runtime = ec.Runtime(query, type="type", partition_by="k", advise=False)
    matches = []
    for i in range(100):
        batch = _events(i * 10, [f"k{i * 10 + j}" for j in range(10)], "A" * 10)
        matches += runtime.push(batch)
        assert runtime.workload is not None
        assert len(runtime.workload.engine.state.rows) <= 50
    assert runtime.kept >= 990
    # All of them get an event more, and some another that says that nothing is missing in between.
    keys = [f"k{i}" for i in range(1000)]
    for start in range(0, 1000, 50):
        matches += runtime.push(_events(1000 + start, keys[start : start + 50], "B" * 50))
    matches += runtime.finish()
    assert sum(b.num_rows for b in matches) == 1000


def test_a_window_of_events_forgets_nothing_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(1)
    keys = [rng.choice([None, *range(60)]) for _ in range(2000)]
    types = "".join(rng.choice("ABX") for _ in keys)
    whole = ec.match(_events(0, keys, types), QUERY, type="type", partition_by="k")
    for at_hand in (0, 20, 1 << 13):
        monkeypatch.setattr(state_module, "_MIN_ACTIVE", at_hand)
        runtime = ec.Runtime(QUERY, type="type", partition_by="k")
        found = []
        for start in range(0, 2000, 7):
            found += runtime.push(_events(start, keys[start : start + 7], types[start : start + 7]))
            if start % 700 == 0:
                again = ec.Runtime(QUERY, type="type", partition_by="k")
                again.restore(runtime.snapshot())
                runtime = again
        found += runtime.finish()
        assert sorted(pa.Table.from_batches(found).to_pylist(), key=repr) == sorted(whole.to_pylist(), key=repr)
