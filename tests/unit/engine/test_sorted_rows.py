"""Events sorted by key: their order, segments and ties, and which of them are due."""

from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest

from eventcube.engine.payload import Payload
from eventcube.engine.rows import Rows
from eventcube.engine.store import SortedRows, States, Store
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.steps import State

SETS = [{State.DONE}, {State.DUE}, {State.FUTURE}, {State.DONE, State.DUE}, {State.DUE, State.FUTURE}, set(State)]


def _events(size: int, seed: int, *, keys: int = 4) -> Rows:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, max(1, size // 2), size))
    own = pa.array(rng.integers(-1, keys - 1, size), mask=rng.random(size) < 0.2)
    payload = Payload(pa.table({"key": own}), size)
    return Rows(ts, np.arange(size), ts, (), (), payload)


@pytest.mark.parametrize("size", [0, 1, 2, 50])
@pytest.mark.parametrize("seed", range(10))
def test_events_are_sorted_by_key_and_time(size: int, seed: int) -> None:
    events = _events(size, seed)
    rows = SortedRows(events, ("key",), Dictionary())
    keys = [str(key) for key in events.payload.column("key").take(pa.array(rows.order)).to_pylist()]
    assert sorted(rows.order.tolist()) == list(range(size))
    runs = [len(list(run)) for _, run in groupby(keys)]
    # Each key has one segment, in which the order of events is that in time.
    assert len(runs) == len(set(keys))
    assert rows.starts.tolist() == np.cumsum([0, *runs]).tolist()
    for start, end in zip(rows.starts, rows.starts[1:], strict=False):
        assert (np.diff(rows.order[start:end]) > 0).all()


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("key", [(), ("key",)])
@pytest.mark.parametrize("seed", range(10))
def test_ties_are_events_of_equal_rank_and_key(key: tuple[str, ...], ranked: bool, seed: int) -> None:
    events = _events(30, seed, keys=9)
    if ranked:
        # By an order column, so that some events of one time have different ranks.
        rank = np.cumsum(np.random.default_rng(seed).random(30) < 0.6)
        events = Rows(events.ts, events.seq, rank, (), (), events.payload)
    rows = SortedRows(events, key, Dictionary())
    order = np.arange(30) if rows.order is None else rows.order
    values = events.payload.column("key").to_pylist()
    known = [(values[place] if key else None, events.rank[place]) for place in order]
    firsts = [known.index(one) for one in known]
    ends = [len(known) - known[::-1].index(one) for one in known]
    found = (np.arange(30), np.arange(1, 31)) if rows.ties is None else rows.ties
    assert [ends_or_firsts.tolist() for ends_or_firsts in found] == [firsts, ends]


def test_events_of_one_time_with_different_keys_are_no_ties() -> None:
    ts = np.zeros(3, np.int64)
    events = Rows(ts, np.arange(3), ts, (), (), Payload(pa.table({"key": [3, 1, 2]}), 3))
    assert SortedRows(events, ("key",), Dictionary()).ties is None
    assert SortedRows(events, (), Dictionary()).ties is not None


@pytest.mark.parametrize("key", [(), ("key",)])
@pytest.mark.parametrize("seed", range(10))
def test_states_that_are_cuts_are_those_of_each_event(key: tuple[str, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 40))
    rows = SortedRows(_events(size, seed), key, Dictionary())
    done, due = sorted(rng.integers(0, size + 1, 2).tolist())
    cuts = States(done, due)
    of_cuts, of_each = (Store(rows, (), states, None, None) for states in (cuts, States(0, 0, cuts.of_each(size))))
    asked = rng.permutation(size)
    for wanted in map(frozenset, SETS):
        assert np.array_equal(of_cuts.has_state(asked, wanted), of_each.has_state(asked, wanted))
