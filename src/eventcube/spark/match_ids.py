"""What identifies a match of a stream: its query, its bucket, and the numbers of its events in the bucket.

A bucket numbers events in order of time, and of all that is in them where that is equal. So the numbers do not depend
on when events arrived: a micro-batch that runs again gives its matches the same ids, and no other match ever has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import OptionError
from eventcube.plan.planned import Planned
from eventcube.schema import MATCH_ID


def check_has_ids(plans: Mapping[str, Planned], columns: pa.Schema) -> None:
    """Refuse ids for groups, and where the result has a column of that name."""
    if any(plan.logical.query.agg for plan in plans.values()):
        raise OptionError(
            "a group of AGG is made of many matches, and has no match_id",
            code="EC485",
            hint="leave match_id out: the columns of GROUPBY identify a group",
        )
    if MATCH_ID in columns.names:
        raise OptionError(
            f"the result has a column {MATCH_ID!r} already, which match_id needs for itself",
            code="EC486",
            hint=f"rename it, as in RETURN a.{MATCH_ID} AS id",
        )


def numbered(planned: Planned) -> Planned:
    """The plan with the numbers of each match's events as the last column of its result."""
    sink = planned.physical.sink
    schema = sink.schema.append(pa.field(MATCH_ID, pa.string(), nullable=False))
    return replace(planned, physical=replace(planned.physical, sink=replace(sink, schema=schema, numbered=True)))


def take_ids(batch: pa.RecordBatch, query: str, bucket: int) -> tuple[pa.RecordBatch, pa.Array]:
    """The matches of a numbered plan without their numbers, and their ids."""
    numbers = batch.column(batch.num_columns - 1)
    return batch.select(batch.schema.names[:-1]), pc.binary_join_element_wise(f"{query}/{bucket}", numbers, "/")
