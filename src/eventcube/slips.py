"""Probable mistakes that the events show: types that no event has, many skipped rows, times in unlikely years.

Every function returns a diagnostic, or None; the caller reports it as a warning or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.concepts.concepts import Concepts
from eventcube.errors import Diagnostic, Span, did_you_mean
from eventcube.language.check import components
from eventcube.language.identifiers import write_name
from eventcube.language.syntax import Component, Query
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.plan.logical import LogicalQuery, PredicateClass, regions
from eventcube.schema import BAD_TIME, LATE, NO_TYPE, EventSchema, Kind, kind_of

# The number of rows sampled to find the type column.
SAMPLED = 10_000
# Before the end of the input: this share of at least this many rows is enough for a warning.
ENOUGH_ROWS, _NEARLY_ALL = 100, 0.9
# Warn of this share of skipped rows: of at least 20 rows at the end of the input, and of 1000 before it.
_TENTH, _FEW_ROWS, _MANY_ROWS = 0.1, 20, 1000
# A type that is so similar to one of the hierarchy is probably that one.
_NEARLY_THE_SAME = 0.8
# The most names listed.
_LISTED = 5
# Suggest a time unit if it puts all whole-number times into these years.
_LIKELY_YEARS = (1990, 2100)
_UNIT_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
# The most columns listed in a hint.
_MOST_COLUMNS = 8
# Times before the first or after the second of these years are unlikely.
_UNLIKELY_YEARS = (1971, 2200)

# Writes a setting with its value: `time_unit="ms"`, or `--time-unit ms`.
Spelling = Callable[[str, str], str]


def as_argument(name: str, value: str) -> str:
    """The setting as an argument in Python."""
    return f"{name}={value!r}"


def as_flag(name: str, value: str) -> str:
    """The setting as an option of the command line."""
    return f"--{name.replace('_', '-')} {value}"


def wanted_types(query: Query, concepts: Concepts | None) -> dict[str, frozenset[str]]:
    """For each type in the query, the type itself and all types below it."""
    names = {c.type for c in components(query.pattern) if c.type is not None}
    return {name: concepts.closure(name) if concepts else frozenset({name}) for name in sorted(names)}


def missing_types(
    query: Query,
    missing: Iterable[str],
    there: Iterable[str],
    concepts: Concepts | None,
    *,
    code: str,
    advice: str = "",
) -> list[Diagnostic]:
    """Components whose type, and every type below it, no event has; `there` are types that events have."""
    absent, there = set(missing), list(there)
    return [
        Diagnostic(code, *_absence(c.type, there, concepts, advice, _type_span(c, query.text)))
        for c in components(query.pattern)
        if c.type is not None and c.type in absent
    ]


def _absence(
    type_: str, there: Sequence[str], concepts: Concepts | None, advice: str, span: Span
) -> tuple[str, Span, str]:
    known = set(concepts.names) if concepts is not None else set()
    below = sorted(concepts.closure(type_) - {type_}) if concepts is not None else []
    if type_ not in known or not below:
        message = f"unknown event type {type_!r}: no event has it"
        hint = _similar(type_, set(there), known)
    else:
        shown = ", ".join(below[:_LISTED]) + ", …" * (len(below) > _LISTED)
        message = f"no event has type {type_!r} or one below it: {shown}"
        hints = [did_you_mean(name, there, "the input") for name in (*below[:_LISTED], type_)]
        hint = next((h for h in hints if h is not None and h.startswith("did you mean")), hints[-1])
    return message, span, (hint or "the input has no types at all") + advice


def _similar(type_: str, there: set[str], known: set[str]) -> str | None:
    """A hint with the types of the events, and those that only the hierarchy has."""
    if known - {type_} <= there:
        return did_you_mean(type_, there - {type_}, "the input")
    return did_you_mean(type_, (there | known) - {type_}, "the input and the hierarchy", verb="have")


def misspelt_types(query: Query, concepts: Concepts, allowed: Collection[str | None] = ()) -> Iterator[Diagnostic]:
    """Types that the hierarchy does not have, but nearly, and that are not among the allowed ones."""
    for component in components(query.pattern):
        type_ = component.type
        if type_ is None or type_ in allowed or type_ in concepts:
            continue
        hint = did_you_mean(type_, concepts.names, "the hierarchy", cutoff=_NEARLY_THE_SAME)
        if hint is not None and hint.startswith("did you mean"):
            span = _type_span(component, query.text)
            yield Diagnostic("EC506", f"the hierarchy has no type {type_!r}", span, hint)


def skipped_type(
    query: Query, type_: str, reasons: Mapping[str, int], examples: Mapping[str, object], hint: str
) -> list[Diagnostic]:
    """Components whose type has only skipped rows, with the most common reason."""
    reason = max(reasons, key=lambda r: reasons[r])
    rows = sum(reasons.values())
    which = "the only row" if rows == 1 else f"all {rows:,} rows"
    message = f"{which} of type {type_!r} {'is' if rows == 1 else 'are'} skipped: {reason}"
    shown = as_in(reason, examples.get(reason)).removeprefix(", ")
    message += f" ({shown})" * bool(shown)
    return [
        Diagnostic("EC502", message, _type_span(c, query.text), hint)
        for c in components(query.pattern)
        if c.type == type_
    ]


def _type_span(component: Component, text: str) -> Span:
    span, written = component.span, write_name(component.type or "")
    if text[span.start :].startswith(written):
        return Span(span.start, span.start + len(written))
    return span


def are_many(rows: int, skipped: int) -> bool:
    """Whether enough rows of the whole input are skipped for a warning."""
    return skipped > 0 and (skipped == rows or (rows >= _FEW_ROWS and skipped >= _TENTH * rows))


def are_many_already(rows: int, skipped: int) -> bool:
    """Whether enough rows are skipped for a warning before the end of the input."""
    return (rows >= ENOUGH_ROWS and skipped >= _NEARLY_ALL * rows) or (rows >= _MANY_ROWS and skipped >= _TENTH * rows)


def skipped_rows(
    rows: int, reasons: Mapping[str, int], examples: Mapping[str, object], time: str, unit: str, spell: Spelling
) -> Diagnostic:
    """The warning about skipped rows, with the most common reason."""
    skipped = sum(reasons.values())
    reason = max(reasons, key=lambda r: reasons[r])
    example = examples.get(reason)
    all_rows = "the only row is" if rows == 1 else f"all {rows:,} rows are"
    share = all_rows if skipped == rows else f"{skipped:,} of {rows:,} rows are"
    return Diagnostic(
        "EC502",
        f"{share} skipped; the most common reason is: {reason} ({reasons[reason]:,}{as_in(reason, example)})",
        hint=skipped_hint(reason, example, time, unit, spell),
    )


def late_push(rows: int, spell: Spelling) -> Diagnostic:
    """The warning about a push of late rows only."""
    hint = f"push events in order of time, or allow for lateness, as with {spell('lateness', '10 minutes')}"
    return Diagnostic("EC502", f"all {rows:,} rows of a push are skipped ({LATE})", hint=hint)


def example_of(value: pa.Scalar) -> object:
    """The value as a Python object; None for a time that Python cannot hold."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return None


