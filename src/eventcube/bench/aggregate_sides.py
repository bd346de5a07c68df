"""The contestants of the aggregate benchmark: counting, enumeration, a plain scan, and DuckDB."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from eventcube.bench.aggregate_cases import Case
from eventcube.bench.checksum import MatchesDifferError
from eventcube.bench.self_join import duckdb_forms
from eventcube.engine.sinks.counted import CountedSink
from eventcube.engine.sinks.sink import Due
from eventcube.errors import EventCubeWarning
from eventcube.match import match
from eventcube.options import AUTO, COUNT, ENUMERATE

Answer = int | float | None


def answer_of(table: pa.Table, text: str, aggregates: str = AUTO) -> Answer:
    """The one value that a query gives; None, without a warning, if 64 bits do not hold it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EventCubeWarning)
        value: Answer = match(table, text, time="ts", type="symbol", aggregates=aggregates)["answer"][0].as_py()
    return value


def chosen(table: pa.Table, case: Case, aggregate: str) -> Answer:
    """Computed in whichever way should cost less, as users get it."""
    return answer_of(table, case.text(aggregate))


def counted(table: pa.Table, case: Case, aggregate: str) -> Answer:
    """Computed without making matches."""
    return answer_of(table, case.text(aggregate), COUNT)


def enumerated(table: pa.Table, case: Case, aggregate: str) -> Answer:
    """Computed from all matches."""
    return answer_of(table, case.text(aggregate), ENUMERATE)


def scanned(table: pa.Table, case: Case, aggregate: str) -> Answer:
    """The plain scan: the same call, in which the sink takes the stacks of events, and nothing else is done with them.

    So it plans the query, reads the times and the types, checks the order, finds the events of each component, and
    makes a result (of no match). It does not sort by key, nor order the events of several stacks, nor look for windows,
    nor read the argument of the aggregate: all of that counts as work of the query.
    """
    with only_scanning():
        return answer_of(table, case.text(aggregate), COUNT)


@contextmanager
def only_scanning() -> Iterator[None]:
    """Have aggregates that are computed without making matches read their stacks of events only."""
    with _searching(_take_stacks):
        yield


@contextmanager
def only_sorting() -> Iterator[None]:
    """Have aggregates that are computed without making matches sort their events by key, and read the stacks only."""
    with _searching(_sort_stacks):
        yield


@contextmanager
def _searching(replaced: Callable[[CountedSink, Due], Iterator[pa.RecordBatch]]) -> Iterator[None]:
    search = CountedSink.search
    setattr(CountedSink, "search", replaced)  # noqa: B010
    try:
        yield
    finally:
        setattr(CountedSink, "search", search)  # noqa: B010


def _take_stacks(_: CountedSink, due: Due) -> Iterator[pa.RecordBatch]:
    for number in set(due.stacks):
        # What reads each place once costs next to nothing, and no less than any use of them.
        due.rows.stacks[number].sum()
    return iter(())


def _sort_stacks(_: CountedSink, due: Due) -> Iterator[pa.RecordBatch]:
    store = due.execution_of_all.store
    for slot in range(len(due.stacks)):
        store.stack(slot).rows.sum()
    return iter(())


def sql_answer(run: Callable[[str], pa.Table], sql: str) -> Answer:
    """The one value that SQL gives."""
    value = run(sql)["answer"][0].as_py()
    return value if value is None or isinstance(value, float) else int(value)


def sql_forms(case: Case, aggregate: str) -> dict[str, str]:
    """The aggregate over DuckDB's self-joins, in every form that might be the fastest."""
    return dict(duckdb_forms(case.joined(aggregate)))


def check_equal(case: Case, aggregate: str, ours: Answer, theirs: Answer, side: str) -> None:
    """Raise an error if two sides do not agree: whole numbers exactly, others to a relative 1e-9."""
    if ours == theirs:
        return
    if isinstance(ours, float) and isinstance(theirs, float) and math.isclose(ours, theirs, rel_tol=1e-9):
        return
    raise MatchesDifferError(f"{aggregate} of {case.name}: counted {ours}, {side} {theirs}")
