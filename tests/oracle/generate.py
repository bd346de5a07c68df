"""Random cases: a query, the events it is asked of, and how they are to be read.

All of it is drawn from a `random.Random`. Hypothesis hands out one of its own that it can shrink; `random_case` makes
one from a seed, for millions of quick cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from eventcube.language.syntax import Column, Component, CountWindow, Not, Pattern, Query, TimeWindow
from tests.oracle.brute import Event, positive_variables
from tests.oracle.event import Nanoseconds
from tests.oracle.patterns import (
    CONCEPTS,
    LEAVES,
    PatternMaker,
    quals_beside,
    random_quals,
    with_correlation,
    with_quals,
)
from tests.oracle.quals import MOMENTS, TEXTS, TICK, chance
from tests.oracle.text import query_to_text


@dataclass(frozen=True)
class Options:
    """How the events of a case are read; `in_order`: they arrive by their `ord`."""

    typed: bool = True
    ordered: bool = False
    partitioned: bool = False
    in_order: bool = True
    concepts: Mapping[str, str] = field(default_factory=dict)


PLAIN = Options()


class Case(NamedTuple):
    """A question the oracle and the engine must answer alike."""

    query: Query
    events: list[Event]
    options: Options


class Workload(NamedTuple):
    """Queries that the engine answers in one run, each as the oracle does for it alone."""

    queries: tuple[Query, ...]
    events: list[Event]
    options: Options


def random_case(seed: int) -> Case:
    """The case of a seed: the same one every time."""
    return draw_case(Random(seed))


def draw_case(rng: Random) -> Case:
    """A case from a source of chance."""
    options = draw_options(rng)
    query = draw_query(rng, options)
    return Case(query, draw_stream(rng, options, query), options)


def draw_options(rng: Random) -> Options:
    typed = not chance(rng, 6)
    return Options(
        typed=typed,
        ordered=chance(rng, 35),
        partitioned=chance(rng, 55),
        in_order=not chance(rng, 20),
        concepts=CONCEPTS if typed and chance(rng, 25) else {},
    )


def draw_query(rng: Random, options: Options) -> Query:
    """A valid query of at most six components and four levels, with its text."""
    types = ("A", "B", "C", "D", "P", "P", "R") if options.concepts else rng.choice([LEAVES, LEAVES[:3], LEAVES[:2]])
    maker = PatternMaker(rng, types, components=rng.choice([2, 3, 4, 4, 5, 5, 6] if options.typed else [1, 2, 3, 4]))
    bare = maker.pattern(rng.choice([1, 1, 2, 2, 2, 3, 3, 4, 0]))
    pattern = with_quals(rng, bare) if chance(rng, 75) else bare
    names = [c.name for c in components(pattern)]
    query = Query(
        pattern,
        where=(*random_quals(rng, names, (), [0, 0, 0, 1, 1, 2]), *quals_beside(rng, pattern, names, 15)),
        partition_by=_partition(rng, options),
        within=_window(rng),
        limit=rng.randint(1, 4) if chance(rng, 5) else None,
    )
    return replace(query, text=query_to_text(query))


def _partition(rng: Random, options: Options) -> tuple[Column, ...]:
    """PARTITION BY now and then; where the options name a column, only that."""
    if not chance(rng, 12):
        return ()
    columns = ["k"] if options.partitioned else rng.choice([["k"], ["k"], ["s"], ["y"], ["k", "b"], ["b"]])
    return tuple(map(Column, columns))


def draw_tangled_case(rng: Random) -> Case:
    """A case of a query rich in what is rare elsewhere: negations that speak of alternatives beside or around them."""
    options = replace(draw_options(rng), typed=True, concepts={})
    bare = PatternMaker(rng, LEAVES[: rng.choice([1, 2, 3])]).tangled()
    pattern = with_correlation(rng, with_quals(rng, bare) if chance(rng, 30) else bare, positive_variables(bare))
    assert not isinstance(pattern, Not)
    query = Query(pattern, within=_window(rng))
    query = replace(query, text=query_to_text(query))
    return Case(query, draw_stream(rng, options, query)[:9], options)


def _window(rng: Random) -> TimeWindow | CountWindow | None:
    match rng.choice(["time", "time", "time", "count", "count", "none"]):
        case "time":
            return TimeWindow(rng.choice([1, 3, 4, 5, 6, 8, 10, 12]) * TICK)
        case "count":
            return CountWindow(rng.choice([2, 4, 5, 6, 7, 8, 10]))
        case _:
            return None


def components(pattern: Pattern) -> Iterator[Component]:
    """The positive components, in the order they are written."""
    if isinstance(pattern, Component):
        yield pattern
    else:
        for part in pattern.parts:
            if not isinstance(part, Not):
                yield from components(part)


def draw_stream(rng: Random, options: Options, query: Query | None = None) -> list[Event]:
    """Up to 14 events, rarely none; for a query, of the types it asks for and often in the order it asks for them."""
    wanted = [c.type or rng.choice(LEAVES) for c in components(query.pattern)] if query else list(LEAVES)
    count = rng.choice([0, 3, 5, 6, 7, 8, 8, 9, 10, 10, 11, 12, 13, 14])
    if not options.typed:
        count = min(count, 9)
    types = [_event_type(rng, options, wanted) for _ in range(count)]
    if count and chance(rng, 60):
        # Plant the positive components in the order they are written, so that there is something to find.
        places = sorted(rng.sample(range(count), min(count, len(wanted))))
        for place, type_ in zip(places, wanted, strict=False):
            types[place] = specific_type(rng, options, type_)
    step = rng.choice([[1], [1], [0, 1], [0, 1, 1, 2], [0, 0, 1], [1, 2, 3]])
    keys, orders = rng.choice(KEYS), rng.choice(ORDERS)
    # Now and then before 1970, or across it.
    clock = -rng.choice([5, 5000]) if chance(rng, 20) else 0
    events = []
    for type_ in types:
        clock += rng.choice(step)
        events.append(draw_event(rng, options, type_, clock * TICK, keys, orders))
    return arrived(rng, options, events)


def draw_event(
    rng: Random, options: Options, type_: str, ts: int, keys: Sequence[int | None], orders: Sequence[Any]
) -> Event:
    """An event without a number yet."""
    order, attrs = rng.choice(orders), _attributes(rng, keys)
    return Event(
        id=-1,
        type=type_ if options.typed else None,
        ts=ts,
        order=(order,) if options.ordered else None,
        key=attrs["k"] if options.partitioned else None,
        attrs=attrs,
    )


def arrived(rng: Random, options: Options, events: list[Event]) -> list[Event]:
    """The events in the order in which they arrive, which numbers them."""
    if options.in_order:
        events.sort(key=lambda event: event.moment)
    else:
        rng.shuffle(events)
    return [replace(event, id=i) for i, event in enumerate(events)]


def _event_type(rng: Random, options: Options, wanted: Sequence[str]) -> str:
    return specific_type(rng, options, rng.choice(wanted)) if chance(rng, 60) else rng.choice(LEAVES)


def specific_type(rng: Random, options: Options, type_: str) -> str:
    """The type or one that descends from it."""
    children = [child for child, parent in options.concepts.items() if parent == type_]
    return specific_type(rng, options, rng.choice(children)) if children and chance(rng, 85) else type_


# What an order column holds: whole numbers, or floats with all that is odd about them.
_INFINITY = float("inf")
ORDERS: Sequence[Sequence[Any]] = (
    [0, 1, 2, 3],
    [0, 1, 2, None],
    [None, float("nan"), -_INFINITY, -_INFINITY, -1.5, -0.0, 0.0, _INFINITY],
)
KEYS: Sequence[Sequence[int | None]] = ([1], [1, 1, 1, 1, 2, 2, 2, None], [1, 1, 1, 2], [1, 2, 3], [1, 1, 2, 3, None])


def _attributes(rng: Random, keys: Sequence[int | None]) -> dict[str, Any]:
    return {
        "x": rng.choice([0, 1, 1, 2, 2, 3, -1, -2, None]),
        "y": rng.choice([0.0, 0.5, 1.0, 1.0, 2.0, 2.0, 3.0, -0.0, -1.5, float("nan"), None]),
        "s": rng.choice([*TEXTS, "a", "b", None]),
        "b": rng.choice([True, True, False, None]),
        "k": rng.choice(keys),
        "t": rng.choice([*MOMENTS, None]),
    }


# The columns of a table of events; those of the second row are there only if some event has them.
COLUMNS = {
    "x": pa.int64(),
    "y": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "k": pa.int64(),
}
LONG_COLUMNS = {
    "d": pa.decimal128(38, 4),
    "u": pa.uint64(),
    "w": pa.int64(),
    "n": pa.timestamp("ns"),
    "f": pa.timestamp("s"),
    "g": pa.dictionary(pa.int8(), pa.string()),
}


def to_arrow(events: Sequence[Event]) -> pa.Table:
    """The events as a table, in the order of arrival; a column that nothing is said of is null."""
    rows = sorted(events, key=lambda e: e.id)
    zones = rows[0].zones if rows else {"ts": None, "t": "America/New_York"}
    columns = {
        "id": pa.array([e.id for e in rows], pa.int64()),
        "type": pa.array([e.type for e in rows], pa.string()),
        "ts": pa.array([e.ts for e in rows], pa.timestamp("us", zones["ts"])),
        "o": _array([e.order[0] if e.order else None for e in rows], pa.int64(), floats=True),
    }
    long = {n: t for n, t in LONG_COLUMNS.items() if any(n in e.attrs for e in rows)}
    times = {n: pa.timestamp("us", zone) for n, zone in zones.items() if n != "ts"}
    for name, type_ in {**COLUMNS, **long, **times}.items():
        columns[name] = _array([e.attrs.get(name) for e in rows], type_)
    return pa.table(columns)


def _array(values: Sequence[Any], type_: pa.DataType, *, floats: bool = False) -> pa.Array:
    """The values, in another type than the column mostly has if they need one."""
    if floats and any(isinstance(v, float) for v in values):
        return pa.array(values, pa.float64())
    if pa.types.is_integer(type_) and any(isinstance(v, Decimal) for v in values):
        return pa.array([None if v is None else int(v) for v in values], pa.uint64())
    if any(isinstance(v, Nanoseconds) for v in values):
        type_ = pa.timestamp("ns")
    return pa.array(values, type_)


@st.composite
def options(draw: st.DrawFn) -> Options:
    """Ways to read events."""
    return draw_options(draw(st.randoms(use_true_random=False)))


@st.composite
def queries(draw: st.DrawFn, options: Options = PLAIN) -> Query:
    """Valid queries for events read in the given way."""
    return draw_query(draw(st.randoms(use_true_random=False)), options)


@st.composite
def streams(draw: st.DrawFn, options: Options = PLAIN, query: Query | None = None) -> list[Event]:
    """Streams to be read in the given way, rich in matches of the query if one is given."""
    return draw_stream(draw(st.randoms(use_true_random=False)), options, query)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Whole cases."""
    return draw_case(draw(st.randoms(use_true_random=False)))
