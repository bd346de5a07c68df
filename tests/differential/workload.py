"""Many queries in one runtime that share events and steps: each finds what the oracle finds for it alone.

The input is cut anywhere, the runtime is restored anywhere, also from a state and the changes after it, and what the
engine decides by costs and sizes is decided by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import factorial, prod
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from eventcube.engine import aggregate, limit, payload, query_group, state
from eventcube.engine.execute import Execution
from eventcube.engine.query_group import QueryGroup
from eventcube.engine.sinks import matches
from eventcube.engine.views import auto, sliding, view
from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError
from eventcube.language.syntax import Component, Query, Seq
from eventcube.optimizer import choose, sharing
from eventcube.optimizer.sharing import SharingChoice
from eventcube.runtime import Runtime
from tests.differential.compare import DisagreementError, draw_cut, make_runtime
from tests.differential.exact import lengthened, with_long_columns
from tests.differential.gaps import rows_leave_in_the_middle
from tests.differential.knobs import any_costs, any_of, in_chunks
from tests.differential.purged import draw_small_cut
from tests.differential.rows import compare_rows
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
from tests.oracle.patterns import LEAVES
from tests.oracle.quals import TICK, chance

# Arrangements of events that the oracle goes through for all queries of a workload, about.
MOST_WORK = 6000


def draw_workload(rng: Random) -> Workload:
    """Related queries, and a stream in which many of them match."""
    options = draw_options(rng)
    queries = draw_queries(rng, options)
    events = _draw_stream(rng, options, queries)
    if chance(rng, 10):
        # The same columns in queries that are alike.
        seed = rng.randrange(1 << 32)
        events, queries = lengthened(rng, events), tuple(with_long_columns(Random(seed), q) for q in queries)
    return Workload(queries, events, options)


def _draw_stream(rng: Random, options: Options, queries: Sequence[Query]) -> list[Event]:
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


@dataclass(frozen=True)
class Setup:
    """What is drawn for a run before anything is known of its case, so that it stays while a case is made smaller."""

    strategies: tuple[str, str]
    by_changes: bool
    restarts: int
    advances: int
    small_cuts: bool
    slack: int
    sharing: str
    seed: int
    knobs: tuple[tuple[Any, str, Any], ...]
    chosen: tuple[bool, bool]
    chunk: int
    gaps: bool

    @classmethod
    def draw(cls, rng: Random) -> Setup:
        """A setup from a source of chance."""
        stride, many = rng.choice([(1, 1), (2, 3), (1 << 14, 1 << 15)])
        pairs = rng.choice([0, 0, 50, 1 << 22])
        return cls(
            strategies=(_draw_strategy(rng), _draw_strategy(rng)),
            by_changes=chance(rng, 60),
            restarts=rng.choice([0, 0, 10, 40]),
            advances=rng.choice([0, 0, 20]),
            small_cuts=chance(rng, 40),
            slack=rng.choice([0, 0, 1, 3]) * TICK,
            sharing=rng.choice(["costs", "always", "always", "any", "any", "never"]),
            seed=rng.randrange(1 << 32),
            knobs=(
                (sliding, "STRIDE", stride),
                (view.View, "purge_threshold", many),
                (view.View, "max_results", rng.choice([2, 10, 1 << 22])),
                (choose, "HOLD_PAIRS", pairs),
                (sharing, "HOLD_PAIRS", pairs),
                (choose, "HOLD_CALLS", rng.choice([0, 15])),
                (limit, "_MAX_FOUND", rng.choice([1, 99, 1 << 18])),
                (state, "_MIN_ACTIVE", rng.choice([0, 2, 1 << 13])),
                (state, "_ACTIVE_PER_EVENT", rng.choice([0, 1])),
                (state, "_MIN_COMPACTED", rng.choice([0, 4, 1 << 10])),
                (query_group, "_MAX_TREES", rng.choice([1, 2, 64])),
                (payload, "_FEW", rng.choice([0, 1 << 10])),
                (matches, "OUTPUT_ROWS", rng.choice([1, 3, 1 << 13])),
                (aggregate, "_FOLD_ROWS", rng.choice([1, 1 << 16])),
                (view, "REQUESTS", rng.choice([1, 1 << 18])),
            ),
            chosen=(chance(rng, 50), chance(rng, 50)),
            chunk=rng.choice([1, 4, 1 << 16, 1 << 16]),
            gaps=chance(rng, 10),
        )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run the engine so."""
        rng = Random(self.seed)
        with ExitStack() as patches:
            for owner, name, value in self.knobs:
                patches.enter_context(patch.object(owner, name, value))
            if self.chunk < 1 << 16:
                patches.enter_context(patch.object(Execution, "_bind", in_chunks(self.chunk)))
            if self.chosen[0]:
                patches.enter_context(patch.object(choose, "cheapest", any_of(rng)))
            if self.chosen[1]:
                patches.enter_context(patch.object(auto, "weigh", any_costs(rng)))
            if self.sharing != "costs":
                patches.enter_context(patch.object(SharingChoice, "choose", self._chosen_by(rng)))
            if self.gaps:
                patches.enter_context(rows_leave_in_the_middle())
            yield

    def _chosen_by(self, rng: Random) -> Callable[..., frozenset[str]]:
        """A choice of the queries that are bound from the start: all, none, or each time any of them."""
        percent = {"always": 100, "never": 0, "any": 60}[self.sharing]
        return lambda _, candidates, *__: frozenset(c.name for c in candidates if chance(rng, percent))

    def __str__(self) -> str:
        knobs = ", ".join(f"{name}={value}" for _, name, value in self.knobs)
        own = {n: v for n, v in vars(self).items() if n != "knobs"}
        return f"{', '.join(f'{n}={v}' for n, v in own.items())}, {knobs}"


