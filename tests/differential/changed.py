"""Queries that are added to a running workload and removed from it, at any point between two pushes.

The others find what the oracle finds for them alone. One that was added finds what the oracle finds in the events since
then; if it is answered from kept matches of another, what it finds is no more than the events of that one give, and all
of it from the time on that the answer names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.cube.columns import guessed_schema, of_any_kind
from eventcube.cube.graph import CubeGraph
from eventcube.cube.moves import moves
from eventcube.cube.operations import concept_drill_down, pattern_drill_down
from eventcube.cube.places import parts_of
from eventcube.engine.kept_matches import Keep
from eventcube.errors import EventCubeError, OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.options import options as read_options
from eventcube.runtime import Runtime
from eventcube.runtime.changing import Answer, add_query
from tests.differential.compare import DisagreementError, Key, draw_cut, keys_of, oracle_matches, read_settings
from tests.differential.purged import draw_small_cut
from tests.differential.rows import compare_rows
from tests.differential.setups import Setup
from tests.differential.workload import draw_stream, draw_workload, lateness_of
from tests.oracle.event import Event
from tests.oracle.generate import Workload, to_arrow
from tests.oracle.patterns import LEAVES
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def draw_drilled(rng: Random) -> Workload:
    """A query or two, and drill-downs of them, by concept and by pattern, one after the other."""
    case = draw_workload(rng)
    hierarchy = Concepts.from_parents(case.options.concepts) if case.options.concepts else None
    plain = [replace(q, returns=(), agg=(), group_by=(), having=(), limit=None) for q in case.queries]
    if chance(rng, 60):
        # Short ones without conditions have more matches.
        plain = sorted((replace(q, where=()) for q in plain), key=lambda query: len(query_to_text(query)))
    queries = [_read(query) for query in plain[: rng.randint(1, 2)]]
    for _ in range(rng.randint(1, 5)):
        try:
            queries.append(_read(_drilled(rng, rng.choice(queries), hierarchy)))
        except EventCubeError:
            # The parts of an OR, and those of a nested operator, are not moved.
            continue
    events = draw_stream(rng, case.options, queries)
    # Events that the drill-downs can use, if these have all columns of the queries.
    same = all(one.attrs.keys() == other.attrs.keys() for one, other in zip(case.events, events, strict=False))
    return case._replace(queries=tuple(queries), events=events if same else case.events)


def _read(query: Query) -> Query:
    return parse(query_to_text(query))


def _drilled(rng: Random, query: Query, hierarchy: Concepts | None) -> Query:
    there = moves(query, of_any_kind(guessed_schema([query], {})), hierarchy) if hierarchy else ()
    concept = [m.change for m in there if m.operation == "concept_drill_down"]
    if concept and hierarchy is not None and chance(rng, 60):
        return concept_drill_down(query, rng.choice(concept), hierarchy)
    part = ("!" if chance(rng, 30) else "") + rng.choice(LEAVES)
    return pattern_drill_down(query, [(part, rng.randint(1, len(parts_of(query)) + 1))])


def check_changed(case: Workload, rng: Random) -> int:
    """Every query finds what the oracle finds in what it sees; gives the number of rows."""
    return measure(case, rng)[0]


def measure(case: Workload, rng: Random) -> tuple[int, Counter[str]]:
    """The number of rows, and how often queries were added, removed, and answered from kept matches."""
    setup = Setup.draw(rng)
    with setup.applied():
        try:
            run = _Run(case, setup)
            run.go()
        except OptionError as error:
            # Rewriting does not do every query, and says so.
            if "rewrite" not in setup.strategies or error.code != "EC418":
                raise
            run = _Run(case, replace(setup, strategies=("auto", "auto")))
            run.go()
    return run.compare(), run.counted


@dataclass
class _Seen:
    """A query of the run: what it found, and since when it sees events; with an answer, matches of the past."""

    query: Query
    since: int
    found: list[pa.RecordBatch] = field(default_factory=list)
    answer: Answer | None = None
    removed: bool = False


class _Run:
    """A runtime whose queries come and go."""

    def __init__(self, case: Workload, setup: Setup) -> None:
        self._case, self._setup, self._rng = case, setup, Random(setup.seed)
        self.counted: Counter[str] = Counter()
        queries = {f"q{i}": query for i, query in enumerate(case.queries, 1)}
        first = max(1, self._rng.randint(0, len(queries)))
        names = [*queries]
        self._later = {name: queries[name] for name in names[first:]}
        self._seen = {name: _Seen(queries[name], -(2**62)) for name in names[:first]}
        # Those that come late have more of a past.
        self._haste = self._rng.choice([5, 10, 30, 70])
        self._keep = self._draw_keep() if chance(self._rng, 80) else None
        self.runtime = self._fresh(setup.strategies[0], setup.sharings[0])
        self._states: list[bytes] = []
        self._version = self.runtime.version
        self._latest = self._watermark = -(2**62)

    def _draw_keep(self) -> Keep:
        return Keep(self._rng.choice([0, 3 * TICK, 50 * TICK, 2**61, 2**61]), self._rng.choice([2, 1 << 20, 1 << 20]))

    def _fresh(self, strategy: str, sharing: str) -> Runtime:
        settings = read_settings(self._case.options)
        lateness = lateness_of(self._case.events) + self._setup.slack
        chosen = read_options(**settings, lateness=lateness, strategy=strategy, sharing=sharing)
        queries = {name: seen.query for name, seen in self._seen.items() if not seen.removed}
        return Runtime.from_options(queries, chosen, separate=True, advise=False, keep=self._keep)

    def go(self) -> None:
        """Push all events, and change queries before some pushes."""
        rng, events = self._rng, self._case.events
        table = to_arrow(events)
        cut = draw_small_cut(rng, len(events)) if self._setup.small_cuts else draw_cut(rng, len(events))
        start = 0
        for length in (*cut, len(events)):
            self._change()
            if start < len(events) or start == 0:
                pushed = events[start : start + length]
                self._take(self.runtime.push(table.slice(start, length)))
                self._note(pushed)
            start += length
            if chance(rng, self._setup.advances) and start < len(events):
                to = min(e.ts for e in events[start:])
                self._take(self.runtime.advance(to))
                self._watermark = max(self._watermark, to)
        if events and chance(rng, 50):
            # Most matches are final then.
            self._take(self.runtime.advance(self._latest + 1))
            self._watermark = max(self._watermark, self._latest + 1)
            self._haste = 90
            for _ in range(3):
                self._change()
        self._change()
        self._take(self.runtime.finish())

    def _note(self, pushed: list[Event]) -> None:
        self._latest = max([self._latest, *(e.ts for e in pushed)])

    def _take(self, results: Iterator[tuple[str, pa.RecordBatch]]) -> None:
        for name, batch in results:
            self._seen[name].found.append(batch)

    def _change(self) -> None:
        rng = self._rng
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            running = [name for name, seen in self._seen.items() if not seen.removed]
            # Wait for matches, mostly, which an answer could be computed from.
            waits = not any(seen.found for seen in self._seen.values()) and chance(rng, 80)
            if self._later and not waits and chance(rng, self._haste):
                name = rng.choice([*self._later])
                self._add(name, self._later.pop(name))
            elif len(running) > 1 and chance(rng, self._haste):
                self._remove(rng.choice(running))
        if chance(rng, self._setup.restarts):
            self._save()

    def _source(self, name: str, query: Query) -> str | None:
        """A query at work, mostly one that the other one refines."""
        workload, rng = self.runtime.workload, self._rng
        if workload is None or query.returns or query.agg or query.limit or chance(rng, 25):
            return None
        bound = {**self.runtime.bound_queries, name: self.runtime.plans_of({name: query}, workload.schema)[name].bound}
        coarser = [other for finer, other in CubeGraph(bound).pairs if finer == name]
        return rng.choice(coarser or [*self.runtime.queries])

    def _add(self, name: str, query: Query) -> None:
        source = self._source(name, query)
        if source is not None:
            answer = add_query(self.runtime, name, query, source)
        else:
            answer = self.runtime.add(name, query)
        seen = self._seen[name] = _Seen(query, self._now)
        self.counted["added"] += 1
        if answer.source is not None:
            assert answer.source == source
            seen.since, seen.answer = self._seen[answer.source].since, answer
            self.counted["answered"] += 1
            self.counted["answered with matches"] += bool(answer.matches.num_rows)
            return
        assert not answer.matches.num_rows
        if answer.complete_from is not None:
            assert _micros(answer.complete_from) == seen.since, (answer, seen.since)

    @property
    def _now(self) -> int:
        if self._latest == -(2**62):
            return self._latest
        slack = lateness_of(self._case.events) + self._setup.slack
        self._watermark = max(self._watermark, self._latest - slack)
        return max(self._latest + 1, self._watermark)

    def _remove(self, name: str) -> None:
        seen = self._seen[name]
        for given, batch in self.runtime.remove(name):
            assert given == name
            seen.found.append(batch)
        seen.removed = True
        self.counted["removed"] += 1

    def _save(self) -> None:
        """Go on elsewhere from what was saved: whole, or from changes; these are whole after another query came."""
        if self._states and self._setup.by_changes:
            self._states.append(self.runtime.snapshot(since=self._version))
        else:
            self._states = [self.runtime.snapshot()]
        self._version = self.runtime.version
        if chance(self._rng, 50):
            if self._keep is not None and chance(self._rng, 30):
                self._keep = self._draw_keep()
            fresh = self._fresh(self._rng.choice(self._setup.strategies), self._rng.choice(self._setup.sharings))
            fresh.restore(*self._states)
            assert fresh.version == self.runtime.version
            self.runtime = fresh
            self.counted["restored"] += 1

    def compare(self) -> int:
        """Compare what was found with the oracle's matches; gives the number of rows."""
        return sum(self._compare(name, seen) for name, seen in self._seen.items())

    def _compare(self, name: str, seen: _Seen) -> int:
        options = self._case.options
        events = [e for e in self._case.events if e.ts >= seen.since]
        try:
            if seen.removed and (seen.query.agg or seen.query.returns or seen.query.limit):
                return 0
            if not seen.removed and seen.answer is None:
                return compare_rows(seen.query, events, options, seen.found)
            expected = Counter(oracle_matches(replace(seen.query, limit=None), events, options))
            batches = [*seen.found, *(seen.answer.matches.to_batches() if seen.answer is not None else [])]
            found: Counter[Key] = Counter(key for batch in batches for key in keys_of(seen.query, batch))
            missing, extra = expected - found, found - expected
            since = None if seen.answer is None else seen.answer.complete_from
            known = -(2**62) if since is None else _micros(since)
            if seen.answer is not None:
                past = [key for batch in seen.answer.matches.to_batches() for key in keys_of(seen.query, batch)]
                extra += Counter(key for key in past if key[0] is not None and key[0] < known)
            lost = [] if seen.removed else [key for key in missing if key[0] is not None and key[0] >= known]
            if extra or lost:
                raise DisagreementError(f"missing {lost}, extra {extra}, complete from {known}: {seen.query.text}")
        except DisagreementError as error:
            texts = "\n".join(
                f"  {n}{' (removed)' if s.removed else ''} since {s.since}, {s.answer}: {s.query.text}"
                for n, s in self._seen.items()
            )
            raise DisagreementError(f"{name}: {error}\nqueries:\n{texts}\n{self._setup}\n{self._keep}") from None
        return found.total()


def _micros(moment: datetime | int) -> int:
    if isinstance(moment, int):
        return moment
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
