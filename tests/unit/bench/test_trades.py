from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventcube.bench.trades import SYMBOLS, Trades, trades


def test_columns_are_as_promised() -> None:
    table = trades(200_000, accounts=50)
    assert table.num_rows == 200_000
    assert set(pc.unique(table["symbol"]).to_pylist()) == set(SYMBOLS)
    assert set(pc.unique(table["account"]).to_pylist()) == set(range(1, 51))
    assert 90 <= pc.min(table["price"]).as_py() < 100 < pc.max(table["price"]).as_py() <= 110
    steps = pc.unique(pc.pairwise_diff(table["ts"].combine_chunks().cast("int64"))).drop_null().to_pylist()
    assert steps == [1000]


def test_a_shorter_run_is_a_prefix() -> None:
    assert trades(100_000).slice(0, 70_001).equals(trades(70_001))


def test_seeds_differ() -> None:
    assert not trades(1000, seed=1).equals(trades(1000, seed=2))


def test_rates_choose_symbols() -> None:
    counts = trades(50_000, rates={"A": 3, "B": 1})["symbol"].value_counts().to_pylist()
    assert {c["values"]: round(c["counts"] / 12_500) for c in counts} == {"A": 3, "B": 1}


def test_files_hold_the_same_trades_however_they_are_cut(tmp_path: Path) -> None:
    shape = Trades(200_000)
    folder = shape.write(tmp_path / "trades", file_events=90_000, group_events=25_000)
    files = sorted(folder.glob("*.parquet"))
    assert [pq.ParquetFile(f).metadata.num_row_groups for f in files] == [4, 4, 1]
    assert pq.read_table(files).equals(shape.table())


def test_files_are_kept_until_the_shape_changes(tmp_path: Path) -> None:
    folder = Trades(1000).write(tmp_path / "trades")
    written = (folder / "part-00000.parquet").stat().st_mtime_ns
    Trades(1000).write(folder)
    assert (folder / "part-00000.parquet").stat().st_mtime_ns == written
    Trades(999).write(folder)
    assert pq.read_table(folder / "part-00000.parquet").num_rows == 999
