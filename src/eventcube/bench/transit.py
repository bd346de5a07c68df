"""Generates readings of people who move between two states, with a known number of matches of related queries.

The case of Liu et al. 2011 (E-Cube): a hurricane nears Galveston, and people are read at the bus stations, hospitals
and shelters that they pass. Most live in Austin, Dallas or Tulsa; few come from Galveston. The queries ask for
movements by state, by city and by station.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_STATIONS = ("BusStation", "Hospital", "Shelter")
_STATES = {"Texas": ("Galveston", "Austin", "Dallas"), "Oklahoma": ("Tulsa",), "Louisiana": ("Lafayette",)}
# State → city → place.
CONCEPTS = {
    state: {city: [city + station for station in _STATIONS] for city in cities} for state, cities in _STATES.items()
}
# The parts of each query.
MOVEMENTS = {
    "north": ("Texas", "Oklahoma"),
    "dallas": ("Dallas", "Tulsa"),
    "austin": ("Galveston", "Austin", "Tulsa"),
    "austin_dallas": ("Galveston", "Austin", "Dallas", "Tulsa"),
    "no_bus": ("Galveston", "!DallasBusStation", "Austin", "Tulsa"),
    "no_dallas": ("Galveston", "!Dallas", "Austin", "Tulsa"),
    "patients": ("Galveston", "Austin", "DallasHospital", "TulsaHospital"),
    "to_hospital": ("DallasBusStation", "TulsaBusStation", "TulsaHospital"),
}
# A drill-down of `austin_dallas`: who is in a shelter in the end.
SHELTERED = ("Galveston", "Austin", "Dallas", "TulsaShelter")
WINDOW = "1 day"
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "place": pa.string(), "person": pa.int64()})

_START_US = 1_767_225_600_000_000
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_TRIPS = 8
# Trips begin three days apart, and end within two: no match spans two trips.
_SLOT = 3 * _DAY
# A person is at no more than four cities on a trip, and is read at no more than six places in each.
_STAYS, _READINGS = 4, 6
# So the readings of a trip lie within a day.
_MOST_SECONDS_APART = 86_400 // (_STAYS * _READINGS)

Longs = NDArray[np.int64]

_CITIES = [city for cities in _STATES.values() for city in cities]
_PLACES = [place for cities in CONCEPTS.values() for places in cities.values() for place in places]
_BUS, _HOSPITAL, _SHELTER = range(len(_STATIONS))


class Trip(IntEnum):
    """The cities on a person's way."""

    BY_AUSTIN = 0
    BY_AUSTIN_AND_DALLAS = 1
    BY_DALLAS = 2
    BY_DALLAS_AND_AUSTIN = 3
    TOO_SLOW = 4
    """By Austin and Dallas, but Tulsa is more than the window after them, by a microsecond or by hours: no match."""
    NORTH = 5
    NORTH_AND_BACK = 6
    SOUTH = 7


_ROUTES = {
    Trip.BY_AUSTIN: ("Galveston", "Austin", "Tulsa"),
    Trip.BY_AUSTIN_AND_DALLAS: ("Galveston", "Austin", "Dallas", "Tulsa"),
    Trip.BY_DALLAS: ("Galveston", "Dallas", "Tulsa"),
    Trip.BY_DALLAS_AND_AUSTIN: ("Galveston", "Dallas", "Austin", "Tulsa"),
    Trip.TOO_SLOW: ("Galveston", "Austin", "Dallas", "Tulsa"),
    Trip.NORTH: ("Austin", "Dallas", "Austin", "Tulsa"),
    Trip.NORTH_AND_BACK: ("Dallas", "Tulsa", "Austin", "Tulsa"),
    Trip.SOUTH: ("Tulsa", "Dallas", "Austin"),
}
_SHARES = (0.03, 0.03, 0.02, 0.02, 0.01, 0.44, 0.3, 0.15)


@dataclass(frozen=True, slots=True)
class Transit:
    """Readings in order of time, the number of people and trips in them, and that of the matches of each query."""

    events: pa.Table
    people: int
    trips: Mapping[Trip, int]
    matches: Mapping[str, int]
    sheltered: int


def queries(movements: Mapping[str, Sequence[str]] = MOVEMENTS) -> dict[str, str]:
    """The queries as text; the events of a match share a person, which is a setting."""
    return {name: f"PATTERN SEQ({', '.join(parts)}) WITHIN {WINDOW}" for name, parts in movements.items()}


