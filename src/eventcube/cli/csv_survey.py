"""Counts the rows of CSV files while their columns are looked at, so that Spark need not read them for that."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from eventcube.cli.survey import Survey, first
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.schema import NO_TIME, NO_TYPE

SOME_TYPES = 1000
# Whole numbers of fewer digits, in microseconds, are times that can be used.
_FEW = 19


class CsvSurvey:
    """What the rows looked at so far hold: `wanted` are the types of events behind each name that a query has."""

    def __init__(self, time: str, type_: str | None, wanted: Mapping[str, frozenset[str]]) -> None:
        self.time, self.type, self.wanted = time, type_, wanted
        self._asked = pa.array(sorted(frozenset().union(*wanted.values())), pa.string())
        self._there: set[str] = set()
        self._some: set[str] = set()
        self._rows = self._timeless = self._typeless = self._longest = 0
        self._elsewhere = False

    def look_at(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch, whose values are all text."""
        if {self.time, self.type} - {None, *batch.schema.names}:
            self._elsewhere = True
            return
        times = batch.column(self.time)
        self._rows += batch.num_rows
        self._timeless += times.null_count
        self._longest = max(self._longest, pc.max(pc.utf8_length(times)).as_py() or 0)
        if self.type is not None:
            kinds = batch.column(self.type)
            self._typeless += pc.sum(pc.and_(pc.is_valid(times), pc.is_null(kinds))).as_py() or 0
            own = pc.unique(kinds)
            self._there.update(own.filter(pc.is_in(own, self._asked)).to_pylist())
            if len(self._some) < SOME_TYPES:
                self._some.update(first(own.to_pylist(), SOME_TYPES))

    def survey(self, columns: pa.Schema, unit: str) -> Survey | None:
        """What all the rows hold, given their columns; None if not every time can be told from its text."""
        if self._elsewhere or not self._readable(columns, unit):
            return None
        missing = frozenset(name for name, types in self.wanted.items() if not types & self._there)
        reasons = {reason: n for reason, n in ((NO_TIME, self._timeless), (NO_TYPE, self._typeless)) if n}
        return Survey(self._rows, reasons, {}, missing, first(self._some) if missing else ())

    def _readable(self, columns: pa.Schema, unit: str) -> bool:
        type_ = columns.field(self.time).type
        if pat.is_integer(type_):
            return self._longest < _FEW - len(str(max(1, int(UNITS_IN_MICROSECONDS[unit])))) + 1
        return bool(pat.is_timestamp(type_) or pat.is_date(type_))
