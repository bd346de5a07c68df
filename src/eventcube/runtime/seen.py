"""What a run has seen of its input, as far as that can show a slip: types, times, and why rows were skipped."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.kernels import Array, Ints
from eventcube.schema import EventSchema, Kind, kind_of
from eventcube.slips import example_of

# So many types that no query names are kept to be shown.
_MOST_TYPES = 1000
# So many events mostly show all types that there are.
_GLANCE = 1 << 14
# So many codes are looked for one by one.
_FEW = 16


class Seen:
    """The types, the range of times and the reasons for skipped rows that have come so far."""

    def __init__(self, schema: EventSchema, wanted: Iterable[str] = ()) -> None:
        self.schema = schema
        # The types that queries ask for.
        self.wanted = pa.array(sorted(wanted), pa.string())
        self.whole_numbers = kind_of(schema.columns.field(schema.time).type) is Kind.INTEGER
        self.earliest: int | None = None
        self.latest: int | None = None
        self.usable = 0
        self.reasons: dict[str, int] = {}
        self.examples: dict[str, object] = {}
        # For each of the wanted types, why rows of it were skipped.
        self.skipped_types: dict[str, dict[str, int]] = {}
        # How many rows the first push had of which all were late.
        self.late_push = 0
        self.types: set[str] = set()
        self.other_types: set[str] = set()
        # A first batch in which to look for a column of types, where none is named.
        self.first: pa.Table | None = None
        # Whether there was input before this, of which nothing is known here.
        self.resumed = False

    @property
    def rows(self) -> int:
        """How many rows have come, whether they could be used or not."""
        return self.usable + sum(self.reasons.values())

    def take(self, table: pa.Table, ts: Ints) -> None:
        """Note rows that can be used, and their times."""
        self.usable += len(ts)
        if self.first is None and self.schema.type is None:
            self.first = table
        if self.whole_numbers:
            low, high = int(ts.min()), int(ts.max())
            self.earliest = low if self.earliest is None else min(self.earliest, low)
            self.latest = high if self.latest is None else max(self.latest, high)

    def skip(self, rows: pa.Table, reason: str) -> None:
        """Note rows that are skipped for a reason."""
        self.reasons[reason] = self.reasons.get(reason, 0) + rows.num_rows
        if reason not in self.examples:
            self.examples[reason] = example_of(rows.column(self.schema.time)[0])
        if self.schema.type is None:
            return
        types = rows.column(self.schema.type).cast(pa.string())
        for count in pc.value_counts(types.filter(pc.is_in(types, self.wanted))).to_pylist():
            reasons = self.skipped_types.setdefault(count["values"], {})
            reasons[reason] = reasons.get(reason, 0) + count["counts"]

    def release(self, names: tuple[str, ...], codes: Array, column: pa.ChunkedArray) -> None:
        """Note the types of events, as codes into the names; once all of them have come there is nothing to note."""
        if len(self.types) == len(names) or not len(codes):
            return
        for part in (codes[:_GLANCE], codes):
            unseen = [i for i, name in enumerate(names) if name not in self.types]
            self.types.update(names[i] for i in _present(part, unseen))
        if len(self.types) < len(names) and len(self.other_types) < _MOST_TYPES:
            others = np.flatnonzero(codes < 0)
            some = others[:: 1 + len(others) // _GLANCE]
            self.other_types.update(pc.unique(column.take(pa.array(some))).to_pylist())


def _present(codes: Array, wanted: list[int]) -> list[int]:
    """Those of the wanted codes that occur."""
    if len(wanted) <= _FEW:
        return [code for code in wanted if (codes == code).any()]
    return sorted(set(wanted) & set(np.unique(codes).tolist()))
