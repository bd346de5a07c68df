"""How Parquet files hold times: in which zone, in nanoseconds, or in the 96 bits that Spark writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from eventcube.cli.readable import readable


@dataclass(frozen=True, slots=True)
class StoredTimes:
    """The zone that all times with a zone are brought to (None: none has one), and columns that need care.

    `nanoseconds` says of each column that is held so whether its times have a zone. Those of `wide` are instants of 96
    bits.
    """

    zone: str | None = None
    nanoseconds: Mapping[str, bool] = field(default_factory=dict)
    wide: frozenset[str] = frozenset()

    def shown(self, column: pa.Field) -> pa.DataType:
        """The type that a column has in events: all its times are in the zone."""
        if column.name in self.wide:
            return pa.timestamp("us", self.zone)
        return column.type if self.zone is None else _in_zone(column.type, self.zone)


def stored_times(files: Iterable[str], time: str) -> StoredTimes:
    """How the files hold times; the first of them says in which zone. Files that are not Parquet are refused."""
    zones: list[str | None] = []
    nanoseconds: dict[str, bool] = {}
    wide: set[str] = set()
    for file in files:
        with readable([file], "parquet"), pq.ParquetFile(file) as footer:
            columns, leaves = footer.schema_arrow, footer.schema
        wide |= {leaf.path for leaf in map(leaves.column, range(len(leaves))) if leaf.physical_type == "INT96"}
        zones.append(zone_of_times(columns, time, wide))
        for column in columns:
            if pat.is_timestamp(column.type) and column.type.unit == "ns" and column.name not in wide:
                nanoseconds[column.name] = column.type.tz is not None
    return StoredTimes(zones[0] if zones else None, nanoseconds, frozenset(wide))


def zone_of_times(columns: pa.Schema, time: str, wide: Iterable[str] = ()) -> str | None:
    """The zone of the time column or, if it has none, of the first column that has one."""
    zones = {c.name: str(c.type.tz) for c in columns if pat.is_timestamp(c.type) and c.type.tz}
    zones |= {c.name: "UTC" for c in columns if c.name in set(wide)}
    return zones.get(time) or next((zones[name] for name in columns.names if name in zones), None)


def _in_zone(type_: pa.DataType, zone: str) -> pa.DataType:
    """The type with its times, if they have a zone, in this one."""
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
