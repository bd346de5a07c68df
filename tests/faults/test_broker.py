"""The Kafka broker goes away and comes back, in mid-stream: the query waits for it, and goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from tests.faults.profile import KILLS
from tests.faults.running import Running
from tests.faults.workloads import Feed
from tests.spark.kafka_broker import broker
from tests.spark.kafka_jars import connector_jars


def test_it_goes_on(tmp_path: Path) -> None:
    kills = (KILLS + 1) // 2
    pieces = Feed(2 * kills + 1).tables()
    waiting = iter(pieces)
    with broker(tmp_path / "broker") as kafka:
        kafka.create_topic("events")
        source = {"kafka.bootstrap.servers": kafka.servers, "subscribe": "events", "startingOffsets": "earliest"}
        jars = {"spark.jars": ",".join(map(str, connector_jars()))}
        run = Running(tmp_path / "run", "keyed", kafka={**source, "maxOffsetsPerTrigger": "1000"}, settings=jars)

        def arrive() -> None:
            rows = next(waiting).to_pylist()
            kafka.produce("events", [json.dumps({**row, "ts": row["ts"].isoformat()}) for row in rows])

        arrive()
        with run.driver() as driver:
            run.committed(driver, 0)
            for _ in range(kills):
                before = run.checkpoint.committed
                arrive()
                kafka.kill()
                kafka.start()
                arrive()
                run.committed(driver, before + 2)
            began = run.checkpoint.committed
        run.finish()
    print(f"the broker was killed {kills} times; {began + 1} micro-batches", run.check(pa.concat_tables(pieces)))
