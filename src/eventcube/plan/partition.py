"""PARTITION BY in a query, and how it goes with the option of that name."""

from __future__ import annotations

from dataclasses import replace

from eventcube.errors import Diagnostic, Span, did_you_mean
from eventcube.language.identifiers import write_name
from eventcube.language.syntax import Query
from eventcube.plan.functions import Report
from eventcube.schema import INTERNAL, EventSchema, Kind


def partitioned(query: Query, schema: EventSchema, report: Report) -> EventSchema:
    """The schema with the partition that the query names; with that of the options where it names none.

    Columns by which a runner splits the events for its own sake are of every partition.
    """
    if not query.partition_by:
        return schema
    unusable = _unusable(query, schema)
    for problem in unusable:
        report(problem)
    if unusable:
        return schema
    said = tuple(dict.fromkeys(c.name for c in query.partition_by))
    own = tuple(n for n in schema.partition_by if n.startswith(INTERNAL))
    option = tuple(n for n in schema.partition_by if n not in own)
    if option and set(option) != set(said):
        span = Span(query.partition_by[0].span.start, query.partition_by[-1].span.end)
        shown = [", ".join(map(write_name, names)) for names in (said, option)]
        message = f"the query says PARTITION BY {shown[0]}, and the option partition_by says {shown[1]}"
        report(Diagnostic("EC220", message, span, "leave out one of the two, or make them agree"))
    return replace(schema, partition_by=(*said, *own))


def _unusable(query: Query, schema: EventSchema) -> list[Diagnostic]:
    """What is wrong with the columns that the query names."""
    names = schema.visible.names
    found = []
    for column in query.partition_by:
        if column.name not in names:
            hint = did_you_mean(column.name, names, "the input")
            found.append(Diagnostic("EC221", f"no column {column.name!r} to partition by", column.span, hint))
        elif schema.kind(column.name) is Kind.OTHER:
            type_ = schema.columns.field(column.name).type
            found.append(Diagnostic("EC222", f"cannot partition by column {column.name!r}: it is {type_}", column.span))
    return found
