"""GROUPBY and AGG: matches are folded into groups chunk by chunk, so memory is bounded by the number of groups."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.columns import to_microseconds
from eventcube.engine.output import Output
from eventcube.engine.table import Table
from eventcube.language.syntax import Attribute, Value, Variable
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.result import aggregate_type, group_schema
from eventcube.schema import Kind, kind_of

_FOLD = {"COUNT": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
_MOST_ROWS = 1 << 16
# Sums of whole numbers are kept in so many digits that they cannot overflow.
WHOLE_SUM = pa.decimal128(38, 0)


class Groups:
    """The groups found so far. A mean is kept as a sum and a count until it is asked for."""

    def __init__(self, logical: LogicalQuery, partial: pa.Table | None = None) -> None:
        self.logical = logical
        self.keys = [f"k{i}" for i in range(len(logical.query.group_by))]
        # Each column that is kept: which aggregate it is of, how it is folded, and what its values are.
        self.parts: list[tuple[str, str, Value | None]] = []
        for i, agg in enumerate(logical.query.agg):
            if agg.function == "AVG":
                self.parts += [(f"a{i}", "SUM", agg.argument), (f"n{i}", "COUNT", agg.argument)]
            else:
                self.parts.append((f"a{i}", agg.function, agg.argument))
        self._found = [] if partial is None else [partial]
        # Matches that were only counted.
        self._matches = 0

    @property
    def only_count(self) -> bool:
        """Whether all that is asked for is how many matches there are."""
        return not self.keys and all(function == "COUNT" and value is None for _, function, value in self.parts)

    def add(self, table: Table, output: Output) -> None:
        """Count in a chunk of matches."""
        columns: dict[str, pa.Array] = {}
        for name, item in zip(self.keys, self.logical.query.group_by, strict=True):
            value = item.value
            if isinstance(value, Variable):
                assert self.logical.schema.type is not None
                value = Attribute(value.name, self.logical.schema.type)
            columns[name] = _comparable(output.value(table, value))
        values: dict[str, pa.Array] = {}
        for name, function, argument in self.parts:
            if argument is not None:
                values[name] = _summable(output.value(table, argument), function)
        self._found.append(self._summary(pa.table({**columns, **values}), len(table)))
        if sum(t.num_rows for t in self._found) > _MOST_ROWS:
            self._found = [self._folded()]

    def add_count(self, matches: int) -> None:
        """Count in matches that were counted without being made."""
        self._matches += matches

    def _summary(self, table: pa.Table, rows: int) -> pa.Table:
        """The groups of one chunk."""
        if not table.num_columns:
            return self._only_counted(rows)
        return _grouped(table, self.keys, {n: "all" if a is None else f.lower() for n, f, a in self.parts})

    def _only_counted(self, matches: int) -> pa.Table:
        return pa.table({name: pa.array([matches], pa.int64()) for name, _, _ in self.parts})

    def _folded(self) -> pa.Table:
        """All groups found so far, one row each."""
        table = pa.concat_tables(self._found, promote_options="permissive")
        return _grouped(table, self.keys, {name: _FOLD[function] for name, function, _ in self.parts})

    @property
    def partial(self) -> pa.Table | None:
        """The groups in a form that can be kept and continued, or merged with those of another run."""
        if self._matches:
            self._found.append(self._only_counted(self._matches))
            self._matches = 0
        if not self._found:
            return None
        self._found = [self._folded()]
        return self._found[0]

    def result(self) -> pa.RecordBatch:
        """One row for each group; without GROUPBY there is always one."""
        schema = group_schema(self.logical)
        partial = self.partial
        if partial is None:
            if self.keys:
                return pa.RecordBatch.from_pylist([], schema=schema)
            empty = {
                f.name: 0 if a.function == "COUNT" else None
                for f, a in zip(schema, self.logical.query.agg, strict=True)
            }
            return pa.RecordBatch.from_pylist([empty], schema=schema)
        columns = [partial.column(k) for k in self.keys]
        for i, agg in enumerate(self.logical.query.agg):
            own, type_ = partial.column(f"a{i}"), aggregate_type(agg, self.logical)
            if agg.function == "AVG":
                own = _mean(own, partial.column(f"n{i}"), type_)
            elif own.type == WHOLE_SUM:
                own = _fitting(own)
            if pa.types.is_floating(own.type):
                # Infinities of both signs add up to NaN, which is null.
                own = pc.if_else(pc.is_nan(own), None, own)
            columns.append(own.cast(type_, safe=False))
        arrays = [_one(c).cast(f.type, safe=False) for c, f in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _grouped(table: pa.Table, keys: list[str], wanted: dict[str, str]) -> pa.Table:
    """One row for each group: its keys, and each wanted column folded by the function named; `all` counts rows."""
    folded = [n for n, function in wanted.items() if function != "all"]
    types = {n: table.column(n).type for n in folded}
    given = {n: table.column(n) for n in keys} or {"k": pa.array([0] * table.num_rows, pa.int8())}
    # Arrow cannot order lengths of time, but their numbers.
    lengths = {n for n, t in types.items() if pa.types.is_duration(t)}
    values = {n: table.column(n).cast(pa.int64()) if n in lengths else table.column(n) for n in folded}
    functions: list[tuple[str | list[str], str]] = [([], "count_all"), *((n, wanted[n]) for n in folded)]
    result = pa.table({**given, **values}).group_by(list(given), use_threads=False).aggregate(functions)
    found = {k: result.column(k) for k in keys}
    for name, function in wanted.items():
        own = result.column("count_all" if function == "all" else f"{name}_{function}")
        found[name] = own.cast(types[name]) if name in lengths and function != "count" else own
    return pa.table(found)


def _mean(total: pa.ChunkedArray, number: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    divisor = pc.if_else(pc.equal(number, 0), None, number).cast(pa.float64())
    mean = pc.divide(total.cast(pa.float64(), safe=False), divisor)
    return mean.cast(pa.int64(), safe=False) if pa.types.is_duration(type_) else mean


def _fitting(total: pa.ChunkedArray) -> pa.ChunkedArray:
    """Sums of whole numbers in 64 bits, null where they do not fit."""
    low, high = (pa.scalar(Decimal(n), WHOLE_SUM) for n in (-(2**63), 2**63 - 1))
    fits = pc.and_(pc.greater_equal(total, low), pc.less_equal(total, high))
    return pc.if_else(fits, total, None).cast(pa.int64())


def _comparable(array: pa.Array) -> pa.Array:
    """The values in a type that Arrow can group and fold."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if pa.types.is_floating(array.type):
        # NaN is null, and -0.0 = 0.0.
        return pc.add(pc.if_else(pc.is_nan(array), None, array), pa.scalar(0.0, array.type))
    return array


def _summable(array: pa.Array, function: str) -> pa.Array:
    array = _comparable(array)
    if function == "COUNT" and kind_of(array.type) in (Kind.TIME, Kind.DURATION):
        return to_microseconds(array)
    if function != "SUM":
        return array
    match kind_of(array.type):
        case Kind.DURATION:
            return to_microseconds(array).cast(WHOLE_SUM)
        case Kind.INTEGER:
            return array.cast(WHOLE_SUM)
        case Kind.FLOAT:
            return array.cast(pa.float64(), safe=False)
    return array


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined
