from __future__ import annotations

import pyarrow as pa
import pytest

import eventcube as ec

EVENTS = pa.table({"ts": [1, 2], "kind": ["A", "B"]})


def test_a_query_without_within_is_warned_of_where_it_is_asked() -> None:
    with pytest.warns(ec.EventCubeWarning, match="the query has no WITHIN") as caught:
        ec.match(EVENTS, "PATTERN SEQ(A a, B b)", type="kind")
    assert [w.filename for w in caught] == [__file__]


def test_of_several_queries_the_warning_names_the_one() -> None:
    with pytest.warns(ec.EventCubeWarning, match="query second has no WITHIN"):
        ec.match(EVENTS, {"first": "PATTERN A a", "second": "PATTERN SEQ(A a, B b)"}, type="kind")
