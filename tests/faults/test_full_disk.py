"""The disk of the checkpoint is full: the query fails and says so, and goes on once there is space."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.faults.profile import KILLS, random_of
from tests.faults.running import ENDS_WITHIN, Running
from tests.faults.workloads import Feed


class Disk:
    """A disk in memory, whose size can be changed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resize(self, kilobytes: int) -> None:
        """Make it larger, or smaller, but not smaller than what is on it."""
        subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", self.path], check=True, capture_output=True)

    @property
    def used(self) -> int:
        """The kilobytes of what is on it."""
        return shutil.disk_usage(self.path).used // 1024


@contextmanager
def disk(path: Path) -> Iterator[Disk]:
    """A disk at a new folder, gone when the block ends; skips the test where disks cannot be mounted."""
    path.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        pytest.skip(f"a full disk needs one that is small, which this user may not mount: {said.decode().strip()}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def test_the_query_says_so_and_goes_on(tmp_path: Path) -> None:
    rng = random_of("disk")
    pieces = Feed(2 + 2 * KILLS, seed=rng.randrange(1000)).tables()
    with disk(tmp_path / "disk") as small:
        run = Running(tmp_path / "run", "keyed", checkpoint=small.path / "checkpoint")
        run.arrive(*pieces)
        for _ in range((KILLS + 1) // 2):
            space = rng.randint(60, 400)
            small.resize(small.used + space)
            with run.driver(once=True) as driver:
                driver.wait(timeout=ENDS_WITHIN)
            assert driver.returncode == 1, run.said
            assert "error[EC620]: a disk is full" in run.said[-600:], run.said
            print(f"{space} kB were enough until batch {run.checkpoint.committed}")
            assert run.checkpoint.committed < len(pieces) - 1
        small.resize(64 << 10)
        run.finish()
        print(run.check(pa.concat_tables(pieces)))
