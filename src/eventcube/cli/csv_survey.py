"""Counts the rows of CSV files while their types are inferred, which saves Spark a pass."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from eventcube.cli.survey import Survey, first
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.schema import NO_TIME, NO_TYPE

SOME_TYPES = 1000
# Whole numbers of fewer digits are usable times, in microseconds.
_MAX_DIGITS = 19


class CsvSurvey:
    """Counts over the rows so far; `wanted` has the event types of each type name in the query."""

    def __init__(self, time: str, type_: str | None, wanted: Mapping[str, frozenset[str]]) -> None:
        self.time, self.type, self.wanted = time, type_, wanted
        self._wanted_types = pa.array(sorted(frozenset().union(*wanted.values())), pa.string())
        self._present: set[str] = set()
        self._examples: set[str] = set()
        self._rows = self._no_time = self._no_type = self._longest_time = 0
        self._lacks_columns = False

    def observe(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch, whose values are all text."""
        if {self.time, self.type} - {None, *batch.schema.names}:
            self._lacks_columns = True
            return
        times = batch.column(self.time)
        self._rows += batch.num_rows
        self._no_time += times.null_count
        self._longest_time = max(self._longest_time, pc.max(pc.utf8_length(times)).as_py() or 0)
        if self.type is not None:
            kinds = batch.column(self.type)
            self._no_type += pc.sum(pc.and_(pc.is_valid(times), pc.is_null(kinds))).as_py() or 0
            distinct = pc.unique(kinds)
            self._present.update(distinct.filter(pc.is_in(distinct, self._wanted_types)).to_pylist())
            if len(self._examples) < SOME_TYPES:
                self._examples.update(first(distinct.to_pylist(), SOME_TYPES))

    def survey(self, columns: pa.Schema, unit: str) -> Survey | None:
        """The survey of all rows; None if the text does not show which times are usable."""
        if self._lacks_columns or not self._times_are_usable(columns, unit):
            return None
        missing = frozenset(name for name, types in self.wanted.items() if not types & self._present)
        reasons = {reason: n for reason, n in ((NO_TIME, self._no_time), (NO_TYPE, self._no_type)) if n}
        return Survey(self._rows, reasons, {}, missing, first(self._examples) if missing else ())

    def _times_are_usable(self, columns: pa.Schema, unit: str) -> bool:
        type_ = columns.field(self.time).type
        if pat.is_integer(type_):
            return self._longest_time < _MAX_DIGITS - len(str(max(1, int(UNITS_IN_MICROSECONDS[unit])))) + 1
        return bool(pat.is_timestamp(type_) or pat.is_date(type_))
