"""The storage of times in Parquet files: their zone, nanoseconds, or the 96 bits that Spark writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from eventcube.cli.read_errors import plain_read_errors


@dataclass(frozen=True, slots=True)
class ParquetTimes:
    """The common zone of all times with a zone (None: none has one), and columns with special storage.

    `nanoseconds` has the columns stored in nanoseconds, and whether they have a zone; `int96` has those of 96 bits.
    """

    zone: str | None = None
    nanoseconds: Mapping[str, bool] = field(default_factory=dict)
    int96: frozenset[str] = frozenset()

    def event_type(self, column: pa.Field) -> pa.DataType:
        """The type of a column in events: times are in the common zone."""
        if column.name in self.int96:
            return pa.timestamp("us", self.zone)
        return column.type if self.zone is None else _in_zone(column.type, self.zone)


def parquet_times(files: Iterable[str], time: str) -> ParquetTimes:
    """The storage of times in the files; the first one decides the zone. Refuses files that are not Parquet."""
    zones: list[str | None] = []
    nanoseconds: dict[str, bool] = {}
    int96: set[str] = set()
    for file in files:
        with plain_read_errors([file], "parquet"), pq.ParquetFile(file) as footer:
            columns, leaves = footer.schema_arrow, footer.schema
        int96 |= {leaf.path for leaf in map(leaves.column, range(len(leaves))) if leaf.physical_type == "INT96"}
        zones.append(zone_of_times(columns, time, int96))
        for column in columns:
            if pat.is_timestamp(column.type) and column.type.unit == "ns" and column.name not in int96:
                nanoseconds[column.name] = column.type.tz is not None
    return ParquetTimes(zones[0] if zones else None, nanoseconds, frozenset(int96))


def zone_of_times(columns: pa.Schema, time: str, int96: Iterable[str] = ()) -> str | None:
    """The zone of the time column or, if it has none, of the first column with one."""
    zones = {c.name: str(c.type.tz) for c in columns if pat.is_timestamp(c.type) and c.type.tz}
    zones |= {c.name: "UTC" for c in columns if c.name in set(int96)}
    return zones.get(time) or next((zones[name] for name in columns.names if name in zones), None)


def _in_zone(type_: pa.DataType, zone: str) -> pa.DataType:
    """The type with its zoned times in this zone."""
    if pat.is_timestamp(type_):
        return pa.timestamp(type_.unit, zone) if type_.tz else type_
    if pat.is_struct(type_):
        return pa.struct([f.with_type(_in_zone(f.type, zone)) for f in type_])
    if pat.is_map(type_):
        return pa.map_(type_.key_type, type_.item_field.with_type(_in_zone(type_.item_type, zone)))
    if pat.is_list(type_) or pat.is_large_list(type_):
        inner = type_.value_field.with_type(_in_zone(type_.value_type, zone))
        return pa.list_(inner) if pat.is_list(type_) else pa.large_list(inner)
    return type_
