"""Events less other rows, each of which takes one away: the late rows of a stream, for a replay."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type

from eventcube.runtime.compared_types import compared_types
from eventcube.schema import INTERNAL
from eventcube.spark.columns import arrow_schema, column

_KEY, _COUNT, _NUMBER = INTERNAL + "key", INTERNAL + "count", INTERNAL + "number"


class LeftOut:
    """Rows to leave out of events, compared in the columns that the rows have, by types that both can have."""

    def __init__(self, events: DataFrame, rows: DataFrame) -> None:
        of_events, of_rows = arrow_schema(events), arrow_schema(rows)
        self._types = compared_types(of_events, of_rows)
        self._mixed = {name for name in of_rows.names if of_events.field(name).type != of_rows.field(name).type}
        keys = [*self._keys(rows)]
        self._names = [f"{_KEY}{i}" for i in range(len(keys))]
        counted = rows.select(*(key.alias(name) for key, name in zip(keys, self._names, strict=True)))
        self._counted = counted.groupBy(*self._names).agg(F.count(F.lit(1)).alias(_COUNT)).alias("rows")

    def without(self, events: DataFrame) -> DataFrame:
        """The events that stay, with the columns of the rows."""
        joined = self._keyed(events).join(self._counted, self._is_same(), "left")
        each = Window.partitionBy(*(F.col(f"events.{name}") for name in self._names)).orderBy(F.lit(1))
        numbered = joined.withColumn(_NUMBER, F.row_number().over(each))
        stays = F.col(_COUNT).isNull() | (F.col(_NUMBER) > F.col(_COUNT))
        return numbered.where(stays).select(*map(column, self._types))

    def count(self, events: DataFrame) -> tuple[int, int]:
        """The number of rows, and how many of them are not among the events."""
        same = self._keyed(events).join(self._counted, self._is_same(), "inner")
        found = same.groupBy(*(F.col(f"rows.{name}") for name in self._names)).agg(
            F.least(F.first(_COUNT), F.count(F.lit(1))).alias(_COUNT)
        )
        (rows,), (taken,) = (
            frame.agg(F.coalesce(F.sum(_COUNT), F.lit(0))).collect()[0] for frame in (self._counted, found)
        )
        return int(rows), int(rows) - int(taken)

    def _keyed(self, events: DataFrame) -> DataFrame:
        keys = (key.alias(name) for key, name in zip(self._keys(events), self._names, strict=True))
        return events.select(*map(column, self._types), *keys).alias("events")

    def _is_same(self) -> Column:
        """Nulls are equal to nulls here."""
        pairs = (F.col(f"events.{name}").eqNullSafe(F.col(f"rows.{name}")) for name in self._names)
        return reduce(Column.__and__, pairs)

    def _keys(self, frame: DataFrame) -> Iterator[Column]:
        """What rows are compared by: values in the types of both, and the text that cannot be read as such a value."""
        for name, type_ in self._types.items():
            value = column(name)
            if name not in self._mixed:
                yield value
            else:
                read = value.try_cast(from_arrow_type(type_))
                yield F.struct(read.alias("value"), F.when(read.isNull(), value.cast("string")).alias("text"))
