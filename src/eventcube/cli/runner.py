"""`Runner`: the interface of the two ways to run queries over files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from eventcube.cli.survey import Check, Survey


class Runner(Protocol):
    """Queries to run in process or on Spark. `columns` are those of the events, `schema` is that of the matches.

    `start_seconds` is the time Spark took to start, `left_out` the number of events that `--less` took away.
    """

    columns: pa.Schema
    schema: pa.Schema
    start_seconds: float
    left_out: int

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters so far."""

    def sample(self, columns: list[str], most: int) -> pa.Table:
        """Some of the events, with these columns only."""

    @property
    def survey(self) -> Survey:
        """Counts over the input; available when `check` is called."""

    def first(self, most: int, check: Check) -> tuple[pa.Table, int]:
        """The earliest matches, and the number of all."""

    def counts(self, check: Check) -> dict[str, int | None]:
        """The number of matches of each query; only of a runner that counts."""

    def write_file(self, path: Path | None, format_: str, check: Check) -> int:
        """Write all matches to one file, or to standard output; returns their number."""

    def write_folder(self, path: Path, format_: str, check: Check) -> int:
        """Write all matches into a folder; returns their number."""

    def write_set_aside(self, path: Path, format_: str) -> None:
        """Write the skipped rows, with the reason."""

    def close(self) -> None:
        """Release the session and files."""
