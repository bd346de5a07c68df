from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec

COLUMNS = {"ts": [1, 2], "kind": ["A", "<B>"], "id": [1, 1]}
TABLE = pa.table(COLUMNS)
QUERY = "PATTERN SEQ(A a, `<B>` b) WHERE a.id = b.id WITHIN 5 us"


@pytest.mark.parametrize(
    "events",
    [TABLE.schema, TABLE, pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pl.LazyFrame(COLUMNS)],
    ids=lambda events: f"{type(events).__module__}.{type(events).__name__}",
)
def test_events_of_any_kind_have_the_same_plan(events: Any) -> None:
    assert "split by    id" in ec.explain(QUERY, events, type="kind")


def test_a_notebook_shows_the_plan_as_it_is_laid_out() -> None:
    plan = ec.explain(QUERY, TABLE, type="kind")
    assert plan._repr_html_().startswith("<pre>PATTERN SEQ(A a, `&lt;B&gt;` b)\n")
    assert repr(plan) == str(plan)
