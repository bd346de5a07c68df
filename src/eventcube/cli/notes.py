"""Notes on what was probably meant otherwise, from a look at some of the events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.cli.settings import Settings
from eventcube.cli.survey import wanted_types
from eventcube.language.check import components
from eventcube.language.syntax import Query
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.schema import Kind, kind_of

SAMPLED = 10_000
# Whole numbers are taken to count from 1970 in a unit if that puts all of them into these years.
_LIKELY_YEARS = (1990, 2100)

Sample = Callable[[list[str], int], pa.Table]


def note_untyped(query: Query, settings: Settings, columns: pa.Schema, sample: Sample) -> None:
    """Remind of --type where the query names types but no column holds them."""
    named = [c for c in components(query.pattern) if c.var is not None and c.var != c.type]
    if settings.type is not None or not named:
        return
    types = pa.array(sorted(set().union(*wanted_types(query, settings.concepts).values())))
    texts = [f.name for f in columns if kind_of(f.type) is Kind.TEXT]
    events = sample(texts, SAMPLED) if texts else pa.table({})
    holding = [n for n in texts if pc.any(pc.is_in(events[n].cast(pa.string()), types.cast(pa.string()))).as_py()]
    some = f" (perhaps --type {holding[0]})" if holding else ""
    click.echo(f"note: no type column is named{some}, so every event can be a {named[0].type}; see --type", err=True)


def note_time_unit(settings: Settings, columns: pa.Schema, sample: Sample) -> None:
    """Warn of whole numbers that are times soon after 1970 as they are read, but not in another unit."""
    if kind_of(columns.field(settings.time).type) is not Kind.INTEGER:
        return
    times = pc.min_max(sample([settings.time], SAMPLED)[settings.time]).as_py()
    if times["min"] is None or not 0 <= times["max"] * UNITS_IN_MICROSECONDS[settings.time_unit] < _start_of(1971):
        return
    for unit, factor in UNITS_IN_MICROSECONDS.items():
        first, last = _LIKELY_YEARS
        if _start_of(first) <= times["min"] * factor and times["max"] * factor < _start_of(last):
            click.echo(
                f"warning: with --time-unit {settings.time_unit} the times in {settings.time} lie in early 1970\n"
                f"hint: with --time-unit {unit} they would lie in {_year(times['min'] * factor)}",
                err=True,
            )


def _start_of(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


def _year(microseconds: int) -> int:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).year
