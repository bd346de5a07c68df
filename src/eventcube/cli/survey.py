"""Counts over an input, to report a mistake before the query runs and finds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eventcube.cli.mistakes import raise_all
from eventcube.concepts.concepts import Concepts
from eventcube.errors import BindError, InputError, warn
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.slips import (
    are_many,
    as_flag,
    as_in,
    missing_types,
    skipped_hint,
    skipped_rows,
    skipped_type,
    wanted_types,
)

# Refuses an unusable input; called before any match is shown or moved to its place.
Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Survey:
    """The number of events, of skipped rows by reason, and the wanted types that no event has (`missing`).

    `examples` has a time for each reason. `some_types` are types that occur, if some are missing. `skipped` has the
    wanted types, as far as known, whose rows are all skipped, with the reasons.
    """

    events: int
    set_aside: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, object] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    some_types: tuple[str, ...] = ()
    skipped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def wanted_by_any(queries: Iterable[Query], concepts: Concepts | None) -> dict[str, frozenset[str]]:
    """For each type in the queries, the type itself and all types below it."""
    wanted: dict[str, frozenset[str]] = {}
    for query in queries:
        wanted |= wanted_types(query, concepts)
    return wanted


def check_survey(survey: Survey, queries: Sequence[Query], shown: str, options: Options, allow_missing: bool) -> None:
    """Refuse an input without usable events, and queries for types that no event has; warn of many skipped rows."""
    if survey.events == 0:
        raise InputError(f"{shown} has no events", code="EC327", hint="is it the right file?")
    skipped_count = sum(survey.set_aside.values())
    if are_many(survey.events, skipped_count):
        reasons, examples = survey.set_aside, survey.examples
        warning = skipped_rows(survey.events, reasons, examples, options.time, options.time_unit, as_flag)
        if skipped_count == survey.events:
            listed = ", ".join(f"{reason}: {n:,}{as_in(reason, examples.get(reason))}" for reason, n in reasons.items())
            message = f"none of the {skipped_count:,} events of {shown} can be used ({listed})"
            raise InputError(message, code="EC328", hint=warning.hint)
        warn(warning)
    for name, by_reason in survey.skipped.items():
        reason = max(by_reason, key=lambda r: by_reason[r])
        hint = skipped_hint(reason, survey.examples.get(reason), options.time, options.time_unit, as_flag)
        for query in queries:
            for problem in skipped_type(query, name, by_reason, survey.examples, hint):
                warn(problem, query.text, query.source)
    if not allow_missing:
        raise_all(_missing_types(survey, queries, options))


def _missing_types(survey: Survey, queries: Sequence[Query], options: Options) -> Iterator[BindError]:
    advice = f"; --allow-missing-types runs {'the query' if len(queries) == 1 else 'the queries'} all the same"
    for query in queries:
        missing = missing_types(query, survey.missing, survey.some_types, options.concepts, code="EC202", advice=advice)
        if missing:
            yield BindError(missing, query.text, query.source)


def first(names: Iterable[str | None], most: int = 1000) -> tuple[str, ...]:
    """The first names that are not null, sorted."""
    return tuple(sorted(n for n, _ in zip((n for n in names if n is not None), range(most), strict=False)))
