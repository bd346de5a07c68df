"""Streams with rows that cannot be used: no time, no type, too late. What is set aside, and what is left to match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from tests.differential.compare import (
    DisagreementError,
    Saver,
    describe,
    keys_of,
    make_runtime,
    oracle_matches,
)
from tests.oracle.brute import Event
from tests.oracle.generate import Case, Options, draw_case, to_arrow
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text

NO_TIME, NO_TYPE, LATE = "the time is null", "the type is null", "late: older than the watermark"
# An event without a time: the oracle never sees it.
TIMELESS: Any = None


class Call(NamedTuple):
    """One step of a run: so many rows are pushed, and then perhaps time is advanced; perhaps after a restart."""

    rows: int
    advance: int | None
    restart: bool


def draw_unruly_case(rng: Random) -> Case:
    """A case whose events come somewhat out of order, with rows strewn in that lack a time or a type."""
    case = draw_case(rng)
    unruly = sorted(case.events, key=lambda e: e.ts + rng.choice([0, 0, 0, 1, 2, 4]) * TICK)
    events = []
    for event in unruly:
        if chance(rng, 12):
            events.append(replace(event, ts=TIMELESS))
        if chance(rng, 12) and case.options.typed:
            events.append(replace(event, type=None))
        events.append(event)
    events = [replace(e, id=i) for i, e in enumerate(events)]
    return Case(case.query, events, replace(case.options, in_order=False))


def draw_calls(rng: Random, count: int) -> list[Call]:
    """How rows are pushed: what is left over comes in a last push."""
    calls = []
    for _ in range(rng.choice([0, 1, 3, 6, count])):
        advance = rng.randint(0, 12) * TICK if chance(rng, 12) else None
        calls.append(Call(rng.choice([0, 1, 1, 2, 3, 5]), advance, chance(rng, 15)))
    return [*calls, Call(count, None, chance(rng, 15))]


def check_unruly(case: Case, lateness: int, calls: Sequence[Call]) -> int:
    """Compare matches, rows set aside and counters; gives the number of matches, or raises DisagreementError."""
    query, events, options = case
    good, aside = split(events, options, lateness, calls)
    expected = Counter(oracle_matches(query, good, options))
    runtime = make_runtime(query, events, options, lateness=lateness)
    table, start, batches, saver = to_arrow(events), 0, [], Saver()
    for call in calls:
        saver.save(runtime)
        if call.restart:
            runtime = saver.restored(make_runtime(query, events, options, lateness=lateness))
        batches += runtime.push(table.slice(start, call.rows))
        start += call.rows
        if call.advance is not None:
            batches += runtime.advance(call.advance)
    batches += runtime.finish()
    found = Counter(key for batch in batches for key in keys_of(query, batch))
    rows = runtime.set_aside
    set_aside = dict(zip(rows.column("id").to_pylist(), rows.column("set_aside_reason").to_pylist(), strict=True))
    counted = {name: runtime.counters[name] for name in ("events", "set_aside", "late", "matches")}
    due = {
        "events": len(events),
        "set_aside": len(aside),
        "late": sum(r == LATE for r in aside.values()),
        "matches": expected.total(),
    }
    for name, left, right in (
        ("set aside", aside, set_aside),
        ("rows set aside", len(aside), rows.num_rows),
        ("matches", expected, found),
        ("counters", due, counted),
    ):
        if left != right:
            raise DisagreementError(
                "\n".join(
                    [
                        f"{name}: {left} by the oracle, {right} by the engine",
                        f"query:    {query_to_text(query)}",
                        f"options:  {options} lateness={lateness}",
                        f"calls:    {[tuple(c) for c in calls]}",
                        "events:",
                        *(f"  {describe(e)}" for e in events),
                    ]
                )
            )
    return expected.total()


def split(
    events: Sequence[Event], options: Options, lateness: int, calls: Sequence[Call]
) -> tuple[list[Event], dict[int, str]]:
    """The events that can be used, and the reason for each of the others.

    After a push the watermark is the latest time of a usable event less the lateness; a row that is before the
    watermark when it is pushed is late.
    """
    good: list[Event] = []
    aside: dict[int, str] = {}
    watermark = float("-inf")
    at = 0
    for call in calls:
        for event in events[at : at + call.rows]:
            if event.ts is TIMELESS:
                aside[event.id] = NO_TIME
            elif event.type is None and options.typed:
                aside[event.id] = NO_TYPE
            elif event.ts < watermark:
                aside[event.id] = LATE
            else:
                good.append(event)
        at += call.rows
        watermark = max([watermark, *(e.ts - lateness for e in good)])
        if call.advance is not None:
            watermark = max(watermark, call.advance)
    return good, aside
