"""Many queries in one runtime that share events and steps: each finds what the oracle finds for it alone.

The input is cut anywhere, the runtime is restored anywhere, also from a state and the changes after it, and what the
engine decides by costs and sizes is decided by chance.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from math import factorial, prod
from random import Random
from unittest.mock import patch

import pyarrow as pa

import eventcube as ec
from eventcube.engine.flat.strategy import flat_strategies
from eventcube.errors import EventCubeWarning, OptionError
from eventcube.language.syntax import Component, Query, Seq
from eventcube.options import AUTO, ENUMERATE
from eventcube.runtime import Runtime
from tests.differential.compare import DisagreementError, draw_cut, make_runtime, oracle_matches, read_settings
from tests.differential.exact import lengthened, with_long_columns
from tests.differential.purged import draw_small_cut
from tests.differential.rows import compare_rows
from tests.differential.setups import Setup, counting
from tests.differential.variants import draw_queries
from tests.oracle.event import Event
from tests.oracle.generate import (
    KEYS,
    ORDERS,
    Options,
    Workload,
    arrived,
    components,
    draw_event,
    draw_options,
    specific_type,
    to_arrow,
)
from tests.oracle.patterns import CONCEPTS, LEAVES
from tests.oracle.quals import TICK, chance

# Arrangements of events that the oracle goes through for all queries of a workload, about.
MOST_WORK = 6000


def draw_workload(rng: Random) -> Workload:
    """Related queries, and a stream in which many of them match."""
    options = draw_options(rng)
    if options.typed and chance(rng, 30):
        options = replace(options, concepts=CONCEPTS)
    queries = draw_queries(rng, options)
    events = draw_stream(rng, options, queries)
    if chance(rng, 10):
        # The same columns in queries that are alike.
        seed = rng.randrange(1 << 32)
        events, queries = lengthened(rng, events), tuple(with_long_columns(Random(seed), q) for q in queries)
    return Workload(queries, events, options)


def draw_stream(rng: Random, options: Options, queries: Sequence[Query]) -> list[Event]:
    """Events of the queries' types, in the order in which one query after another asks for them."""
    keys, orders = rng.choice(KEYS), rng.choice(ORDERS)
    step = rng.choice([[1], [1], [0, 1], [0, 1, 1, 2], [0, 0, 1]])
    count = rng.randint(18, 40) if chance(rng, 35) else rng.randint(6, 16)
    clock = -rng.choice([5, 5000]) if chance(rng, 15) else 0
    events: list[Event] = []
    while len(events) < count:
        wanted = [c.type or rng.choice(LEAVES) for c in components(rng.choice(queries).pattern)]
        own = [rng.choice(keys)] if chance(rng, 70) else keys
        for type_ in wanted:
            clock += rng.choice(step)
            noise = rng.choice(LEAVES) if chance(rng, 15) else specific_type(rng, options, type_)
            events.append(draw_event(rng, options, noise, clock * TICK, own, orders))
    while len(events) > 4 and sum(_work(query, events, options) for query in queries) > MOST_WORK:
        events.pop()
    if options.in_order or chance(rng, 20):
        return arrived(rng, options, events)
    # Somewhat out of order, so that most of a stream is final before it ends.
    late = {id(e): e.ts + rng.randint(0, 4) * TICK for e in events}
    return [replace(e, id=i) for i, e in enumerate(sorted(events, key=lambda e: late[id(e)]))]


def _work(query: Query, events: Sequence[Event], options: Options) -> float:
    """How many arrangements of events the oracle looks at, about."""
    exact = options.typed and not options.concepts
    counts = [
        sum(e.type == c.type for e in events) if exact and c.type else len(events) for c in components(query.pattern)
    ]
    flat = isinstance(query.pattern, Seq) and all(isinstance(p, Component) for p in query.pattern.parts)
    return prod(counts) / (factorial(len(counts)) if flat else 1)


def check_workload(case: Workload, rng: Random) -> int:
    """Every query finds what the oracle finds for it alone; gives the number of rows."""
    return measure(case, rng)[0]


def measure(case: Workload, rng: Random) -> tuple[int, Counter[str]]:
    """The number of rows, and how often steps were shared; see `counting`."""
    setup = Setup.draw(rng)
    if setup.at_once:
        with setup.applied(), counting() as counted:
            return compare_each(case, _matched(case, setup), f"at once, {setup}"), counted
    with setup.applied(), counting() as counted:
        try:
            found, runtime = _run(case, setup)
        except OptionError as error:
            # Rewriting does not do every query, and says so.
            if "rewrite" not in setup.strategies or error.code != "EC418":
                raise
            found, runtime = _run(case, replace(setup, strategies=("auto", "auto")))
        if setup.looks:
            _look(case, runtime)
    total = compare_each(case, found, f"setup: {setup}")
    if setup.looks:
        matches = sum(len(oracle_matches(query, case.events, case.options)) for query in case.queries)
        if runtime.counters["matches"] != matches:
            raise DisagreementError(f"{matches} matches, {runtime.counters['matches']} counted\n{setup}")
    return total, counted


