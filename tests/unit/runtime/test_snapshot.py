"""A saved runtime goes on elsewhere as if nothing had happened, and a state that cannot be used is refused.

`tests/data/state-v1.json.gz` was saved by the first release, `state-v2.json.gz` by the one in which queries share their
events. A change of the layout needs a new version, and a file beside these (`python -m
tests.unit.runtime.test_snapshot` writes it).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine import state as engine_state
from eventcube.errors import OptionError
from eventcube.runtime import snapshot

DATA = Path(__file__).parents[2] / "data"
EVENTS = pa.table(
    {
        "ts": pa.array([1, 2, None, 2, 4, 5, 5, 4, 6, 7, 9, 8, 11, 3, 12, 15, 15, 16, 21], pa.int64()),
        "type": ["A", "A", "B", "B", "A", None, "B", "C", "B", "A", "B", "B", "A", "B", "C", "B", "A", "B", "C"],
        "k": [1, 2, 1, 1, 2, 1, None, 2, 1, None, 2, 1, 2, 1, 1, 2, 2, None, 1],
        "x": [1.5, None, 1.0, 2.0, 0.5, 1.0, 3.0, float("nan"), 2.5, 1.0, 1.5, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 9.5, 1.0],
        "s": [None, *"abcabcabcabcabcabc"],
    }
)
PLANS: dict[str, tuple[Any, dict[str, Any]]] = {
    "backward": ("PATTERN SEQ(A a, B b, a.s != b.s) WITHIN 6 us", {}),
    "forward": ("PATTERN SEQ(A a, B b, !C c) WITHIN 4 us", {}),
    "forward, looking back": ("PATTERN SEQ(!B b, A a, !C c) WITHIN 4 us", {}),
    "count window over partitions": ("PATTERN SEQ(A a, B b, !C c) WITHIN 3 events", {"partition_by": "k"}),
    "count window": ("PATTERN SEQ(A a, !C c, B b) WITHIN 5 events", {}),
    "LIMIT": ("PATTERN SEQ(A a, B b) WITHIN 9 us LIMIT 5", {}),
    "LIMIT, forward": ("PATTERN SEQ(A a, B b, !C c) WITHIN 4 us LIMIT 3", {}),
    "AGG": ("PATTERN SEQ(A a, B b) WITHIN 9 us GROUPBY a, b.k AGG COUNT(*), AVG(b.x), MIN(b.s), MAX(b.ts)", {}),
    "AGG without groups": ("PATTERN SEQ(A a, B b) WITHIN 9 us AGG COUNT(*), SUM(b.x - a.x)", {}),
    "no window": ("PATTERN SEQ(A a, B b, C c) RETURN a.ts, c.ts", {}),
    "order column": ("PATTERN SEQ(A a, B b) WITHIN 9 us", {"order_by": "s"}),
    "alternatives": ("PATTERN SEQ(A a, OR(B b, SEQ(C c, !A d))) WITHIN 9 us", {}),
    "hierarchy": ("PATTERN SEQ(P p, C c) WITHIN 9 us", {"concepts": {"P": ["A", "B"], "C": []}}),
    "several queries": ({"one": "PATTERN SEQ(A a, B b) WITHIN 5 us", "two": "PATTERN C c"}, {}),
}


def make(name: str) -> ec.Runtime:
    query, settings = PLANS[name]
    return ec.Runtime(query, type="type", lateness="3 us", advise=False, **settings)


def rows(batches: list[pa.RecordBatch]) -> list[str]:
    return sorted(repr(r) for b in batches for r in b.to_pylist())


def outcome(runtime: ec.Runtime, batches: list[pa.RecordBatch]) -> tuple[Any, ...]:
    counted = {n: runtime.counters[n] for n in ("events", "relevant", "set_aside", "late", "matches")}
    return rows(batches), counted, rows(runtime.set_aside.to_batches())


def pushes() -> Iterator[pa.Table]:
    for start in range(0, EVENTS.num_rows, 3):
        yield EVENTS.slice(start, 3)


@pytest.mark.parametrize("name", PLANS)
def test_restoring_at_any_point_changes_nothing(name: str) -> None:
    whole = make(name)
    batches = [b for piece in pushes() for b in whole.push(piece)]
    expected = outcome(whole, [*batches, *whole.finish()])
    assert expected[0], "there is something to find"
    assert expected[1]["late"], "and something that comes too late"
    for point in range(len(list(pushes())) + 1):
        runtime, found = make(name), []
        for i, piece in enumerate(pushes()):
            if i == point:
                runtime = restored(runtime, name)
            found += runtime.push(piece)
        if point == len(list(pushes())):
            runtime = restored(runtime, name)
        assert outcome(runtime, [*found, *runtime.finish()]) == expected, f"restored before push {point}"


def restored(runtime: ec.Runtime, name: str) -> ec.Runtime:
    other = make(name)
    other.restore(runtime.snapshot())
    return other


@pytest.mark.parametrize("name", PLANS)
def test_a_state_and_its_changes_are_the_later_state(name: str) -> None:
    whole = make(name)
    batches = [b for piece in pushes() for b in whole.push(piece)]
    expected = outcome(whole, [*batches, *whole.finish()])
    pieces = list(pushes())
    for point in range(len(pieces) + 1):
        runtime, found = make(name), []
        states = [runtime.snapshot()]
        version = runtime.version
        for piece in pieces[:point]:
            found += runtime.push(piece)
            states.append(runtime.snapshot(since=version))
            version = runtime.version
        other = make(name)
        other.restore(*states)
        assert other.kept_events == runtime.kept_events
        found += [b for piece in pieces[point:] for b in other.push(piece)]
        assert outcome(other, [*found, *other.finish()]) == expected, f"after {point} pushes"


@pytest.mark.parametrize("name", PLANS)
def test_changes_since_an_older_version_hold_all_that_changed(name: str) -> None:
    runtime, pieces = make(name), list(pushes())
    list(runtime.push(pieces[0]))
    base, version = runtime.snapshot(), runtime.version
    for piece in pieces[1:4]:
        list(runtime.push(piece))
        # Read by someone else.
        runtime.snapshot()
    other = make(name)
    other.restore(base, runtime.snapshot(since=version))
    for piece in pieces[4:]:
        assert rows(list(runtime.push(piece))) == rows(list(other.push(piece)))
    assert rows(list(runtime.finish())) == rows(list(other.finish()))


def test_changes_since_a_version_before_the_restored_one_hold_no_event_twice() -> None:
    def events(ts: int, type_: str) -> pa.Table:
        return pa.table({"ts": [ts], "type": [type_]})

    def runtime(*states: bytes) -> ec.Runtime:
        made = ec.Runtime("PATTERN SEQ(A a, B b) WITHIN 30 us", type="type", lateness="10 us", advise=False)
        if states:
            made.restore(*states)
        return made

    first = runtime()
    list(first.push(events(5, "A")))
    base, version = first.snapshot(), first.version
    list(first.push(events(1, "B")))
    # The event that came last is released, the first one still waits.
    list(first.advance(3))
    changes = runtime(first.snapshot()).snapshot(since=version)
    last = runtime(base, changes)
    assert last.held == 1
    assert sum(b.num_rows for b in [*last.push(events(11, "B")), *last.finish()]) == 1


def test_a_strategy_that_cannot_be_had_is_no_damage_of_the_state() -> None:
    query = "PATTERN SEQ(A a, !SEQ(!C d, B b, !C e, C c), A f) WITHIN 9 us"
    runtime = ec.Runtime(query, type="type", advise=False)
    list(runtime.push(EVENTS))
    with pytest.raises(OptionError, match="cannot be rewritten") as raised:
        ec.Runtime(query, type="type", advise=False, strategy="rewrite").restore(runtime.snapshot())
    assert raised.value.code == "EC418"


def test_changes_are_applied_in_order_and_without_gaps() -> None:
    runtime, pieces, states = make("backward"), list(pushes()), []
    list(runtime.push(pieces[0]))
    base = runtime.snapshot()
    for piece in pieces[1:4]:
        version = runtime.version
        list(runtime.push(piece))
        states.append(runtime.snapshot(since=version))
    for code, wrong in (
        ("EC412", [base, states[1]]),
        ("EC412", [base, states[0], states[0]]),
        ("EC410", [states[0]]),
        ("EC410", [base, base]),
    ):
        other = make("backward")
        with pytest.raises(OptionError) as caught:
            other.restore(*wrong)
        assert caught.value.code == code
        assert other.snapshot() == make("backward").snapshot()


def test_changes_by_rows_that_are_only_held_are_applied_in_order_too() -> None:
    runtime, states = make("backward"), []
    runtime.hold(EVENTS.slice(0, 3))
    base = runtime.snapshot()
    for at in (3, 6):
        version = runtime.version
        runtime.hold(EVENTS.slice(at, 3))
        states.append(runtime.snapshot(since=version))
    other = make("backward")
    other.restore(base, *states)
    assert other.held == runtime.held
    for wrong in ([base, states[1]], [base, states[0], states[0]]):
        with pytest.raises(OptionError, match="some changes do not follow the state before them"):
            other.restore(*wrong)


def test_what_follows_a_state_without_columns_is_a_whole_state() -> None:
    runtime, other = make("backward"), make("backward")
    base, version = runtime.snapshot(), runtime.version
    found = list(runtime.push(EVENTS.slice(0, 9)))
    states = [base, runtime.snapshot(since=version)]
    version = runtime.version
    found += runtime.push(EVENTS.slice(9, 3))
    other.restore(*states, runtime.snapshot(since=version))
    assert rows([*runtime.push(EVENTS.slice(12)), *runtime.finish()]) == rows(
        [*other.push(EVENTS.slice(12)), *other.finish()]
    )
    assert found
    with pytest.raises(OptionError, match="it is what changed since another state, which must come first"):
        make("backward").restore(base, make_change("backward"))


def make_change(name: str) -> bytes:
    runtime = make(name)
    list(runtime.push(EVENTS.slice(0, 3)))
    return runtime.snapshot(since=runtime.version)


def test_changes_of_other_queries_settings_or_columns_are_refused() -> None:
    runtime = make("backward")
    list(runtime.push(EVENTS.slice(0, 3)))
    base, version = runtime.snapshot(), runtime.version
    columns = EVENTS.set_column(2, "k", EVENTS["k"].cast(pa.float64()))
    for other, events in ((make("forward"), EVENTS), (make("order column"), EVENTS), (make("backward"), columns)):
        list(other.push(events.slice(0, 3)))
        assert other.version.numbers == version.numbers
        with pytest.raises(OptionError, match="the changes are of other queries, settings or columns"):
            make("backward").restore(base, other.snapshot(since=other.version))


def typed(*events: tuple[int, str, int]) -> pa.Table:
    ts, types, keys = zip(*events, strict=True)
    return pa.table({"ts": pa.array(ts, pa.int64()), "type": types, "k": pa.array(keys, pa.int64())})


def test_events_may_come_and_leave_between_two_versions() -> None:
    runtime, other = (ec.Runtime("PATTERN SEQ(A a, B b) WITHIN 2 us", type="type") for _ in range(2))
    list(runtime.push(typed((1, "A", 1), (2, "A", 1))))
    base, version = runtime.snapshot(), runtime.version
    for at in (11, 21, 31):
        list(runtime.push(typed((at, "A", 1), (at + 1, "A", 1))))
    other.restore(base, runtime.snapshot(since=version))
    assert other.kept_events == runtime.kept_events
    for each in (runtime, other):
        assert len(rows([*each.push(typed((33, "B", 1))), *each.finish()])) == 2


def test_a_partition_may_be_dropped_and_return_between_two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_state, "_MIN_ACTIVE", 0)
    monkeypatch.setattr(engine_state, "_ACTIVE_PER_EVENT", 0)
    query = "PATTERN SEQ(A a, B b) WITHIN 3 events"
    runtime, other = (ec.Runtime(query, type="type", partition_by="k", advise=False) for _ in range(2))
    list(runtime.push(typed((1, "A", 1), (2, "C", 2))))
    base, version = runtime.snapshot(), runtime.version
    # The first event leaves, its partition is dropped, and has events again.
    for events in ([(3, "C", 1)] * 3, [(4, "A", 2)], [(5, "C", 2)], [(6, "C", 1), (7, "C", 2)]):
        list(runtime.push(typed(*events)))
    other.restore(base, runtime.snapshot(since=version))
    assert other.kept_events == runtime.kept_events
    for each in (runtime, other):
        assert rows([*each.push(typed((8, "B", 1))), *each.finish()]) == []


@pytest.mark.parametrize("name", PLANS)
def test_saving_changes_nothing(name: str) -> None:
    runtime = make(name)
    for piece in pushes():
        list(runtime.push(piece))
    assert runtime.snapshot() == runtime.snapshot()


def test_a_runtime_that_has_seen_nothing() -> None:
    state = make("backward").snapshot()
    used = make("backward")
    list(used.push(EVENTS))
    used.restore(state)
    assert list(used.finish()) == []
    assert used.counters == make("backward").counters


def test_a_restored_runtime_forgets_what_it_had() -> None:
    runtime = make("backward")
    list(runtime.push(EVENTS.slice(0, 2)))
    state = runtime.snapshot()
    expected = rows([*runtime.push(EVENTS.slice(3)), *runtime.finish()])
    other = make("backward")
    list(other.push(EVENTS))
    list(other.finish())
    other.restore(state)
    assert rows([*other.push(EVENTS.slice(3)), *other.finish()]) == expected


def test_the_strategy_may_be_another() -> None:
    query, settings = PLANS["backward"]
    whole, runtime, other = (
        ec.Runtime(query, type="type", strategy=s, advise=False, **settings) for s in ("auto", "iterative", "auto")
    )
    expected = rows([*whole.push(EVENTS), *whole.finish()])
    found = list(runtime.push(EVENTS.slice(0, 9)))
    other.restore(runtime.snapshot())
    found += other.push(EVENTS.slice(9))
    assert rows([*found, *other.finish()]) == expected
    assert expected


def saved() -> bytes:
    runtime = make("forward")
    list(runtime.push(EVENTS.slice(0, 9)))
    return runtime.snapshot()


class TestRefused:
    """A state that cannot be used is refused with the reason, and the runtime stays as it was."""

    def refusals(self, states: Iterable[bytes], name: str = "forward") -> list[OptionError]:
        runtime = make(name)
        list(runtime.push(EVENTS.slice(0, 3)))
        before, errors = runtime.snapshot(), []
        for state in states:
            with pytest.raises(OptionError) as caught:
                runtime.restore(state)
            errors.append(caught.value)
        assert runtime.snapshot() == before
        return errors

    @pytest.mark.parametrize("state", [b"", b"PAR1", b"eventcube", b"x" * 1000], ids=["nothing", "other", "start", "x"])
    def test_something_else(self, state: bytes) -> None:
        (error,) = self.refusals([state])
        assert (error.code, error.message) == ("EC410", "this is not a state of eventcube")

    def test_cut_short_anywhere(self) -> None:
        state = saved()
        lengths = {*range(10, 80), *range(80, len(state), 7), len(state) - 1}
        errors = self.refusals(state[:length] for length in lengths)
        assert {e.code for e in errors} == {"EC410"}
        assert all("damaged" in e.message for e in errors)

    def test_a_byte_changed_anywhere(self) -> None:
        state = saved()
        places = range(10, len(state))
        errors = self.refusals(state[:at] + bytes([state[at] ^ 1]) + state[at + 1 :] for at in places)
        assert {e.code for e in errors} == {"EC410"}

    def test_another_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(snapshot, "VERSION", 99)
        state = saved()
        monkeypatch.undo()
        (error,) = self.refusals([state])
        assert error.code == "EC411"
        assert error.message == f"the state has version 99, this eventcube reads versions 1 to {snapshot.VERSION}"

    @pytest.mark.parametrize("name", [n for n in PLANS if n != "forward"])
    def test_other_queries_or_settings(self, name: str) -> None:
        (error,) = self.refusals([saved()], name)
        assert error.code == "EC412"
        assert "the same queries" in str(error)

    @pytest.mark.parametrize(
        "settings", [{"lateness": "4 us"}, {"order_by": "s"}, {"limit": 3}, {"concepts": {"P": "A"}}]
    )
    def test_another_setting(self, settings: dict[str, Any]) -> None:
        other = ec.Runtime(PLANS["forward"][0], **({"type": "type", "lateness": "3 us"} | settings))
        with pytest.raises(OptionError) as caught:
            other.restore(saved())
        assert caught.value.code == "EC412"


def _kept() -> dict[str, Any]:
    """The states of all plans after half of the events, and what they come to."""
    half = EVENTS.num_rows // 2
    states, expected = {}, {}
    for name in PLANS:
        runtime = make(name)
        list(runtime.push(EVENTS.slice(0, half)))
        states[name] = runtime.snapshot().hex()
        expected[name] = rows([*runtime.push(EVENTS.slice(half)), *runtime.finish()])
    return {"states": states, "expected": expected}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("version", snapshot.READABLE)
def test_saved_states_stay_readable(name: str, version: int) -> None:
    kept = json.loads(gzip.decompress((DATA / f"state-v{version}.json.gz").read_bytes()))
    runtime = make(name)
    runtime.restore(bytes.fromhex(kept["states"][name]))
    half = EVENTS.num_rows // 2
    assert rows([*runtime.push(EVENTS.slice(half)), *runtime.finish()]) == kept["expected"][name]


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    (DATA / f"state-v{snapshot.VERSION}.json.gz").write_bytes(gzip.compress(json.dumps(_kept()).encode(), mtime=0))


def test_changes_of_another_runtime_are_refused() -> None:
    one, other, pieces = make("backward"), make("backward"), list(pushes())
    for runtime in (one, other):
        list(runtime.push(pieces[0]))
    state, version, others = one.snapshot(), one.version, other.version
    list(other.push(pieces[1]))
    with pytest.raises(OptionError, match="not one that this runtime") as caught:
        other.snapshot(since=version)
    assert caught.value.code == "EC412"
    with pytest.raises(OptionError, match="of another runtime"):
        make("backward").restore(state, other.snapshot(since=others))
    # One that goes on from the state is of the same line.
    same = make("backward")
    same.restore(state)
    list(same.push(pieces[1]))
    list(one.push(pieces[1]))
    fresh = make("backward")
    fresh.restore(state, same.snapshot(since=version))
    assert fresh.version == one.version


@pytest.mark.parametrize("since", [3, None, "yesterday"])
def test_a_version_is_needed_for_changes(since: object) -> None:
    with pytest.raises(OptionError, match="since cannot be"):
        make("backward").snapshot(since=since)  # type: ignore[arg-type]


def test_a_state_is_bytes() -> None:
    runtime = make("backward")
    list(runtime.push(next(iter(pushes()))))
    with pytest.raises(OptionError, match="further arguments"):
        make("backward").restore(runtime.snapshot(), [b""])  # type: ignore[arg-type]
