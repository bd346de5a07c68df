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
    for wrong in ([base, states[1]], [base, states[0], states[0]], [states[0]], [base, base]):
        other = make("backward")
        with pytest.raises(OptionError) as caught:
            other.restore(*wrong)
        assert caught.value.code == "EC410"
        assert other.snapshot() == make("backward").snapshot()


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
        lengths = {*range(16, 80), *range(16, len(state), 97), len(state) - 1}
        errors = self.refusals(state[:length] for length in lengths)
        assert {e.code for e in errors} == {"EC410"}
        assert all("damaged" in e.message for e in errors)

    def test_a_byte_changed_anywhere(self) -> None:
        state = saved()
        places = {*range(24, 200), *range(200, len(state), 61)}
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
