"""The cells of a cube: groups by the types of events, added up for every type above them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.aggregate import Groups, single_array
from eventcube.errors import OptionError
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import Constant
from eventcube.plan.levels import LevelKey
from eventcube.plan.logical import Computed, Results, ValueColumn
from eventcube.plan.result import group_schema
from eventcube.schema import Kind

# So many groups are rolled up at a time, and no query has more cells than this.
_PIECE_ROWS, MOST_CELLS = 1 << 16, 1 << 22


def group_rows(groups: Groups) -> pa.RecordBatch:
    """The rows of the groups that HAVING holds for: where keys are rolled up, one row for each cell.

    No event is looked at again: a coarser cell is the sum of finer ones that have no match in common.
    """
    results = groups.results
    if not results.levels:
        return groups.result()
    schema, cells = group_schema(results), groups.partial
    if cells is None:
        return pa.RecordBatch.from_pylist([], schema)
    for key in results.levels:
        cells = _rolled_up(results, cells, key)
    rows = pa.Table.from_batches([Groups(_numbered(results), _with_types(results, cells)).result()])
    keys = len(results.group_by)
    rows = rows.rename_columns([str(i) for i in range(rows.num_columns)])
    rows = rows.sort_by([(str(keys + i), "ascending") for i in range(len(results.levels))])
    columns = [single_array(column) for column in rows.columns]
    listed, levels, aggregates = (
        columns[:keys],
        columns[keys : keys + len(results.levels)],
        columns[keys + len(results.levels) :],
    )
    for numbers, key in reversed([*zip(levels, results.levels, strict=True)]):
        listed.insert(key.number + 1, pa.array([level for _, level in key.cells], pa.int64()).take(numbers))
    return pa.RecordBatch.from_arrays([*listed, *aggregates], schema=schema)


def _rolled_up(results: Results, groups: pa.Table, key: LevelKey) -> pa.Table:
    """Partial groups with the cells of a key, by their numbers, in place of types."""
    types = pa.array([type_ for type_, _ in key.counted_in], pa.string())
    sizes = np.array([len(cells) for _, cells in key.counted_in])
    counted_in = np.concatenate([cells for _, cells in key.counted_in])
    starts = np.cumsum(sizes) - sizes
    cells = Groups(results)
    for at in range(0, groups.num_rows, _PIECE_ROWS):
        piece = groups.slice(at, _PIECE_ROWS)
        column = piece.column(f"k{key.number}")
        # Events of an alternative that is not taken have no type.
        type_of = np.asarray(pc.index_in(column.cast(pa.string()), types).fill_null(-1))
        times = np.where(type_of < 0, 1, sizes[type_of])
        rows = np.repeat(np.arange(len(times)), times)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
        missing = type_of[rows] < 0
        numbers = counted_in[np.where(missing, 0, starts[type_of[rows]] + place)]
        spread = piece.take(pa.array(rows))
        name = spread.schema.get_field_index(f"k{key.number}")
        cells.add_partial(spread.set_column(name, f"k{key.number}", pa.array(numbers, mask=missing)))
        if cells.rows[0] > 2 * MOST_CELLS:
            _check_number(cells)
    _check_number(cells)
    assert cells.partial is not None
    return cells.partial


def _check_number(cells: Groups) -> None:
    partial = cells.partial
    if partial is not None and partial.num_rows > MOST_CELLS:
        raise OptionError(
            f"a query has more than {MOST_CELLS:,} combinations of types at all levels",
            code="EC479",
            hint="give some of its components finer types, or count by one level: GROUPBY a AT LEVEL 2",
        )


def _numbered(results: Results) -> Results:
    """The results with the number of each cell as one more key."""
    number = Computed(Constant(0, Kind.INTEGER), pa.int64(), Dictionary())
    keys = tuple(ValueColumn(key.name, number) for key in results.levels)
    return replace(results, group_by=(*results.group_by, *keys), levels=())


def _with_types(results: Results, cells: pa.Table) -> pa.Table:
    """The cells with their types, and with their numbers as further keys."""
    for i, key in enumerate(results.levels):
        place = cells.schema.get_field_index(f"k{key.number}")
        numbers = single_array(cells.column(place))
        types = pa.array([type_ for type_, _ in key.cells], pa.string())
        cells = cells.set_column(place, f"k{key.number}", types.take(numbers))
        cells = cells.append_column(f"k{len(results.group_by) + i}", numbers)
    return cells
