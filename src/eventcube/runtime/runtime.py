"""Queries running in this process: push events, advance time, read matches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine, Released
from eventcube.engine.views.strategy import check_ways
from eventcube.errors import EventCubeWarning, OptionError
from eventcube.language.parse import parse
from eventcube.language.printer import print_query
from eventcube.language.syntax import Query
from eventcube.options import AUTO, Options, Ways, is_whole, options, wrong
from eventcube.plan.bind import bind
from eventcube.plan.build import build
from eventcube.plan.result import result_schema
from eventcube.runtime.frames import to_arrow
from eventcube.runtime.ingest import Ingest, check_columns
from eventcube.runtime.many import check_result_columns, check_together, long_form, long_schema
from eventcube.runtime.snapshot import load, save
from eventcube.schema import plain_layout

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# No usable time is further away, in microseconds.
_FURTHEST = 2**62
# So many events kept for ever are worth a warning.
_MANY = 100_000

Queries = str | Query | Sequence[str | Query] | Mapping[str, str | Query]


class Runtime:
    """One or more queries over a stream of events.

    `push` takes a batch and gives the matches that became final, as an iterator of record batches that has to be
    read to its end before the next call. `advance` says that no event before a time will come any more; `finish`
    that none will come at all.

    >>> import pyarrow as pa
    >>> runtime = Runtime("PATTERN SEQ(A a, B b) WITHIN 10 us RETURN a.ts AS a", type="type")
    >>> batches = list(runtime.push(pa.table({"ts": [1, 2, 3], "type": ["A", "B", "A"]})))
    >>> [b.to_pylist() for b in [*batches, *runtime.finish()]]
    [[{'start': 1, 'end': 2, 'a': 1}]]
    """

    def __init__(
        self,
        queries: Queries,
        *,
        schema: pa.Schema | None = None,
        concepts: Concepts | Mapping[str, Any] | None = None,
        time: str = "ts",
        type: str | None = None,
        partition_by: str | Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        lateness: int | str | timedelta = 0,
        time_unit: str = "us",
        strategy: str | Mapping[str, str] | Ways = AUTO,
        limit: int | None = None,
    ) -> None:
        self.options: Options = options(
            time=time,
            type=type,
            partition_by=partition_by,
            order_by=order_by,
            lateness=lateness,
            time_unit=time_unit,
            strategy=strategy,
            limit=limit,
        )
        self.queries = named(queries)
        check_limit(self.queries, limit)
        check_ways(self.options.strategy, self.queries.values())
        self.single = not isinstance(queries, Mapping) and (isinstance(queries, str | Query))
        self.concepts = hierarchy(concepts)
        self._ingest: Ingest | None = None
        self._engines: dict[str, Engine] = {}
        self._counters = Counters()
        self._running: _Batches | None = None
        self._finished = False
        self.warned = False
        if schema is not None:
            if not isinstance(schema, pa.Schema):
                raise wrong("schema", schema, "an Arrow schema, as table.schema is")
            self.start(schema)

    def start(self, columns: pa.Schema) -> Ingest:
        """Bind the queries to events with these columns; `push` does so with the first batch."""
        schema = self.options.schema(plain_layout(columns))
        if not self.single:
            check_together(self.queries)
        for name, query in self.queries.items():
            plan = build(bind(query, schema, self.concepts), self.options.strategy)
            self._engines[name] = Engine(plan, self.options.limit)
        types = {t for e in self._engines.values() for s in e.logical.slots for t in s.types or ()}
        self._ingest = Ingest(schema, types, self.options.lateness, self._counters)
        return self._ingest

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results; known once those of the events are."""
        if self._ingest is None:
            raise OptionError("the columns of the events are not known yet", code="EC405", hint="push, or give schema=")
        if self.single:
            return result_schema(next(iter(self._engines.values())).logical)
        return long_schema(self._ingest.schema)

    @property
    def counters(self) -> dict[str, int]:
        """What has been done so far, counted; see `Counters`."""
        total = Counters()
        total.add(self._counters)
        for engine in self._engines.values():
            total.add(engine.counters)
        return total.as_dict()

    def report(self) -> str:
        """What was counted, and for each nested part what the cost model expected, in words."""
        lines = ["measured", *(f"  {name:<16}{value:>18,}" for name, value in self.counters.items() if value)]
        for name, engine in self._engines.items():
            parts = [f"  {line}" for line in (*engine.flattening.report(), *engine.parts.report())]
            lines += [f"nested parts{'' if self.single else f' of {name}'}", *parts] if parts else []
        return "\n".join(lines)

    @property
    def kept(self) -> int:
        """How many events are kept for matches to come, at most, by a query."""
        return max((len(e.rows) for e in self._engines.values() if e.rows is not None), default=0)

    @property
    def set_aside(self) -> pa.Table:
        """The rows that could not be used, each with the reason."""
        if self._ingest is None:
            return pa.table({})
        return self._ingest.aside_table()

    def take_set_aside(self) -> pa.Table:
        """The rows that could not be used since this was last asked; they are not kept any longer."""
        taken = self.set_aside
        if self._ingest is not None:
            self._ingest.aside = []
        return taken

    def push(self, events: Any) -> Iterator[pa.RecordBatch]:
        """Take events in (Arrow, pandas or polars); gives the matches that are final now."""
        self._ready()
        table = to_arrow(events)
        ingest = self._ingest or self.start(table.schema)
        ingest.take(check_columns(table, ingest.schema.columns))
        return self._run(ingest.latest - ingest.lateness)

    def advance(self, watermark: int | datetime) -> Iterator[pa.RecordBatch]:
        """Say that every event before the watermark has come; gives the matches final by then.

        The watermark is a datetime, or microseconds since 1970 in UTC whatever `time_unit` is.
        """
        self._ready()
        moment = _moment(watermark)
        if self._ingest is None:
            raise OptionError("nothing was pushed yet", code="EC405", hint="push first, or give schema=")
        return self._run(moment)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Say that no more events will come; gives all the matches that are left."""
        self._ready()
        self._finished = True
        if self._ingest is None:
            return iter(())
        return self._run(None)

    def snapshot(self) -> bytes:
        """All that is needed to go on from here elsewhere; see `restore`."""
        self._ready()
        return save(self.fingerprint, self._ingest, self._engines, self._counters, finished=self._finished)

    def restore(self, state: bytes) -> None:
        """Go on from a snapshot of a runtime with the same queries and settings, as if this were that one."""
        load(state, self)

    @property
    def fingerprint(self) -> str:
        """What a snapshot must agree on with the runtime it is restored into."""
        texts = [f"{name}: {print_query(query)}" for name, query in self.queries.items()]
        parents = sorted(self.concepts.parents.items()) if self.concepts is not None else []
        return repr((texts, replace(self.options, strategy=Ways()), parents))

    def _ready(self) -> None:
        if self._finished:
            raise OptionError("the runtime has finished", code="EC406", hint="make a new one for new input")
        if self._running is not None and self._running.more():
            raise OptionError(
                "the matches of the call before were not read to the end",
                code="EC407",
                hint="for batch in runtime.push(events): …",
            )

    def _run(self, watermark: int | None) -> Iterator[pa.RecordBatch]:
        assert self._ingest is not None
        released = self._ingest.release(watermark)
        known = None if watermark is None else self._ingest.watermark
        self._running = _Batches(self._evaluate(released, known))
        return self._running

    def _evaluate(self, released: Released, watermark: int | None) -> Iterator[pa.RecordBatch]:
        for name, engine in self._engines.items():
            for batch in engine.feed(released, watermark):
                if batch.num_rows:
                    yield batch if self.single else long_form(name, batch, self.schema)
            if watermark is not None:
                self._warn_of_growth(name, engine)

    def _warn_of_growth(self, name: str, engine: Engine) -> None:
        """Warn, once, of a query without WITHIN that has come to keep many events."""
        if self.warned or engine.width is not None or engine.rows is None or len(engine.rows) < _MANY:
            return
        self.warned = True
        warnings.warn(
            f"query {name} has no WITHIN, so all its events are kept for ever: {len(engine.rows):,} so far\n"
            "hint: add, say, WITHIN 10 minutes",
            EventCubeWarning,
            stacklevel=4,
        )


class _Batches(Iterator[pa.RecordBatch]):
    """Batches as they are made; whether there are more can be asked without losing one."""

    def __init__(self, source: Iterator[pa.RecordBatch]) -> None:
        self._source = source
        self._next: pa.RecordBatch | None = None

    def __next__(self) -> pa.RecordBatch:
        batch, self._next = self._next, None
        return next(self._source) if batch is None else batch

    def more(self) -> bool:
        if self._next is None:
            self._next = next(self._source, None)
        return self._next is not None


def named(queries: Queries) -> dict[str, Query]:
    """Queries by name; those without one are called q1, q2, …"""
    given: Any = queries
    if isinstance(given, str | Query):
        return {"q1": _query(given)}
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray):
        raise wrong("queries", given, _QUERIES)
    pairs = given.items() if isinstance(given, Mapping) else ((f"q{i}", q) for i, q in enumerate(given, 1))
    read: dict[str, Query] = {}
    for name, query in pairs:
        if not isinstance(name, str):
            raise wrong("the name of a query", name, "a text")
        read[name] = _query(query, name)
    if not read:
        raise OptionError("there is no query", code="EC413", hint=f"give {_QUERIES}")
    return read


_QUERIES = "a query as text, or a list or dict of queries"


def _query(query: Any, source: str = "query") -> Query:
    if not isinstance(query, str | Query):
        raise wrong("a query", query, "its text")
    if isinstance(query, str):
        if any("\ud800" <= c <= "\udfff" for c in query):
            raise OptionError("the query holds half a character", code="EC413", hint="write no surrogates")
        query = parse(query, source)
    assert isinstance(query, Query)
    check_result_columns(query)
    return query


def hierarchy(concepts: Any) -> Concepts | None:
    """The hierarchy of types, however it is given."""
    if isinstance(concepts, Mapping):
        return Concepts(concepts)
    if concepts is not None and not isinstance(concepts, Concepts):
        raise wrong(
            "concepts", concepts, "a mapping of each concept to the types below it, or Concepts.from_yaml(path)"
        )
    return concepts


def check_limit(queries: Mapping[str, Query], limit: int | None) -> None:
    """Refuse a limit on queries that count their matches."""
    for name, query in queries.items():
        if limit is not None and query.agg:
            raise OptionError(
                f"limit picks matches, but AGG of query {name!r} counts all of them",
                code="EC416",
                hint="leave limit out, or take the first rows of the result",
            )


def _moment(watermark: Any) -> int:
    """A watermark in microseconds; a datetime without a zone is in UTC."""
    # Not a time, as pandas has it, does not equal itself.
    if isinstance(watermark, datetime) and watermark == watermark:
        aware = watermark if watermark.tzinfo is not None else watermark.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if not is_whole(watermark):
        raise wrong("a watermark", watermark, "microseconds since 1970, or a datetime")
    return max(-_FURTHEST, min(_FURTHEST, int(watermark)))
