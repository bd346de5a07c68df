"""Groups that depend on an event between the first and the last of a match, which are counted one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import foldable
from eventcube.engine.kernels import Ints
from eventcube.engine.output import Output
from eventcube.engine.table import Table
from eventcube.plan.counting import MOST_SPLITS, Counting

# Events of a slot among which groups are looked for, to tell how many there are at least.
_SAMPLE = 1024


@dataclass(frozen=True, slots=True)
class Split:
    """A part of the matches: the keys that are the same for all of them, and the rows that slots are restricted to."""

    keys: dict[str, pa.Scalar]
    rows: dict[int, Ints]


def splits_of(counting: Counting, output: Output) -> list[Split] | None:
    """The parts that are counted one by one: one, of all matches, if none are split; None if they are too many.

    Nor are there such parts by an event that matches need not have.
    """
    if counting.optional & {*counting.split}:
        return None
    groups: list[list[Split]] = []
    for slot in counting.split:
        groups.append(_groups_of(counting, slot, output.store.stack(slot).rows, output))
        if prod(map(len, groups)) > MOST_SPLITS:
            return None
    return [
        Split(
            {name: key for one in chosen for name, key in one.keys.items()},
            {slot: rows for one in chosen for slot, rows in one.rows.items()},
        )
        for chosen in product(*groups)
    ]


def sampled_groups(counting: Counting, output: Output) -> dict[int, int]:
    """How many groups there are at least for each slot by which matches are split.

    One of them is for matches without its event, if there can be any.
    """
    stacks = {slot: output.store.stack(slot).rows for slot in counting.split}
    sampled = {slot: rows[:: max(1, len(rows) // _SAMPLE)] for slot, rows in stacks.items()}
    return {
        slot: max(1, len(_groups_of(counting, slot, rows, output)) + (slot in counting.optional))
        for slot, rows in sampled.items()
    }


def _groups_of(counting: Counting, slot: int, rows: Ints, output: Output) -> list[Split]:
    """The values of the keys that depend on a slot, with those of some rows that have them."""
    table = Table((slot,), rows[None, :])
    columns = {
        f"k{i}": foldable(output.value(table, counting.at(key.value, slot)))
        for i, key in enumerate(output.plan.sink.results.group_by)
        if counting.free(key.value.expression) == {slot}
    }
    keyed = pa.table({**columns, "": pa.array(np.arange(len(rows)))})
    grouped = keyed.group_by([*columns], use_threads=False).aggregate([("", "list")])
    return [
        Split({name: grouped.column(name)[i] for name in columns}, {slot: rows[np.asarray(places.values)]})
        for i, places in enumerate(grouped.column("_list"))
    ]
