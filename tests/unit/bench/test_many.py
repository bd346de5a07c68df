"""The benchmark of many queries: its sides find the same matches, and its tables have what they say."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from eventcube.bench import many, pushes
from eventcube.bench.checksum import MatchesDifferError
from eventcube.bench.engine import duckdb_answers
from eventcube.bench.self_join import duckdb_forms
from eventcube.bench.trades import SYMBOLS, Trades, trades
from eventcube.bench.workload import HEADS, related_queries


def test_related_queries_are_different_and_share_eight_heads() -> None:
    queries = related_queries(200)
    assert len({q.symbols for q in queries}) == 200
    assert {len(q.symbols) for q in queries} == {3, 4}
    assert len({q.symbols[:2] for q in queries}) == HEADS == 8
    assert all(len(set(q.symbols)) == len(q.symbols) for q in queries)
    assert related_queries(10) == queries[:10]
    # So that ten queries and more keep the same events.
    assert {symbol for q in queries[:10] for symbol in q.symbols} == set(SYMBOLS)


def test_tables_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(many, "MOST_SQL", 2)
    monkeypatch.setattr(pushes, "PUSHES", 20)
    rows = many.bench_many(tmp_path, events=20_000, repetitions=1, numbers=(1, 3))
    assert [(r.kind, r.queries, r.duckdb_queries) for r in rows] == [
        ("count", 1, 1),
        ("count", 3, 2),
        ("matches", 1, 1),
        ("matches", 3, 2),
    ]
    counted, returned = [r.matches for r in rows[:2]], [r.matches for r in rows[2:]]
    assert counted == returned
    assert 0 < counted[0] < counted[1]
    for name in ("many", "many-planning", "many-push", "many-state"):
        saved = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
        with (tmp_path / f"{name}.csv").open() as file:
            assert [list(record) for record in csv.DictReader(file)] == [list(record) for record in saved]
    assert json.loads((tmp_path / "many.json").read_text())["rows"] == [asdict(row) for row in rows]
    shown = capsys.readouterr().out
    for words in ("DuckDB ran", "bind and plan", "times one query", "counts", "Drawn: "):
        assert words in shown
    # DuckDB is drawn only where it ran all queries.
    assert "<!-- DuckDB -->" in (tmp_path / "many.svg").read_text()
    assert [p.x for p in many._points(rows) if p.strategy == "DuckDB"] == ["1", "1"]
    assert (tmp_path / "many.png").stat().st_size > 100


@pytest.mark.parametrize("kind", many.KINDS)
def test_other_matches_of_one_side_are_told(kind: str) -> None:
    table, queries = Trades(5_000).table(), related_queries(3)
    sides = {
        "together": many.together(table, queries, kind),
        "one after the other": many.one_after_the_other(table, queries, kind),
        "DuckDB": many.by_duckdb(
            duckdb_answers(table), dict.fromkeys((3, 4), next(iter(duckdb_forms(queries[0])))), queries, kind
        ),
    }
    assert many.count_matches(queries, kind, sides) > 0
    sides["together"]["q2"] = sides["together"]["q2"].slice(0, 0)
    with pytest.raises(MatchesDifferError, match="q2: different matches"):
        many.count_matches(queries, kind, sides)


def test_events_are_kept_once_whatever_the_number_of_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushes, "PUSHES", 20)
    rows = pushes.measure_pushes(Console(quiet=True), tmp_path, related_queries(50), (1, 10, 50))
    table = trades(pushes.BEFORE + 20)
    ages = table["ts"][-1].value - np.asarray(table["ts"].cast(pa.int64()))
    # The last event is released by one that comes after it.
    recent = (ages > 0) & (ages <= 20_000)
    for row in rows:
        wanted = {symbol for q in related_queries(row.queries) for symbol in q.symbols}
        assert row.symbols == len(wanted)
        assert row.kept == np.count_nonzero(recent & np.isin(np.asarray(table["symbol"]), list(wanted)))
    assert {row.kept for row in rows if row.queries > 1} == {20}


def test_bytes_of_states_are_the_same_in_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushes, "CHANGES", 5)
    # But for the random number that tells one run from others.
    monkeypatch.setattr("eventcube.runtime.workload.secrets.randbits", lambda bits: 2**bits - 12345)
    first, second = (pushes.measure_states(Console(quiet=True), tmp_path, (1, 10, 200)) for _ in range(2))
    assert first == second
    assert [(r.kind, r.window_ms, r.queries) for r in first] == [(k, w, n) for k, w in pushes.STATES for n in (1, 10)]
    for row in first:
        assert row.fixed < row.changes / 5 <= row.wholes / 5
        assert row.columns == trades(pushes.BEFORE + 50).slice(pushes.BEFORE).nbytes
        assert row.counts == (8 * 5 * row.queries if row.kind == "count" else 0)
        assert row.times_came == row.changes / (row.columns + row.counts) <= pushes.STATE_GOAL
    (long,) = (r for r in first if (r.window_ms, r.queries) == (2000, 10))
    assert long.kept == pushes.BEFORE - 1