def transit(events: int = 500_000, people: int = 2_500, seed: int = 7) -> Transit:
    """Readings of so many people over 24 days, eight trips each; those in Louisiana make up the number of events."""
    trips = people * _TRIPS
    if events < _STAYS * _READINGS * trips:
        raise ValueError(f"{people} people need at least {_STAYS * _READINGS * trips} events")
    draw = np.random.default_rng(seed)
    trip = draw.choice(len(Trip), size=trips, p=_SHARES)
    place, times = _places(draw, trip), _times(draw, trip)
    person = np.broadcast_to(np.repeat(np.arange(people), _TRIPS)[:, None], place.shape)
    read = place >= 0
    elsewhere = events - int(read.sum())
    ts = np.concatenate((times[read], _START_US + draw.integers(0, _TRIPS * _SLOT, elsewhere)))
    places = np.concatenate((place[read], draw.choice(_codes("Louisiana"), elsewhere)))
    persons = np.concatenate((person[read], draw.integers(0, people, elsewhere)))
    order = np.argsort(ts, kind="stable")
    names = pa.DictionaryArray.from_arrays(pa.array(places[order].astype(np.int32)), pa.array(_PLACES))
    columns = [pa.array(ts[order]).cast(pa.timestamp("us")), names.cast(pa.string()), pa.array(persons[order])]
    in_time = place[trip != Trip.TOO_SLOW]
    return Transit(
        pa.Table.from_arrays(columns, schema=SCHEMA),
        people,
        {kind: int((trip == kind).sum()) for kind in Trip},
        {name: _count(in_time, parts) for name, parts in MOVEMENTS.items()},
        _count(in_time, SHELTERED),
    )


def _places(draw: np.random.Generator, trip: Longs) -> Longs:
    """The places of each trip in order (trips × readings), -1 where there is no reading.

    Who comes by bus is read at the bus station first, and then in hospitals and shelters.
    """
    stays = len(trip), _STAYS
    routes = [[_CITIES.index(city) for city in _ROUTES[kind]] for kind in Trip]
    city = np.array([route + [-1] * (_STAYS - len(route)) for route in routes])[trip]
    station = draw.choice((_HOSPITAL, _SHELTER), size=(*stays, _READINGS), p=(0.2, 0.8))
    station[:, :, 0] = np.where(draw.random(stays) < 0.6, _BUS, station[:, :, 0])
    readings = draw.integers(1, _READINGS + 1, stays)
    is_read = (city[:, :, None] >= 0) & (np.arange(_READINGS) < readings[:, :, None])
    return np.where(is_read, city[:, :, None] * len(_STATIONS) + station, -1).reshape(len(trip), -1)


def _times(draw: np.random.Generator, trip: Longs) -> Longs:
    """The times of the readings of each trip (trips × readings)."""
    begun = _START_US + (np.arange(len(trip)) % _TRIPS) * _SLOT + draw.integers(0, _DAY // 2, len(trip))
    apart = draw.integers(60 * _SECOND, _MOST_SECONDS_APART * _SECOND, (len(trip), _STAYS * _READINGS))
    times = begun[:, None] + np.cumsum(apart, axis=1)
    slow = np.flatnonzero(trip == Trip.TOO_SLOW)
    last_stay = (_STAYS - 1) * _READINGS
    delay = np.where(np.arange(len(slow)) % 2, draw.integers(0, _DAY // 4, len(slow)), 0)
    late = times[slow, last_stay - 1] + _DAY + 1 + delay - times[slow, last_stay]
    times[slow, last_stay:] += late[:, None]
    return times


def _count(places: Longs, parts: Sequence[str]) -> int:
    """The number of matches of SEQ(parts) in trips whose readings all lie within the window.

    `found[k]` is how often each trip has had the first k positive parts so far, and since then no negated part that
    follows them.
    """
    positive = [_codes(part) for part in parts if not part.startswith("!")]
    found = np.zeros((len(positive) + 1, len(places)), np.int64)
    found[0] = 1
    for place in places.T:
        bound = 0
        for part in parts:
            if part.startswith("!"):
                found[bound, np.isin(place, _codes(part[1:]))] = 0
            else:
                bound += 1
        for k in range(len(positive), 0, -1):
            found[k] += np.where(np.isin(place, positive[k - 1]), found[k - 1], 0)
    return int(found[-1].sum())


def _codes(name: str) -> Longs:
    """The numbers of the places in a state or a city, or that of the place with this name."""
    above = [
        (state, city, place)
        for state, cities in CONCEPTS.items()
        for city, places in cities.items()
        for place in places
    ]
    return np.array([code for code, names in enumerate(above) if name in names])
