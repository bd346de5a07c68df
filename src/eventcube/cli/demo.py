"""`eventcube demo`: a hospital day with planted violations, found again on Spark."""

from __future__ import annotations

import shlex
import time as clock
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from eventcube.errors import OptionError

if TYPE_CHECKING:
    from eventcube.bench.hospital import Day

TOOLS, VIOLATIONS = 5_000, 240
LEAST_EVENTS = 1_000
EXAMPLES = 5
# tool, recycled, washed, operated
Round = tuple[str, datetime, datetime, datetime]


@click.command(short_help="Find the planted violations in a generated hospital day.")
@click.option(
    "--events", type=click.IntRange(LEAST_EVENTS), default=500_000, show_default=True, help="How many events."
)
@click.option("--seed", default=7, show_default=True, help="Another seed is another day.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True, help="Where to write."
)
@click.option("--master", default="local[*]", show_default=True, help="The Spark master.")
def demo(events: int, seed: int, out: Path, master: str) -> int:
    """Generate a day of RFID readings of surgical tools, and find those used without proper care, on Spark.

    Between washing and operation a tool must be sharpened and disinfected, both in one room. The events, the query and
    the matches are written to --out. Exit code 1 if what was found is not what was planted.

    \b
    Example:
      eventcube demo --events 500000
    """
    from eventcube.bench.hospital import QUERY, hospital_day
    from eventcube.cli.on_spark import Spark
    from eventcube.cli.progress import working
    from eventcube.match import match
    from eventcube.spark import files

    console = Console()
    tools = min(TOOLS, events // 100)
    begun = clock.monotonic()
    with working("generating a hospital day"):
        day = hospital_day(events, tools, min(VIOLATIONS, tools * 2), seed)
        folder, query, matches = out / "events.parquet", out / "violations.neel", out / "matches.parquet"
        _write(day, out, folder, query, QUERY)
    generated = clock.monotonic() - begun
    console.print(f"A hospital day: {events:,} RFID readings of {tools:,} tools (seed {seed}), {generated:.1f} s.")
    console.print(
        "A tool is recycled, washed, then used within 10 minutes, and in between it was not both sharpened and"
    )
    console.print("disinfected in one room:\n")
    console.print(QUERY, style="cyan", highlight=False, markup=False)

    spark = Spark(master, {}, quiet=False)
    try:
        started = clock.monotonic()
        with spark.working("matching on Spark"):
            read = spark.session.read.parquet(str(folder.resolve()))
            found = match(read, QUERY, time="ts", type="kind")
            files.write_folder(found, str(matches.resolve()), "parquet")
        seconds = clock.monotonic() - started
    finally:
        spark.close()
    agree = _report(console, day, _rounds(pq.read_table(matches)))
    console.print(
        f"\nMatched on Spark ({master}) in {seconds:.1f} s: {events / seconds:,.0f} events/s, first use included."
    )
    console.print(f"events   {folder}\nquery    {query}\nmatches  {matches}", highlight=False, markup=False)
    _next_steps(console, folder, query)
    return 0 if agree else 1


def _write(day: Day, out: Path, folder: Path, query: Path, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.parquet"):
            old.unlink()
        # Several files, as a day's readings would come.
        step = -(-day.events.num_rows // 4)
        for number, at in enumerate(range(0, day.events.num_rows, step)):
            pq.write_table(day.events.slice(at, step), folder / f"part-{number}.parquet")
        query.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write to {out}: {error.strerror}", code="EC425") from None


def _rounds(matches: pa.Table) -> list[Round]:
    return [
        (row["r"]["id"], *(_naive(row[variable]["ts"]) for variable in ("r", "w", "o")))
        for row in matches.select(["r", "w", "o"]).to_pylist()
    ]


def _naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def _report(console: Console, day: Day, found: list[Round]) -> bool:
    planted = {(v.tool, v.recycled, v.washed, v.operated): v.care for v in day.planted}
    by_kind = Counter(planted.values())
    found_by_kind = Counter(planted.get(key, "not planted") for key in found)
    table = Table(title="Violations", title_justify="left")
    table.add_column("between washing and operation")
    table.add_column("planted", justify="right")
    table.add_column("found", justify="right")
    for kind in [*by_kind, *(["not planted"] if "not planted" in found_by_kind else [])]:
        same = by_kind[kind] == found_by_kind[kind]
        table.add_row(kind, f"{by_kind[kind]:,}", f"[{'green' if same else 'red'}]{found_by_kind[kind]:,}[/]")
    table.add_section()
    table.add_row("all", f"{len(planted):,}", f"{len(found):,}")
    console.print(table)
    agree = Counter(found) == Counter(planted)
    if agree:
        console.print("[green]Every planted violation was found, and nothing else.[/]")
    else:
        missed = len(planted.keys() - set(found))
        console.print(
            f"[red]{missed} planted violations were missed; {found_by_kind['not planted']} were not planted.[/]"
        )
    console.print("\nThe first of them:")
    for tool, recycled, washed, operated in sorted(found, key=lambda r: r[3])[:EXAMPLES]:
        kind = planted.get((tool, recycled, washed, operated), "not planted")
        times = f"recycled {recycled:%H:%M:%S}, washed {washed:%H:%M:%S}, used {operated:%H:%M:%S}"
        console.print(f"  {tool}: {times}: {kind}", highlight=False)
    return agree


def _next_steps(console: Console, folder: Path, query: Path) -> None:
    events, text = shlex.quote(str(folder)), shlex.quote(str(query))
    console.print("\nTry next:", style="bold")
    washed_twice = "PATTERN SEQ(Wash a, !(Operate o, o.id = a.id), Wash b) WHERE a.id = b.id WITHIN 4 hours"
    for line in (
        f"eventcube run {text} {events} --type kind --limit 5",
        f"eventcube explain {text} {events} --type kind",
        f"eventcube run {shlex.quote(washed_twice)} {events} --type kind",
    ):
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
