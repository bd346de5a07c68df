"""`eventcube stream`: over files, stopped and started again, its mistakes, and its replay as a batch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.cli import main
from eventcube.cli.on_spark import Spark
from eventcube.spark.settings import PARTITIONS
from tests.spark.frames import rows_of
from tests.spark.test_streaming import random_table, table_of

WAIT_SECONDS = 300
PAIRS = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds"
WORKLOAD = f"""\
queries:
  keyed: {PAIRS}
  ahead: PATTERN SEQ(A a, !(C c, c.k = a.k)) WITHIN 15 seconds
  counted: PATTERN SEQ(A a, B b, !D d, C c) WITHIN 6 events
settings:
  type: kind
"""

Call = Callable[..., Result]


@pytest.fixture
def call(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """`eventcube …` in a folder with `incoming`, in the session that runs, which it leaves running."""
    (tmp_path / "incoming").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Spark, "close", Spark._close_log)
    spark.conf.set(PARTITIONS, "2")

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, [*arguments, "--master", "local[2]"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    yield invoke
    spark.conf.unset(PARTITIONS)


class Arrivals:
    """Files that arrive in a folder, one after the other, each whole."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def write(self, table: pa.Table) -> None:
        self.count += 1
        hidden, file = (self.folder / f"{dot}{self.count:04}.parquet" for dot in (".", ""))
        pq.write_table(table, hidden)
        os.utime(hidden, (1e9 + 10 * self.count, 1e9 + 10 * self.count))
        hidden.rename(file)


@pytest.fixture
def arrivals(call: Call) -> Arrivals:
    return Arrivals(Path("incoming").absolute())


def written(folder: str | Path) -> pa.Table:
    """The rows in a folder, as a reader finds them that knows nothing of Spark."""
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table()
    return table.drop_columns("batch")


def test_a_replay_gives_what_the_stream_gave(call: Call, arrivals: Arrivals) -> None:
    Path("queries.yaml").write_text(WORKLOAD)
    arguments = (
        "stream",
        "queries.yaml",
        "incoming",
        "--lateness",
        "5 seconds",
        "--once",
        "--max-files",
        "1",
        "--json",
    )
    arguments += ("--out", "matches", "--late", "late", "--checkpoint", "checkpoint")
    events = random_table(400, 200)
    first, second, third = (events.slice(at, 150) for at in (0, 150, 300))
    # Later than the watermark of the files before. One row of them is late, and its twin is not.
    twin = table_of(["B"], [40], [1])
    late = pa.concat_tables([table_of(["A", "C", "D"], [50, 51, 53], [1, 1, 1]), twin])
    arrivals.write(pa.concat_tables([first, twin]))
    arrivals.write(second)
    summaries = [json.loads(call(*arguments).stdout)]
    arrivals.write(pa.concat_tables([third, late]))
    summaries.append(json.loads(call(*arguments).stdout))
    assert [summary["late"] for summary in summaries] == [0, 4]
    assert all(summary["undecided"] > 0 for summary in summaries)
    found = written("matches")
    assert found.num_rows == sum(summary["matches"] for summary in summaries)
    replay = ("cube", "queries.yaml", "incoming", "--less", "late", "--until", summaries[-1]["watermark"])
    for more in ((), ("--no-spark",)):
        result = call(*replay, "--out", "replay.parquet", "--overwrite", "--quiet", *more)
        assert result.exit_code == 0, result.stderr
        again = pq.read_table("replay.parquet")
        assert set(again["query"].to_pylist()) == {"keyed", "ahead", "counted"}
        if more:
            # In this process, events at the same time are in the order in which they arrived.
            again, found = (table.filter(pa.compute.not_equal(table["query"], "counted")) for table in (again, found))
        assert rows_of(again) == rows_of(found.cast(again.schema))
    # What is not decided, and what was late, would make a difference.
    assert rows_of(ec.match(events, PAIRS, time="ts", type="kind")) - rows_of(found)


