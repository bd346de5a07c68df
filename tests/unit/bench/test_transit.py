from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import combinations

import pytest

import eventcube as ec
from eventcube.bench.transit import CONCEPTS, MOVEMENTS, SHELTERED, Transit, Trip, queries, transit

WINDOW = timedelta(days=1)
ABOVE = {
    place: (state, city, place)
    for state, cities in CONCEPTS.items()
    for city, places in cities.items()
    for place in places
}


@pytest.fixture(scope="module")
def readings() -> Transit:
    return transit(events=25_000, people=120)


def test_numbers_are_as_asked(readings: Transit) -> None:
    assert readings.events.num_rows == 25_000
    assert sum(readings.trips.values()) == 8 * readings.people == 8 * 120
    assert set(readings.events["place"].to_pylist()) == set(ABOVE)
    times = readings.events["ts"].to_pylist()
    assert times == sorted(times)


def test_the_matches_of_each_query_are_those_a_search_finds(readings: Transit) -> None:
    passed: dict[int, list[tuple[datetime, tuple[str, str, str]]]] = defaultdict(list)
    for event in readings.events.to_pylist():
        if not event["place"].startswith("Lafayette"):
            passed[event["person"]].append((event["ts"], ABOVE[event["place"]]))

    def search(parts: tuple[str, ...]) -> int:
        positive = [part for part in parts if not part.startswith("!")]
        total = 0
        for way in passed.values():
            # Partial matches: their places in the way.
            found: list[tuple[int, ...]] = [()]
            for number, part in enumerate(positive):
                before = parts[parts.index(part) - 1] if number else ""
                grown = []
                for match in found:
                    for at in range(match[-1] + 1 if match else 0, len(way)):
                        if match and way[at][0] - way[match[0]][0] > WINDOW:
                            break
                        if before.startswith("!") and at > match[-1] + 1 and before[1:] in way[at - 1][1]:
                            break
                        if part in way[at][1]:
                            grown.append((*match, at))
                found = grown
            total += len(found)
        return total

    assert {name: search(parts) for name, parts in MOVEMENTS.items()} == readings.matches
    assert search(SHELTERED) == readings.sheltered
    assert min(*readings.matches.values(), readings.sheltered) > 0


def test_the_engine_finds_them(readings: Transit) -> None:
    counts = ec.Cube(queries(), concepts=CONCEPTS).counts(readings.events, type="place", partition_by="person")
    assert dict(zip(*counts.to_pydict().values(), strict=True)) == readings.matches


def test_some_trips_are_a_microsecond_too_slow(readings: Transit) -> None:
    assert readings.trips[Trip.TOO_SLOW] > 1
    by_person = defaultdict(list)
    for event in readings.events.to_pylist():
        by_person[event["person"]].append(event["ts"])
    late = WINDOW + timedelta(microseconds=1)
    assert any(after - before == late for times in by_person.values() for before, after in combinations(times, 2))


def test_a_seed_gives_the_same_readings() -> None:
    assert transit(2000, 10).events.equals(transit(2000, 10).events)
    assert not transit(2000, 10).events.equals(transit(2000, 10, seed=8).events)


def test_too_few_events_for_the_people_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 19200 events"):
        transit(events=10_000, people=100)
