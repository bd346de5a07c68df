"""Events from a real Kafka broker, and matches to it; a driver of its own has the connector's jars."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.errors import OptionError
from eventcube.spark.kafka import events_from_kafka, events_of_records, to_kafka
from tests.spark.ask_kafka import COLUMNS, POISON, QUERY, SETTINGS, records
from tests.spark.kafka_broker import broker
from tests.spark.kafka_jars import connector_jars, format_jars


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver found."""
    folder = tmp_path_factory.mktemp("kafka")
    with broker(folder / "broker") as running:
        for topic, partitions in (("events", 2), ("avro", 1), ("found", 1)):
            running.create_topic(topic, partitions)
        jars = ",".join(map(str, [*connector_jars(), *format_jars()]))
        command = [sys.executable, "-m", "tests.spark.ask_kafka", running.servers, str(folder), jars]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def expected() -> Counter[str]:
    """The matches of the events without those that cannot be read."""
    rows = [json.loads(value) for value in records() if value not in POISON]
    table = pa.table(
        {
            "ts": pa.array([datetime.fromisoformat(row["ts"]).astimezone(UTC) for row in rows]),
            "kind": [row["kind"] for row in rows],
            "k": [row["k"] for row in rows],
            "id": [row["id"] for row in rows],
        }
    )
    matches = ec.match(table, QUERY, **SETTINGS)
    return Counter(zip(matches.column("a").to_pylist(), matches.column("b").to_pylist(), strict=True))


@pytest.mark.kafka
class TestBroker:
    def test_matches_of_a_topic_are_those_of_a_batch(self, answer: dict[str, Any], expected: Counter[Any]) -> None:
        assert Counter(map(tuple, answer["folders"])) == expected
        assert expected.total() > 100
        assert answer["batches"] >= 3

    def test_a_table_of_all_records_gives_the_same(self, answer: dict[str, Any], expected: Counter[Any]) -> None:
        assert Counter(map(tuple, answer["replayed"])) == expected

    def test_records_that_cannot_be_read_are_counted_and_can_be_looked_at(self, answer: dict[str, Any]) -> None:
        assert answer["set_aside"] == len(POISON)
        assert Counter(answer["poison"]) == Counter(POISON)

    def test_readers_drop_what_is_written_twice_by_its_id(self, answer: dict[str, Any], expected: Counter[Any]) -> None:
        once = {row["match_id"]: (row["a"], row["b"]) for row in answer["written"]}
        assert Counter(once.values()) == expected
        assert all(tuple(row[c] for c in ("a", "b")) == once[row["match_id"]] for row in answer["written"])
        # A micro-batch was written again, as if Spark had been killed before it could note that it was written.
        assert len(answer["written"]) > len(once)
        assert answer["keys"] == [row["match_id"] for row in answer["written"]]

    def test_a_batch_that_runs_again_replaces_its_folder(self, answer: dict[str, Any], expected: Counter[Any]) -> None:
        assert answer["again"] == answer["folders"]

    def test_delta_has_each_match_once(self, answer: dict[str, Any], expected: Counter[Any]) -> None:
        assert Counter(map(tuple, answer["delta"])) == expected

    def test_records_of_avro(self, answer: dict[str, Any], expected: Counter[Any]) -> None:
        assert Counter(map(tuple, answer["avro"])) == expected


# What is read of a value.
VALUES = {
    '{"ts": "2026-01-05T08:00:00.123456+02:00", "kind": "A", "n": 1}': (1767592800123456, "A", 1),
    '{"ts": "2026-01-05T08:00:00.1Z", "kind": "A", "other": [1]}': (1767600000100000, "A", None),
    '{"ts": "2026-01-05 08:00:00", "kind": "A", "n": null}': (1767600000000000, "A", None),
    '{"ts": "2026-01-05", "kind": "A"}': (1767571200000000, "A", None),
    # A part of them could be read, but they are not what was agreed.
    '{"ts": "2026-01-05T08:00:00Z", "kind": "A", "n": "one"}': (None, None, None),
    '{"ts": "08:00", "kind": "A"}': (None, None, None),
    '{"ts": "soon", "kind": "A"}': (None, None, None),
    '{"ts": "2026-01-05T08:00:00Z", "kind": ': (None, None, None),
    '[{"ts": "2026-01-05T08:00:00Z"}]': (None, None, None),
    "17": (None, None, None),
    "": (None, None, None),
}


class TestRecords:
    @pytest.mark.parametrize(
        "columns",
        [
            "ts timestamp, kind string, n bigint",
            pa.schema({"ts": pa.timestamp("us", "UTC"), "kind": pa.string(), "n": pa.int64()}),
        ],
    )
    def test_what_is_read(self, spark: SparkSession, columns: str | pa.Schema) -> None:
        zone = "spark.sql.session.timeZone"
        spark.conf.set(zone, "America/New_York")
        values = [(value.encode(), f"{n}".encode(), "t", 0, n) for n, value in enumerate(VALUES)]
        frame = spark.createDataFrame(values, "value binary, key binary, topic string, partition int, offset bigint")
        events = events_of_records(frame.selectExpr("*", "current_timestamp() AS timestamp"), columns)
        rows = events.selectExpr("unix_micros(ts)", "kind", "n", "kafka.value", "kafka.key").collect()
        assert {row[3]: tuple(row[:3]) for row in rows} == VALUES
        assert [row[4] for row in rows] == [f"{n}" for n in range(len(rows))]

    def test_a_column_with_the_name_of_the_record(self, spark: SparkSession) -> None:
        frame = spark.sql("SELECT CAST('{\"kafka\": 1}' AS binary) AS value")
        with pytest.raises(OptionError, match="EC488"):
            events_of_records(frame, "ts timestamp, Kafka string")
        assert events_of_records(frame, "kafka bigint", None).collect() == [(1,)]
        with pytest.raises(OptionError, match="EC414"):
            events_of_records(frame, "bigint")

    def test_a_session_without_the_connector(self, spark: SparkSession) -> None:
        with pytest.raises(OptionError, match=r"EC487.*\n.*spark-sql-kafka-0-10_2.13:4"):
            events_from_kafka(spark, "127.0.0.1:9", "topic", COLUMNS)

    def test_matches_without_an_id(self, spark: SparkSession) -> None:
        with pytest.raises(OptionError, match=r"EC489.*\n.*match_id=True"):
            to_kafka(spark.range(1))
        with pytest.raises(OptionError, match=r"EC489.*\n.*they have id"):
            to_kafka(spark.range(1), key="x")
        assert to_kafka(spark.range(1), key="id").collect() == [("0", '{"id":0}')]
