"""GROUPBY and AGG: matches are folded into groups chunk by chunk, so memory is bounded by the number of groups.

Counts and sums of whole numbers are held modulo 2**64, with a float beside them that tells whether they fit 64 bits:
there can be far more matches than that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.columns import to_microseconds
from eventcube.engine.having import Having
from eventcube.engine.kernels import Bools
from eventcube.engine.output import Output
from eventcube.engine.table import Table
from eventcube.errors import Diagnostic, warn
from eventcube.plan.logical import AggregateColumn, Computed, Results
from eventcube.plan.result import group_columns, group_schema
from eventcube.schema import Kind, kind_of

_FOLD = {"COUNT": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
# Partial groups are folded when they have more rows than this.
_FOLD_ROWS = 1 << 16
# What stands before the name of a count, or a sum of whole numbers, in that of the column with its float.
ESTIMATE = "f"
# How states of earlier releases hold sums of whole numbers.
_FORMER_SUM = pa.decimal128(38, 0)


class Groups:
    """The groups so far. A mean is held as a sum and a count.

    Distinct values are held in rows of their own, beside the row of their group.
    """

    def __init__(self, results: Results, partial: pa.Table | None = None) -> None:
        self.results = results
        self.keys = [f"k{i}" for i in range(len(results.group_by))]
        # The columns of partial groups: name, function that folds them, and argument.
        self.parts: list[tuple[str, str, Computed | None]] = []
        # The arguments whose distinct values are counted, by column.
        self.distinct: dict[str, Computed] = {}
        self._having = Having(results) if results.having else None
        for i, agg in enumerate(results.agg):
            if agg.distinct and agg.argument is not None:
                self.distinct[f"d{i}"] = agg.argument
            elif agg.function == "AVG":
                self.parts += [(f"a{i}", "SUM", agg.argument), (f"n{i}", "COUNT", agg.argument)]
            else:
                self.parts.append((f"a{i}", agg.function, agg.argument))
        # Counts, and sums of whole numbers.
        self.whole = {name for name, function, argument in self.parts if _is_whole(function, argument)}
        self._partials = [] if partial is None else [partial]
        # Matches that were counted without being built.
        self.counted = 0
        # What was added to the groups since they were saved or restored; None if they never were.
        self._unsaved: list[pa.Table] | None = None
        # Whether any match was added since then.
        self._is_changed = partial is not None

    def add(self, table: Table, output: Output) -> pa.Table:
        """Add a chunk of matches to the groups; gives the groups of the chunk."""
        columns = self.key_values(table, output)
        values: dict[str, pa.Array] = {n: foldable(output.value(table, a)) for n, a in self.distinct.items()}
        for name, function, argument in self.parts:
            if argument is not None:
                values[name] = summable(output.value(table, argument), function)
                if function == "SUM" and name in self.whole:
                    values[ESTIMATE + name] = values[name].cast(pa.float64(), safe=False)
        return self.add_partial(self._summary(pa.table({**columns, **values}), len(table)))

    def add_partial(self, summary: pa.Table) -> pa.Table:
        """Add partial groups, and give them; their columns are those of `partial`, some of which may be missing."""
        self._partials.append(summary)
        self._is_changed = True
        if self._unsaved is not None:
            self._unsaved.append(summary)
            if sum(t.num_rows for t in self._unsaved) > max(_FOLD_ROWS, 2 * self._unsaved[0].num_rows):
                self._unsaved = [self._folded(self._unsaved)]
        # Fold only when new rows outnumber the folded ones, so that the cost stays linear.
        if sum(t.num_rows for t in self._partials) > max(_FOLD_ROWS, 2 * self._partials[0].num_rows):
            self._partials = [self._folded(self._partials)]
        return summary

    def key_values(self, table: Table, output: Output) -> dict[str, pa.Array]:
        """The keys of each match, by column."""
        keys = zip(self.keys, self.results.group_by, strict=True)
        return {name: foldable(output.value(table, key.value)) for name, key in keys}

    def add_weighted(self, table: pa.Table) -> pa.Table:
        """Add rows of keys, counts and sums, each of which stands for many matches; gives their groups."""
        groups = _grouped(table, self.keys, self._folds)
        values = [self._distinct_values(table, name) for name in self.distinct]
        return self.add_partial(pa.concat_tables([groups, *values], promote_options="permissive") if values else groups)

    def _distinct_values(self, table: pa.Table, name: str) -> pa.Table:
        return _grouped(table.filter(pc.is_valid(table.column(name))), [*self.keys, name], {})

    def add_count(self, matches: int) -> None:
        """Add matches that were counted without being built."""
        self.counted += matches
        self._is_changed = True

    def _summary(self, table: pa.Table, rows: int) -> pa.Table:
        """The groups of one chunk."""
        if not table.num_columns:
            return self._count_only(rows)
        functions = {name: "all" if argument is None else f.lower() for name, f, argument in self.parts}
        sums = {ESTIMATE + name: "sum" for name in self.whole if functions[name] == "sum"}
        groups = _with_estimates(_grouped(table, self.keys, functions | sums), self.whole)
        values = [self._distinct_values(table, name) for name in self.distinct]
        return pa.concat_tables([groups, *values], promote_options="permissive") if values else groups

    def _count_only(self, matches: int) -> pa.Table:
        counts = {name: pa.array([_wrapped(matches)], pa.int64()) for name, _, _ in self.parts}
        return pa.table({**counts, **{ESTIMATE + name: pa.array([float(matches)]) for name in counts}})

    def _folded(self, partials: list[pa.Table]) -> pa.Table:
        """Partial groups, one row for each group, and one for each distinct value."""
        table = pa.concat_tables(partials, promote_options="permissive")
        return _grouped(table, [*self.keys, *self.distinct], self._folds)

    @property
    def _folds(self) -> dict[str, str]:
        """By which function each column of partial groups is folded."""
        folds = {name: _FOLD[function] for name, function, _ in self.parts}
        return folds | {ESTIMATE + name: "sum" for name in folds if name in self.whole}

    @property
    def partials(self) -> Sequence[pa.Table]:
        """The partial groups as they are held, in which a group can have several rows."""
        return self._partials

    @property
    def partial(self) -> pa.Table | None:
        """The partial groups, which can be stored and continued, or merged with those of another run."""
        if self.counted:
            return self._count_only(self.counted)
        if not self._partials:
            return None
        self._partials = [self._folded(self._partials)]
        return self._partials[0]

    def changed(self, *, added: bool) -> tuple[pa.Table | None, bool]:
        """All groups, or what was `added` since they were saved or restored, if that is known; whether it is that."""
        unsaved = self._unsaved if added else None
        table = self.partial if unsaved is None else self._folded(unsaved) if unsaved else None
        self.note_saved()
        return table, unsaved is not None

    def restore(self, table: pa.Table | None, *, added: bool) -> None:
        """Take on saved groups, or add to those that there are."""
        saved = () if table is None else (upgraded(table, self.whole),)
        self._partials = [*(self._partials if added else ()), *saved]
        self.note_saved()

    def former(self, columns: pa.Schema) -> pa.Schema:
        """The columns in which earlier releases saved partial groups with these: sums of whole numbers as decimals."""
        sums = {name for name, function, _ in self.parts if function == "SUM" and name in self.whole}
        kept = [field for field in columns if field.name.removeprefix(ESTIMATE) not in self.whole - {field.name}]
        return pa.schema([field.with_type(_FORMER_SUM) if field.name in sums else field for field in kept])

    def note_saved(self) -> None:
        """Take note that the groups were saved or restored."""
        # To write a single group is as short as to write what was added to it.
        self._unsaved = [] if self.keys or self.distinct else None
        self._is_changed = False

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows are held, and how many of them were added since the groups were saved or restored."""
        held = sum(table.num_rows for table in self._partials)
        return held, held if self._unsaved is None else sum(table.num_rows for table in self._unsaved)

    def updates(self) -> pa.RecordBatch:
        """The rows of the groups that matches were added to since they were saved or restored."""
        partial = self.partial
        if partial is None or not self._is_changed:
            return pa.RecordBatch.from_pylist([], group_schema(self.results))
        if self.keys and self._unsaved is not None:
            # What was folded has its columns in another order.
            unsaved = pa.concat_tables([table.select(self.keys) for table in self._unsaved])
            partial = partial.filter(pa.array(_in_groups_of(partial, unsaved, self.keys)))
        return Groups(self.results, partial).result()

    def take(self, chosen: Callable[[pa.Table], Bools]) -> Groups | None:
        """Take out those of the partial groups that are chosen by their keys; None if none is."""
        partial = self.partial
        if partial is None or not (taken := chosen(partial)).any():
            return None
        self._partials = [partial.filter(pa.array(~taken))]
        if self._unsaved is not None:
            self._unsaved = [table.filter(pa.array(~chosen(table))) for table in self._unsaved]
        return Groups(self.results, partial.filter(pa.array(taken)))

    def result(self) -> pa.RecordBatch:
        """One row for each group that HAVING holds for; without GROUPBY there is one at most."""
        groups = self.kept()
        schema = group_schema(self.results)
        names = [*self.keys, *(f"a{i}" for i in range(self.results.listed))]
        return pa.RecordBatch.from_arrays([single_array(groups.column(n)) for n in names], schema=schema)

    def kept(self) -> pa.Table:
        """The groups that HAVING holds for, with the columns that it can use."""
        groups = self._finished()
        return groups if self._having is None else groups.filter(pa.array(self._having.holds(groups)))

    def _finished(self) -> pa.Table:
        """All groups, with the columns that HAVING can use."""
        schema = group_columns(self.results)
        partial = self.partial
        if partial is None or (not self.keys and not partial.num_rows):
            if self.keys:
                return schema.empty_table()
            empty = {n: 0 if a.function == "COUNT" else None for n, a in self._aggregates()}
            return pa.Table.from_pylist([empty], schema=schema)
        if self.distinct:
            partial = _grouped(partial, self.keys, self._folds | dict.fromkeys(self.distinct, "count"))
        columns = [partial.column(k) for k in self.keys]
        for name, agg in self._aggregates():
            column = partial.column(f"d{name[1:]}" if agg.distinct else name)
            type_ = schema.field(name).type
            if agg.function == "AVG":
                column = _mean(self._as_float(partial, name), self._as_float(partial, f"n{name[1:]}"), type_)
            elif name in self.whole and not agg.distinct:
                fits = _fits(column, partial.column(ESTIMATE + name))
                if pc.any(pc.invert(fits)).as_py():
                    warn(_too_large(agg))
                column = pc.if_else(fits, column, None)
            if pa.types.is_floating(column.type):
                # Infinities of both signs add up to NaN, which is null.
                column = pc.if_else(pc.is_nan(column), None, column)
            columns.append(column.cast(type_, safe=False))
        return pa.table([c.cast(f.type, safe=False) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def _as_float(self, partial: pa.Table, name: str) -> pa.ChunkedArray:
        """A count or a sum as floats, exact where it fits 64 bits."""
        column = partial.column(name)
        if name not in self.whole:
            return column
        estimate = partial.column(ESTIMATE + name)
        return pc.if_else(_fits(column, estimate), column.cast(pa.float64(), safe=False), estimate)

    def _aggregates(self) -> list[tuple[str, AggregateColumn]]:
        return [(f"a{i}", agg) for i, agg in enumerate(self.results.agg)]


def _grouped(table: pa.Table, keys: list[str], functions: dict[str, str]) -> pa.Table:
    """One row for each group: its keys, and each column folded by its function; `all` counts rows."""
    folded = [n for n, function in functions.items() if function != "all"]
    types = {n: table.column(n).type for n in folded}
    key_columns = {n: table.column(n) for n in keys} or {"k": pa.array([0] * table.num_rows, pa.int8())}
    # Arrow cannot compare durations, but it can compare their microseconds.
    durations = {n for n, t in types.items() if pa.types.is_duration(t)}
    values = {n: table.column(n).cast(pa.int64()) if n in durations else table.column(n) for n in folded}
    aggregations: list[tuple[str | list[str], str]] = [([], "count_all"), *((n, functions[n]) for n in folded)]
    grouped = pa.table({**key_columns, **values}).group_by(list(key_columns), use_threads=False).aggregate(aggregations)
    columns = {k: grouped.column(k) for k in keys}
    for name, function in functions.items():
        column = grouped.column("count_all" if function == "all" else f"{name}_{function}")
        columns[name] = column.cast(types[name]) if name in durations and function != "count" else column
    return pa.table(columns)


def _in_groups_of(table: pa.Table, other: pa.Table, keys: list[str]) -> Bools:
    """Which rows of a table belong to a group that another has, too."""
    groups = np.zeros(table.num_rows + other.num_rows, np.int64)
    for key in keys:
        column = pa.chunked_array([*table.column(key).chunks, *other.column(key).chunks], table.column(key).type)
        codes = np.asarray(single_array(column).dictionary_encode("encode").indices)
        groups = np.unique(groups * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    return np.isin(groups[: table.num_rows], groups[table.num_rows :])


def _mean(total: pa.ChunkedArray, number: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    mean = pc.divide(total, pc.if_else(pc.equal(number, 0.0), None, number))
    if pa.types.is_duration(type_):
        inside = pc.less(pc.abs(mean), float(2**63))
        return pc.if_else(inside, mean, None).cast(pa.int64(), safe=False)
    return mean


def _too_large(aggregate: AggregateColumn) -> Diagnostic:
    hint = f"AVG is right for numbers of any size: AGG AVG(…) instead of SUM; {aggregate.name} is null there"
    return Diagnostic("EC526", f"{aggregate.name} does not fit 64 bits in some group", hint=hint)


def _is_whole(function: str, argument: Computed | None) -> bool:
    if function == "SUM" and argument is not None:
        return argument.expression.kind in (Kind.INTEGER, Kind.DURATION)
    return function == "COUNT"


def _wrapped(number: int) -> int:
    """A whole number modulo 2**64, as 64 signed bits hold it."""
    return (number + 2**63) % 2**64 - 2**63


def _fits(wrapped: pa.ChunkedArray, estimate: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which numbers, known modulo 2**64 and about, fit 64 signed bits; NaN is of those that do not."""
    # Near the bounds the sign tells, as the estimate is off by less than half of them.
    low = pc.and_(pc.less_equal(estimate, -float(2**62)), pc.greater_equal(wrapped, 0))
    high = pc.and_(pc.greater_equal(estimate, float(2**62)), pc.less(wrapped, 0))
    inside = pc.less(pc.abs(estimate), 1.5 * 2**63)
    fits = pc.and_(inside, pc.invert(pc.or_(low, high)))
    return pc.or_kleene(fits, pc.is_null(estimate)).fill_null(True)


def _with_estimates(table: pa.Table, whole: set[str]) -> pa.Table:
    """The table with the float of each count, and of each sum of whole numbers."""
    for name in sorted(whole):
        if ESTIMATE + name not in table.column_names:
            table = table.append_column(ESTIMATE + name, table.column(name).cast(pa.float64(), safe=False))
    return table


def upgraded(table: pa.Table, whole: set[str]) -> pa.Table:
    """Partial groups as they are held now, from those of an earlier release."""
    for place, field in enumerate(table.schema):
        if field.type == _FORMER_SUM and field.name in whole:
            floats = table.column(field.name).cast(pa.float64())
            whole_numbers = [None if v is None else _wrapped(int(v)) for v in table.column(field.name).to_pylist()]
            table = table.set_column(place, field.name, pa.array(whole_numbers, pa.int64()))
            table = table.append_column(ESTIMATE + field.name, floats)
    return _with_estimates(table, whole)


def foldable(array: pa.Array) -> pa.Array:
    """The values in a type that Arrow can group and fold, with the equality and nulls of conditions."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if kind_of(array.type) in (Kind.TIME, Kind.DURATION):
        return _in_microseconds(array)
    if pa.types.is_floating(array.type):
        # NaN is null, and -0.0 = 0.0.
        return pc.add(pc.if_else(pc.is_nan(array), None, array), pa.scalar(0.0, array.type))
    return array


def _in_microseconds(array: pa.Array) -> pa.Array:
    """Times and durations in microseconds, as in conditions; rounding down stays in the range of nanoseconds."""
    micros = to_microseconds(array)
    if getattr(array.type, "unit", None) == "ns":
        micros = pc.max_element_wise(micros, -(2**63 - 1) // 1000 + 1, skip_nulls=False)
    if pa.types.is_duration(array.type):
        return micros.cast(pa.duration("us"))
    return micros.cast(pa.timestamp("us", getattr(array.type, "tz", None)))


def summable(array: pa.Array, function: str) -> pa.Array:
    """The argument of an aggregate as its function adds it up: whole numbers, also for durations, or floats."""
    array = foldable(array)
    if function != "SUM":
        return array
    match kind_of(array.type):
        case Kind.DURATION:
            return to_microseconds(array)
        case Kind.INTEGER:
            return array.cast(pa.int64())
        case Kind.FLOAT:
            return array.cast(pa.float64(), safe=False)
    return array


def single_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array."""
    combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined
