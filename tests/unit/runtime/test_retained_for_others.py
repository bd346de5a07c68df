"""Events that queries need because they are computed from others, through changes of queries, restores and idleness.

Each case lost matches once.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

import pyarrow as pa
import pytest

import eventcube as ec

PLANS = ["independent", "top-down", "bottom-up", "auto"]


def push(runtime: ec.Runtime, events: str) -> Counter[str]:
    """Push events such as "A1 B2", one by one; gives the number of matches of each query."""
    found: Counter[str] = Counter()
    for event in events.split():
        table = pa.table({"ts": [int(event[1:])], "type": [event[0]], "k": [1]})
        found.update({name: batch.num_rows for name, batch in runtime.push(table)})
    return found


def keyed(sharing: str) -> ec.Runtime:
    """A runtime whose second query can be computed from the first, which retains nothing for itself."""
    queries = {"a": "PATTERN A a WITHIN 10 us", "ab": "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 10 us"}
    return ec.Runtime(queries, type="type", partition_by="k", separate=True, advise=False, sharing=sharing)


@pytest.mark.parametrize("sharing", PLANS)
def test_a_query_that_is_added_does_not_hide_events_that_its_own_stack_has_dropped(sharing: str) -> None:
    queries = {"ab": "PATTERN SEQ(A a, B b) WITHIN 5 us"}
    runtime = ec.Runtime(queries, type="type", concepts={"R": ["A"]}, separate=True, advise=False, sharing=sharing)
    found = push(runtime, "A1")
    runtime.add("one", "PATTERN R r WITHIN 5 us")
    found += push(runtime, "B3 A5 B6 A7 B8")
    assert found["ab"] + sum(batch.num_rows for name, batch in runtime.finish() if name == "ab") == 5


@pytest.mark.parametrize("then", PLANS)
@pytest.mark.parametrize("first", PLANS)
def test_a_state_goes_on_with_other_sharing(first: str, then: str) -> None:
    before, after = keyed(first), keyed(then)
    found = push(before, "A1 A2")
    after.restore(before.snapshot())
    found += push(after, "B3 B4")
    assert found["ab"] + sum(batch.num_rows for name, batch in after.finish() if name == "ab") == 4


@pytest.mark.parametrize("then", PLANS)
@pytest.mark.parametrize("between", PLANS)
def test_changes_of_a_run_with_other_sharing_are_taken_on(between: str, then: str) -> None:
    first, second, third, fourth = (keyed(sharing) for sharing in ("auto", between, then, then))
    found = push(first, "A1")
    whole = first.snapshot()
    second.restore(whole)
    version = second.version
    found += push(second, "A2 A3")
    third.restore(whole, second.snapshot(since=version))
    fourth.restore(third.snapshot())
    found += push(fourth, "B4 B5")
    assert found["ab"] + sum(batch.num_rows for name, batch in fourth.finish() if name == "ab") == 6


@pytest.mark.parametrize("keep", [None, "1 us", "1 day"])
def test_a_state_and_changes_go_on_with_another_keep(keep: str | None) -> None:
    cube = ec.Cube({"q": "PATTERN SEQ(A a, B b) WITHIN 3 us"}, type="type")
    runtime, after = cube.runtime(separate=True), cube.runtime(separate=True, keep=keep)
    push(runtime, "A0 B1 A2 B3 A4 B5")
    states, version = [runtime.snapshot()], runtime.version
    push(runtime, "A6 B7 A8 B9 A10 B11 A12 B13 A14 B15")
    states.append(runtime.snapshot(since=version))
    after.restore(*states)
    assert push(after, "A16 B17 A18") == push(runtime, "A16 B17 A18")
    # What left before the state was saved is not there.
    answer = after.pattern_drill_down("q", ("!A", 2), name="straight")
    assert answer.complete_from is not None
    assert answer.complete_from >= 10


@pytest.mark.parametrize("partitions", [8_000, 10_000])
def test_matches_of_idle_partitions_stay_kept_for_moves(partitions: int) -> None:
    cube = ec.Cube({"q": "PATTERN SEQ(A a, B b) WITHIN 5 events"}, type="type", partition_by="k")
    runtime = cube.runtime(keep="1 day", separate=True)
    keys = [*range(partitions)]
    types = ["A"] * partitions + ["B"] * partitions
    list(runtime.push(pa.table({"ts": [1] * partitions + [2] * partitions, "type": types, "k": keys * 2})))
    for ts in (3, 4, 5):
        list(runtime.push(pa.table({"ts": [ts], "type": ["A"], "k": [-1]})))
    assert runtime.pattern_drill_down("q", ("!A", 2), name="no_a").matches.num_rows == partitions


@pytest.mark.parametrize("sharing", PLANS)
def test_matches_of_idle_partitions_stay_kept_for_queries_computed_from_them(sharing: str) -> None:
    queries = {"ab": "PATTERN SEQ(A a, B b) WITHIN 5 events", "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 5 events"}
    cube = ec.Cube(queries, type="type", partition_by="k")
    runtime = cube.runtime(sharing=sharing, separate=True, advise=False)
    found, clock = Counter[str](), count(1)

    def push_keys(type_: str, *keys: int) -> None:
        events = pa.table({"ts": [next(clock)] * len(keys), "type": [type_] * len(keys), "k": keys})
        found.update({name: batch.num_rows for name, batch in runtime.push(events)})

    for type_ in "AAABBBC":
        push_keys(type_, 1)
    push_keys("A", 0)
    push_keys("B", 0)
    push_keys("A", *range(2, 10_000))
    for _ in range(3):
        push_keys("A", 2)
        push_keys("B", 2)
    push_keys("C", 0)
    push_keys("A", -1)
    found.update({name: batch.num_rows for name, batch in runtime.finish()})
    assert found == {"ab": 16, "abc": 4}


@pytest.mark.parametrize("sharing", PLANS)
def test_events_of_other_types_are_found_beside_older_ones_that_are_retained_for_others(sharing: str) -> None:
    queries = {"any": "PATTERN ANY e WITHIN 1 ms", "p": "PATTERN P p WITHIN 1 ms", "seq": "PATTERN SEQ(R r, P p)"}
    runtime = ec.Runtime(queries, type="type", concepts={"R": ["P"]}, separate=True, advise=False, sharing=sharing)
    found: Counter[str] = Counter()
    # As many as there are of P, which are no longer retained for the query of any type.
    for events in ("P1", "C3 C4"):
        found += push(runtime, events)
        found.update({name: batch.num_rows for name, batch in runtime.advance(int(events[-1]) + 1)})
    found.update({name: batch.num_rows for name, batch in runtime.finish()})
    assert +found == {"any": 3, "p": 1}


def test_a_leading_negation_is_not_answered_where_an_added_query_alone_retains_its_events() -> None:
    cube = ec.Cube({"q": "PATTERN C c WITHIN 12 events"}, type="type")
    runtime = cube.runtime(separate=True)
    push(runtime, "C1 C2 C3 X4")
    runtime.add("long", "PATTERN SEQ(C c, B b) WITHIN 99 events")
    push(runtime, "X5 X6 X7")
    # No event before the addition is retained any more: the new query can only see those from now on.
    assert runtime.pattern_drill_down("q", ("!C x", 1), name="first").source is None
