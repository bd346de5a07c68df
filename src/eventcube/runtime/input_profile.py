"""Statistics of a run's input that can show a mistake: types, times, and reasons for skipped rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.kernels import Array
from eventcube.schema import EventSchema, Kind, kind_of
from eventcube.slips import example_of

# Types that no query names are kept for messages, up to this number.
_MAX_OTHER_TYPES = 1000
# A sample of this many events usually has all types.
_SAMPLE = 1 << 14
# Up to this number, codes are searched one by one.
_FEW_CODES = 16


class InputProfile:
    """The types, the range of times and the reasons for skipped rows, so far."""

    def __init__(self, schema: EventSchema, wanted: Iterable[str] = ()) -> None:
        self.schema = schema
        # The types that queries name.
        self.wanted = pa.array(sorted(wanted), pa.string())
        self.whole_numbers = kind_of(schema.columns.field(schema.time).type) is Kind.INTEGER
        self.earliest: int | None = None
        self.latest: int | None = None
        self.usable = 0
        self.reasons: dict[str, int] = {}
        self.examples: dict[str, object] = {}
        # For each wanted type: rows skipped, by reason.
        self.skipped_types: dict[str, dict[str, int]] = {}
        # The size of the first push whose rows were all late.
        self.late_push = 0
        self.types: set[str] = set()
        self.other_types: set[str] = set()
        # The first batch, to search for a type column where none is named.
        self.first: pa.Table | None = None
        # Whether the run was restored, so that earlier input is unknown.
        self.resumed = False

    def want(self, names: Iterable[str]) -> None:
        """Turn to queries that name other types."""
        self.wanted = pa.array(sorted(names), pa.string())
        known = set(names)
        self.types, self.other_types = (self.types | self.other_types) & known, self.other_types - known

    @property
    def rows(self) -> int:
        """The number of rows, usable or not."""
        return self.usable + sum(self.reasons.values())

    def take(self, table: pa.Table, low: int, high: int) -> None:
        """Record usable rows, with their earliest and latest time."""
        self.usable += table.num_rows
        if self.first is None and self.schema.type is None:
            self.first = table
        if self.whole_numbers:
            self.earliest = low if self.earliest is None else min(self.earliest, low)
            self.latest = high if self.latest is None else max(self.latest, high)

    def skip(self, rows: pa.Table, reason: str) -> None:
        """Record rows skipped for a reason."""
        self.reasons[reason] = self.reasons.get(reason, 0) + rows.num_rows
        if reason not in self.examples:
            self.examples[reason] = example_of(rows.column(self.schema.time)[0])
        if self.schema.type is None:
            return
        types = rows.column(self.schema.type).cast(pa.string())
        for count in pc.value_counts(types.filter(pc.is_in(types, self.wanted))).to_pylist():
            reasons = self.skipped_types.setdefault(count["values"], {})
            reasons[reason] = reasons.get(reason, 0) + count["counts"]

    def record_types(self, names: tuple[str, ...], codes: Array, column: pa.ChunkedArray) -> None:
        """Record the types of events, given as codes into the names."""
        if len(self.types) == len(names) or not len(codes):
            return
        # The whole batch is searched only for types that are not in its beginning.
        for part in (codes[:_SAMPLE], codes):
            unseen = [i for i, name in enumerate(names) if name not in self.types]
            self.types.update(names[i] for i in _present(part, unseen))
        if len(self.types) < len(names) and len(self.other_types) < _MAX_OTHER_TYPES:
            others = np.flatnonzero(codes < 0)
            sample = others[:: 1 + len(others) // _SAMPLE]
            self.other_types.update(pc.unique(column.take(pa.array(sample))).to_pylist())


def _present(codes: Array, wanted: list[int]) -> list[int]:
    """The wanted codes that occur."""
    if len(wanted) <= _FEW_CODES:
        return [code for code in wanted if (codes == code).any()]
    return sorted(set(wanted) & set(np.unique(codes).tolist()))
