"""A cube over a stream: moves are answered from kept matches, and queries come and go."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.cube_runtime import CubeRuntime
from eventcube.engine.kept_matches import Keep
from eventcube.errors import OptionError
from eventcube.options import options
from eventcube.runtime.changing import Answer

PLACES = {"TX": ["D", "G"], "OK": ["T", "S"]}
SETTINGS: dict[str, Any] = {"time": "ts", "type": "place"}
QUERIES = {"q": "PATTERN SEQ(TX a, OK b) WITHIN 20 us"}


def _events(count: int, seed: int = 1, first: int = 1) -> pa.Table:
    rng = Random(seed)
    places = [rng.choice(["D", "G", "T", "S", "X"]) for _ in range(count)]
    return pa.table({"ts": list(range(first, first + count)), "place": places})


def _cube() -> ec.Cube:
    return ec.Cube(QUERIES, concepts=PLACES)


def _pairs(batches: Any, name: str) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for got, batch in batches if got == name for row in batch.to_pylist()]


def _alone(query: ec.Query, events: pa.Table) -> list[tuple[int, int]]:
    found = ec.match(events, query, concepts=PLACES, **SETTINGS)
    return sorted((row["start"], row["end"]) for row in found.to_pylist())


def _drilled(runtime: CubeRuntime, move: str) -> Answer:
    if move == "concept":
        return runtime.concept_drill_down("q", ("TX", "D", 1), name="fine")
    return runtime.pattern_drill_down("q", ("G", 2), name="fine")


@pytest.mark.parametrize("move", ["concept", "pattern"])
@pytest.mark.parametrize("sharing", ["auto", "independent"])
def test_a_drill_down_is_answered_from_kept_matches_and_goes_on(move: str, sharing: str) -> None:
    events = _events(300)
    runtime = _cube().runtime(keep="1 ms", separate=True, sharing=sharing, **SETTINGS)
    before = [*runtime.push(events.slice(0, 200))]
    read = runtime.counters["events"], runtime.counters["candidates"]
    answer = _drilled(runtime, move)
    assert answer.source == "q"
    assert answer.complete_from is None, "no event has left so far"
    assert answer.reused == runtime.counters["results_reused"] == len(_pairs(before, "q"))
    assert runtime.counters["events"] == read[0], "no event is read again"
    if move == "concept":
        assert runtime.counters["candidates"] == read[1], "types of kept matches are looked at, and no event"
    later = [*runtime.push(events.slice(200)), *runtime.finish()]
    past = [(row["start"], row["end"]) for row in answer.matches.to_pylist()]
    assert past
    assert sorted([*past, *_pairs(later, "fine")]) == _alone(answer.query, events)
    assert sorted(_pairs([*before, *later], "q")) == _alone(runtime.queries["q"], events)


def test_a_move_is_applied() -> None:
    runtime = _cube().runtime(separate=True, **SETTINGS)
    list(runtime.push(_events(100)))
    (move,) = (m for m in runtime.cube.moves("q") if m.change == ("TX", "D", 1))
    assert runtime.apply("q", move, name="fine").source == "q"
    assert list(runtime.queries) == list(runtime.cube) == ["q", "fine"]


def test_what_was_dropped_is_not_claimed() -> None:
    events = _events(300)
    runtime = _cube().runtime(keep="50 us", separate=True, **SETTINGS)
    list(runtime.push(events.slice(0, 200)))
    answer = _drilled(runtime, "concept")
    assert answer.complete_from == 200 - 50
    past = sorted((row["start"], row["end"]) for row in answer.matches.to_pylist())
    assert past == [(a, b) for a, b in _alone(answer.query, events.slice(0, 199)) if a >= 150]


def test_windows_say_how_much_is_kept_by_default() -> None:
    runtime = _cube().runtime(separate=True, **SETTINGS)
    list(runtime.push(_events(200)))
    answer = _drilled(runtime, "concept")
    assert answer.complete_from == 200 - 20
    assert str(answer) == (
        f"fine: {answer.matches.num_rows} rows from {answer.reused} kept matches of q, complete from 180 on"
    )


def test_the_number_of_kept_matches_is_bounded() -> None:
    cube = _cube()
    runtime = CubeRuntime.from_options(
        cube.queries, options(concepts=PLACES, **SETTINGS), separate=True, keep=Keep(10_000, 10)
    )
    runtime.cube = cube.copy()
    list(runtime.push(_events(200)))
    answer = _drilled(runtime, "concept")
    assert answer.reused <= 10
    assert isinstance(answer.complete_from, int)
    past = sorted((row["start"], row["end"]) for row in answer.matches.to_pylist())
    assert past == [(a, b) for a, b in _alone(answer.query, _events(199)) if a >= answer.complete_from]


def test_a_drill_down_of_a_drill_down_is_answered_from_it() -> None:
    runtime = _cube().runtime(keep="1 ms", separate=True, **SETTINGS)
    list(runtime.push(_events(200)))
    first = runtime.concept_drill_down("q", ("TX", "D", 1), name="fine")
    second = runtime.concept_drill_down("fine", ("OK", "T", 2))
    assert second.name == "fine.1"
    assert second.reused == first.matches.num_rows
    past = sorted((row["start"], row["end"]) for row in second.matches.to_pylist())
    assert past == _alone(second.query, _events(199))


def test_a_roll_up_sees_the_events_from_now_on() -> None:
    runtime = _cube().runtime(keep="1 ms", separate=True, **SETTINGS)
    list(runtime.push(_events(100)))
    answer = runtime.pattern_roll_up("q", ("TX", 1), name="coarse")
    assert (answer.source, answer.complete_from, answer.matches.num_rows) == (None, 101, 0)
    later = [*runtime.push(_events(50, seed=2, first=101)), *runtime.finish()]
    assert _pairs(later, "coarse") == _alone(answer.query, _events(50, seed=2, first=101))


def test_a_part_whose_events_were_not_retained_is_seen_from_now_on() -> None:
    runtime = _cube().runtime(keep="1 ms", separate=True, **SETTINGS)
    list(runtime.push(_events(100)))
    answer = runtime.pattern_drill_down("q", ("X", 2), name="fine")
    assert (answer.source, answer.complete_from) == (None, 101)
    assert str(answer) == "fine: sees the events from 101 on"


def test_groups_of_a_drill_down_are_those_of_the_past() -> None:
    cube = ec.Cube({"q": "PATTERN SEQ(TX a, OK b) WITHIN 20 us AGG COUNT(*) AS n"}, concepts=PLACES)
    runtime = cube.runtime(keep="1 ms", separate=True, **SETTINGS)
    list(runtime.push(_events(200)))
    answer = runtime.concept_drill_down("q", ("TX", "D", 1), name="fine")
    fine = ec.parse("PATTERN SEQ(D a, OK b) WITHIN 20 us")
    assert answer.matches.to_pylist() == [{"n": len(_alone(fine, _events(199)))}]
    ((name, batch),) = runtime.remove("q")
    assert name == "q"
    assert batch.to_pylist()[0]["n"] == answer.reused
    # The groups go on from those of the past, also in another runtime.
    fresh = runtime.cube.runtime(keep="1 ms", separate=True, **SETTINGS)
    fresh.restore(runtime.snapshot())
    for going_on in (runtime, fresh):
        ((_, batch),) = [*going_on.push(_events(100, first=201)), *going_on.finish()]
        both = pa.concat_tables([_events(200), _events(100, first=201)])
        assert batch.to_pylist() == [{"n": len(_alone(fine, both))}]


def test_a_negated_part_that_looks_back_is_answered_from_where_all_events_are_there() -> None:
    # The Drop at 90 was purged before the drill-down, and is in the window of the Pay.
    queries = {"q": "PATTERN SEQ(V v, P p) WITHIN 600 us", "d": "PATTERN SEQ(D d, V v) WITHIN 600 us"}
    cube = ec.Cube(queries, type="place")
    runtime = cube.runtime(separate=True)
    for ts, place in [(90, "D"), (110, "V"), (650, "P"), (700, "T"), (701, "T")]:
        list(runtime.push(pa.table({"ts": [ts], "place": [place]})))
    answer = runtime.pattern_drill_down("q", ("!D x", 1), name="clean")
    assert answer.source == "q"
    assert not answer.matches.num_rows
    assert isinstance(answer.complete_from, int)
    assert answer.complete_from > 650


def test_a_move_that_fails_changes_nothing() -> None:
    cube = _cube()
    runtime = cube.runtime(separate=True, **SETTINGS)
    list(runtime.push(_events(10)))
    with pytest.raises(ec.BindError):
        runtime.pattern_drill_down("q", ("!(D d, d.weight > 5)", 2), name="fine")
    assert [*runtime.queries] == [*runtime.cube] == [*cube] == ["q"]
    assert runtime.pattern_drill_down("q", ("!D d", 2), name="fine").name == "fine"
    runtime.remove("fine")
    assert [*runtime.cube] == ["q"]
    runtime.add("fine", QUERIES["q"])
    assert runtime.concept_drill_down("fine", ("TX", "D", 1)).name == "fine.1"
    assert [*cube] == ["q"], "the cube of the caller stays as it is"


def test_moves_are_checked_against_columns_that_are_known() -> None:
    cube = ec.Cube(QUERIES, concepts=PLACES, columns=_events(1).schema, time="ts", type="place")
    with pytest.raises(ec.BindError):
        cube.pattern_drill_down("q", ("!(D d, d.weight > 5)", 2))
    assert [*cube] == ["q"]
    cube.concept_drill_down("q", ("TX", "D", 1), name="fine")
    cube.remove("fine")
    assert [*cube] == ["q"]


def test_times_are_told_as_events_have_them() -> None:
    moments = pa.array([datetime(2024, 1, 1, 0, 0, second) for second in range(4)], pa.timestamp("us"))
    events = pa.table({"ts": moments, "place": ["D", "T", "D", "T"]})
    runtime = _cube().runtime(separate=True, **SETTINGS)
    list(runtime.push(events))
    assert runtime.add("other", QUERIES["q"]).complete_from == datetime(2024, 1, 1, 0, 0, 3, 1)


def test_a_state_with_an_added_query_is_restored() -> None:
    events = _events(300)
    runtime = _cube().runtime(separate=True, **SETTINGS)
    list(runtime.push(events.slice(0, 100)))
    first, version = runtime.snapshot(), runtime.version
    runtime.add("other", "PATTERN SEQ(D a, T b) WITHIN 30 us")
    before = [*runtime.push(events.slice(100, 50))]
    changed = runtime.snapshot(since=version)
    fresh = ec.Runtime(runtime.queries, concepts=PLACES, separate=True, **SETTINGS)
    # The state before the query was added is of no use, but does no harm.
    fresh.restore(first, changed)
    later = [*fresh.push(events.slice(150)), *fresh.finish()]
    assert sorted(_pairs([*before, *later], "other")) == _alone(runtime.queries["other"], events.slice(100))
    with pytest.raises(OptionError, match="EC412"):
        ec.Runtime({"q": QUERIES["q"]}, concepts=PLACES, separate=True, **SETTINGS).restore(first, changed)


def test_an_added_query_shares_events_once_none_is_left_from_before() -> None:
    runtime = _cube().runtime(separate=True, **SETTINGS)
    list(runtime.push(_events(100)))
    runtime.add("other", QUERIES["q"])
    assert runtime.workload is not None
    assert len(runtime.workload.plan.stacks) == 4
    list(runtime.push(_events(100, first=101)))
    list(runtime.push(_events(1, first=201)))
    assert len(runtime.workload.plan.stacks) == 2


def test_matches_of_a_table_are_kept_when_asked() -> None:
    cube, events = _cube(), _events(300)
    cube.match(events, keep=10_000, **SETTINGS)
    cube.concept_drill_down("q", ("TX", "D", 1), name="fine")
    cube.pattern_drill_down("fine", ("G", 2), name="finer")
    for name in ("fine", "finer"):
        answer = cube.answer(name)
        assert answer.complete_from is None
        assert sorted((r["start"], r["end"]) for r in answer.matches.to_pylist()) == _alone(cube[name], events)
        assert cube.answer(name) is answer
    assert cube.answer("finer").source == "fine"


def test_counted_matches_of_a_table_are_kept_when_asked() -> None:
    cube, events = _cube(), _events(300)
    counted = cube.counts(events, keep=50, **SETTINGS).to_pylist()
    fine = cube.concept_drill_down("q", ("TX", "D", 1), name="fine")
    answer = cube.answer("fine")
    assert counted[0]["matches"] > 50 >= answer.reused > 0
    assert isinstance(answer.complete_from, int)
    expected = [(a, b) for a, b in _alone(fine, events) if a >= answer.complete_from]
    assert sorted((r["start"], r["end"]) for r in answer.matches.to_pylist()) == expected


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (lambda r: r.add("q", QUERIES["q"]), "EC480", "there is a query 'q' already"),
        (lambda r: r.remove("qq"), "EC481", "no query 'qq'"),
        (lambda r: r.remove("q"), "EC481", "the last query"),
        (lambda r: r.concept_drill_down("qq", ("TX", "D", 1)), "EC481", "no query 'qq'"),
        (lambda r: r.concept_drill_down("q", ("TX", "T", 1)), "EC462", "not below"),
        (lambda r: r.cube.answer("q"), "EC482", "no matches are kept"),
        (lambda r: r.cube.runtime(keep="soon"), "EC403", "cannot read the duration"),
        (lambda r: r.cube.runtime(keep=10_000), "EC414", "keep cannot be 10000"),
        (lambda r: ec.Concepts("places.yaml"), "EC414", "a hierarchy cannot be 'places.yaml'"),
        (lambda r: r.cube.match(_events(3), keep=0, **SETTINGS), "EC414", "keep cannot be 0"),
    ],
)
def test_what_cannot_be_done_is_said(call: Any, code: str, message: str) -> None:
    runtime = _cube().runtime(separate=True, **SETTINGS)
    with pytest.raises(OptionError, match=message) as raised:
        call(runtime)
    assert raised.value.code == code
    assert [*runtime.queries] == [*runtime.cube.queries] == ["q"]


def test_answers_that_cannot_be_given_are_said() -> None:
    cube = _cube()
    cube.match(_events(30), keep=100, **SETTINGS)
    with pytest.raises(OptionError, match="the call that kept matches gave the result of 'q' already"):
        cube.answer("q")
    cube.pattern_drill_down("q", ("!X x", 2), name="fine")
    with pytest.raises(OptionError, match="from kept matches: the events of type X were not kept"):
        cube.answer("fine")
    # The events of the part would have to come after those that are kept.
    cube.pattern_drill_down("q", ("!TX x", 3), name="ahead")
    with pytest.raises(OptionError, match="those of q, with the events that were kept, are not enough"):
        cube.answer("ahead")
    cube.pattern_roll_up("q", ("TX", 1), name="coarse")
    with pytest.raises(OptionError, match="no query whose matches are kept is coarser"):
        cube.answer("coarse")


def test_one_match_is_told_as_one() -> None:
    cube = _cube()
    cube.match(pa.table({"ts": [1, 2], "place": ["D", "T"]}), keep=1, **SETTINGS)
    cube.concept_drill_down("q", ("TX", "D", 1), name="fine")
    answer = cube.answer("fine")
    assert str(answer) == "fine: 1 row from 1 kept match of q, complete from the beginning on"
    assert repr(answer) == f"<Answer: {answer}>"
    assert f"<b>{answer}</b>" in answer._repr_html_()
    assert "SEQ</b>(D a, OK b)" in answer._repr_html_()


def test_one_unnamed_query_takes_no_others() -> None:
    with pytest.raises(OptionError, match="EC480"):
        ec.Runtime(QUERIES["q"], type="place").add("other", QUERIES["q"])


def test_events_that_another_query_still_needs_do_not_stand_for_those_that_left() -> None:
    queries = {"q": "PATTERN SEQ(TX a, T b) WITHIN 4 us", "other": "PATTERN SEQ(S d, X c) WITHIN 1 hour"}
    runtime = ec.Cube(queries, concepts=PLACES).runtime(separate=True, **SETTINGS)
    for ts, place in (([1, 2, 3], ["S", "D", "T"]), ([20], ["Z"]), ([30], ["S"])):
        list(runtime.push(pa.table({"ts": ts, "place": place})))
    answer = _drilled(runtime, "concept")
    assert answer.complete_from == 30 - 4


def test_an_answer_has_the_form_of_other_results_and_no_match_from_before() -> None:
    runtime = ec.Cube(QUERIES, concepts=PLACES).runtime(keep="50 us", **SETTINGS)
    (first, *_) = runtime.push(_events(200))
    answer = runtime.pattern_drill_down("q", ("G g", 1), name="fine")
    assert answer.matches.schema == first.schema
    assert isinstance(answer.complete_from, int)
    assert min(row["start"] for row in answer.matches.to_pylist()) >= answer.complete_from


def test_times_that_no_datetime_can_be_are_told_as_numbers() -> None:
    events = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "place": ["D", "T"]})
    runtime = _cube().runtime(separate=True, **SETTINGS)
    list(runtime.push(events))
    list(runtime.advance(2**61))
    assert runtime.add("other", QUERIES["q"]).complete_from == 2**61
