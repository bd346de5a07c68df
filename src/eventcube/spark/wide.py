"""The matches of one query from a shared result, and matches as flat tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from eventcube.plan.event_columns import PlainColumn, flat_columns
from eventcube.spark.columns import arrow_schema, column


def wide_frame(matches: DataFrame, name: str, variables: Sequence[str]) -> DataFrame:
    """A column for each variable, null where it is unbound."""

    def bound(variable: str) -> Column:
        events = F.filter("events", lambda event: event["variable"] == F.lit(variable))
        return F.get(events, F.lit(0)).dropFields("variable").alias(variable)

    return matches.where(F.col("query") == F.lit(name)).select("start", "end", *map(bound, variables))


def flat_frame(matches: DataFrame, events: Collection[str]) -> DataFrame:
    """The matches with a column for each column of their events, instead of structs."""
    sensitive = matches.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    flat = selected(flat_columns(arrow_schema(matches), events, ignore_case=not sensitive))
    return matches.select(*flat)


def selected(columns: Iterable[PlainColumn]) -> list[Column]:
    """The columns of a flat table as Spark expressions."""
    return [
        (column(c.column) if c.field is None else column(c.column).getField(c.field)).alias(c.name) for c in columns
    ]
