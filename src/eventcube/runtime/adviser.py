"""Warnings about probable mistakes that the input of a run shows."""

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
from eventcube.runtime.ingest import Ingest
from eventcube.runtime.input_profile import InputProfile
from eventcube.runtime.read_columns import check_columns
from eventcube.runtime.workload import Workload
from eventcube.schema import LATE, EventSchema, plain_layout

Finding = tuple[Diagnostic, Query | None]
# Warn from this many events that no window ever drops;
MANY = 100_000
# for windows that count events, only from this many partitions.
MANY_PARTITIONS = 10_000
# Causes, each of which is reported once.
_SKIPPED, _LATE, _UNLIKELY, _UNTYPED = "skipped rows", "a late push", "unlikely times", "no types"


class Adviser:
    """Finds probable mistakes in the profile of a run's input, and reports each once."""

    def __init__(
        self,
        queries: Sequence[Query],
        concepts: Concepts | None,
        profile: InputProfile,
        spell: slips.Spelling = slips.as_argument,
    ) -> None:
        self.queries, self.concepts, self.profile, self.spell = queries, concepts, profile, spell
        self._reported: set[str] = set()

    def warn(self, *, finished: bool) -> None:
        """Warn of new findings; some are certain only when the input has `finished`."""
        for problem, query in self.findings(finished=finished):
            warn(problem, *((query.text, query.source) if query is not None else ()))

    def findings(self, *, finished: bool) -> Iterator[Finding]:
        """Findings that were not reported before, with the query if they concern a place in one."""
        for cause, problem, query in self._findings(finished):
            if cause not in self._reported:
                self._reported.add(cause)
                yield problem, query

    def _findings(self, finished: bool) -> Iterator[tuple[str, Diagnostic, Query | None]]:
        profile = self.profile
        ended = finished and not profile.resumed
        if profile.late_push:
            yield _LATE, slips.late_push(profile.late_push, self.spell), None
        yield from ((_SKIPPED, problem, None) for problem in self._skipped(ended))
        if profile.usable and (finished or profile.usable >= slips.ENOUGH_ROWS):
            times = unlikely_times(profile, self.spell)
            yield from [(_UNLIKELY, times, None)] if times is not None else []
            yield from ((_UNTYPED, problem, None) for problem in self._untyped())
        if ended and profile.usable:
            for problem, query in self._missing_types():
                yield problem.message, problem, query

    def _skipped(self, ended: bool) -> Iterator[Diagnostic]:
        many = slips.are_many if ended else slips.are_many_already
        problem = skipped_rows(self.profile, self.spell, many)
        if problem is not None and not self._is_reported_late(self.profile.reasons):
            yield problem

    def _is_reported_late(self, reasons: Mapping[str, int]) -> bool:
        """Whether the most frequent reason is lateness, which was reported already."""
        return _LATE in self._reported and max(reasons, key=lambda r: reasons[r]) == LATE

    def _untyped(self) -> Iterator[Diagnostic]:
        first, self.profile.first = self.profile.first, None
        for query in self.queries if first is not None else ():
            wanted = slips.wanted_types(query, self.concepts)
            types = frozenset[str]().union(*(wanted[name] for name in slips.named_types(query)))
            column = slips.type_column(first, types) if types else None
            if column is not None:
                yield slips.untyped(query, column, self.spell)

    def _missing_types(self) -> Iterator[Finding]:
        """Types in the queries that no event had, each with the query that names it."""
        profile = self.profile
        for query in self.queries if profile.schema.type is not None else ():
            wanted = slips.wanted_types(query, self.concepts)
            absent = {name: types for name, types in wanted.items() if not types & profile.types}
            skipped = {name: reasons for name, types in absent.items() if (reasons := self._reasons(types))}
            for name, reasons in skipped.items():
                if not self._is_reported_late(reasons):
                    yield from ((p, query) for p in self._skipped_type(query, name, reasons))
            present = profile.types | profile.other_types
            missing = slips.missing_types(query, absent.keys() - skipped.keys(), present, self.concepts, code="EC501")
            yield from ((problem, query) for problem in missing)

    def _reasons(self, types: Iterable[str]) -> Counter[str]:
        """Why rows of some types were skipped, and how many."""
        reasons: Counter[str] = Counter()
        for type_ in types:
            reasons.update(self.profile.skipped_types.get(type_, {}))
        return reasons

    def _skipped_type(self, query: Query, name: str, reasons: Mapping[str, int]) -> list[Diagnostic]:
        examples, schema = self.profile.examples, self.profile.schema
        reason = max(reasons, key=lambda r: reasons[r])
        hint = slips.skipped_hint(reason, examples.get(reason), schema.time, schema.time_unit, self.spell)
        return slips.skipped_type(query, name, reasons, examples, hint)