def test_rows_are_left_out_though_a_column_has_another_type_in_them(call: Call) -> None:
    events = [(0, "A", 3), (1, "B", 4), (1, "B", 4.0), (2, "B", "many"), (3, "B", None)]
    lines = [json.dumps({"ts": f"2026-01-05 08:00:0{ts}", "kind": kind, "p": p}) for ts, kind, p in events]
    Path("incoming/1.jsonl").write_text("\n".join(lines))
    times = [datetime(2026, 1, 5, 8, 0, ts) for ts in (1, 2, 3)]
    late = {"ts": pa.array(times, pa.timestamp("us")), "kind": ["B"] * 3, "p": pa.array([4.0, None, None])}
    Path("late").mkdir()
    pq.write_table(pa.table(late), "late/1.parquet")
    query = "PATTERN SEQ(A a, B b) WITHIN 1 minute RETURN b.p AS p"
    result = call("run", query, "incoming", "--type", "kind", "--less", "late", "--format", "jsonl")
    # One of the two rows with 4.
    assert sorted(json.loads(line)["p"] for line in result.stdout.splitlines())[1:] == ["many"]
    assert "warning[EC507]: 1 of 3 rows" in result.stderr
    assert "2 matches in 5 events" in result.stderr
    assert "2 events left out" in result.stderr
    pq.write_table(pa.table(late | {"p": [[1]] * 3}), "late/1.parquet")
    refused = call("run", query, "incoming", "--type", "kind", "--less", "late")
    assert refused.stderr.startswith("error[EC607]: column 'p' is string in the events, and list<element: int64>")


def test_groups_by_time_are_written_once(call: Call, arrivals: Arrivals) -> None:
    events = random_table(300, 150)
    query = f"{PAIRS} GROUPBY b.ts EVERY 20 seconds AS t AGG COUNT(*) AS n HAVING n > 2"
    arguments = ("stream", query, "incoming", "--type", "kind", "--lateness", "5 seconds", "--once", "--out", "groups")
    for table in (events.slice(0, 150), events.slice(150), table_of(["other"], [1000], [1])):
        arrivals.write(table)
        assert call(*arguments, "--checkpoint", "checkpoint", "--quiet").exit_code == 0
    expected = ec.match(events, query, time="ts", type="kind")
    assert rows_of(written("groups").cast(expected.schema)) == rows_of(expected)


@pytest.mark.parametrize("query", ["PATTERN SEQ(A a, B b, !D d)", "PATTERN SEQ(!D d, A a, B b)", PAIRS[:32]])
def test_what_a_watermark_decides_in_time_slices_and_by_key(query: str, spark: SparkSession) -> None:
    events, query = random_table(1500, 600), f"{query} WITHIN 2 seconds"
    until = str(events["ts"][900].as_py())
    found, expected = (
        ec.match(frame, query, time="ts", type="kind", until=until) for frame in (spark.createDataFrame(events), events)
    )
    assert rows_of(found.toArrow().cast(expected.schema)) == rows_of(expected)
    every = ec.match(events, query, time="ts", type="kind")
    assert 20 < expected.num_rows < every.num_rows


def test_csv_keeps_its_columns_and_matches_go_to_the_screen(call: Call) -> None:
    arguments = (
        "stream",
        "PATTERN SEQ(A a, B b) WITHIN 1 minute RETURN a.n AS n",
        "incoming",
        "--type",
        "kind",
        "--once",
    )
    Path("incoming/1.csv").write_text(
        "ts,kind,n\n2026-01-05 08:00:00,A,1\n2026-01-05 08:00:01,B,2\n2026-01-05 09:00:00,A,3\n"
    )
    Path("incoming/2.csv.part").write_text("not ready")
    shown = call(*arguments, "--format", "jsonl")
    assert [json.loads(line)["n"] for line in shown.stdout.splitlines()] == [1]
    assert "no --checkpoint" in shown.stderr
    assert "1 match in 3 rows" in shown.stderr
    kept = (*arguments, "--checkpoint", "checkpoint")
    assert "│ 1 │" in call(*kept).stdout
    # Of these alone one would take n for another type.
    Path("incoming/1.csv").unlink()
    Path("incoming/3.csv").write_text("ts,kind,n\n2026-01-05 09:00:01,B,\n2026-01-05 10:00:00,B,\n")
    assert "│ 3 │" in call(*kept).stdout
    Path("incoming/4.csv").write_text("ts,n,kind\n2026-01-05 09:00:01,1,B\n")
    refused = call(*kept)
    assert refused.exit_code == 2
    assert "error[EC321]: cannot read" in refused.stderr, refused.stderr
    assert "4.csv" in refused.stderr
    assert "Spark's own messages are in" in refused.stderr
    Path("incoming/4.csv").write_text("ts,kind,n\n2026-01-05 10:00:01,B,1\n2026-01-05 10:00:02,B,few\n")
    refused = call(*kept)
    assert "4.csv: column 'n' is bigint in this stream, and has 'few' here" in refused.stderr
    assert "the columns are ts timestamp_ntz, kind string, n bigint. Mend the file under its name" in refused.stderr
    Path("incoming/4.csv").write_text(
        "ts,kind,n\n2026-01-05 10:00:01,A,1\n2026-01-05 10:00:02,B,2\n2026-01-05 11:00:00,B,2\n"
    )
    assert "│ 1 │" in call(*kept).stdout


