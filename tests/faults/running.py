"""A stream in a process of its own, which a test starts, feeds, kills and starts again; and what must come of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.faults.answers import check
from tests.faults.checkpoint import Checkpoint
from tests.faults.driver import Stream
from tests.faults.processes import kill_session, wait_until

ROOT = Path(__file__).parents[2]
ENDS_WITHIN = 300


class Running:
    """A stream over a folder of files (or over Kafka), whose driver runs, or does not."""

    def __init__(self, folder: Path, workload: str, *, checkpoint: Path | None = None, **settings: Any) -> None:
        self.folder, self.count = folder, 0
        self.log = folder / "driver.log"
        (folder / "in").mkdir(parents=True)
        out, late, state = (folder / name for name in ("out", "late", "checkpoint"))
        settings = {"files": f"{folder}/in", **settings}
        self.stream = Stream(workload, str(out), str(late), str(checkpoint or state), **settings)
        self.checkpoint = Checkpoint(checkpoint or state)

    def arrive(self, *tables: pa.Table) -> None:
        """Add files, each of which appears whole, in the order in which Spark reads them."""
        for table in tables:
            hidden = self.folder / "in" / "_arriving"
            pq.write_table(table, hidden)
            self.count += 1
            os.utime(hidden, (1e9 + 10 * self.count, 1e9 + 10 * self.count))
            hidden.rename(self.folder / "in" / f"{self.count:04}.parquet")

    @contextmanager
    def driver(self, *, once: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """A driver, which is gone with all its processes when the block ends."""
        command = [sys.executable, "-W", "ignore", "-m", "tests.faults.driver"]
        with self.log.open("ab") as log:
            driver = subprocess.Popen(
                [*command, replace(self.stream, once=once).to_json()],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(self.folder / "local")},
                start_new_session=True,
            )
        try:
            yield driver
        finally:
            kill_session(driver.pid)
            driver.wait(timeout=20)

    def finish(self) -> None:
        """Run all that there is to read."""
        with self.driver(once=True) as driver:
            driver.wait(timeout=ENDS_WITHIN)
        assert driver.returncode == 0, self.said

    def wait(self, driver: subprocess.Popen[bytes], happened: Callable[[], bool], what: str) -> None:
        """Wait for something that the driver does, which must not end before."""
        wait_until(lambda: happened() or driver.poll() is not None, what, ENDS_WITHIN)
        assert driver.poll() is None, self.said

    def begun(self, driver: subprocess.Popen[bytes], batch: int) -> None:
        """Wait until a micro-batch has begun."""
        self.wait(driver, lambda: self.checkpoint.begun >= batch, f"the beginning of batch {batch}")

    def committed(self, driver: subprocess.Popen[bytes], batch: int) -> None:
        """Wait until a micro-batch is committed."""
        self.wait(driver, lambda: self.checkpoint.committed >= batch, f"batch {batch}")

    @property
    def said(self) -> str:
        """The end of what the drivers wrote."""
        return self.log.read_text(errors="replace")[-6000:]

    def check(self, rows: pa.Table) -> Mapping[str, int]:
        """Check what was written of all rows, which are in order if they came over Kafka; gives how much it was."""
        late = self.checkpoint.late_ids(None if self.stream.kafka is None else rows)
        found, reported = read_folder(self.stream.out), read_folder(self.stream.late)
        return check(self.stream.workload, rows, found, reported, late, self.checkpoint.watermark())


def read_folder(path: str) -> pa.Table:
    """All rows that a plain reader finds in a folder; Spark writes their times without a zone."""
    table = ds.dataset(path, format="parquet").to_table()
    at = table.schema.get_field_index("ts")
    return table if at < 0 else table.set_column(at, "ts", table.column(at).cast(pa.timestamp("us", "UTC")))
