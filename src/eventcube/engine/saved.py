"""What a part of a running workload saves of itself: a few numbers, and tables; and how they are checked."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Array, Ints

# The bound of times, positions and sequence numbers, on both sides of 0.
BOUND = 2**62
# The length of the number that stands for the columns of a packed table.
_CODE = 4


class DamagedStateError(Exception):
    """A saved state that no run can have written."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Values that JSON can write, and tables, packed or not, by name. A reader takes tables out until none is left.

    Those of a part are whole numbers: one that is missing is 0.
    """

    values: dict[str, Any]
    tables: dict[str, Any]

    def part(self, name: str, values: Any) -> Saved:
        """What one part saved: its numbers, and the tables in its name, which are removed here."""
        prefix = f"{name}/"
        own = [full for full in self.tables if full.startswith(prefix)]
        return Saved(values, {full.removeprefix(prefix): self.tables.pop(full) for full in own})

    def check_fields(self, known: Iterable[str]) -> None:
        """Refuse values that are not an object with these fields, or some of them."""
        check_fields(self.values, (), known)

    def integer(self, name: str, least: int, most: int) -> int:
        """A whole number, which must be in a range."""
        return integer(self.values.get(name, 0), least, most, name)

    def has(self, name: str, columns: pa.Schema) -> bool:
        """Whether there is a table with that name and these columns."""
        table = self.tables.get(name)
        if isinstance(table, pa.Table):
            return bool(table.schema.names == columns.names and table.schema.types == columns.types)
        return table is not None and table[:_CODE] == _code(columns)

    def take(self, name: str, columns: pa.Schema) -> pa.Table:
        """Remove and return a table, which must have these columns; without one it is empty."""
        table = self.tables.pop(name, None)
        if table is None:
            return columns.empty_table()
        if not isinstance(table, pa.Table):
            return unpack(table, columns, name)
        if table.schema.names != columns.names or table.schema.types != columns.types:
            raise DamagedStateError(f"the table {name} has other columns")
        return table

    def check_all_taken(self) -> None:
        """Refuse tables that nothing took."""
        if self.tables:
            raise DamagedStateError(f"nothing has a table {min(self.tables)!r}")


def pack(table: pa.Table) -> bytes:
    """A table as bytes: a number that stands for its columns, then an Arrow stream without the schema.

    A reader knows the names and types of columns, which would be most of the bytes of a small table.
    """
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(_in_one_piece(table))
    stream = memoryview(out.getvalue())
    # The schema is the first message: four bytes, the length of the rest, the rest.
    schema = 8 + int.from_bytes(stream[4:8], "little")
    return b"".join((_code(table.schema), stream[schema:]))


def unpack(data: bytes | memoryview, columns: pa.Schema, name: str) -> pa.Table:
    """A table that was packed, which must have these columns."""
    if data[:_CODE] != _code(columns):
        raise DamagedStateError(f"the table {name} has other columns")
    source = pa.BufferReader(b"".join((columns.serialize(), data[_CODE:])))
    try:
        table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DamagedStateError(f"the table {name} cannot be read: {error}") from None
    if source.tell() != source.size():
        raise DamagedStateError(f"there is more in the table {name}")
    return table


def _code(columns: pa.Schema) -> bytes:
    """A number for the names and types of columns."""
    text = "\n".join([f"{field.name} {field.type}" for field in columns])
    return zlib.crc32(text.encode()).to_bytes(_CODE, "little")


def _in_one_piece(table: pa.Table) -> pa.Table:
    """A copy of the table in one batch, if Arrow can do that; of a slice, it would write what lies beside it, too."""
    try:
        return pa.concat_tables([table.slice(0, 0), table]).combine_chunks()
    except pa.ArrowInvalid:
        # Several dictionaries can have more different values than one can number.
        return table


def listed(numbered: Mapping[int, Mapping[str, int]]) -> dict[str, list[int]]:
    """Numbers by name of several queries, as a list for each name, and one of the queries."""
    names = dict.fromkeys(name for own in numbered.values() for name in own)
    lists = {name: [own.get(name, 0) for own in numbered.values()] for name in names}
    return {"query": list(numbered), **lists} if numbered else {}


def unlisted(lists: Any, queries: int) -> dict[int, dict[str, int]]:
    """The numbers of each query from lists; there are so many queries."""
    if not isinstance(lists, dict) or not all(isinstance(values, list) for values in lists.values()):
        raise DamagedStateError("the numbers of queries are not in lists")
    places = [integer(place, 0, queries - 1, "query") for place in lists.get("query", [])]
    if len(set(places)) < len(places) or any(len(values) != len(places) for values in lists.values()):
        raise DamagedStateError("the lists of queries' numbers do not fit each other")
    names = [name for name in lists if name != "query"]
    return {place: {name: n for name in names if (n := lists[name][i]) != 0} for i, place in enumerate(places)}


def read_counters(saved: Any) -> Counters:
    """Saved counters; those that a later release added are 0."""
    check_fields(saved, (), [f.name for f in fields(Counters)])
    return Counters(**{name: integer(value, 0, 2**63 - 1, name) for name, value in saved.items()})


def check_fields(value: Any, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Refuse a value that is not an object with the needed fields, and no others but the optional ones."""
    required = set(needed)
    if not isinstance(value, dict):
        raise DamagedStateError("a part of its header has no fields")
    if not required <= set(value):
        raise DamagedStateError(f"its header needs the fields {', '.join(sorted(required))}")
    unknown = set(value) - required - set(optional)
    if unknown:
        raise DamagedStateError(f"nothing has the field {min(unknown)!r} of its header")


def integer(value: Any, least: int, most: int, name: str) -> int:
    """A whole number, which must be in a range."""
    if type(value) is not int or not least <= value <= most:
        raise DamagedStateError(f"{name} is no whole number from {least} to {most}")
    return value


def numbers(table: pa.Table, names: Iterable[str]) -> dict[str, Array]:
    """Columns as arrays, without nulls."""
    if any(table.column(name).null_count for name in names):
        raise DamagedStateError("a number is null")
    return {name: np.array(table.column(name)) for name in names}


def check_range(values: Ints, least: int, most: int, name: str) -> None:
    """Refuse numbers outside of a range."""
    if len(values) and not least <= values.min() <= values.max() <= most:
        raise DamagedStateError(f"{name} is not from {least} to {most}")


def check_ascending(values: Ints, step: int, name: str) -> None:
    """Refuse numbers that do not ascend by at least a step."""
    if (np.diff(values) < step).any():
        raise DamagedStateError(f"{name} does not ascend")