def test_a_change_of_queries_is_told_or_refused_at_the_start(call: Call, arrivals: Arrivals) -> None:
    arguments = ("incoming", "--type", "kind", "--once", "--out", "matches", "--checkpoint", "checkpoint")
    Path("queries.yaml").write_text(f"queries:\n  ab: {PAIRS}\nsettings:\n  type: kind\n")
    arrivals.write(table_of(["A", "B", "A"], [1, 2, 30], [1, 1, 1]))
    first = call("stream", "queries.yaml", *arguments)
    assert (first.exit_code, "other queries" in first.stderr) == (0, False)
    # No new rows, so Spark runs no micro-batch with any.
    Path("queries.yaml").write_text(Path("queries.yaml").read_text().replace("20", "30"))
    refused = call("stream", "queries.yaml", *arguments)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error[EC412]: the checkpoint is of other queries: query 'ab' was")
    single = call("stream", PAIRS, *arguments)
    assert single.exit_code == 0
    assert "other queries; removed: ab; added: q1, from later events on\n" in single.stderr


def test_json_lines_with_values_of_another_type_are_skipped_and_counted(call: Call) -> None:
    arguments = ("stream", "PATTERN SEQ(A a, B b) WHERE a.p < b.p WITHIN 1 minute RETURN a.p AS p", "incoming")
    arguments += ("--type", "kind", "--once", "--checkpoint", "checkpoint", "--out", "matches", "--json")
    rows = [("08:00:00", "A", 3), ("08:00:01", "B", 4), ("08:00:02", "A", 5)]

    def arrive(name: str, *lines: str) -> dict[str, int]:
        Path("incoming", name).write_text("\n".join(lines))
        summary: dict[str, int] = json.loads(call(*arguments).stdout)
        return summary

    first = [json.dumps({"ts": f"2026-01-05 {ts}", "kind": kind, "p": p}) for ts, kind, p in rows]
    assert arrive("1.jsonl", *first)["set_aside"] == 0
    second = [
        '{"ts": "2026-01-05 08:00:03", "kind": "B", "p": 5.5}',
        '{"ts": "2026-01-05 08:00:03", "kind": "B", "p": "many"}',
        '{"ts": "2026-01-05 08:00:04", "kind": "B", "p": 6, "unknown": 7}',
        '{"ts": "2026-01-05 08:00:04", "kind": "B"',
        '{"ts": "2026-01-05 09:00:00", "kind": "A", "p": null}',
    ]
    assert arrive("2.jsonl", *second)["set_aside"] == 3
    assert sorted(written("matches")["p"].to_pylist()) == [3, 3, 5]


