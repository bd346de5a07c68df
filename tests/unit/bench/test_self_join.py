from dataclasses import replace

import pyarrow as pa
import pytest

from eventcube.bench.engine import duckdb_answers
from eventcube.bench.self_join import DUCKDB, anchored, duckdb_forms, running_count
from eventcube.bench.trades import trades
from eventcube.bench.workload import EVERY_QUERY, S1, Sequence
from eventcube.match import match


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return trades(20_000, accounts=3)


def rows(table: pa.Table, query: Sequence) -> list[tuple[object, ...]]:
    return sorted(zip(*(table[v].to_pylist() for v in query.variables), strict=True))


@pytest.mark.parametrize("name", ["Q1", "Q2", "Q4", "Q5"])
@pytest.mark.parametrize("keyed", [False, True], ids=["", "keyed"])
def test_every_form_finds_what_eventcube_finds(events: pa.Table, name: str, keyed: bool) -> None:
    query = EVERY_QUERY[name].keyed(keys=3) if keyed else EVERY_QUERY[name]
    forms = dict(duckdb_forms(query))
    # What only Spark is asked, in DuckDB's words.
    forms["spark's own"] = running_count(query, DUCKDB, 10) if query.absent else anchored(query, DUCKDB, 1)
    answer = duckdb_answers(events)
    expected = rows(match(events, query.text, time="ts", type="symbol"), query)
    assert expected
    for form, sql in forms.items():
        assert rows(answer(sql), query) == expected, form


def test_every_form_finds_the_same_of_selective_inequalities(events: pa.Table) -> None:
    query = replace(S1, rising=1.05)
    expected = rows(match(events, query.text, time="ts", type="symbol"), query)
    assert expected
    answer = duckdb_answers(events)
    for form, sql in duckdb_forms(query).items():
        assert rows(answer(sql), query) == expected, form
