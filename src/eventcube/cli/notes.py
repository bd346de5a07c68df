"""Notes on what was probably meant otherwise, from the names of the input and a look at some of the events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.cli.inputs import Inputs
from eventcube.errors import warn
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
    """The names that the files and folders of an input go by, with and without their endings."""
    parts = {part for path in (*inputs.paths, *inputs.files) for part in PurePath(path).parts}
    return parts | {part.split(".")[0] for part in parts}


def note_source(query: Query, inputs: Inputs) -> None:
    """Warn of FROM that names neither a file nor a folder of the input."""
    problem = other_source(query, input_names(inputs), inputs.shown)
    if problem is not None:
        warn(problem)


def note_untyped(query: Query, options: Options, columns: pa.Schema, sample: Sample) -> None:
    """Warn where the query names types, and no column was named as theirs."""
    if options.type is not None or not named_types(query):
        return
    texts = [f.name for f in columns if kind_of(f.type) is Kind.TEXT]
    types = frozenset().union(*wanted_types(query, options.concepts).values())
    holding = type_column(sample(texts, SAMPLED), types) if texts else None
    warn(untyped(query, holding, as_flag))


def note_time_unit(options: Options, columns: pa.Schema, sample: Sample) -> None:
    """Warn of whole numbers that are times soon after 1970 or far off as they are read, but not in another unit."""
    if kind_of(columns.field(options.time).type) is not Kind.INTEGER:
        return
    times = pc.min_max(sample([options.time], SAMPLED)[options.time]).as_py()
    if times["min"] is not None:
        problem = unlikely_times(times["min"], times["max"], options.time, options.time_unit, as_flag)
        if problem is not None:
            warn(problem)
