"""What an input holds, looked at before the query runs, so that a mistake is told instead of finding nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from eventcube.errors import BindError, InputError, warn
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.slips import are_many, as_flag, as_in, missing_types, skipped_hint, skipped_rows, skipped_type

# Refuses an input that cannot be meant; called before any match is shown or written where it belongs.
Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Survey:
    """How many events there are, how many cannot be used and why, and which of the wanted types no event has.

    `examples` has a time for each reason. `some_types` are types that events do have: all, or the first many; empty if
    nothing is missing. `skipped` has the wanted types of which no row can be used, as far as they are known.
    """

    events: int
    set_aside: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, object] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    some_types: tuple[str, ...] = ()
    skipped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def check_survey(survey: Survey, query: Query, shown: str, options: Options, allow_missing: bool) -> None:
    """Refuse an input without events, and a query for types that no event has; warn of one with few usable events."""
    if survey.events == 0:
        raise InputError(f"{shown} has no events", code="EC327", hint="is it the right file?")
    aside = sum(survey.set_aside.values())
    if are_many(survey.events, aside):
        reasons, examples = survey.set_aside, survey.examples
        skipped = skipped_rows(survey.events, reasons, examples, options.time, options.time_unit, as_flag)
        if aside == survey.events:
            listed = ", ".join(f"{reason}: {n:,}{as_in(reason, examples.get(reason))}" for reason, n in reasons.items())
            message = f"none of the {aside:,} events of {shown} can be used ({listed})"
            raise InputError(message, code="EC328", hint=skipped.hint)
        warn(skipped)
    for name, why in survey.skipped.items():
        reason = max(why, key=lambda r: why[r])
        hint = skipped_hint(reason, survey.examples.get(reason), options.time, options.time_unit, as_flag)
        for problem in skipped_type(query, name, why, survey.examples, hint):
            warn(problem, query.text, query.source)
    advice = "; --allow-missing-types runs the query all the same"
    missing = missing_types(query, survey.missing, survey.some_types, options.concepts, code="EC202", advice=advice)
    if missing and not allow_missing:
        raise BindError(missing, query.text, query.source)


def first(names: Iterable[str | None], most: int = 1000) -> tuple[str, ...]:
    """The first names, sorted."""
    return tuple(sorted(n for n, _ in zip((n for n in names if n is not None), range(most), strict=False)))
