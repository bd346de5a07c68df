"""`eventcube demo`: finds planted violations in a generated hospital day, on Spark; with --cube, see `demo_cube.py`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time as clock
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from eventcube.cli.screen import Screen
from eventcube.errors import OptionError

if TYPE_CHECKING:
    from eventcube.bench.hospital import Day

TOOLS, VIOLATIONS = 5_000, 240
LEAST_EVENTS = 1_000
FILES = 4
EXAMPLES = 5
NOT_PLANTED = "not planted"
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
@click.option(
    "--cube", is_flag=True, help="Instead, count eight related queries over people on the move; without Spark."
)
@click.option("--stream", is_flag=True, help="The day arrives live, compressed into less than a minute.")
def demo(events: int, seed: int, out: Path, master: str, cube: bool, stream: bool) -> int:
    """Generate a day of RFID readings of surgical tools, and find those used without proper care, on Spark.

    Between washing and operation a tool must be sharpened and disinfected, both in one room. The events, the query and
    the matches are written to --out. Exit code 1 if what was found is not what was planted.

    With --cube, people move between two states, and related queries ask for it by state, by city and by station: shows
    how they relate, what each finds, a drill-down, and what sharing the work saves.

    With --stream, the day arrives in files while Spark runs, a little out of order, and each violation is shown as soon
    as it is certain.

    \b
    Example:
      eventcube demo --events 500000
      eventcube demo --stream
      eventcube demo --cube
    """
    if cube and stream:
        raise OptionError("--cube and --stream are two demos", code="EC422", hint="leave out one of them")
    if stream:
        from eventcube.cli.demo_stream import demo_stream

        return demo_stream(events, seed, out, master)
    if cube:
        from eventcube.cli.demo_cube import demo_cube

        return demo_cube(events, seed, out, _program())
    from eventcube.bench.hospital import QUERY
    from eventcube.cli.compiling import compile_loops
    from eventcube.cli.on_spark import Spark
    from eventcube.cli.progress import working
    from eventcube.match import match
    from eventcube.spark import files

    folder, query, matches = out / "events", out / "violations.neel", out / "matches"
    begun = clock.monotonic()
    with working("generating a hospital day"):
        day, tools = make_day(events, seed)
        _write(day, folder, query, QUERY)
    seconds = clock.monotonic() - begun
    click.echo(f"A hospital day: {events:,} RFID readings of {tools:,} tools (seed {seed}), made in {seconds:.1f} s.")
    click.echo("Which tools were used within 10 minutes of being recycled, but not sharpened and disinfected in one")
    click.echo("room after they had been washed?\n")
    click.secho(QUERY, fg="cyan")

    if master.startswith("local"):
        compile_loops()
    spark = Spark(master, {}, quiet=False)
    try:
        begun = clock.monotonic()
        with spark.working("matching on Spark"):
            read = spark.session.read.parquet(str(folder.resolve()))
            result = match(read, QUERY, time="ts", type="kind")
            files.write_folder(result, str(matches.resolve()), "parquet")
        seconds = clock.monotonic() - begun
    finally:
        spark.close()
    agree = report(day, rounds(pq.read_table(matches)))
    click.echo(f"\nMatched on Spark ({master}) in {seconds:.1f} s, the start of its Python workers included.")
    click.echo(f"events   {folder}\nquery    {query}\nmatches  {matches}")
    _next_steps(folder, query)
    return 0 if agree else 1


def make_day(events: int, seed: int) -> tuple[Day, int]:
    """A hospital day with so many events, and the number of its tools."""
    from eventcube.bench.hospital import hospital_day

    tools = min(TOOLS, events // 100)
    return hospital_day(events, tools, min(VIOLATIONS, tools * 2), seed), tools


def _write(day: Day, folder: Path, query: Path, text: str) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        step = -(-day.events.num_rows // FILES)
        for number, at in enumerate(range(0, day.events.num_rows, step)):
            pq.write_table(day.events.slice(at, step), folder / f"part-{number}.parquet")
        query.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write to {folder.parent}: {error.strerror}", code="EC425") from None


def rounds(matches: pa.Table) -> list[Round]:
    """The rounds of tools in matches."""
    found = []
    for row in matches.select(["r", "w", "o"]).to_pylist():
        recycled, washed, operated = (row[variable]["ts"].replace(tzinfo=None) for variable in ("r", "w", "o"))
        found.append((str(row["r"]["id"]), recycled, washed, operated))
    return found


def report(day: Day, found: list[Round]) -> bool:
    """Print the violations found beside those planted; returns whether they agree."""
    planted = planted_rounds(day)
    expected = Counter(planted.values())
    counted = Counter(planted.get(key, NOT_PLANTED) for key in found)
    table = Table(title="Violations", title_justify="left")
    table.add_column("between washing and operation")
    table.add_column("planted", justify="right")
    table.add_column("found", justify="right")
    for kind in sorted(expected | counted):
        style = "green" if expected[kind] == counted[kind] else "red"
        table.add_row(kind, f"{expected[kind]:,}", f"[{style}]{counted[kind]:,}[/]")
    table.add_section()
    table.add_row("all", f"{len(planted):,}", f"{len(found):,}")
    Screen().print(table)
    agree = Counter(found) == Counter(planted.keys())
    if agree:
        click.secho("Every planted violation was found, and nothing else.", fg="green")
    else:
        missed = len(planted.keys() - set(found))
        click.secho(f"Not the same: {missed} missed, {counted[NOT_PLANTED]} found that were not planted.", fg="red")
    click.echo("\nThe first of them:")
    for tool, recycled, washed, operated in sorted(found, key=lambda r: r[3])[:EXAMPLES]:
        click.echo(f"  {round_text((tool, recycled, washed, operated), planted)}")
    return agree


def round_text(found: Round, planted: Mapping[Round, str]) -> str:
    """A round in words, with what was planted in it."""
    tool, recycled, washed, operated = found
    times = f"recycled {recycled:%H:%M:%S}, washed {washed:%H:%M:%S}, used {operated:%H:%M:%S}"
    return f"{tool}: {times}: {planted.get(found, NOT_PLANTED)}"


def planted_rounds(day: Day) -> dict[Round, str]:
    """The planted violations, with what was left out in each."""
    return {(v.tool, v.recycled, v.washed, v.operated): v.care for v in day.planted}


def _next_steps(folder: Path, query: Path) -> None:
    events, text = shlex.quote(str(folder)), shlex.quote(str(query))
    washed_twice = "PATTERN SEQ(Wash a, !(Operate o, o.id = a.id), Wash b) WHERE a.id = b.id WITHIN 4 hours"
    click.secho("\nTry next:", bold=True)
    for arguments in (
        f"run {text} {events} --type kind --limit 5",
        f"explain {text} {events} --type kind",
        f"run {shlex.quote(washed_twice)} {events} --type kind",
    ):
        click.echo(f"  {_program()} {arguments}")


def _program() -> str:
    """The command to type here; `make demo` runs it from an environment that is not on the PATH."""
    here = Path(sys.argv[0])
    if shutil.which("eventcube") or here.name != "eventcube":
        return "eventcube"
    return shlex.quote(os.path.relpath(here))
