"""Several queries in one runtime, each with a result of its own: the rows are the oracle's, flat or not."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from eventcube.language.syntax import Query
from eventcube.plan.event_columns import event_columns, flat_columns, plain_batch
from tests.differential.compare import draw_cut, engine_batches
from tests.differential.rows import compare_rows
from tests.oracle.clauses import with_results
from tests.oracle.generate import Case, draw_query
from tests.oracle.quals import chance


def check_separate(case: Case, rng: Random) -> int:
    """Every query finds what the oracle finds for it alone; gives the number of rows."""
    others = [with_results(rng, draw_query(rng, case.options), case.options) for _ in range(rng.randint(0, 2))]
    queries = [case.query, *others]
    cut = draw_cut(rng, len(case.events))
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 20)}
    found: dict[str, list[pa.RecordBatch]] = {}
    for name, batch in engine_batches(queries, case.events, case.options, cut, restarts, separate=True):
        found.setdefault(name, []).append(batch)
    total = 0
    for i, query in enumerate(queries, 1):
        batches = found.get(f"q{i}", [])
        total += compare_rows(query, case.events, case.options, batches, cut, restarts)
        compare_rows(query, case.events, case.options, [_flat(query, b) for b in batches], cut, restarts)
    return total


def _flat(query: Query, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch as a flat table, of which an event's id stands for the event."""
    columns = flat_columns(batch.schema, event_columns(query))
    flat = plain_batch(batch, columns)
    return flat.select([c.name for c in columns if c.field in (None, "id")])
