from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from eventcube.bench.visits import ACTIONS, COUNTRIES, SCHEMA, Visits
from eventcube.match import match


def test_the_same_seed_gives_the_same_visits() -> None:
    table = Visits(1_000, seed=3).table()
    assert table.schema == SCHEMA
    assert table.num_rows == 1_000
    assert table.equals(Visits(1_000, seed=3).table())
    assert not table.equals(Visits(1_000, seed=4).table())


def test_events_are_in_order_and_fewer_take_each_step() -> None:
    table = Visits().table()
    times = table["ts"].to_pylist()
    assert times == sorted(times)
    actions = Counter(table["action"].to_pylist())
    assert [name for name, _ in actions.most_common()] == [*ACTIONS]
    assert set(table["country"].to_pylist()) == {*COUNTRIES}


def test_a_step_is_later_than_the_one_before() -> None:
    table = Visits(2_000, users=100_000).table()
    paid = "PATTERN SEQ(Cart c, Pay p) PARTITION BY user WITHIN 1 day AGG COUNT(*) AS n"
    payments = table["action"].to_pylist().count("Pay")
    assert match(table, paid, time="ts", type="action")["n"][0].as_py() >= payments > 0


def test_files_have_the_same_events_and_are_kept(tmp_path: Path) -> None:
    visits = Visits(1_000)
    folder = visits.write(tmp_path / "visits", file_events=300)
    assert len([*folder.glob("*.parquet")]) == 4
    assert pq.read_table(folder).equals(visits.table())
    first = (folder / "part-00000.parquet").stat().st_mtime_ns
    visits.write(folder, file_events=300)
    assert (folder / "part-00000.parquet").stat().st_mtime_ns == first
    Visits(1_000, seed=1).write(folder, file_events=300)
    assert not pq.read_table(folder).equals(visits.table())
