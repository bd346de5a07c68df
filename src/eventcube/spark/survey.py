"""Looks over events once: how many, how many without time or type, and whether types are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from eventcube.spark.columns import column


def count_events(
    events: DataFrame, time: str, type_: str | None, wanted: Mapping[str, Iterable[str]]
) -> tuple[int, int, frozenset[str]]:
    """In one job: the rows, those that have a time and a type, and the wanted names none of whose types occur."""
    time_there = column(time).isNotNull()
    if type_ is None:
        row = events.agg(f.count(f.lit(1)), f.count_if(time_there)).first()
        assert row is not None
        return int(row[0]), int(row[1]), frozenset()
    kind = column(type_)
    usable = time_there & kind.isNotNull()
    found = [f.max(kind.isin(*types)) for types in wanted.values()]
    row = events.agg(f.count(f.lit(1)), f.count_if(usable), *found).first()
    assert row is not None
    missing = frozenset(name for name, there in zip(wanted, row[2:], strict=True) if not there)
    return int(row[0]), int(row[1]), missing


def some_types(events: DataFrame, type_: str, most: int = 1000) -> list[str | None]:
    """Types that events have; all, if they are not very many."""
    return [row[0] for row in events.select(column(type_)).distinct().limit(most).collect()]


def count_reasons(aside: DataFrame, reason: str) -> dict[str, int]:
    """How often each reason occurs."""
    return {row[0]: int(row[1]) for row in aside.groupBy(column(reason)).count().orderBy(column(reason)).collect()}