def as_in(reason: str, example: object) -> str:
    """The example time after a reason, as text; empty if it is null or the reason is a missing type."""
    if example is None or reason == NO_TYPE:
        return ""
    return f", as in {example if isinstance(example, datetime) else repr(example)}"


def skipped_hint(reason: str, example: object, time: str, unit: str, spell: Spelling) -> str:
    """The hint for rows skipped for a reason."""
    if reason == BAD_TIME:
        likely = likely_unit(example, example, unit) if isinstance(example, int) else None
        if likely is not None:
            return f"with {spell('time_unit', likely[0])} that would be in {likely[1]}"
        return f"is {time!r} the right column? A time is a timestamp, or ISO text such as 2024-01-31 12:00:00"
    if reason == LATE:
        return "push events in order of time, or allow for lateness"
    if reason == NO_TYPE:
        return f"is that the right column? name the type column with {spell('type', 'NAME')}"
    return f"is {time!r} the right column? name the time column with {spell('time', 'NAME')}"


def likely_unit(low: int, high: int, unit: str) -> tuple[str, int] | None:
    """Another unit that puts whole numbers from low to high into likely years, and the year of the lowest."""
    first, last = map(_start_of, _LIKELY_YEARS)
    for other, factor in UNITS_IN_MICROSECONDS.items():
        if other != unit and first <= low * factor and high * factor < last:
            return other, _year(low * factor)
    return None


