"""Shows matches as a table on the screen."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 160


class Screen(Console):
    """A console that raises BrokenPipeError, which the command handles."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def screen() -> Screen:
    """The terminal, or one of a fixed width if the output goes elsewhere."""
    return Screen() if sys.stdout.isatty() else Screen(width=WIDE)


def show_counts(counts: pa.Table) -> None:
    """Print the number of matches of each query, with its text."""
    table = Table(header_style="bold")
    table.add_column("query", overflow="fold")
    table.add_column("matches", justify="right", no_wrap=True)
    table.add_column("pattern", overflow="fold")
    for row in counts.to_pylist():
        matches = "more than 64 bits hold" if row["matches"] is None else f"{row['matches']:,}"
        table.add_row(Text(row["query"]), matches, Text(row["pattern"]))
    screen().print(table)


def show_matches(matches: pa.Table, total: int) -> None:
    """Print the first matches, an event in each cell with one attribute a line, and the number of all."""
    console = screen()
    if not matches.num_rows:
        console.print("no matches")
        return
    table = Table(show_lines=any(pa.types.is_nested(f.type) for f in matches.schema), header_style="bold")
    for field in matches.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if numeric else "left", overflow="fold")
    for row in matches.to_pylist():
        table.add_row(*(Text(cell_text(value)) for value in row.values()))
    console.print(table)
    if total > matches.num_rows:
        console.print(f"{total - matches.num_rows:,} more; --out PATH writes all of them", style="dim")


def cell_text(value: Any) -> str:
    """A value as text for the screen."""
    match value:
        case None:
            return "·"
        case Mapping():
            return "\n".join(f"{name} {cell_text(v)}" for name, v in value.items())
        case [Mapping(), *_]:
            # The events of a match of one of several queries, an event a line.
            return "\n".join(_event_text(event) for event in value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case timedelta():
            return f"{value.total_seconds():g} s"
        case _:
            return str(value)


def _event_text(event: Mapping[str, Any]) -> str:
    (_, variable), *columns = event.items()
    return f"{variable}: " + ", ".join(f"{name} {cell_text(value)}" for name, value in columns)
