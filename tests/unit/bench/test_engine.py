"""The engine's benchmark refuses to time sides that do not find the same matches."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.bench import engine
from eventcube.bench.checksum import MatchesDifferError
from eventcube.bench.trades import Trades
from eventcube.bench.workload import ENGINE_QUERIES, Q1, Sequence


@pytest.mark.parametrize("query", ENGINE_QUERIES, ids=lambda q: q.name)
def test_both_sides_find_the_same_matches(query: Sequence) -> None:
    table = Trades(20_000).table()
    forms = engine.duckdb_forms(query)
    ours, answer = engine.eventcube_answer(table, query), engine.duckdb_answers(table)
    for form in forms.values():
        assert engine._match_count(query, ours, answer(form)) == ours.num_rows > 0


def test_other_matches_in_the_same_number_with_the_same_sums_are_told() -> None:
    table = Trades(20_000).table()
    ours = engine.eventcube_answer(table, Q1)
    backwards = ours["b"].take(pa.array(range(ours.num_rows)[::-1]))
    with pytest.raises(MatchesDifferError):
        engine._match_count(Q1, ours, ours.set_column(3, "b", backwards))
