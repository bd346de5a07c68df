"""What a part of a running workload saves of itself: a few values, and tables; and how they are checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Array, Ints

# The bound of times, positions and sequence numbers, on both sides of 0.
BOUND = 2**62


class DamagedStateError(Exception):
    """A saved state that no run can have written."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Values that JSON can write, and tables, by name. A reader takes tables out until none is left."""

    values: dict[str, Any]
    tables: dict[str, pa.Table]

    def check_fields(self, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
        """Refuse values that are not an object with exactly these fields."""
        check_fields(self.values, needed, optional)

    def integer(self, name: str, least: int, most: int) -> int:
        """A whole number, which must be in a range."""
        return integer(self.values[name], least, most, name)

    def boolean(self, name: str) -> bool:
        """A value that must be true or false."""
        value = self.values[name]
        if not isinstance(value, bool):
            raise DamagedStateError(f"{name} is neither true nor false")
        return value

    def take(self, name: str, columns: pa.Schema) -> pa.Table:
        """Remove and return a table, which must have these columns; without one it is empty."""
        table = self.tables.pop(name, None)
        if table is None:
            return columns.empty_table()
        if table.schema.names != columns.names or table.schema.types != columns.types:
            raise DamagedStateError(f"the table {name} has other columns")
        return table


def check_fields(value: Any, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Refuse a value that is not an object with exactly these fields."""
    required = set(needed)
    if not isinstance(value, dict) or not required <= set(value) <= required | set(optional):
        raise DamagedStateError(f"its header needs the fields {', '.join(sorted(required))}, and no others")


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
