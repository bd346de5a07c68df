"""Python workers are killed, with or without the daemon that forks them: Spark runs their tasks again."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from tests.faults.processes import kill, python_workers
from tests.faults.profile import KILLS, random_of
from tests.faults.running import Running
from tests.faults.workloads import Feed


def test_every_match_once(tmp_path: Path) -> None:
    rng = random_of("workers")
    run = Running(tmp_path, "keyed")
    pieces = Feed(2 * KILLS + 2, seed=rng.randrange(1000)).tables()
    waiting = iter(pieces)
    run.arrive(next(waiting))
    in_batch = 0
    with run.driver() as driver:
        run.committed(driver, 0)
        for number in range(KILLS):
            before = run.checkpoint.committed
            run.arrive(next(waiting))
            run.begun(driver, before + 1)
            time.sleep(rng.uniform(0, 0.5))
            daemons, workers = python_workers(driver.pid)
            # Every other time the daemon, too, and then all of its workers; else some of them.
            victims = daemons + workers if number % 2 else rng.sample(workers, rng.randint(1, len(workers)))
            in_batch += run.checkpoint.committed == before
            for victim in victims:
                kill(victim.pid)
            print(f"killed {len(victims)} of {len(daemons)} daemons and {len(workers)} workers in batch {before + 1}")
            run.committed(driver, before + 1)
            run.arrive(next(waiting))
            run.committed(driver, before + 2)
    run.arrive(*waiting)
    run.finish()
    print(run.check(pa.concat_tables(pieces)))
    assert in_batch
    assert "Python worker exited unexpectedly" in run.log.read_text()
