"""`eventcube demo --cube`: related queries over generated movements of people, in this process."""

from __future__ import annotations

import shlex
import time as clock
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from rich.table import Table
from rich.text import Text

from eventcube.cli.compiling import compile_loops
from eventcube.cli.progress import working
from eventcube.cli.screen import screen
from eventcube.errors import OptionError
from eventcube.options import ENUMERATE

if TYPE_CHECKING:
    from eventcube.bench.transit import Transit
    from eventcube.event_cube import Cube
    from eventcube.runtime.changing import Answer

# The most readings of a person's trips; the rest are in another state.
EVENTS_FOR_EACH_PERSON = 200
DRILLED, DRILL_DOWN = "austin_dallas", ("Tulsa", "TulsaShelter", 4)
NAME, PUSHES = "sheltered", 10
_SETTINGS = {"type": "place", "partition_by": "person"}
Work = Mapping[str, int]


def demo_cube(events: int, seed: int, out: Path, program: str) -> int:
    """Count the matches of eight related queries and of a drill-down, and show what sharing saves.

    Returns 1 if not as many were found as were planted.
    """
    from eventcube.bench.transit import CONCEPTS, queries, transit
    from eventcube.event_cube import Cube

    begun = clock.monotonic()
    with working("generating movements"):
        made = transit(events, events // EVENTS_FOR_EACH_PERSON, seed)
        files = _write(made, out)
    seconds = clock.monotonic() - begun
    click.echo(
        f"People on the move: {events:,} readings of {made.people:,} people in 24 days, at bus stations, hospitals"
    )
    click.echo(f"and shelters of five cities in three states (seed {seed}), made in {seconds:.1f} s.")
    click.echo(
        "Eight related queries ask who went where, by state, by city and by station, within a day. Each finer query"
    )
    click.echo("is below a coarser one; 'concept' means finer types, 'pattern' more parts, 'both' both:\n")
    cube = Cube(queries(), concepts=CONCEPTS)
    click.secho(str(cube.graph), fg="cyan")
    compile_loops()
    begun = clock.monotonic()
    found, shared = _count(cube, made, "auto")
    seconds = clock.monotonic() - begun
    _, alone = _count(cube, made, "independent")
    click.echo()
    agree = _report(cube, made.matches, found)
    click.echo(f"Counted in this process in {seconds:.1f} s.\n")
    _show_work(
        "What sharing saves where matches are made",
        {"each query by itself (independent)": alone, "together (auto)": shared},
    )

    click.echo("\nThe same cube over a stream, which keeps matches of 30 days. The readings come in ten pushes. Then:")
    click.echo(f"who of those by Austin and Dallas was in a shelter in Tulsa? A drill-down of {DRILLED} at position 4:")
    click.secho(f"runtime.concept_drill_down({DRILLED!r}, {DRILL_DOWN}, name={NAME!r})", fg="cyan")
    answer, drilling = _drill_down(cube, made)
    click.echo(f"{answer}\n")
    drilled = Cube({NAME: answer.query}, concepts=CONCEPTS)
    agree &= _report(drilled, {NAME: made.sheltered}, {NAME: answer.matches.num_rows})
    _, single = _count(drilled, made, "auto")
    _show_work("What the drill-down costs", {"asked of all events": single, "from what is kept": drilling})
    click.echo(f"\nevents    {files[0]}\nworkload  {files[1]}")
    _next_steps(files, program)
    return 0 if agree else 1


def _write(made: Transit, out: Path) -> tuple[Path, Path]:
    from eventcube.bench.transit import CONCEPTS, queries

    workload: dict[str, Any] = {"concepts": CONCEPTS, "queries": queries(), "settings": _SETTINGS}
    events, file = out / "transit.parquet", out / "transit.yaml"
    try:
        out.mkdir(parents=True, exist_ok=True)
        pq.write_table(made.events, events)
        file.write_text(yaml.safe_dump(workload, sort_keys=False, width=120), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write to {out}: {error.strerror}", code="EC425") from None
    return events, file


def _count(cube: Cube, made: Transit, sharing: str) -> tuple[dict[str, int], Work]:
    """The number of matches of each query, and the counters of the work."""
    from eventcube.engine.counts import Counts

    counters = Counts()
    with working("counting matches"):
        counts = cube.counts(
            made.events,
            type="place",
            partition_by="person",
            sharing=sharing,
            aggregates=ENUMERATE,
            counters=counters,
        ).to_pylist()
    return {row["query"]: row["matches"] for row in counts}, {name: counters[name] for name in ("made", "candidates")}


def _drill_down(cube: Cube, made: Transit) -> tuple[Answer, Work]:
    """The answer to a drill-down while the cube runs, and the counters of the work that it took."""
    runtime = cube.runtime(keep="30 days", separate=True, type="place", partition_by="person")
    size = -(-made.events.num_rows // PUSHES)
    with working("pushing events"):
        for start in range(0, made.events.num_rows, size):
            for _ in runtime.push(made.events.slice(start, size)):
                pass
        # No reading is at the time of the last one or before it.
        for _ in runtime.advance(pc.max(made.events.column("ts")).as_py() + timedelta(microseconds=1)):
            pass
    before = runtime.counters
    answer = runtime.concept_drill_down(DRILLED, DRILL_DOWN, name=NAME)
    return answer, {name: runtime.counters[name] - before[name] for name in ("made", "candidates")}


def _report(cube: Cube, planted: Mapping[str, int], found: Mapping[str, int]) -> bool:
    """Print the matches of each query beside those planted; returns whether they agree."""
    from eventcube.language.printer import print_pattern

    table = Table(title="Matches", title_justify="left")
    table.add_column("query", no_wrap=True)
    table.add_column("pattern")
    table.add_column("planted", justify="right", no_wrap=True)
    table.add_column("found", justify="right", no_wrap=True)
    for name, count in found.items():
        style = "green" if count == planted[name] else "red"
        pattern = Text(print_pattern(cube[name].pattern))
        table.add_row(name, pattern, f"{planted[name]:,}", f"[{style}]{count:,}[/]")
    screen().print(table)
    if found == planted:
        return True
    click.secho("Not the same as planted.", fg="red")
    return False


def _show_work(title: str, work: Mapping[str, Work]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("partial matches made", justify="right")
    table.add_column("candidates looked at", justify="right")
    for name, counters in work.items():
        table.add_row(name, f"{counters['made']:,}", f"{counters['candidates']:,}")
    screen().print(table)


def _next_steps(files: tuple[Path, Path], program: str) -> None:
    events, workload = (shlex.quote(str(file)) for file in files)
    click.secho("\nTry next:", bold=True)
    for arguments in (
        f"cube {workload} {events} --counts --no-spark",
        f"cube {workload} {events} --explain --counts --sharing top-down",
        f"cube {workload} --graph transit.mmd",
    ):
        click.echo(f"  {program} {arguments}")
