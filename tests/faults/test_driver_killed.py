"""The driver is killed at any moment, with all its processes, and started again: no match is lost, none comes twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pyarrow as pa
import pytest

from tests.faults.processes import kill_session, members
from tests.faults.profile import IS_LONG, KILLS, random_of
from tests.faults.running import Running
from tests.faults.workloads import Feed

# What to wait for, and up to how many seconds after it the driver is killed.
MOMENTS = {"batch": 1.0, "sink": 0.1, "start": 8.0, "state": 0.1, "commit": 0.1}
WORKLOADS = ["keyed", "unkeyed", "mixed"] if IS_LONG else ["keyed", "unkeyed"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_match_once(workload: str, tmp_path: Path) -> None:
    rng = random_of(workload)
    run = Running(tmp_path, workload, files_per_trigger=rng.randint(1, 2))
    pieces = Feed(3 * KILLS + 3, seed=rng.randrange(1000)).tables()
    waiting = iter(pieces)
    # Each kind of moment in turn, in another order for each workload.
    moments = [list(MOMENTS)[(i + 2 * WORKLOADS.index(workload)) % len(MOMENTS)] for i in range(KILLS)]
    within_batch = 0
    for moment in moments:
        run.arrive(next(waiting), next(waiting))
        with run.driver() as driver:
            is_reached = _awaits(run, moment, driver)
            run.arrive(next(waiting))
            run.wait(driver, is_reached, moment)
            time.sleep(rng.uniform(0, MOMENTS[moment]))
            assert driver.poll() is None, run.said
            killed = kill_session(driver.pid)
        began, committed = run.checkpoint.begun, run.checkpoint.committed
        within_batch += began > committed
        print(f"{workload}: killed {killed} processes at {moment}; batch {began} began, {committed} was committed")
    run.arrive(*waiting)
    run.finish()
    print(workload, run.check(pa.concat_tables(pieces)))
    assert within_batch


def _awaits(run: Running, moment: str, driver: Popen[bytes]) -> Callable[[], bool]:
    """Tells whether the driver has got as far as to the moment, since now."""
    checkpoint = run.checkpoint
    match moment:
        case "start":
            return lambda: any("java" in process.command for process in members(driver.pid))
        case "batch":
            # Not the first, at whose beginning there are no workers yet.
            first = checkpoint.committed + 1
            return lambda: checkpoint.begun > checkpoint.committed >= first
        case "state":
            version = checkpoint.state_version
            return lambda: checkpoint.state_version > version
        case "sink":
            written = set(_batches(run))
            return lambda: not written.issuperset(_batches(run))
        case _:
            committed = checkpoint.committed
            return lambda: checkpoint.committed > committed


def _batches(run: Running) -> list[Path]:
    return list((run.folder / "out").glob("batch=*"))