def unlikely_times(low: int, high: int, time: str, unit: str, spell: Spelling) -> Diagnostic | None:
    """The warning about whole-number times in 1970 or the far future that another unit puts into likely years."""
    factor = UNITS_IN_MICROSECONDS[unit]
    early = low >= 0 and high * factor < _start_of(_UNLIKELY_YEARS[0])
    far = low * factor >= _start_of(_UNLIKELY_YEARS[1])
    likely = likely_unit(low, high, unit)
    if not (early or far) or likely is None:
        return None
    place = "in early 1970" if early else f"after the year {_UNLIKELY_YEARS[1]}"
    return Diagnostic(
        "EC503",
        f"with {spell('time_unit', unit)} the times in {time} are {place}",
        hint=f"with {spell('time_unit', likely[0])} they would be in {likely[1]}",
    )


def counted_times(schema: EventSchema, spell: Spelling) -> str:
    """The unit of whole-number times, as text for a message; empty for other times."""
    if schema.kind(schema.time) is not Kind.INTEGER:
        return ""
    named = spell("time_unit", schema.time_unit)
    return f"; whole numbers in {schema.time} are read as {_UNIT_NAMES[schema.time_unit]}, {named}"


def in_unit(microseconds: int, unit: str) -> int:
    """A time in microseconds as a whole number of units."""
    return int(microseconds / UNITS_IN_MICROSECONDS[unit])


def _start_of(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


def _year(microseconds: Fraction) -> int:
    return datetime.fromtimestamp(float(microseconds) / 1e6, UTC).year


def named_types(query: Query) -> list[str]:
    """The types of components with a variable of another name: such a type is not just a name."""
    named = [c for c in components(query.pattern) if c.var is not None and c.var != c.type]
    return [c.type for c in named if c.type is not None]


def type_column(events: pa.Table, types: Iterable[str]) -> str | None:
    """A text column that holds some of the types."""
    wanted = pa.array(sorted(types), pa.string())
    for field in events.schema:
        if kind_of(field.type) is Kind.TEXT:
            values = events.column(field.name).slice(0, SAMPLED).cast(pa.string())
            if pc.any(pc.is_in(values, wanted)).as_py():
                return str(field.name)
    return None


def untyped(query: Query, column: str | None, spell: Spelling) -> Diagnostic:
    """The warning that no type column is named; `column` is a column that holds the types, if known."""
    if column is None:
        return _untyped(query, f"name the type column with {spell('type', 'NAME')}")
    return _untyped(query, f"column {column!r} holds such types: {spell('type', column)}")


def perhaps_untyped(bound: LogicalQuery, spell: Spelling) -> Diagnostic | None:
    """The same warning from the columns alone, if only types distinguish the components of the query.

    The query has several types, each with a variable of another name, no component has a local condition, and events
    have text columns that could hold types.
    """
    if bound.schema.type is not None or len(set(named_types(bound.query))) < 2:
        return None
    if any(p.kind is PredicateClass.LOCAL for region in regions(bound.region) for p in region.predicates):
        return None
    texts = [f.name for f in bound.schema.visible if kind_of(f.type) is Kind.TEXT and f.name != bound.schema.time]
    if not texts:
        return None
    shown = ", ".join(texts[:_MOST_COLUMNS]) + (", …" if len(texts) > _MOST_COLUMNS else "")
    as_one = spell("type", texts[0])
    return _untyped(bound.query, f"name the column that holds the types, as in {as_one}; text columns: {shown}")


def _untyped(query: Query, hint: str) -> Diagnostic:
    return Diagnostic("EC505", f"no type column is named, so every event matches {named_types(query)[0]}", hint=hint)


def other_source(query: Query, names: Iterable[str], shown: str) -> Diagnostic | None:
    """The warning that FROM does not name the input; `names` are those of the input."""
    given = sorted(set(names))
    if query.from_ is None or not given:
        return None
    wanted = query.from_.lower()
    if any(wanted == n.lower() or wanted.rpartition(".")[2] == n.lower().rpartition(".")[2] for n in given):
        return None
    return Diagnostic(
        "EC504",
        f"the query is FROM {query.from_}, but the input is {shown}",
        hint="FROM selects nothing: name the input, or leave FROM out",
    )
