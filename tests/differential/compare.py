"""Ask the engine and the oracle the same, and say plainly where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.state import NOTHING
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.options import ENUMERATE
from eventcube.runtime import Runtime
from tests.oracle.brute import Event, evaluate, positive_variables
from tests.oracle.generate import Options, to_arrow
from tests.oracle.text import query_to_text

# A state and changes that are restored one after the other.
_MOST_STATES = 7
# Start, end, and the ids bound to the positive variables as they are written.
Key = tuple[int | None, ...]


class DisagreementError(AssertionError):
    """The engine's matches are not the oracle's."""


def check(query: Query, events: list[Event], options: Options, cut: Sequence[int] = (), **settings: Any) -> list[Key]:
    """Run both and compare the multisets of matches; gives the matches, or raises DisagreementError.

    `cut` has the lengths of the batches the input is pushed in; what it leaves over is pushed in one. `settings` are
    handed to the engine.
    """
    expected = oracle_matches(query, events, options)
    found = list(engine_matches(query, events, options, cut, **settings))
    if Counter(found) != Counter(expected):
        raise DisagreementError(_difference(query, events, options, cut, expected, found))
    return expected


def check_count(query: Query, events: list[Event], options: Options, cut: Sequence[int] = (), **settings: Any) -> None:
    """Matches that are counted without being made are as many as the oracle's, or a DisagreementError is raised."""
    counting = parse(f"{query.text} AGG COUNT(*)")
    batches = engine_batches(counting, events, options, cut, aggregates=ENUMERATE, **settings)
    found = sum(n for b in batches for n in b.column(0).to_pylist())
    expected = len(oracle_matches(query, events, options))
    if found != expected:
        raise DisagreementError(f"{expected} matches, {found} counted: {counting.text} {options} {cut} {settings}")


def oracle_matches(query: Query, events: list[Event], options: Options) -> list[Key]:
    """The oracle's matches, in its order."""
    found = evaluate(query, events, typed=options.typed, concepts=options.concepts)
    return [(m.start, m.end, *m.key()) for m in found]


def engine_matches(
    query: Query, events: list[Event], options: Options, cut: Sequence[int] = (), **settings: Any
) -> Iterator[Key]:
    """The engine's matches, as they come."""
    for batch in engine_batches(query, events, options, cut, **settings):
        yield from keys_of(query, batch)


def keys_of(query: Query, batch: pa.RecordBatch) -> Iterator[Key]:
    """The matches of one of the engine's batches."""
    columns = [batch.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    columns += [pc.struct_field(batch.column(v), "id").to_pylist() for v in positive_variables(query.pattern)]
    return zip(*columns, strict=True)


def engine_batches(
    query: Query | Sequence[Query],
    events: list[Event],
    options: Options,
    cut: Sequence[int] = (),
    restarts: Collection[int] = (),
    **settings: Any,
) -> Iterator[pa.RecordBatch]:
    """What the engine gives for the events pushed in batches of the lengths in `cut`.

    Before each call that `restarts` numbers, another runtime goes on from the states that were saved before some calls.
    """
    runtime = make_runtime(query, events, options, **settings)
    table = to_arrow(events)
    start, saver = 0, Saver()
    for i, length in enumerate((*cut, table.num_rows, None)):
        if i in restarts or (restarts and i % 3 == 0):
            saver.save(runtime)
        if i in restarts:
            runtime = saver.restored(make_runtime(query, events, options, **settings))
        if length is None:
            yield from runtime.finish()
        elif start < table.num_rows or start == 0:
            yield from runtime.push(table.slice(start, length))
        start += length or 0


def make_runtime(query: Query | Sequence[Query], events: Sequence[Event], options: Options, **settings: Any) -> Runtime:
    """A runtime that reads events as the options say."""
    if not options.in_order and "lateness" not in settings:
        settings["lateness"] = _span(events)
    return Runtime(query, advise=False, **read_settings(options), **settings)


def read_settings(options: Options) -> dict[str, Any]:
    """How the engine is to read events."""
    return {
        "time": "ts",
        "type": "type" if options.typed else None,
        "order_by": "o" if options.ordered else None,
        "partition_by": "k" if options.partitioned else None,
        "concepts": _children(options.concepts) if options.concepts else None,
    }


class Saver:
    """A state and the changes that followed it; now and then they begin anew."""

    def __init__(self) -> None:
        self._states: list[bytes] = []
        self._version = NOTHING

    def save(self, runtime: Runtime) -> None:
        """Save what changed since the last call."""
        if len(self._states) == _MOST_STATES or self._version == NOTHING:
            self._states, self._version = [], NOTHING
        self._states.append(runtime.snapshot(self._version))
        self._version = runtime.version

    def restored(self, fresh: Runtime) -> Runtime:
        """The fresh runtime, gone on from the last call."""
        fresh.restore(*self._states)
        return fresh


def draw_cut(rng: Random, count: int) -> list[int]:
    """Lengths of batches for so many events: all at once, one by one, or anything between (empty ones too)."""
    match rng.randint(0, 2):
        case 0:
            return []
        case 1:
            return [1] * count
        case _:
            return [rng.randint(0, 5) for _ in range(rng.randint(1, 5))]


def _children(parents: Mapping[str, str]) -> dict[str, list[str]]:
    """The hierarchy as the engine takes it: the types below each concept."""
    return {parent: [c for c, p in parents.items() if p == parent] for parent in parents.values()}


def _span(events: Sequence[Event]) -> int:
    times = [e.ts for e in events]
    return max(times, default=0) - min(times, default=0)


def _difference(
    query: Query, events: list[Event], options: Options, cut: Sequence[int], expected: list[Key], found: list[Key]
) -> str:
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    return "\n".join(
        [
            f"{len(expected)} matches by the oracle, {len(found)} by the engine",
            f"query:   {query_to_text(query)}",
            f"options: {options}",
            f"cut:     {list(cut)}",
            f"columns: start, end, {', '.join(positive_variables(query.pattern))}",
            f"missing: {_listing(missing)}",
            f"extra:   {_listing(extra)}",
            "events:",
            *(f"  {describe(e)}" for e in events),
        ]
    )


def describe(event: Event) -> str:
    """An event on one line."""
    attrs = " ".join(f"{name}={value!r}" for name, value in event.attrs.items())
    order = "" if event.order is None else f" order={event.order[0]}"
    return f"{event.id}: {event.type} ts={event.ts}{order} {attrs}"


def _listing(keys: Counter[Key]) -> str:
    return ", ".join(f"{key} x{n}" if n > 1 else f"{key}" for key, n in sorted(keys.items(), key=repr)) or "none"
