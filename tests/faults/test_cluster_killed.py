"""On a cluster of two workers an executor is killed, and then a worker with all its processes: the stream goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.faults.processes import Process, kill, kill_session, members, processes
from tests.faults.running import Running
from tests.faults.workloads import Feed
from tests.spark.cluster import standalone

EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.mark.cluster
def test_every_match_once(tmp_path: Path) -> None:
    pieces = Feed(7).tables()
    waiting = iter(pieces)
    settings = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m", "spark.cores.max": "2"}
    (tmp_path / "cluster").mkdir()
    with standalone(tmp_path / "cluster") as master:
        run = Running(tmp_path / "run", "keyed", master=master, settings=settings)
        run.arrive(next(waiting))
        with run.driver() as driver:
            run.committed(driver, 0)
            assert len(executors(master)) == 2
            for batch in (1, 3):
                run.arrive(next(waiting))
                run.begun(driver, batch)
                victim = executors(master)[0]
                if batch == 1:
                    kill(victim.pid)
                else:
                    kill_session(victim.session)
                    assert len(workers(master)) == 1
                run.committed(driver, batch)
                run.arrive(next(waiting))
                run.committed(driver, batch + 1)
        run.arrive(*waiting)
        run.finish()
    print(run.check(pa.concat_tables(pieces)))


def workers(master: str) -> list[Process]:
    """The workers of a cluster."""
    return [p for p in processes() if "deploy.worker.Worker" in p.command and master in p.command]


def executors(master: str) -> list[Process]:
    """Their executors."""
    return [p for worker in workers(master) for p in members(worker.session) if EXECUTOR in p.command]
