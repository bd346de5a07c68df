"""Spark Connect: the same calls from a client without a JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import eventcube as ec
from tests.spark.ask_cluster import QUERIES, events
from tests.spark.ask_connect import SEVERAL

pytest.importorskip("grpc")
ROOT = Path(__file__).parents[2]


@pytest.mark.cluster
def test_a_connect_client_gets_the_same_answers() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.ask_connect"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["kind"].startswith("pyspark.sql.connect")
    for name, query in QUERIES.items():
        expected = ec.match(events(), query, type="type").to_pylist()
        assert answer["answers"][name] == sorted(map(str, expected))
    assert answer["several"] == ec.match(events(), SEVERAL, type="type").num_rows
    assert answer["wide"] == 5
    assert answer["aside"] == events().column("type").to_pylist().count("A")
    assert answer["named"] == [["start", "end", "a_ts", "a_type", "a_k"], answer["aside"]]
    assert answer["unknown"].startswith("error[EC336]: there is no table or view 'evnets'")
    assert "did you mean 'events'?" in answer["unknown"]
    assert all(Path(answer["shipped"]).name in row["package"] for row in answer["where"])
