"""Timestamps in a query, read in the time zones of the columns that they are compared with.

That is the first time column of the values that a timestamp is directly compared or computed with, or else of those
that the value around it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_
from typing import TypeVar, cast

from eventcube.errors import Diagnostic
from eventcube.language.functions import TIME_PARTS
from eventcube.language.literals import UnreadableError, read_timestamp
from eventcube.language.printer import column_name
from eventcube.language.syntax import (
    Aggregate,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Column,
    Comparison,
    Every,
    In,
    Item,
    Literal,
    Query,
    Timestamp,
    Value,
)
from eventcube.nodes import children, with_children
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.plan.bind_expressions import value_kind
from eventcube.plan.hints import no_time
from eventcube.plan.zones import column_zone, instant, is_counted, read_zone, time_column
from eventcube.schema import EventSchema, Kind

Report = Callable[[Diagnostic], None]
_Node = TypeVar("_Node")
_ADD_ZONE = "write the zone, as in '2024-01-31 12:00:00Z' or '2024-01-31 12:00:00+02:00'"


def localize_timestamps(
    query: Query, schema: EventSchema, report: Report, warn: Report, warn_if_zoned: Report
) -> Query:
    """The query with its timestamps in the zones of columns; text beside a time becomes a timestamp.

    Beside a column with a zone all timestamps have one afterwards, beside one without a zone none has; a second call
    changes nothing. `warn_if_zoned` takes warnings that apply only if the time is text with zones in it.
    """
    return _Localizer(query, schema, report, warn, warn_if_zoned).localize(query, None)


class _Localizer:
    """Localizes the timestamps of one query."""

    def __init__(self, query: Query, schema: EventSchema, report: Report, warn: Report, warn_if_zoned: Report) -> None:
        self.schema, self.report, self.warn, self.warn_if_zoned = schema, report, warn, warn_if_zoned
        # The columns of the groups by name, for HAVING.
        self._definitions = {column_name(i): i.value for i in query.group_by if isinstance(i.value, Value)}
        # A bucket is a time in the zone of another, as DATE is.
        buckets = ((column_name(i), i.value) for i in query.group_by if isinstance(i.value, Every))
        self._definitions |= {name: Call("DATE", (bucket.value,)) for name, bucket in buckets}
        self._definitions |= {column_name(a): a for a in query.agg}
        # Caches by id; each entry holds its value, so that no other object gets the same id.
        self._of_events_cache: dict[int, tuple[Value, Value]] = {}
        self._kinds: dict[int, tuple[Value, Kind]] = {}

    def localize(self, node: _Node, around: Attribute | None) -> _Node:
        """The node with its timestamps localized; `around` is the column for those without one inside the node."""
        if isinstance(node, Attribute | Literal):
            return node
        if isinstance(node, Timestamp):
            return cast("_Node", node if around is None else self._localized(node, around))
        parts = list(children(node))
        if not parts:
            return node
        if isinstance(node, Comparison | In | Between):
            first, *others = cast("list[Value]", parts)
            parts = self._constants([first], others) + self._constants(others, [first])
        elif isinstance(node, Call) and node.function == "COALESCE":
            parts = self._coalesced(cast("list[Value]", parts))
        columns: list[Attribute | None] = [None] * len(parts)
        if isinstance(node, Comparison | In | Between | Value | Every):
            columns = [time_column(self._of_events(cast("Value", child)), self.schema) for child in parts]
        if isinstance(node, Comparison | In | Between | Arithmetic):
            self._warn_of_mixed(cast("list[Value]", parts), columns)
        if isinstance(node, Every) or (isinstance(node, Call) and node.function in (*TIME_PARTS, "DATE")):
            self._warn_of_clock(node, columns)
        # Each value is read in the zone of the first time column among the others.
        first_two = [i for i, column in enumerate(columns) if column is not None][:2]
        for i, child in enumerate(parts):
            opposite = next((columns[k] for k in first_two if k != i), None)
            parts[i] = self.localize(child, (opposite or around) if isinstance(child, Value) else None)
        if all(map(is_, parts, children(node))):
            return node
        changed = with_children(node, parts)
        if isinstance(node, Item | Aggregate) and changed != node:
            # The column keeps the name that its text had.
            return cast("_Node", replace(cast("Item | Aggregate", changed), alias=column_name(node)))
        return changed

    def _warn_of_clock(self, call: Call | Every, columns: Sequence[Attribute | None]) -> None:
        """Warn of a function that reads a clock where times are text with zones: it reads them in UTC."""
        column = next((c for c in columns if c is not None and c.name == self.schema.time), None)
        name = "EVERY" if isinstance(call, Every) else call.function
        if column is not None and self.schema.time_is_text:
            self.warn_if_zoned(
                Diagnostic(
                    "EC524",
                    f"{name} reads the clock in UTC: times in {column.name!r} are text with a zone",
                    call.span,
                    f"make {column.name!r} a column of timestamps in the zone that is meant",
                )
            )

    def _localized(self, timestamp: Timestamp, column: Attribute) -> Timestamp:
        if self.schema.time_is_text and column.name == self.schema.time:
            if not timestamp.zoned:
                self.warn_if_zoned(
                    Diagnostic(
                        "EC523",
                        f"this time has no zone, but some in {column.name!r} have: it is taken for UTC",
                        timestamp.span,
                        _ADD_ZONE,
                    )
                )
            return timestamp
        zone = column_zone(column.name, self.schema)
        if zone is None:
            if timestamp.zoned:
                self.warn(
                    Diagnostic(
                        "EC521",
                        f"this time has a zone, but the times in {column.name!r} have none: they are taken for UTC",
                        timestamp.span,
                        "leave the zone out, or give the column one",
                    )
                )
            return replace(timestamp, zoned=False)
        if timestamp.zoned:
            return timestamp
        tz = read_zone(zone)
        if tz is None:
            self.report(
                Diagnostic(
                    "EC230", f"the zone {zone!r} of {column.name!r} is not known here", timestamp.span, _ADD_ZONE
                )
            )
            return timestamp
        return replace(timestamp, microseconds=instant(timestamp.microseconds, tz), zoned=True)

    def _constants(self, values: Sequence[Value], others: Sequence[Value]) -> list[object]:
        """The values; text beside a time is a timestamp, and a timestamp beside counted time a number."""
        if not any(isinstance(value, Timestamp | Literal) for value in values):
            return list(values)
        integer_column = next((o for o in others if isinstance(o, Attribute) and is_counted(o.name, self.schema)), None)
        if integer_column is None and not any(self._kind(other) is Kind.TIME for other in others):
            return list(values)
        timestamps = [_as_timestamp(value) for value in values]
        if integer_column is None:
            return list(timestamps)
        return [self._count(t, integer_column) if isinstance(t, Timestamp) else t for t in timestamps]

    def _count(self, timestamp: Timestamp, column: Attribute) -> Literal:
        """The timestamp in the units of the column; between two whole numbers it is a half."""
        if not timestamp.zoned:
            self.warn(
                Diagnostic(
                    "EC520",
                    f"this time has no zone; it is taken for UTC, as are the whole numbers in {column.name!r}",
                    timestamp.span,
                    _ADD_ZONE,
                )
            )
        whole, rest = divmod(timestamp.microseconds, UNITS_IN_MICROSECONDS[self.schema.time_unit])
        return Literal(whole + 0.5 if rest else whole, timestamp.span)

    def _warn_of_mixed(self, values: Sequence[Value], columns: Sequence[Attribute | None]) -> None:
        """Warn of times with a zone beside times without one."""
        zoned: dict[bool, Attribute] = {}
        for value, column in zip(values, columns, strict=True):
            is_text = column is not None and column.name == self.schema.time and self.schema.time_is_text
            if column is not None and not is_text and self._kind(value) is Kind.TIME:
                zoned[column_zone(column.name, self.schema) is not None] = column
        if len(zoned) == 2:
            self.warn(
                Diagnostic(
                    "EC522",
                    f"the times in {zoned[True].name!r} have a zone, those in {zoned[False].name!r} have none and are "
                    "taken for UTC",
                    zoned[False].span,
                    "give both columns a zone, or none",
                )
            )

    def _coalesced(self, values: Sequence[Value]) -> list[object]:
        """The values of COALESCE: text among times is a timestamp."""
        times = [value for value in values if self._kind(value) is Kind.TIME]
        read = cast("list[Value]", self._constants(values, times or values))
        if not times:
            return list(read)
        return [no_time(v, self.report) if isinstance(v, Literal) and isinstance(v.value, str) else v for v in read]

    def _kind(self, value: Value) -> Kind:
        return self._plain_kind(self._of_events(value))

    def _plain_kind(self, value: Value) -> Kind:
        """The kind of a value of events; an unknown attribute, which is reported elsewhere, is null."""
        if id(value) not in self._kinds:
            kind = value_kind(value, self.schema, self.schema.visible.names.__contains__)
            self._kinds[id(value)] = value, kind
        return self._kinds[id(value)][1]

    def _of_events(self, value: Value) -> Value:
        """The value with columns of groups, in HAVING, replaced by values of events of the same kind."""
        # Cached, as every level around a value asks for it again.
        if id(value) not in self._of_events_cache:
            self._of_events_cache[id(value)] = value, self._without_groups(value)
        return self._of_events_cache[id(value)][1]

    def _without_groups(self, value: Value) -> Value:
        match value:
            case Column(name):
                definition = self._definitions.get(name)
                return Literal(None) if definition is None else self._of_events(definition)
            case Aggregate(function, argument):
                return Literal(0) if function == "COUNT" or argument is None else argument
            case Call("COALESCE", arguments):
                # Text among times is a time, too, but is not read yet.
                plain = tuple(map(self._of_events, arguments))
                times = (argument for argument in plain if self._plain_kind(argument) is Kind.TIME)
                return next(times, replace(value, arguments=plain))
        return with_children(value, [self._of_events(cast("Value", child)) for child in children(value)])


def _as_timestamp(value: Value) -> Value:
    """Text that can be read as a timestamp becomes one; other values stay."""
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return value
    try:
        return Timestamp(*read_timestamp(value.value), value.span)
    except UnreadableError:
        return value
