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
    assert "<b>PATTERN</b> <b>SEQ</b>(A a, `&lt;B&gt;` b)\n" in plan._repr_html_()
    assert repr(plan) == str(plan)


def test_what_was_expected_stands_beside_what_was_done() -> None:
    events = pa.table({"ts": list(range(40)), "kind": ["A", "B", "C", "D"] * 10})
    query = "PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 20 us"
    text = ec.explain(query, events, type="kind", analyze=True)
    assert "nested part (b, c) after a, before d, by auto" in text
    assert "inner_computed" in text
    assert "decided for" in text
    with pytest.raises(ec.OptionError, match="no events to analyze"):
        ec.explain(query, events.schema, type="kind", analyze=True)


def test_flat_queries_are_shown() -> None:
    columns = pa.schema({"ts": pa.int64(), "kind": pa.string()})
    query = "PATTERN SEQ(A a, !SEQ(B b, C c), D d) WITHIN 20 us"
    text = ec.explain(query, columns, type="kind", strategy="rewrite")
    assert "SEQ(A a, !C c, D d)" in text
    assert "SEQ(A a, !B b, C c, !C c2, D d)" in text


def test_counters_of_a_match() -> None:
    events = pa.table({"ts": list(range(40)), "kind": ["A", "B", "C", "D"] * 10})
    counts = ec.Counts()
    found = ec.match(
        events, "PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 20 us", type="kind", strategy="balanced", counters=counts
    )
    assert counts["matches"] == found.num_rows
    assert 0 < counts["inner_computed"] < counts["inner_computed"] + counts["inner_reused"] == found.num_rows


def test_a_long_plan_is_cut() -> None:
    components = ", ".join(f"A a{i}" for i in range(60))
    text = ec.explain(f"PATTERN AND({components}) WITHIN 1 s", pa.schema({"ts": pa.int64(), "kind": pa.string()}))
    assert "  … and more of them\n" in text
    assert len(text.splitlines()) < 600
