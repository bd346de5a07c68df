"""`eventcube bench`: the benchmarks of `eventcube.bench`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from eventcube.errors import OptionError

_Command = TypeVar("_Command", bound=Callable[..., Any])

AGGREGATE_PARTS = ("windows", "large", "choice", "memory", "funnel")
STREAM_PARTS = ("throughput", "keys", "latency", "day", "least")

_OUT = click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/bench"), show_default=True, help="Where results go."
)


def _repetitions(default: int, statistic: str = "the median counts") -> Callable[[_Command], _Command]:
    return click.option(
        "--repetitions",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        help=f"How often each is timed; {statistic}.",
    )


@click.group(short_help="Measure eventcube against others on this machine.")
def bench() -> None:
    """Measure eventcube against DuckDB and Spark SQL on this machine.

    \b
    Example:
      eventcube bench engine
    """


@bench.command(short_help="The engine against DuckDB, on one core.")
@_OUT
@click.option("--events", default=1_000_000, show_default=True, help="How many trades.")
@_repetitions(7)
@click.option("--stages", is_flag=True, help="Where the time goes, and what shuffled events cost, instead.")
@click.option("--selective", is_flag=True, help="Queries with inequalities that few events meet, instead.")
def engine(out: Path, events: int, repetitions: int, stages: bool, selective: bool) -> None:
    """Time the five queries in one process on one core, beside DuckDB's best self-join; the matches must agree.

    \b
    Example:
      eventcube bench engine --events 1000000
    """
    try:
        from eventcube.bench.engine import bench_engine
        from eventcube.bench.stages import bench_stages
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None
    if stages:
        bench_stages(out, events=events, repetitions=repetitions)
    else:
        bench_engine(out, events=events, repetitions=repetitions, selective=selective)


@bench.command(short_help="Many queries together, one after the other, and in DuckDB.")
@_OUT
@click.option("--events", default=1_000_000, show_default=True, help="How many trades.")
@click.option(
    "--queries",
    "numbers",
    multiple=True,
    type=click.IntRange(1, 500),
    default=(1, 10, 50, 200),
    show_default=True,
    help="How many queries; can be given several times.",
)
@_repetitions(5)
@click.option("--plots/--no-plots", default=True, show_default=True, help="Draw PNG and SVG.")
def many(out: Path, events: int, numbers: tuple[int, ...], repetitions: int, plots: bool) -> None:
    """Time related queries on one core: together, one after the other and in DuckDB; the matches must agree.

    Also their planning, pushes of one event, and the bytes of their states.

    \b
    Example:
      eventcube bench many --queries 1 --queries 50
    """
    try:
        from eventcube.bench.many import bench_many

        bench_many(out, events=events, repetitions=repetitions, numbers=numbers, plots=plots)
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None


@bench.command(short_help="ec.match on Spark against an identity function and Spark SQL.")
@_OUT
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path("out/data"),
    show_default=True,
    help="Where trades are kept.",
)
@click.option("--events", default=20_000_000, show_default=True, help="How many trades.")
@click.option("--master", default="local[*]", show_default=True, help="The Spark master.")
@_repetitions(3)
@click.option("--scaling", is_flag=True, help="Over sizes and numbers of keys, instead of the comparison.")
@click.option("--nested", "only_nested", is_flag=True, help="Nested queries beside their flat skeleton, instead.")
def spark(out: Path, data: Path, events: int, master: str, repetitions: int, scaling: bool, only_nested: bool) -> None:
    """Time the queries on Spark, keyed and unkeyed.

    \b
    Example:
      eventcube bench spark --events 1000000
    """
    from eventcube.bench.spark import SIDES, bench_nested_spark, bench_spark, comparison_cases, scaling_cases

    if only_nested:
        bench_nested_spark(out, data, events, master=master, repetitions=repetitions)
        return
    cases = scaling_cases(events) if scaling else comparison_cases(events)
    bench_spark(
        out,
        data,
        cases,
        name="spark-scaling" if scaling else "spark",
        master=master,
        repetitions=repetitions,
        sides=("match",) if scaling else SIDES,
    )


@bench.command(short_help="Strategies for nested parts against each other.")
@_OUT
@click.option(
    "--experiment", "names", multiple=True, type=click.Choice(["1", "2a", "2b", "3", "4", "5", "6"]), help="Only these."
)
@click.option(
    "--scale",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Factor for the length of the streams.",
)
@_repetitions(3, "short runs more often; the shortest counts")
@click.option("--plots/--no-plots", default=True, show_default=True, help="Draw PNG and SVG.")
def nested(out: Path, names: tuple[str, ...], scale: float, repetitions: int, plots: bool) -> None:
    """Run the papers' experiments on nested queries on one core, with the work done beside the time it took.

    \b
    Example:
      eventcube bench nested --experiment 1
    """
    from eventcube.bench.nested import bench_nested

    try:
        bench_nested(out, names, scale=scale, repetitions=repetitions, plots=plots)
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None


@bench.command(short_help="Queries computed from each other, by every way to share their work.")
@_OUT
@click.option("--workload", "names", multiple=True, type=click.Choice([*"12345678"]), help="Only these.")
@click.option(
    "--scale",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Factor for the length of the streams.",
)
@_repetitions(5, "the shortest counts")
@click.option("--plots/--no-plots", default=True, show_default=True, help="Draw PNG and SVG.")
def cube(out: Path, names: tuple[str, ...], scale: float, repetitions: int, plots: bool) -> None:
    """Run the paper's workloads on one core, computed independently, top-down, bottom-up and as the optimizer chooses.

    Also 200 related queries, planning, and how well the costs of plans are estimated.

    \b
    Example:
      eventcube bench cube --workload 1
    """
    from eventcube.bench.cube import bench_cube

    try:
        bench_cube(out, names, scale=scale, repetitions=repetitions, plots=plots)
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None


@bench.command(short_help="Aggregates without making matches, over windows and lengths.")
@_OUT
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path("out/data"),
    show_default=True,
    help="Where the visits of funnels are kept.",
)
@click.option("--part", "parts", multiple=True, type=click.Choice(AGGREGATE_PARTS), help="Only these.")
@click.option(
    "--scale",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Factor for the number of events: 1 M trades, 10 M for the large part, 20 M visits; goals are for 1.",
)
@click.option("--master", default="local[2]", show_default=True, help="The Spark master, for funnels.")
@_repetitions(7)
@click.option("--plots/--no-plots", default=True, show_default=True, help="Draw PNG and SVG.")
def aggregate(
    out: Path, data: Path, parts: tuple[str, ...], scale: float, master: str, repetitions: int, plots: bool
) -> None:
    """Count, add up and average on one core, beside enumeration, DuckDB's joins and a plain scan of the events.

    SEQ of 3, 5 and 8 over windows of time and of events (windows), 2e10 matches in 10 M events (large), the choice
    between counting and making matches, in batches and small pushes (choice), the peak memory of new processes
    (memory), and funnels on Spark (funnel).

    \b
    Example:
      eventcube bench aggregate --part windows --scale 0.1
    """
    try:
        from eventcube.bench.aggregate import bench_aggregate

        bench_aggregate(
            out,
            data,
            parts or AGGREGATE_PARTS,
            scale=scale,
            master=master,
            repetitions=repetitions,
            plots=plots,
        )
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None


@bench.command(short_help="How long queries take to plan, and tasks of Spark to be ready.")
@_OUT
@_repetitions(15)
def planning(out: Path, repetitions: int) -> None:
    """Time planning on one core: the README's query, and shapes of hundreds of components and dozens of levels.

    \b
    Example:
      eventcube bench planning
    """
    from eventcube.bench.planning import bench_planning

    bench_planning(out, repetitions=repetitions)


@bench.command(short_help="Streams: throughput, latency, and state over a day.")
@_OUT
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path("out/data"),
    show_default=True,
    help="Where events are kept.",
)
@click.option("--part", "parts", multiple=True, type=click.Choice(STREAM_PARTS), help="Only these.")
@click.option("--events", default=20_000_000, show_default=True, help="How many events.")
@click.option("--master", default="local[2]", show_default=True, help="The Spark master.")
@_repetitions(2)
def stream(out: Path, data: Path, parts: tuple[str, ...], events: int, master: str, repetitions: int) -> None:
    """Measure streams on Spark, beside the same streams that only store their events.

    \b
    Example:
      eventcube bench stream --part throughput --events 5000000
    """
    from eventcube.bench.stream import bench_stream

    bench_stream(out, data, parts or STREAM_PARTS, events=events, master=master, repetitions=repetitions)


def _not_installed(error: ModuleNotFoundError) -> OptionError:
    return OptionError(f"{error.name} is not installed", code="EC423", hint="pip install 'eventcube[bench]'")