def test_columns_of_an_empty_folder(call: Call, arrivals: Arrivals) -> None:
    arguments = (
        "stream",
        PAIRS,
        "incoming",
        "--type",
        "kind",
        "--once",
        "--out",
        "matches",
        "--checkpoint",
        "checkpoint",
    )
    refused = call(*arguments)
    assert refused.exit_code == 2
    assert "error[EC322]" in refused.stderr
    assert "--columns" in refused.stderr
    columns = ("--columns", "ts timestamp, kind string, k bigint", "--input-format", "parquet")
    nothing = call(*arguments, *columns)
    assert nothing.exit_code == 0, nothing.stderr
    assert "0 matches in 0 rows" in nothing.stderr
    arrivals.write(table_of(["A", "B", "A"], [1, 2, 30], [1, 1, 1]))
    # The checkpoint knows the columns now.
    assert "1 match in 3 rows" in call(*arguments).stderr
    arrivals.write(table_of(["A"], [90], [1]))
    changed = call("stream", PAIRS.replace("20", "30"), *arguments[2:])
    assert changed.exit_code == 2
    assert changed.stderr.startswith("error[EC412]: the checkpoint is of other queries")
    assert "SQLSTATE" not in changed.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("PATTERN SEQ(A a, B b)", "events.parquet"), "EC490"),
        ((PAIRS, "nowhere"), "EC320"),
        ((PAIRS, "events.parquet", "--out", "matches"), "EC602"),
        ((PAIRS, "events.parquet", "--late", "late"), "EC602"),
        ((PAIRS, "events.parquet", "--json"), "EC420"),
        ((PAIRS, "incoming", "--out", "incoming/matches", "--checkpoint", "c"), "EC422"),
        ((PAIRS, "events.parquet", "--out", "full", "--checkpoint", "c"), "EC421"),
        ((PAIRS, "kafka://127.0.0.1:9092/events"), "EC605"),
        ((PAIRS, "kafka://127.0.0.1:9092", "--columns", "ts timestamp"), "EC605"),
        ((PAIRS, "incoming", "--columns", "ts time stamp", "--input-format", "csv"), "EC326"),
        ((PAIRS, "events.parquet", "--lateness", "soon"), "EC403"),
        ((PAIRS, "events.parquet", "--trigger", "5 apples"), "EC403"),
        ((PAIRS, "events.parquet", "--out", "kafka://127.0.0.1:9/t", "--checkpoint", "c"), "EC487"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], code: str, call: Call) -> None:
    for folder in (".", "incoming"):
        pq.write_table(table_of(["A", "B"], [1, 2], [1, 1]), Path(folder, "events.parquet"))
    Path("full").mkdir()
    Path("full/part-0.parquet").touch()
    refused = call("stream", *arguments, "--type", "kind", "--once")
    assert refused.exit_code == 2
    assert f"error[{code}]" in refused.stderr
    assert "Traceback" not in refused.stderr


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_stream_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    arrivals = Arrivals(tmp_path / "incoming")
    arguments = [sys.executable, "-c", "from eventcube.cli import main; main()", "stream", PAIRS, "incoming"]
    arguments += [
        "--type",
        "kind",
        "--master",
        "local[2]",
        "--conf",
        f"{PARTITIONS}=2",
        "--trigger",
        "200 milliseconds",
    ]
    arguments += ["--out", "matches", "--checkpoint", "checkpoint", "--metrics", "metrics.jsonl"]

    def batches() -> list[dict[str, int]]:
        log = tmp_path / "metrics.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def run(way: signal.Signals, *tables: pa.Table, matches: int) -> None:
        """Run the stream while files arrive, and stop it once there are so many matches in all."""
        stream = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True)
        try:
            for table in tables:
                arrivals.write(table)
            until(lambda: stream.poll() is not None or sum(batch["matches"] for batch in batches()) >= matches)
            # As a terminal does, to the command and all that it started.
            if way is signal.SIGINT:
                os.killpg(stream.pid, way)
            else:
                stream.send_signal(way)
            _, said = stream.communicate(timeout=WAIT_SECONDS)
        finally:
            if stream.poll() is None:
                os.killpg(stream.pid, signal.SIGKILL)
                stream.communicate()
        assert stream.returncode == 128 + way, said
        *_, last = said.splitlines()
        assert " matches in " in said
        assert "the next start goes on from checkpoint" in said
        assert last == ("interrupted" if way is signal.SIGINT else "terminated")

    arrivals.write(table_of(["A", "B", "B", "A"], [1, 2, 3, 20], [1, 1, 1, 1]))
    run(signal.SIGTERM, matches=2)
    run(signal.SIGINT, table_of(["B", "B"], [21, 22], [1, 1]), table_of(["A"], [60], [1]), matches=5)
    expected = ec.match(ds.dataset(tmp_path / "incoming").to_table(), PAIRS, time="ts", type="kind")
    found = written(tmp_path / "matches")
    assert rows_of(found.cast(expected.schema)) == rows_of(expected)
    assert found.num_rows == 5


class TestKilledAtTheFirstMicroBatch:
    """The driver was killed when it had begun to write which rows the first micro-batch reads."""

    ARGUMENTS = ("stream", PAIRS, "incoming", "--type", "kind", "--once", "--out", "out", "--checkpoint", "checkpoint")

    def _kill(self, call: Call, arrivals: Arrivals) -> None:
        arrivals.write(random_table(200, 100))
        assert call(*self.ARGUMENTS).exit_code == 0
        # As it was then: Spark had noted the id of the query and the files of the source.
        for folder in ("offsets", "commits", "state"):
            shutil.rmtree(Path("checkpoint") / folder)
        shutil.rmtree("out")
        Path("checkpoint/offsets").mkdir()
        for name in (".0.9c1f0d8e-4b57-4d4e-8a55-0d3f0f5d1c3a.tmp", "..0.9c1f0d8e-4b57-4d4e-8a55-0d3f0f5d1c3a.tmp.crc"):
            Path("checkpoint/offsets", name).write_text("v1")

    def test_it_starts_again(self, call: Call, arrivals: Arrivals) -> None:
        self._kill(call, arrivals)
        found = call(*self.ARGUMENTS)
        assert found.exit_code == 0, found.stderr
        assert written("out").num_rows > 10

    def test_a_checkpoint_with_other_files_is_left_alone(self, call: Call, arrivals: Arrivals) -> None:
        self._kill(call, arrivals)
        Path("checkpoint/offsets/other").write_text("")
        before = sorted(Path("checkpoint").rglob("*"))
        found = call(*self.ARGUMENTS)
        assert found.exit_code == 2
        assert set(before) <= set(Path("checkpoint").rglob("*"))