def _draw_strategy(rng: Random) -> str:
    return rng.choice(sorted(strategies())) if chance(rng, 60) else "auto"


def check_workload(case: Workload, rng: Random) -> int:
    """Every query finds what the oracle finds for it alone; gives the number of rows."""
    return measure(case, rng)[0]


def measure(case: Workload, rng: Random) -> tuple[int, Counter[str]]:
    """The number of rows, and how often steps were shared; see `_counting`."""
    setup = Setup.draw(rng)
    with setup.applied(), _counting() as counted:
        try:
            found = _run(case, setup)
        except OptionError as error:
            # Rewriting does not do every query, and says so.
            if "rewrite" not in setup.strategies or error.code != "EC418":
                raise
            found = _run(case, replace(setup, strategies=("auto", "auto")))
    total = 0
    for i, query in enumerate(case.queries, 1):
        try:
            total += compare_rows(query, case.events, case.options, found.get(f"q{i}", []))
        except DisagreementError as error:
            texts = "\n".join(f"  q{n}: {q.text}" for n, q in enumerate(case.queries, 1))
            raise DisagreementError(f"q{i}: {error}\nqueries:\n{texts}\nsetup: {setup}") from None
    return total, counted


def _run(case: Workload, setup: Setup) -> dict[str, list[pa.RecordBatch]]:
    """What each query gives, by name."""
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
    return found


class _Saved:
    """A runtime that is saved now and then, whole or what changed, and goes on elsewhere from what was saved."""

    def __init__(self, case: Workload, setup: Setup) -> None:
        self._case, self._setup = case, setup
        self.runtime = self._fresh(setup.strategies[0])
        self._states: list[bytes] = []
        self._version = self.runtime.version

    def _fresh(self, strategy: str) -> Runtime:
        case, setup = self._case, self._setup
        lateness = _lateness(case.events) + setup.slack
        return make_runtime(
            case.queries, case.events, case.options, lateness=lateness, separate=True, strategy=strategy
        )

    def save(self, rng: Random) -> None:
        """Save, restore, both or nothing."""
        restarts, saves = chance(rng, self._setup.restarts), chance(rng, self._setup.restarts)
        if not (restarts or saves):
            return
        if chance(rng, 15):
            # What was saved for others is not what changes follow.
            self.runtime.snapshot()
        if self._states and self._setup.by_changes:
            self._states.append(self.runtime.snapshot(since=self._version))
        else:
            self._states = [self.runtime.snapshot()]
        self._version = self.runtime.version
        if restarts:
            # Any strategy goes on from the state of another.
            fresh = self._fresh(rng.choice(self._setup.strategies))
            fresh.restore(*self._states)
            assert fresh.version == self._version, "a restored runtime is where the saved one was"
            self.runtime = fresh


def _lateness(events: Sequence[Event]) -> int:
    """How late the events come at most."""
    latest, most = -(2**62), 0
    for event in events:
        latest = max(latest, event.ts)
        most = max(most, latest - event.ts)
    return most


@contextmanager
def _counting() -> Iterator[Counter[str]]:
    """Counts trees with common steps that ran, chunks that flowed through them, and choices to bind from the start."""
    counted: Counter[str] = Counter()
    run, deliver, from_start = query_group._run, query_group._deliver, QueryGroup._from_start

    def counted_run(tree: Any, *arguments: Any) -> Any:
        counted["trees"] += bool(tree.nodes)
        return run(tree, *arguments)

    def counted_deliver(leaves: Any, table: Any, sinks: Any) -> Any:
        counted["chunks"] += bool(leaves and table.columns)
        return deliver(leaves, table, sinks)

    def counted_from_start(*arguments: Any) -> Any:
        names = from_start(*arguments)
        counted["from start"] += bool(names)
        return names

    with (
        patch.object(query_group, "_run", counted_run),
        patch.object(query_group, "_deliver", counted_deliver),
        patch.object(QueryGroup, "_from_start", counted_from_start),
    ):
        yield counted
