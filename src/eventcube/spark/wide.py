"""The matches of one query out of a result that several share."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812


def wide_frame(matches: DataFrame, name: str, variables: Sequence[str]) -> DataFrame:
    """A column for each variable, null where it was not taken."""

    def bound(variable: str) -> Column:
        own = F.filter("events", lambda event: event["variable"] == F.lit(variable))
        return F.get(own, F.lit(0)).dropFields("variable").alias(variable)

    return matches.where(F.col("query") == F.lit(name)).select("start", "end", *map(bound, variables))
