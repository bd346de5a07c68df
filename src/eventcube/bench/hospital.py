"""Generates a day of RFID readings in a hospital, with a known number of tools used without proper care.

A surgical tool goes round: recycled, washed, sharpened and disinfected in one room (in either order), used in an
operation. The query below asks for tools that skipped the care between washing and operation, all within ten minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

QUERY = """\
PATTERN SEQ(
    Recycle r,
    Wash w,
    !AND(Sharpen s, Disinfect d, s.room = d.room, s.id = d.id = r.id),
    Operate o,
    r.id = w.id = o.id)
WITHIN 10 minutes
"""
SCHEMA = pa.schema(
    {"kind": pa.string(), "ts": pa.timestamp("us"), "id": pa.string(), "room": pa.string(), "staff": pa.int64()}
)
KINDS = ("Recycle", "Wash", "Sharpen", "Disinfect", "Operate", "Move", "Store", "Inspect")
MIDNIGHT = datetime(2026, 1, 1)

_START_US = 1_767_225_600_000_000
_SECOND = 1_000_000
_WINDOW = 600 * _SECOND
_CYCLES = 8
_SLOT = 86_400 * _SECOND // _CYCLES
# A round lasts at most 20 minutes, and rounds are more than a window apart: no match spans two.
_LATEST_START = _SLOT - 32 * 60 * _SECOND
_ROOMS = 40
_STAFF = 300

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Care(IntEnum):
    """What happened to a tool between its washing and its operation."""

    PROPER = 0
    JUST_IN_TIME = 1
    """Both done in one room, the second a microsecond before the operation: no violation."""
    SLOW = 2
    """Nothing done, but the operation comes after the window, by a microsecond or by minutes: no violation."""
    UNUSED = 3
    """Nothing done, and no operation."""
    NOTHING = 4
    ONLY_SHARPENED = 5
    ONLY_DISINFECTED = 6
    DIFFERENT_ROOMS = 7


VIOLATIONS = (Care.NOTHING, Care.ONLY_SHARPENED, Care.ONLY_DISINFECTED, Care.DIFFERENT_ROOMS)


@dataclass(frozen=True, slots=True)
class Violation:
    """A planted violation: one match of the query."""

    tool: str
    care: str
    recycled: datetime
    washed: datetime
    operated: datetime


@dataclass(frozen=True, slots=True)
class Day:
    """A day's events in order of time, and the violations planted in them in the same order."""

    events: pa.Table
    planted: tuple[Violation, ...]


def hospital_day(events: int = 600_000, tools: int = 5_000, violations: int = 240, seed: int = 7) -> Day:
    """A day with exactly these numbers of events and violations; the four kinds of violation alternate."""
    rounds = tools * _CYCLES
    if events < 5 * rounds or violations > rounds:
        raise ValueError(f"{tools} tools need at least {5 * rounds} events and have room for {rounds} violations")
    draw = np.random.default_rng(seed)
    care = draw.choice(4, size=rounds, p=(0.88, 0.05, 0.04, 0.03)).astype(np.int64)
    chosen = draw.choice(rounds, size=violations, replace=False)
    care[chosen] = np.resize(VIOLATIONS, violations)

    tool = np.repeat(np.arange(tools), _CYCLES)
    times = _times(draw, care, chosen)
    present = _readings(care)
    room = draw.integers(1, _ROOMS + 1, (5, rounds))
    room[3] = np.where(care == Care.DIFFERENT_ROOMS, room[2] % _ROOMS + 1, room[2])

    noise = events - int(present.sum())
    kind = np.concatenate((np.repeat(np.arange(5), present.sum(axis=1)), draw.integers(5, len(KINDS), noise)))
    ts = np.concatenate((times[present], _START_US + draw.integers(0, 86_400 * _SECOND, noise)))
    ids = np.concatenate((np.broadcast_to(tool, present.shape)[present], draw.integers(0, tools, noise)))
    rooms = np.concatenate((room[present], draw.integers(1, _ROOMS + 1, noise)))
    order = np.argsort(ts, kind="stable")
    table = pa.Table.from_arrays(
        [
            _text(kind[order], list(KINDS)),
            pa.array(ts[order]).cast(pa.timestamp("us")),
            _text(ids[order], [_tool_name(n) for n in range(tools)]),
            _text(rooms[order], [f"room-{n:02d}" for n in range(_ROOMS + 1)]),
            pa.array(draw.integers(1, _STAFF + 1, events)),
        ],
        schema=SCHEMA,
    )
    in_order = chosen[np.argsort(times[4, chosen], kind="stable")]
    return Day(table, tuple(_violation(int(tool[i]), Care(care[i]), times[:, i]) for i in in_order))


def _times(draw: np.random.Generator, care: Longs, chosen: Longs) -> Longs:
    """The times of each round's five readings (kinds × rounds), distinct within a round."""
    rounds = len(care)
    slot = np.arange(rounds) % _CYCLES
    recycled = _START_US + slot * _SLOT + draw.integers(0, _LATEST_START, rounds)
    washed = recycled + _seconds(draw, 60, 150, rounds)
    first = washed + _seconds(draw, 30, 120, rounds)
    second = first + _seconds(draw, 30, 120, rounds)
    operated = second + _seconds(draw, 20, 120, rounds)

    slow = np.flatnonzero(care == Care.SLOW)
    operated[slow] = recycled[slow] + _WINDOW + 1
    operated[slow[::2]] += _seconds(draw, 1, 600, len(slow[::2]))
    # The window is closed: an operation at its very end still counts.
    operated[chosen[::5]] = recycled[chosen[::5]] + _WINDOW
    second = np.where(care == Care.JUST_IN_TIME, operated - 1, second)

    sharpened_first = draw.random(rounds) < 0.5
    sharpened = np.where(sharpened_first, first, second)
    disinfected = np.where(sharpened_first, second, first)
    return np.stack((recycled, washed, sharpened, disinfected, operated))


def _readings(care: Longs) -> Flags:
    """Which of the five readings each round has (kinds × rounds)."""
    present = np.ones((5, len(care)), dtype=np.bool_)
    neither = np.isin(care, (Care.SLOW, Care.UNUSED, Care.NOTHING))
    present[2] = ~neither & (care != Care.ONLY_DISINFECTED)
    present[3] = ~neither & (care != Care.ONLY_SHARPENED)
    present[4] = care != Care.UNUSED
    return present


def _seconds(draw: np.random.Generator, low: int, high: int, size: int) -> Longs:
    return draw.integers(low * _SECOND, high * _SECOND, size)


def _text(codes: Longs, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def _tool_name(number: int) -> str:
    return f"tool-{number:05d}"


def _violation(tool: int, care: Care, times: Longs) -> Violation:
    recycled, washed, operated = (MIDNIGHT + timedelta(microseconds=int(times[k]) - _START_US) for k in (0, 1, 4))
    return Violation(_tool_name(tool), care.name.lower().replace("_", " "), recycled, washed, operated)