def compare_each(case: Workload, found: Mapping[str, Sequence[pa.RecordBatch]], how: str) -> int:
    """Compare the rows of each query with the oracle's; gives how many there are, or raises DisagreementError."""
    total = 0
    for i, query in enumerate(case.queries, 1):
        try:
            total += compare_rows(query, case.events, case.options, found.get(f"q{i}", []))
        except DisagreementError as error:
            texts = "\n".join(f"  q{n}: {q.text}" for n, q in enumerate(case.queries, 1))
            raise DisagreementError(f"q{i}: {error}\nqueries:\n{texts}\n{how}") from None
    return total


def _look(case: Workload, runtime: Runtime) -> None:
    """Ask for all that a runtime tells of itself, and for the plan."""
    assert str(runtime)
    assert runtime.report()
    assert set(runtime.kept_events) == set(runtime.queries)
    assert ec.explain(runtime.queries, to_arrow(case.events), **read_settings(case.options))


def _matched(case: Workload, setup: Setup) -> dict[str, list[pa.RecordBatch]]:
    """What `match_all` gives for each query, by name."""
    queries = {f"q{i}": query for i, query in enumerate(case.queries, 1)}
    # The package has a function of the module's name.
    module = import_module("eventcube.match")
    with warnings.catch_warnings(), patch.object(module, "BATCH_ROWS", Random(setup.seed).choice([1, 3, 9])):
        warnings.simplefilter("ignore", EventCubeWarning)
        found = ec.match_all(to_arrow(case.events), queries, **read_settings(case.options))
    return {name: table.to_batches() for name, table in found.items()}


def _run(case: Workload, setup: Setup) -> tuple[dict[str, list[pa.RecordBatch]], Runtime]:
    """What each query gives, by name, and the runtime at the end."""
    rng, events = Random(setup.seed), case.events
    table, found = to_arrow(events), dict[str, list[pa.RecordBatch]]()
    run = _Saved(case, setup)

    def take(results: Iterator[tuple[str, pa.RecordBatch]]) -> None:
        for name, batch in results:
            found.setdefault(name, []).append(batch)

    cut = draw_small_cut(rng, len(events)) if setup.small_cuts else draw_cut(rng, len(events))
    start = 0
    for length in (*cut, len(events)):
        run.save(rng)
        if start < len(events) or start == 0:
            take(run.runtime.push(table.slice(start, length)))
        start += length
        if chance(rng, setup.advances) and start < len(events):
            take(run.runtime.advance(min(e.ts for e in events[start:])))
    run.save(rng)
    take(run.runtime.finish())
    return found, run.runtime


class _Saved:
    """A runtime that is saved now and then, whole or what changed, and goes on elsewhere from what was saved."""

    def __init__(self, case: Workload, setup: Setup) -> None:
        self._case, self._setup = case, setup
        self._rng = Random(len(case.events))
        self.runtime = self._fresh(setup.strategies[0], setup.sharings[0])
        self._states: list[bytes] = []
        self._version = self.runtime.version

    def _fresh(self, strategy: str, sharing: str) -> Runtime:
        case, setup = self._case, self._setup
        lateness = lateness_of(case.events) + setup.slack
        return make_runtime(
            case.queries,
            case.events,
            case.options,
            lateness=lateness,
            separate=True,
            strategy=strategy,
            sharing=sharing,
            # A state does not tell how sequences were searched, nor by which way its groups were computed.
            flat_strategy=self._rng.choice([AUTO, AUTO, *sorted(flat_strategies())]),
            aggregates=self._rng.choice([AUTO, ENUMERATE]),
        )

    def save(self, rng: Random) -> None:
        """Save, restore, both or nothing."""
        restarts, saves = chance(rng, self._setup.restarts), chance(rng, self._setup.restarts)
        # Changes follow the state that was saved before, whatever was saved for others since.
        other = self.runtime.snapshot() if chance(rng, 15) else None
        if saves or (restarts and other is None):
            if self._states and self._setup.by_changes:
                self._states.append(self.runtime.snapshot(since=self._version))
            else:
                self._states = [self.runtime.snapshot()]
            self._version = self.runtime.version
        if restarts:
            # Any strategy, and any sharing, goes on from the state of another.
            fresh = self._fresh(rng.choice(self._setup.strategies), rng.choice(self._setup.sharings))
            fresh.restore(*(self._states if other is None else [other]))
            assert fresh.version == self.runtime.version, "a restored runtime is where the saved one was"
            self.runtime = fresh


def lateness_of(events: Sequence[Event]) -> int:
    """How late the events come at most."""
    latest, most = -(2**62), 0
    for event in events:
        latest = max(latest, event.ts)
        most = max(most, latest - event.ts)
    return most
