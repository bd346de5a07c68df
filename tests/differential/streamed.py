"""Streams without Spark: micro-batches in any cut, late rows, workers that forget, attempts that fail, restarts.

A restart can bring another strategy, sharing or lateness, and other queries. The queries that stay find what the oracle
finds in all rows less the late ones. One that was added finds what the oracle finds in the events from the time on
that `docs/upgrades.md` names; one that was removed finds no more than the oracle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Attribute, CountWindow, Every, Query, TimeWindow
from eventcube.options import options as read_options
from eventcube.runtime.shared_result import wide_form
from eventcube.schema import LATE_ROWS, MATCH_ID
from eventcube.spark import chunks
from eventcube.spark.bucket import BucketTask
from tests.differential.compare import DisagreementError, Key, keys_of, oracle_matches, read_settings
from tests.differential.rows import compare_rows, shown
from tests.differential.setups import Setup
from tests.differential.workload import draw_workload, lateness_of
from tests.oracle.brute import positive_variables
from tests.oracle.clauses import with_results
from tests.oracle.generate import Workload, draw_case, draw_tangled_case, to_arrow
from tests.oracle.patterns import always_last, looks_ahead, unconditional
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text
from tests.unit.spark.buckets import FakeStream, bucket_task

_ALWAYS = -(2**62)
# A watermark (milliseconds) after everything.
_END = 10**15


def draw_streamed(rng: Random) -> Workload:
    """One query that returns anything, or related ones that return events; all have windows, as streams need them."""
    if chance(rng, 40):
        case = draw_tangled_case(rng) if chance(rng, 20) else draw_case(rng)
        query = with_results(rng, case.query, case.options) if chance(rng, 60) else case.query
        workload = Workload((query,), case.events, case.options)
    else:
        workload = draw_workload(rng)
        plain = (replace(query, returns=(), agg=(), per=None, group_by=()) for query in workload.queries)
        workload = workload._replace(queries=tuple(plain))
    windows = [CountWindow(rng.choice([3, 6])), TimeWindow(rng.choice([4, 9]) * TICK)]
    queries = [replace(query, within=query.within or rng.choice(windows), limit=None) for query in workload.queries]
    queries = [query if gives_once(query) else replace(query, having=()) for query in queries]
    workload = workload._replace(queries=tuple(parse(query_to_text(query)) for query in queries))
    if chance(rng, 50):
        return workload
    late = {id(e): e.ts + rng.choice([0, 0, 1, 3, 8]) * TICK for e in workload.events}
    arrived = sorted(workload.events, key=lambda e: late[id(e)])
    return workload._replace(events=[replace(e, id=i) for i, e in enumerate(arrived)])


def gives_once(query: Query) -> bool:
    """Whether each row of a query is given once: of an event, or of a bucket that matches to come cannot fall into."""
    if query.per is not None:
        return True
    always = {c.name for c in unconditional(query.pattern)}
    buckets = [item.value.value for item in query.group_by if isinstance(item.value, Every)]
    times = [b.var for b in buckets if isinstance(b, Attribute) and b.name == "ts" and b.var in always]
    last = None if looks_ahead(query.pattern) else always_last(query.pattern)
    return (isinstance(query.within, TimeWindow) and bool(times)) or last in times


def check_streamed(case: Workload, rng: Random) -> int:
    """Every query finds what it is promised to; gives the number of rows."""
    return measure(case, rng)[0]


def measure(case: Workload, rng: Random) -> tuple[int, Counter[str]]:
    """The number of rows, and how often queries were added and removed, rows were late, attempts failed, and so on."""
    if not case.events:
        return 0, Counter()
    setup = Setup.draw(rng)
    with setup.applied(), patch.object(chunks, "PER_TIER", rng.choice([2, 3, 16])):
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
    """A query of the run: what it found, and since when it sees events."""

    query: Query
    since: int = _ALWAYS
    found: list[pa.RecordBatch] = field(default_factory=list)
    removed: bool = False


class _Run:
    """A stream whose queries come and go."""

    def __init__(self, case: Workload, setup: Setup) -> None:
        self._case, self._setup, self._rng = case, setup, Random(setup.seed)
        self.counted: Counter[str] = Counter()
        queries = {f"q{i}": query for i, query in enumerate(case.queries, 1)}
        rng, names = self._rng, [*queries]
        first = rng.randint(1, len(names))
        self._later = {name: queries[name] for name in names[first:]}
        self._seen = {name: _Seen(queries[name]) for name in names[:first]}
        # A stream with one query, so that its result has its columns, stays one.
        self._single = len(names) == 1
        self._keeps_late = not self._single and chance(rng, 50)
        self._gives_ids, self._ids = self._draw_ids(), set[str]()
        self._lateness, self._most = self._draw_lateness(), 0
        self._stream = FakeStream(self._task())
        self._latest, self._watermark, self._delay = _ALWAYS, 0, 0
        self._late: set[int] = set()

    def _draw_lateness(self) -> int:
        """So large that nothing is late, or less."""
        rng, full = self._rng, lateness_of(self._case.events) + self._setup.slack
        return full if chance(rng, 60) else rng.randint(0, full // TICK // 2) * TICK

    def _draw_ids(self) -> bool:
        """Whether matches have ids; groups have none."""
        return chance(self._rng, 30) and not any(seen.query.agg for seen in self._seen.values())

    def _task(self) -> BucketTask:
        rng = self._rng
        settings = read_settings(self._case.options)
        strategy, sharing = rng.choice(self._setup.strategies), rng.choice(self._setup.sharings)
        chosen = read_options(**settings, lateness=self._lateness, strategy=strategy, sharing=sharing)
        queries = {name: seen.query for name, seen in self._seen.items() if not seen.removed}
        columns = to_arrow(self._case.events).schema
        late, ids = self._keeps_late, self._gives_ids
        return bucket_task(queries, columns, chosen, keep_late=late, match_id=ids, single=self._single)

    def go(self) -> None:
        """Run all micro-batches, with restarts between some of them."""
        rng, table, start = self._rng, to_arrow(self._case.events), 0
        restarts = rng.choice([0, 10, 30, 60])
        times = [event.ts for event in sorted(self._case.events, key=lambda event: event.id)]
        while start < len(times):
            if chance(rng, restarts):
                self._restart()
            length = rng.choice([0, 1, 1, 2, 5, 9])
            self._batch(None if chance(rng, 15) else table.slice(start, length))
            if self._ran is not None:
                start += self._ran.num_rows
                self._note(times[:start])
        if chance(rng, restarts):
            self._restart()
        self._batch(None)
        self._watermark = _END
        self._batch(None if chance(rng, 50) else table.slice(0, 0))

    def _note(self, times: list[int]) -> None:
        """Move the watermark as Spark does: by all rows that were read, in milliseconds."""
        if times:
            delay = -(-self._lateness // 1000)
            self._watermark = max(self._watermark, max(times) // 1000 - delay)

    def _batch(self, rows: pa.Table | None) -> None:
        """A micro-batch; before it, attempts may fail, and workers be lost."""
        rng, stream, self._ran = self._rng, self._stream, rows
        if chance(rng, 20):
            stream.workers[rng.randrange(2)].clear()
        for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
            stream.run(rows, self._watermark, commit=False, worker=rng.randrange(2))
            self.counted["failed"] += 1
        runs = len(stream.did)
        given = stream.run(rows, self._watermark, worker=rng.randrange(2))
        if len(stream.did) > runs:
            # The largest lateness so far says how late an event can have been read.
            self._most = max(self._most, self._lateness)
        late: list[int] = []
        for batch in given:
            late += self._take(batch)
        if rows is not None and self._watermark > 0:
            ids, times = (rows.column(name).cast(pa.int64()).to_pylist() for name in ("id", "ts"))
            fresh = [n for n, time in zip(ids, times, strict=True) if time < self._watermark * 1000]
            self._late.update(fresh)
            if self._keeps_late and sorted(late) != sorted(fresh):
                raise DisagreementError(f"late rows {sorted(late)} instead of {sorted(fresh)}")

    def _take(self, batch: pa.RecordBatch) -> list[int]:
        """Take the matches of a batch; gives the numbers of late rows in it."""
        late: list[int] = []
        if LATE_ROWS in batch.schema.names:
            column = batch.column(LATE_ROWS)
            late = pc.struct_field(column.drop_null(), "id").to_pylist()
            batch = batch.filter(column.is_null()).drop_columns([LATE_ROWS])
        if MATCH_ID in batch.schema.names:
            ids = batch.column(MATCH_ID).to_pylist()
            if len({*ids} - self._ids) < len(ids):
                raise DisagreementError(f"an id came twice: {ids}")
            self._ids.update(ids)
            batch = batch.drop_columns([MATCH_ID])
        if self._single:
            if batch.num_rows:
                self._seen["q1"].found.append(batch)
            return late
        table = pa.Table.from_batches([batch])
        for name in set(table.column("query").to_pylist()):
            seen = self._seen[name]
            if seen.removed:
                raise DisagreementError(f"{name} was removed, and found something")
            wide = wide_form(table, name, positive_variables(seen.query.pattern))
            seen.found += wide.combine_chunks().to_batches()
        return late

    def _restart(self) -> None:
        """Another task goes on from what was committed; first one may try that is changed again."""
        rng, before = self._rng, self._seen
        if chance(rng, 20) and len(self._stream.committed.states) and self._ran_once:
            self._seen = {name: replace(seen) for name, seen in before.items()}
            later, self._later = self._later, dict(self._later)
            self._change()
            self._stream.task = self._task()
            self._stream.run(None if chance(rng, 50) else self._empty, self._watermark, commit=False)
            self._seen, self._later = before, later
        self._change()
        self._lateness = self._draw_lateness()
        self._keeps_late = not self._single and chance(rng, 50)
        self._gives_ids = self._draw_ids()
        self._stream.task = self._task()
        self.counted["restarted"] += 1

    @property
    def _empty(self) -> pa.Table:
        return to_arrow(self._case.events).slice(0, 0)

    @property
    def _ran_once(self) -> bool:
        return bool(self._stream.did)

    def _change(self) -> None:
        """Add and remove some queries, and put them in another order."""
        rng = self._rng
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            running = [name for name, seen in self._seen.items() if not seen.removed]
            if self._later and chance(rng, 60):
                name = rng.choice([*self._later])
                since = (self._watermark + -(-self._most // 1000) + 1) * 1000 if self._ran_once else _ALWAYS
                self._seen[name] = _Seen(self._later.pop(name), since)
                self.counted["added"] += self._ran_once
            elif len(running) > 1 and chance(rng, 60):
                self._seen[rng.choice(running)].removed = True
                self.counted["removed"] += 1
        if chance(rng, 30):
            self._seen = {name: self._seen[name] for name in rng.sample([*self._seen], len(self._seen))}

    def compare(self) -> int:
        """Compare what was found with the oracle's matches; gives the number of rows."""
        self.counted["late"] = len(self._late)
        return sum(self._compare(name, seen) for name, seen in self._seen.items())

    def _compare(self, name: str, seen: _Seen) -> int:
        options, query = self._case.options, seen.query
        events = [e for e in self._case.events if e.ts >= seen.since and e.id not in self._late]
        try:
            if query.agg or query.returns:
                if not self._decides(query) or self._counts_ties(query):
                    return 0
                if query.agg and not query.group_by and not seen.found and not oracle_matches(query, events, options):
                    # A table has a row for no matches; a stream has none as long as nothing changes.
                    return 0
                return compare_rows(query, events, options, _latest(query, seen.found))
            expected = Counter(oracle_matches(query, events, options))
            found: Counter[Key] = Counter(key for batch in seen.found for key in keys_of(query, batch))
            missing = Counter[Key]() if seen.removed or not self._decides(query) else expected - found
            if missing or found - expected:
                raise DisagreementError(f"missing {missing}, extra {found - expected}: {query.text}")
        except DisagreementError as error:
            texts = "\n".join(
                f"  {n}{' (removed)' if s.removed else ''} since {s.since}: {s.query.text}"
                for n, s in self._seen.items()
            )
            shown_events = "\n".join(map(str, self._case.events))
            raise DisagreementError(
                f"{name}: {error}\nqueries:\n{texts}\nlate: {self._late}\n{shown_events}\n{options}\n{self._setup}"
            ) from None
        return found.total()

    def _decides(self, query: Query) -> bool:
        """Whether a watermark after all events decides all matches: no window of events has to be waited for."""
        plan = bucket_task({"q": query}, self._empty.schema, read_options(**read_settings(self._case.options))).plan
        physical = plan.queries["q"].plan
        return not (physical.forward and physical.scan.by_count)

    def _counts_ties(self, query: Query) -> bool:
        """Whether a window counts events at the same time, which are in the order of the columns that are needed."""
        times = [(event.ts, event.order) for event in self._case.events]
        return isinstance(query.within, CountWindow) and len({*times}) < len(times)


def _latest(query: Query, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """What comes last for a group is its row, unless groups come once."""
    if not query.agg or gives_once(query):
        return batches
    rows = [batch.slice(i, 1) for batch in batches for i in range(batch.num_rows)]
    return [*{tuple(shown(column)[0] for column in row.columns[: len(query.group_by)]): row for row in rows}.values()]
