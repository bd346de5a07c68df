"""Slips that the events of a run show, from what it has seen of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from eventcube import slips
from eventcube.concepts.concepts import Concepts
from eventcube.engine.counters import Counters
from eventcube.engine.time_text import has_zones
from eventcube.errors import Diagnostic, warn
from eventcube.language.syntax import Query
from eventcube.plan.advice import once_each
from eventcube.runtime.ingest import Ingest, check_columns
from eventcube.runtime.seen import Seen
from eventcube.schema import LATE, EventSchema, plain_layout

Finding = tuple[Diagnostic, Query | None]
# What each finding is told once for.
_SKIPPED, _LATE, _UNLIKELY, _UNTYPED = "skipped rows", "a late push", "unlikely times", "no types"


class Adviser:
    """Looks at what a run has seen of its input, and tells where its answer is probably not the one that was meant."""

    def __init__(
        self,
        queries: Sequence[Query],
        concepts: Concepts | None,
        seen: Seen,
        spell: slips.Spelling = slips.as_argument,
    ) -> None:
        self.queries, self.concepts, self.seen, self.spell = queries, concepts, seen, spell
        self._told: set[str] = set()

    def warn(self, *, finished: bool) -> None:
        """Warn of what is clear by now and was not yet; some is clear only when all events have come."""
        for problem, query in self.findings(finished=finished):
            warn(problem, *((query.text, query.source) if query is not None else ()))

    def findings(self, *, finished: bool) -> Iterator[Finding]:
        """What is to be told by now and was not yet, with the query if it concerns a place in one."""
        for cause, problem, query in self._findings(finished):
            if cause not in self._told:
                self._told.add(cause)
                yield problem, query

    def _findings(self, finished: bool) -> Iterator[tuple[str, Diagnostic, Query | None]]:
        seen = self.seen
        ended = finished and not seen.resumed
        if seen.late_push:
            yield _LATE, slips.late_push(seen.late_push, self.spell), None
        yield from ((_SKIPPED, problem, None) for problem in self._skipped(ended))
        if seen.usable and (finished or seen.usable >= slips.ENOUGH_ROWS):
            times = unlikely_times(seen, self.spell)
            yield from [(_UNLIKELY, times, None)] if times is not None else []
            yield from ((_UNTYPED, problem, None) for problem in self._untyped())
        if ended and seen.usable:
            for problem, query in self._missing_types():
                yield problem.message, problem, query

    def _skipped(self, ended: bool) -> Iterator[Diagnostic]:
        many = slips.are_many if ended else slips.are_many_already
        problem = skipped_rows(self.seen, self.spell, many)
        if problem is not None and not self._told_late(self.seen.reasons):
            yield problem

    def _told_late(self, reasons: Mapping[str, int]) -> bool:
        """Whether rows are skipped because they are late, and that was told already."""
        return _LATE in self._told and max(reasons, key=lambda r: reasons[r]) == LATE

    def _untyped(self) -> Iterator[Diagnostic]:
        first, self.seen.first = self.seen.first, None
        for query in self.queries if first is not None else ():
            types = slips.named_types(query)
            column = slips.type_column(first, types) if types else None
            if column is not None:
                yield slips.untyped(query, column, self.spell)

    def _missing_types(self) -> Iterator[Finding]:
        """The types in the queries that no event has had, each with the query that names it."""
        seen = self.seen
        for query in self.queries if seen.schema.type is not None else ():
            wanted = slips.wanted_types(query, self.concepts)
            absent = {name: types for name, types in wanted.items() if not types & seen.types}
            skipped = {name: reasons for name, types in absent.items() if (reasons := self._reasons(types))}
            for name, reasons in skipped.items():
                told = self._told_late(reasons)
                yield from () if told else ((p, query) for p in self._skipped_type(query, name, reasons))
            there = seen.types | seen.other_types
            missing = slips.missing_types(query, absent.keys() - skipped.keys(), there, self.concepts, code="EC501")
            yield from ((problem, query) for problem in missing)

    def _reasons(self, types: Iterable[str]) -> Counter[str]:
        """Why rows of some types were skipped, and how many."""
        reasons: Counter[str] = Counter()
        for type_ in types:
            reasons.update(self.seen.skipped_types.get(type_, {}))
        return reasons

    def _skipped_type(self, query: Query, name: str, reasons: Mapping[str, int]) -> list[Diagnostic]:
        seen, schema = self.seen, self.seen.schema
        reason = max(reasons, key=lambda r: reasons[r])
        hint = slips.skipped_hint(reason, seen.examples.get(reason), schema.time, schema.time_unit, self.spell)
        return slips.skipped_type(query, name, reasons, seen.examples, hint)


def skipped_rows(
    seen: Seen, spell: slips.Spelling = slips.as_argument, many: Callable[[int, int], bool] = slips.are_many
) -> Diagnostic | None:
    """That many rows were skipped, if they were."""
    if not many(seen.rows, sum(seen.reasons.values())):
        return None
    return slips.skipped_rows(seen.rows, seen.reasons, seen.examples, seen.schema.time, seen.schema.time_unit, spell)


def unlikely_times(seen: Seen, spell: slips.Spelling = slips.as_argument) -> Diagnostic | None:
    """That whole-number times lie in an unlikely year, if they do."""
    if seen.earliest is None or seen.latest is None:
        return None
    time, unit = seen.schema.time, seen.schema.time_unit
    return slips.unlikely_times(slips.in_unit(seen.earliest, unit), slips.in_unit(seen.latest, unit), time, unit, spell)


def inspect(
    query: Query,
    schema: EventSchema,
    concepts: Concepts | None,
    batches: Iterable[pa.Table],
    spell: slips.Spelling,
    if_zoned: Sequence[Diagnostic] = (),
) -> list[Diagnostic]:
    """What events show to be a slip, without running the query; they need no more columns than are looked at.

    `if_zoned` is to be told if times are text with zones.
    """
    ingest: Ingest | None = None
    zoned = False
    for batch in batches:
        if ingest is None:
            own = replace(schema, columns=plain_layout(batch.schema), partition_by=(), order_by=())
            types = slips.wanted_types(query, concepts).values() if schema.type is not None else ()
            ingest = Ingest(own, frozenset().union(*types), 0, Counters())
        ingest.take(check_columns(batch, ingest.schema.columns))
        ingest.release(None)
        ingest.aside.clear()
        zoned = zoned or (bool(if_zoned) and has_zones(batch.column(schema.time)))
    if ingest is None:
        return []
    found = Adviser([query], concepts, ingest.seen, spell).findings(finished=True)
    return [*(once_each(if_zoned) if zoned else ()), *(problem for problem, _ in found)]
