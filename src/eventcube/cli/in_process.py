"""Runs queries in this process, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.cli.arrow_input import read_events
from eventcube.cli.input_warnings import warn_of_unfound
from eventcube.cli.inputs import Inputs
from eventcube.cli.left_out import without_rows
from eventcube.cli.progress import Reading, working
from eventcube.cli.query import Asked, each_query
from eventcube.cli.result_files import new_folder, write_batches
from eventcube.cli.survey import Check, Survey, first, wanted_by_any
from eventcube.cube.levels import levels_schema
from eventcube.engine.counters import Counters
from eventcube.engine.counts import Counts
from eventcube.engine.time_text import has_zones
from eventcube.errors import warn
from eventcube.language.syntax import Query
from eventcube.match import (
    COUNTED,
    counting_queries,
    find_skipped,
    limits_of,
    queries_at_levels,
    run,
    run_counts,
    run_levels,
    warn_unbounded,
)
from eventcube.options import Options
from eventcube.plan.advice import once_each, warn_of_conditions
from eventcube.plan.event_columns import PlainColumn, event_columns, flat_columns, plain_batch, plain_schema
from eventcube.runtime.ingest import REASON
from eventcube.runtime.queries import queries_by_name
from eventcube.runtime.runtime import Runtime
from eventcube.slips import example_of


class InProcess:
    """One or more queries over files, on one core; see `Runner`."""

    start_seconds = 0.0
    left_out = 0

    def __init__(
        self,
        inputs: Inputs,
        asked: Asked,
        options: Options,
        *,
        less: Inputs | None = None,
        flat: bool = False,
        counting: bool = False,
        levels: bool = False,
        quiet: bool = False,
    ) -> None:
        self.asked, self.options, self.quiet, self._levels = asked, options, quiet, levels
        with working(f"reading {inputs.shown}", quiet=quiet):
            self.read = self.events = read_events(inputs, options.time)
            if less is not None:
                rows = read_events(less, options.time)
                # A folder `batch=N` of a stream is not a column of the events.
                rows = rows.select(
                    [name for name in rows.column_names if name != "batch" or name in self.read.schema.names]
                )
                self.events = without_rows(self.read, rows, options.time)
                self.left_out = self.read.num_rows - self.events.num_rows
                warn_of_unfound(rows.num_rows, rows.num_rows - self.left_out)
        self.columns = self.events.schema
        self._columns: Sequence[PlainColumn] = ()
        # The command warns of mistakes that the events show before the run; see `survey`.
        if counting or levels:
            named = queries_by_name(asked)
            queries = queries_at_levels(named, options) if levels else counting_queries(named)
            unlimited = replace(options, limit=None)
            self.runtime = Runtime.from_options(queries, unlimited, schema=self.columns, separate=True, advise=False)
            self.schema = levels_schema(queries, self.runtime.schemas) if levels else COUNTED
        else:
            self.runtime = Runtime.from_options(asked, options, schema=self.columns, advise=False)
            events = event_columns(asked) if flat and isinstance(asked, Query) else ()
            self._columns = flat_columns(self.runtime.schema, events)
            self.schema = plain_schema(self.runtime.schema, self._columns)
        self.counters = Counts()
        self.counters.follow(lambda: Counters(**self.runtime.counters))
        warn_unbounded(asked)
        for name, bound in self.runtime.bound_queries.items():
            query = queries_by_name(asked)[name]
            warn_of_conditions(bound)
            if bound.warnings_if_zoned and has_zones(self.events.column(options.time)):
                for problem in once_each(bound.warnings_if_zoned):
                    warn(problem, query.text, query.source)

    def sample(self, columns: list[str], most: int) -> pa.Table:
        """Some of the events, with these columns only."""
        return self.events.select(columns).slice(0, most)

    @cached_property
    def survey(self) -> Survey:
        """Counts over the input."""
        skipped_rows = self._skipped_rows()
        reasons = dict(_counted(skipped_rows[REASON]))
        first_rows = {reason: pc.index(skipped_rows[REASON], reason).as_py() for reason in reasons}
        examples = {reason: example_of(skipped_rows[self.options.time][row]) for reason, row in first_rows.items()}
        if self.options.type is None:
            return Survey(self.read.num_rows, reasons, examples)
        present = Counter(dict(_counted(self.read[self.options.type])))
        wanted = wanted_by_any(each_query(self.asked), self.options.concepts)
        missing = frozenset(name for name, types in wanted.items() if not types & present.keys())
        skipped = {
            name: by_reason
            for name, types in wanted.items()
            if (by_reason := self._skipped_by_reason(types, skipped_rows, present))
        }
        return Survey(self.read.num_rows, reasons, examples, missing, first(present) if missing else (), skipped)

    def _skipped_by_reason(
        self, types: Collection[str], skipped: pa.Table, present: Mapping[str, int]
    ) -> dict[str, int]:
        """The number of rows of some types by the reason why they are skipped; empty if one is not."""
        wanted = pa.array(sorted(types), pa.string())
        rows = skipped.filter(pc.is_in(skipped[self.options.type].cast(pa.string()), wanted))
        return dict(_counted(rows[REASON])) if rows.num_rows == sum(present[t] for t in types if t in present) else {}

    def first(self, most: int, check: Check) -> tuple[pa.Table, int]:
        """The earliest matches, and the number of all."""
        check()
        earliest, total = self.schema.empty_table(), 0
        grouped = isinstance(self.asked, Query) and self.asked.agg
        order = () if self._levels else self.schema.names if grouped else ("end", "start")
        for batch in self.batches():
            total += batch.num_rows
            earliest = pa.concat_tables([earliest, pa.Table.from_batches([batch], self.schema)])
            # Events go by their time.
            columns = [_sortable(earliest.column(name), self.options.time) for name in order]
            names = [str(i) for i in range(len(order))]
            # Cells are in the order of the hierarchy.
            if names:
                earliest = earliest.take(pc.sort_indices(pa.table(columns, names), [(n, "ascending") for n in names]))
            earliest = earliest.slice(0, most)
        return earliest, total

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All matches, as they are found."""
        with self._working():
            if self._levels:
                limits = limits_of(queries_by_name(self.asked), self.options.limit)
                yield from run_levels(self.runtime, self.events, limits).to_batches()
                return
            for batch in run(self.runtime, self.events):
                yield plain_batch(batch, self._columns)

    def counts(self, check: Check) -> dict[str, int | None]:
        """The number of matches of each query."""
        check()
        with self._working():
            return run_counts(self.runtime, self.events, limits_of(queries_by_name(self.asked), self.options.limit))

    def write_file(self, path: Path | None, format_: str, check: Check) -> int:
        """Write all matches to one file, or to standard output."""
        check()
        return write_batches(self.batches(), self.schema, format_, path)

    def write_folder(self, path: Path, format_: str, check: Check) -> int:
        """Write all matches into a folder."""
        with new_folder(path) as folder:
            return self.write_file(folder / f"part-00000.{format_}", format_, check)

    def write_set_aside(self, path: Path, format_: str) -> None:
        """Write the skipped rows, with the reason."""
        rows = self._skipped_rows()
        write_batches(rows.to_batches(), rows.schema, format_, path)

    def close(self) -> None:
        """Nothing to give back."""

    def _skipped_rows(self) -> pa.Table:
        skipped: pa.Table = find_skipped(self.read, self.options)
        return skipped

    def _working(self) -> AbstractContextManager[None]:
        def poll() -> Reading:
            counters = self.runtime.counters
            return Reading(counters["events"], self.events.num_rows, f"{counters['matches']:,} matches")

        return working("matching", poll, quiet=self.quiet)


def _counted(column: pa.ChunkedArray) -> Iterator[tuple[str, int]]:
    """The distinct texts of a column, with their counts."""
    for count in pc.value_counts(column).to_pylist():
        if count["values"] is not None:
            yield str(count["values"]), int(count["counts"])


def _sortable(column: pa.ChunkedArray, time: str) -> pa.ChunkedArray:
    return pc.struct_field(column, time) if pa.types.is_struct(column.type) else column
