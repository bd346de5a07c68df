"""Moments of a query, read in the zones of the columns that they stand against.

A moment stands against what it is compared or computed with: the first column of times in the values directly beside
it, or else beside the value it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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


def in_zones(query: Query, schema: EventSchema, report: Report, warn: Report, warn_if_zoned: Report) -> Query:
    """The query with its moments in the zones of columns, and with text constants that are moments as such.

    Against a column with a zone all moments have one afterwards, against one without a zone none has. So a query that
    went through this goes through again unchanged. `warn_if_zoned` takes warnings that are due only if the time is text
    that has zones in it.
    """
    return _Reader(query, schema, report, warn, warn_if_zoned).read(query, None)


class _Reader:
    """Reads the moments of one query."""

    def __init__(self, query: Query, schema: EventSchema, report: Report, warn: Report, warn_if_zoned: Report) -> None:
        self.schema, self.report, self.warn, self.warn_if_zoned = schema, report, warn, warn_if_zoned
        # What HAVING calls by name: the groups' columns.
        self._named = {column_name(i): i.value for i in query.group_by if isinstance(i.value, Value)}
        self._named |= {column_name(a): a for a in query.agg}
        # What is known of values, each with the value itself, so that none of its place comes while this is used.
        self._plain: dict[int, tuple[Value, Value]] = {}
        self._kinds: dict[int, tuple[Value, Kind]] = {}

    def read(self, node: _Node, around: Attribute | None) -> _Node:
        """The node with its moments read; one that stands against nothing inside of it stands against `around`."""
        if isinstance(node, Attribute | Literal):
            return node
        if isinstance(node, Timestamp):
            return cast("_Node", node if around is None else self._moment(node, around))
        below = list(children(node))
        if isinstance(node, Comparison | In | Between):
            first, *others = cast("list[Value]", below)
            below = self._constants([first], others) + self._constants(others, [first])
        elif isinstance(node, Call) and node.function == "COALESCE":
            below = self._alike(cast("list[Value]", below))
        columns: list[Attribute | None] = [None] * len(below)
        if isinstance(node, Comparison | In | Between | Value):
            columns = [time_column(self._of_events(cast("Value", child)), self.schema) for child in below]
        if isinstance(node, Comparison | In | Between | Arithmetic):
            self._warn_of_mixed(cast("list[Value]", below), columns)
        if isinstance(node, Call) and node.function in (*TIME_PARTS, "DATE"):
            self._warn_of_clock(node, columns)
        # For all but the first value that has a column of times that is the one; for this it is the next.
        two = [i for i, column in enumerate(columns) if column is not None][:2]
        for i, child in enumerate(below):
            beside = next((columns[k] for k in two if k != i), None)
            below[i] = self.read(child, (beside or around) if isinstance(child, Value) else None)
        changed = with_children(node, below)
        if isinstance(node, Item | Aggregate) and changed != node:
            # Columns are called as they were written.
            return cast("_Node", replace(cast("Item | Aggregate", changed), alias=column_name(node)))
        return changed

    def _warn_of_clock(self, call: Call, columns: Sequence[Attribute | None]) -> None:
        """Warn of a function that reads a clock, where times are text: whatever zones it has, the clock is in UTC."""
        column = next((c for c in columns if c is not None and c.name == self.schema.time), None)
        if column is not None and self.schema.time_is_text:
            self.warn_if_zoned(
                Diagnostic(
                    "EC524",
                    f"{call.function} reads the clock in UTC: times in {column.name!r} are text with a zone",
                    call.span,
                    f"make {column.name!r} a column of timestamps in the zone that is meant",
                )
            )

    def _moment(self, moment: Timestamp, column: Attribute) -> Timestamp:
        if self.schema.time_is_text and column.name == self.schema.time:
            if not moment.zoned:
                self.warn_if_zoned(
                    Diagnostic(
                        "EC523",
                        f"this time has no zone, but some in {column.name!r} have: it is taken for UTC",
                        moment.span,
                        _ADD_ZONE,
                    )
                )
            return moment
        zone = column_zone(column.name, self.schema)
        if zone is None:
            if moment.zoned:
                self.warn(
                    Diagnostic(
                        "EC521",
                        f"this time has a zone, but the times in {column.name!r} have none: they are taken for UTC",
                        moment.span,
                        "leave the zone out, or give the column one",
                    )
                )
            return replace(moment, zoned=False)
        if moment.zoned:
            return moment
        known = read_zone(zone)
        if known is None:
            self.report(
                Diagnostic("EC230", f"the zone {zone!r} of {column.name!r} is not known here", moment.span, _ADD_ZONE)
            )
            return moment
        return replace(moment, microseconds=instant(moment.microseconds, known), zoned=True)

    def _constants(self, values: Sequence[Value], others: Sequence[Value]) -> list[object]:
        """Constants as what they are beside others: text beside a time is a moment, one beside a number a number."""
        if not any(isinstance(value, Timestamp | Literal) for value in values):
            return list(values)
        counted = next((o for o in others if isinstance(o, Attribute) and is_counted(o.name, self.schema)), None)
        if counted is None and not any(self._kind(other) is Kind.TIME for other in others):
            return list(values)
        moments = [_as_moment(value) for value in values]
        if counted is None:
            return list(moments)
        return [self._number(m, counted) if isinstance(m, Timestamp) else m for m in moments]

    def _number(self, moment: Timestamp, column: Attribute) -> Literal:
        """The moment as a whole number of the column's; if it lies between two of them, as one between them."""
        if not moment.zoned:
            self.warn(
                Diagnostic(
                    "EC520",
                    f"this time has no zone; it is taken for UTC, as are the whole numbers in {column.name!r}",
                    moment.span,
                    _ADD_ZONE,
                )
            )
        whole, rest = divmod(moment.microseconds, UNITS_IN_MICROSECONDS[self.schema.time_unit])
        return Literal(whole + 0.5 if rest else whole, moment.span)

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

    def _alike(self, values: Sequence[Value]) -> list[object]:
        """The values of COALESCE: text among times is a moment."""
        times = [value for value in values if self._kind(value) is Kind.TIME]
        read = cast("list[Value]", self._constants(values, times or values))
        if not times:
            return list(read)
        return [no_time(v, self.report) if isinstance(v, Literal) and isinstance(v.value, str) else v for v in read]

    def _kind(self, value: Value) -> Kind:
        return self._plain_kind(self._of_events(value))

    def _plain_kind(self, value: Value) -> Kind:
        """The kind of a value of events; an attribute that they lack, which is told elsewhere, is null."""
        if id(value) not in self._kinds:
            kind = value_kind(value, self.schema, self.schema.visible.names.__contains__)
            self._kinds[id(value)] = value, kind
        return self._kinds[id(value)][1]

    def _of_events(self, value: Value) -> Value:
        """The value with values of events, of the same kind, in the place of what HAVING says of groups."""
        # A value is asked for again at every level around it.
        if id(value) not in self._plain:
            self._plain[id(value)] = value, self._made_plain(value)
        return self._plain[id(value)][1]

    def _made_plain(self, value: Value) -> Value:
        match value:
            case Column(name):
                named = self._named.get(name)
                return Literal(None) if named is None else self._of_events(named)
            case Aggregate(function, argument):
                return Literal(0) if function == "COUNT" or argument is None else argument
            case Call("COALESCE", arguments):
                # Text among times is not yet read, and a time all the same.
                plain = tuple(map(self._of_events, arguments))
                times = (argument for argument in plain if self._plain_kind(argument) is Kind.TIME)
                return next(times, replace(value, arguments=plain))
        return with_children(value, [self._of_events(cast("Value", child)) for child in children(value)])


def _as_moment(value: Value) -> Value:
    """Text that can be read as a moment as such; everything else as it is."""
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return value
    try:
        return Timestamp(*read_timestamp(value.value), value.span)
    except UnreadableError:
        return value
