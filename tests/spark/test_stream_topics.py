"""`eventcube stream` over topics of a real Kafka broker: from topic to topic, and from there to standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eventcube.spark.settings import PARTITIONS
from tests.spark.kafka_broker import broker
from tests.spark.kafka_jars import connector_jars

SECONDS = {1: "A", 2: "B", 10: "A", 11: "B", 60: "A", 61: "B", 300: "other"}


def stream(folder: Path, *arguments: str) -> list[dict[str, object]]:
    """What `eventcube stream … --once` prints."""
    jars = ",".join(map(str, connector_jars()))
    command = [sys.executable, "-c", "from eventcube.cli import main; main()", "stream", *arguments, "--once"]
    command += ["--master", "local[2]", "--conf", f"{PARTITIONS}=2", "--conf", f"spark.jars={jars}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.kafka
def test_matches_go_to_a_topic_and_are_events_there(tmp_path: Path) -> None:
    with broker(tmp_path / "broker") as running:
        for topic in ("events", "pairs"):
            running.create_topic(topic)
        values = [json.dumps({"ts": f"2026-01-05T08:{n // 60:02}:{n % 60:02}Z", "kind": k}) for n, k in SECONDS.items()]
        running.produce("events", [*values[:3], "what is this?", *values[3:]])
        address = f"kafka://{running.servers}"
        columns = ("--columns", "ts timestamp, kind string")
        pair = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
        out = ("--type", "kind", "--out", f"{address}/pairs", "--checkpoint", "checkpoint", "--json")
        (summary,) = stream(tmp_path, pair, f"{address}/events", *columns, *out)
        assert [summary[name] for name in ("rows", "matches", "set_aside", "late")] == [8, 3, 1, 0]
        again = "PATTERN SEQ(x, y) WITHIN 1 hour RETURN x.match_id AS first, y.match_id AS second"
        ends = ("--columns", "end timestamp, match_id string", "--time", "end", "--format", "jsonl")
        # The last pair is not decided yet.
        (found,) = stream(tmp_path, again, f"{address}/pairs", *ends)
        assert (found["start"], found["end"]) == ("2026-01-05T08:00:02+00:00", "2026-01-05T08:00:11+00:00")
        assert found["first"] != found["second"]