def skipped_rows(
    profile: InputProfile, spell: slips.Spelling = slips.as_argument, many: Callable[[int, int], bool] = slips.are_many
) -> Diagnostic | None:
    """A warning if too many rows were skipped."""
    if not many(profile.rows, sum(profile.reasons.values())):
        return None
    time, unit = profile.schema.time, profile.schema.time_unit
    return slips.skipped_rows(profile.rows, profile.reasons, profile.examples, time, unit, spell)


def unlikely_times(profile: InputProfile, spell: slips.Spelling = slips.as_argument) -> Diagnostic | None:
    """A warning if whole-number times lie in an unlikely year."""
    if profile.earliest is None or profile.latest is None:
        return None
    time, unit = profile.schema.time, profile.schema.time_unit
    earliest, latest = slips.in_unit(profile.earliest, unit), slips.in_unit(profile.latest, unit)
    return slips.unlikely_times(earliest, latest, time, unit, spell)


def inspect(
    query: Query,
    schema: EventSchema,
    concepts: Concepts | None,
    batches: Iterable[pa.Table],
    spell: slips.Spelling,
    if_zoned: Sequence[Diagnostic] = (),
) -> list[Diagnostic]:
    """Probable mistakes that events show, without running the query; they may lack columns that are not inspected.

    `if_zoned` has warnings for times that are text with zones.
    """
    ingest: Ingest | None = None
    zoned = False
    for batch in batches:
        if ingest is None:
            row_schema = replace(schema, columns=plain_layout(batch.schema), partition_by=(), order_by=())
            types = slips.wanted_types(query, concepts).values() if schema.type is not None else ()
            ingest = Ingest(row_schema, frozenset().union(*types), 0, Counters())
        ingest.take(check_columns(batch, ingest.schema.columns))
        ingest.release(None)
        ingest.skipped.clear()
        zoned = zoned or (bool(if_zoned) and has_zones(batch.column(schema.time)))
    if ingest is None:
        return []
    findings = Adviser([query], concepts, ingest.profile, spell).findings(finished=True)
    return [*(once_each(if_zoned) if zoned else ()), *(problem for problem, _ in findings)]


def growth(workload: Workload, *, windowless: bool) -> Diagnostic | None:
    """The warning for a query that retains many events which no later input lets it drop; some have no window."""
    state = workload.engine.state
    if state.size < MANY:
        return None
    for name, query in workload.plan.queries.items():
        unbounded = query.arrangement.width is None
        if (unbounded and not windowless) or state.kept(name) < MANY:
            continue
        if unbounded:
            why, hint = "has no WITHIN, so all its events are kept for ever", "add, say, WITHIN 10 minutes"
        elif state.partitions(name) >= MANY_PARTITIONS:
            why = "has a window of events, which never closes for a key without new events, so its events are kept"
            hint = "use a window of time, say, WITHIN 10 minutes"
        else:
            continue
        return Diagnostic("EC500", f"query {name} {why}: {state.kept(name):,} so far", hint=hint)
    return None
