"""PARTITION BY in a query, combined with the option of that name."""

from __future__ import annotations

from dataclasses import replace

from eventcube.errors import Diagnostic, Span, did_you_mean
from eventcube.language.identifiers import write_name
from eventcube.language.syntax import Query
from eventcube.plan.functions import Report
from eventcube.schema import INTERNAL, TEXT_TIME, TEXT_TIME_HINT, EventSchema, Kind


def partitioned(query: Query, schema: EventSchema, report: Report) -> EventSchema:
    """The schema partitioned as the query says or, if it does not, as the options say.

    Internal columns, by which a runner splits events, are always part of it.
    """
    if not query.partition_by:
        return schema
    unusable = _unusable(query, schema)
    for problem in unusable:
        report(problem)
    if unusable:
        return schema
    in_query = tuple(dict.fromkeys(c.name for c in query.partition_by))
    internal = tuple(n for n in schema.partition_by if n.startswith(INTERNAL))
    in_options = tuple(n for n in schema.partition_by if n not in internal)
    if in_options and set(in_options) != set(in_query):
        span = Span(query.partition_by[0].span.start, query.partition_by[-1].span.end)
        texts = [", ".join(map(write_name, names)) for names in (in_query, in_options)]
        message = f"the query says PARTITION BY {texts[0]}, and the option partition_by says {texts[1]}"
        report(Diagnostic("EC220", message, span, "leave out one of the two, or make them agree"))
    return replace(schema, partition_by=(*in_query, *internal))


def _unusable(query: Query, schema: EventSchema) -> list[Diagnostic]:
    """Problems with the columns that the query names."""
    names = schema.visible.names
    problems = []
    for column in query.partition_by:
        if column.name not in names:
            hint = did_you_mean(column.name, names, "the input")
            problems.append(Diagnostic("EC221", f"no column {column.name!r} to partition by", column.span, hint))
        elif schema.kind(column.name) is Kind.OTHER:
            type_ = schema.columns.field(column.name).type
            problems.append(
                Diagnostic("EC222", f"cannot partition by column {column.name!r}: it is {type_}", column.span)
            )
        elif column.name == schema.time and schema.time_is_text:
            message = f"cannot partition by column {column.name!r}: it is {TEXT_TIME}"
            problems.append(Diagnostic("EC222", message, column.span, TEXT_TIME_HINT))
    return problems
