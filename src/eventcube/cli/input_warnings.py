"""Warnings about probable mistakes, from the names of the input and a sample of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.cli.inputs import Inputs
from eventcube.errors import Diagnostic, warn
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.schema import Kind, kind_of
from eventcube.slips import (
    SAMPLED,
    as_flag,
    named_types,
    other_source,
    type_column,
    unlikely_times,
    untyped,
    wanted_types,
)

Sample = Callable[[list[str], int], pa.Table]


def input_names(inputs: Inputs) -> set[str]:
    """The names of the files and folders of an input, with and without their endings."""
    parts = {part for path in (*inputs.paths, *inputs.files) for part in PurePath(path).parts}
    return parts | {part.split(".")[0] for part in parts}


def warn_of_source(queries: Iterable[Query], inputs: Inputs) -> None:
    """Warn if FROM names neither a file nor a folder of the input."""
    for problem in dict.fromkeys(other_source(query, input_names(inputs), inputs.shown) for query in queries):
        if problem is not None:
            warn(problem)


def warn_of_missing_type_column(queries: Iterable[Query], options: Options, columns: pa.Schema, sample: Sample) -> None:
    """Warn, for the first of the queries that names types, that the options name no type column."""
    query = next((query for query in queries if named_types(query)), None)
    if options.type is not None or query is None:
        return
    texts = [f.name for f in columns if kind_of(f.type) is Kind.TEXT]
    types = frozenset().union(*wanted_types(query, options.concepts).values())
    candidate = type_column(sample(texts, SAMPLED), types) if texts else None
    warn(untyped(query, candidate, as_flag))


def warn_of_time_unit(options: Options, columns: pa.Schema, sample: Sample) -> None:
    """Warn if whole numbers are unlikely times in the chosen unit, but likely ones in another."""
    if kind_of(columns.field(options.time).type) is not Kind.INTEGER:
        return
    times = pc.min_max(sample([options.time], SAMPLED)[options.time]).as_py()
    if times["min"] is not None:
        problem = unlikely_times(times["min"], times["max"], options.time, options.time_unit, as_flag)
        if problem is not None:
            warn(problem)


def warn_of_unfound(rows: int, unfound: int) -> None:
    """Warn of rows to leave out that are not among the events."""
    if unfound:
        message = f"{unfound:,} of {rows:,} rows to leave out not found among the events"
        warn(Diagnostic("EC507", message, hint="--less takes the late rows of a stream over the same events"))
