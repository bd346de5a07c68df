from collections import Counter, defaultdict
from datetime import datetime, timedelta

import pytest

from eventcube.bench.hospital import KINDS, VIOLATIONS, Day, hospital_day

WINDOW = timedelta(minutes=10)


@pytest.fixture(scope="module")
def day() -> Day:
    return hospital_day(events=20_000, tools=400, violations=60)


def test_numbers_are_as_asked(day: Day) -> None:
    assert day.events.num_rows == 20_000
    assert set(day.events["kind"].to_pylist()) == set(KINDS)
    assert Counter(v.care for v in day.planted) == {c.name.lower().replace("_", " "): 15 for c in VIOLATIONS}


def test_planted_violations_are_exactly_those_a_search_finds(day: Day) -> None:
    readings: dict[str, dict[str, list[tuple[datetime, str]]]] = defaultdict(lambda: defaultdict(list))
    for e in day.events.to_pylist():
        readings[e["id"]][e["kind"]].append((e["ts"], e["room"]))
    found = {
        (tool, r, w, o)
        for tool, by_kind in readings.items()
        for r, _ in by_kind["Recycle"]
        for w, _ in by_kind["Wash"]
        for o, _ in by_kind["Operate"]
        if r < w < o <= r + WINDOW
        and not any(
            w < s < o and w < d < o and s_room == d_room
            for s, s_room in by_kind["Sharpen"]
            for d, d_room in by_kind["Disinfect"]
        )
    }
    assert found == {(v.tool, v.recycled, v.washed, v.operated) for v in day.planted}


def test_some_violations_end_with_the_window_and_some_rounds_just_after_it(day: Day) -> None:
    assert any(v.operated - v.recycled == WINDOW for v in day.planted)
    recycled = {(e["id"], e["ts"]) for e in day.events.to_pylist() if e["kind"] == "Recycle"}
    late = WINDOW + timedelta(microseconds=1)
    assert any((e["id"], e["ts"] - late) in recycled for e in day.events.to_pylist() if e["kind"] == "Operate")


def test_a_seed_gives_the_same_day() -> None:
    assert hospital_day(2000, 40, 8).planted == hospital_day(2000, 40, 8).planted


def test_too_few_events_for_the_tools_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 40000 events"):
        hospital_day(events=10_000, tools=1000)
