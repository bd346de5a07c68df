"""What an input holds, looked at before the query runs, so that a mistake is told instead of finding nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eventcube.concepts.concepts import Concepts
from eventcube.errors import BindError, Diagnostic, InputError, did_you_mean
from eventcube.language.check import components
from eventcube.language.names import write_name
from eventcube.language.syntax import Component, Query


@dataclass(frozen=True, slots=True)
class Survey:
    """How many events there are, how many cannot be used and why, and which of the wanted types no event has.

    `some_types` are types that events do have: all, or the first many; empty if nothing is missing.
    """

    events: int
    set_aside: Mapping[str, int] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    some_types: tuple[str, ...] = ()


def wanted_types(query: Query, concepts: Concepts | None) -> dict[str, frozenset[str]]:
    """For each type that the query names, the types of events that it stands for."""
    names = {c.type for c in components(query.pattern)}
    return {name: concepts.closure(name) if concepts else frozenset({name}) for name in sorted(names)}


def check_survey(survey: Survey, query: Query, shown: str, concepts: Concepts | None, allow_missing: bool) -> None:
    """Refuse an input without events, and a query for types that no event has."""
    if survey.events == 0:
        raise InputError(f"{shown} has no events", code="EC327", hint="is it the right file?")
    aside = sum(survey.set_aside.values())
    if aside == survey.events:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in survey.set_aside.items())
        raise InputError(
            f"none of the {aside:,} events of {shown} can be used ({reasons})",
            code="EC328",
            hint="are --time and --type the right columns? --time-unit says what a whole number counts",
        )
    known = set(concepts.names) if concepts else set()
    missing = [c for c in components(query.pattern) if c.type in survey.missing - known]
    if missing and not allow_missing:
        raise BindError(
            [_missing(c, {*survey.some_types, *known}, query.text) for c in missing],
            query.text,
            query.source,
        )


def _missing(component: Component, known: Iterable[str], text: str) -> Diagnostic:
    hint = did_you_mean(component.type, known, "the input") or "the input has no types at all"
    span = component.span
    written = write_name(component.type)
    if text[span.start :].startswith(written):
        span = type(span)(span.start, span.start + len(written))
    return Diagnostic(
        "EC202",
        f"unknown event type {component.type!r}: no event has it",
        span,
        f"{hint}; --allow-missing-types runs the query all the same",
    )


def first(names: Iterable[str | None], most: int = 1000) -> tuple[str, ...]:
    """The first names, sorted."""
    return tuple(sorted(n for n, _ in zip((n for n in names if n is not None), range(most), strict=False)))
