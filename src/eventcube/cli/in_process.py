"""Runs a query in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.cli.arrow_input import read_events
from eventcube.cli.inputs import Inputs
from eventcube.cli.progress import Reading, working
from eventcube.cli.result_files import new_folder, write_batches
from eventcube.cli.settings import Settings
from eventcube.cli.survey import Survey, first, wanted_types
from eventcube.engine.counters import Counters, Counts
from eventcube.language.syntax import Query
from eventcube.match import run, set_aside, warn_unbounded
from eventcube.runtime.ingest import REASON
from eventcube.runtime.runtime import Runtime


class InProcess:
    """One query over files, on one core; see `Runner`."""

    def __init__(self, inputs: Inputs, query: Query, settings: Settings, *, quiet: bool) -> None:
        self.query, self.settings, self.quiet = query, settings, quiet
        with working(f"reading {inputs.shown}", quiet=quiet):
            self.events = read_events(inputs)
        self.columns = self.events.schema
        self.runtime = Runtime(query, schema=self.events.schema, **settings.for_match())
        self.schema = self.runtime.schema
        self.counters = Counts()
        self.counters.follow(lambda: Counters(**self.runtime.counters))
        warn_unbounded(query)

    def sample(self, columns: list[str], most: int) -> pa.Table:
        """Some of the events, with these columns only."""
        return self.events.select(columns).slice(0, most)

    def survey(self) -> Survey:
        """What the input holds."""
        aside = pc.value_counts(self._aside()[REASON]).to_pylist()
        reasons = {str(count["values"]): int(count["counts"]) for count in aside}
        if self.settings.type is None:
            return Survey(self.events.num_rows, reasons)
        there = set(pc.unique(self.events[self.settings.type]).to_pylist())
        wanted = wanted_types(self.query, self.settings.concepts)
        missing = frozenset(name for name, types in wanted.items() if not types & there)
        return Survey(self.events.num_rows, reasons, missing, first(there) if missing else ())

    def first(self, most: int) -> tuple[pa.Table, int]:
        """The earliest matches, and how many there are."""
        kept, total = self.schema.empty_table(), 0
        order = [(name, "ascending") for name in (self.schema.names if self.query.agg else ("end", "start"))]
        for batch in self.batches():
            total += batch.num_rows
            kept = pa.concat_tables([kept, pa.Table.from_batches([batch], self.schema)])
            kept = kept.sort_by(order).slice(0, most)
        return kept, total

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All matches, as they are found."""
        with self._working():
            yield from run(self.runtime, self.events)

    def write_file(self, path: Path | None, format_: str) -> int:
        """Write all matches to one file, or to standard output."""
        return write_batches(self.batches(), self.schema, format_, path)

    def write_folder(self, path: Path, format_: str) -> int:
        """Write all matches into a folder."""
        with new_folder(path) as folder:
            return self.write_file(folder / f"part-00000.{format_}", format_)

    def write_set_aside(self, path: Path, format_: str) -> None:
        """Write the rows that cannot be used, with the reason."""
        rows = self._aside()
        write_batches(rows.to_batches(), rows.schema, format_, path)

    def close(self) -> None:
        """Nothing to give back."""

    def _aside(self) -> pa.Table:
        named = self.settings
        return set_aside(self.events, time=named.time, type=named.type, time_unit=named.time_unit)

    def _working(self) -> AbstractContextManager[None]:
        def poll() -> Reading:
            counters = self.runtime.counters
            return Reading(counters["events"], self.events.num_rows, f"{counters['matches']:,} matches")

        return working("matching", poll, quiet=self.quiet)
