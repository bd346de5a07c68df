"""What Spark noted of a stream in its checkpoint: micro-batches, their watermarks, and the files that each read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


class Checkpoint:
    """The checkpoint of a stream, which may run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def begun(self) -> int:
        """The number of the last micro-batch that began, or -1."""
        return max(_numbers(self.path / "offsets"), default=-1)

    @property
    def committed(self) -> int:
        """The number of the last micro-batch that was committed, or -1."""
        return max(_numbers(self.path / "commits"), default=-1)

    @property
    def state_version(self) -> int:
        """The newest version of the state of any bucket, or -1."""
        changes = (file.name.split(".")[0] for file in (self.path / "state").rglob("*.changelog"))
        return max((int(name) for name in changes if name.isdigit()), default=-1)

    def watermark(self, batch: int | None = None) -> int:
        """The watermark of a micro-batch, or of the last that was committed, in microseconds."""
        watermark: int = json.loads(self._offsets(self.committed if batch is None else batch)[1])["batchWatermarkMs"]
        return watermark * 1000

    def late_ids(self, topic: pa.Table | None = None) -> list[int]:
        """The ids of the rows that came after the watermark of their micro-batch: of files, or of a topic's rows."""
        files = self._files() if topic is None else {}
        late: list[int] = []
        read = -1 if topic is None else 0
        for batch in range(self.committed + 1):
            until = json.loads(self._offsets(batch)[2])
            if topic is None:
                until = until["logOffset"]
                found = [file for at in range(read + 1, until + 1) for file in files.get(at, [])]
                pieces = [pq.read_table(file, columns=["ts", "id"]) for file in found]
            else:
                (until,) = next(iter(until.values())).values()
                pieces = [topic.slice(read, until - read)]
            for rows in pieces:
                is_late = pc.less(rows.column("ts").cast(pa.int64()), self.watermark(batch))
                late += rows.column("id").filter(is_late).to_pylist()
            read = until
        return late

    def _offsets(self, batch: int) -> list[str]:
        return (self.path / "offsets" / str(batch)).read_text().split("\n")

    def _files(self) -> dict[int, list[Path]]:
        """The files that the source found, by the number of the entry of its log."""
        found: dict[int, set[Path]] = {}
        for log in (self.path / "sources" / "0").glob("[0-9]*"):
            for entry in _entries(log):
                found.setdefault(entry["batchId"], set()).add(Path(unquote(urlparse(entry["path"]).path)))
        return {number: sorted(files) for number, files in found.items()}


def _entries(log: Path) -> Iterator[Any]:
    return (json.loads(line) for line in log.read_text().split("\n")[1:] if line)


def _numbers(folder: Path) -> Iterator[int]:
    if folder.exists():
        yield from (int(file.name) for file in folder.iterdir() if file.name.isdigit())
