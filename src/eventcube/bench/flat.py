"""The paper's experiment on sequences: the flat strategies over window sizes, runs of events, and conditions.

Nishimura and Kawashima 2014 count links in one example, and time nothing. Here the work is reported beside the time, in
one batch and trigger by trigger, counting matches and returning them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from eventcube.bench.checksum import Checksum, checksum, same_matches
from eventcube.bench.measure import Column, grouped, machine, one_core, save, screen, widths
from eventcube.bench.plots import Picture, draw
from eventcube.bench.trades import Trades, up_to_each
from eventcube.options import ENUMERATE
from eventcube.runtime.runtime import Runtime

SECOND = 1_000_000
FIXED = ("sase", "fla", "prc")
EVERY = (*FIXED, "auto")
SYMBOLS = ("INTC", "DELL", "QQQ", "MSFT", "ORCL")
VARIABLES = "abcde"
# What the volumes of the first two events must exceed together, by the share of their combinations that is kept.
KEEPS = {"0.1 %": 1955, "1 %": 1859, "10 %": 1553, "50 %": 1000}
COUNT, BY_TRIGGER, RETURN = "count, batch", "count, by trigger", "matches, batch"
# Compare the matches of so many events, one by one, and warm up with as many.
COMPARED = 3_000
# The example of the paper: SEQ(A, B, D) WITHIN 9 events. Its links from the second window on.
EXAMPLE = "a1 c2 b3 a4 d5 b6 d7 a8 d9 b10 d11 d12 b13"
PAPER_LINKS = {"fla": 11, "prc": 5}


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of an experiment: a sequence of some symbols, a window in events of each, and the trades."""

    x: str
    length: int
    window: int
    trades: Trades
    condition: str = ""
    modes: tuple[str, ...] = (COUNT, BY_TRIGGER)

    def query(self, mode: str) -> str:
        """The query of a mode."""
        named = zip(SYMBOLS[: self.length], VARIABLES, strict=False)
        parts = [*(f"{symbol} {variable}" for symbol, variable in named), *([self.condition] if self.condition else [])]
        returned = ", ".join(f"{v}.ts AS {v}" for v in VARIABLES[: self.length])
        result = f"RETURN {returned}" if mode == RETURN else "AGG COUNT(*)"
        return f"PATTERN SEQ({', '.join(parts)}) WITHIN {self.window * self.length} s {result}"

    def pushes(self, mode: str, table: pa.Table) -> list[pa.Table]:
        """The batches of a mode."""
        return up_to_each(table, SYMBOLS[self.length - 1]) if mode == BY_TRIGGER else [table]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Settings along one axis."""

    name: str
    title: str
    axis: str
    settings: tuple[Setting, ...]
    picture: Picture = field(default_factory=Picture)


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy in one setting: processor time, and the work."""

    experiment: str
    x: str
    mode: str
    strategy: str
    events: int
    seconds: float
    matches: int
    links: int
    partials_kept: int
    candidates: int
    view_bytes: int
    faster: float
    fewer: float | None
    """Links that sase follows, over those followed here; None where there are none."""
    of_best: float
    """The time over that of the best fixed strategy."""


def experiments(scale: float = 1.0) -> dict[str, Experiment]:
    """All experiments, by name; a scale below 1 shortens the streams."""

    def shape(events: int, length: int, run: int = 1) -> Trades:
        rates = dict.fromkeys(SYMBOLS[:length], 1.0)
        return Trades(max(400, int(events * scale)), step_us=SECOND, rates=rates, run=run)

    every = (COUNT, BY_TRIGGER, RETURN)
    windows = ((10, 30_000), (100, 20_000), (1000, 12_000))
    return {
        "window": Experiment(
            "window",
            "window size, where 1 % of the pairs of the first two events are kept",
            "window, in events of each component",
            tuple(Setting(str(n), 3, n, shape(events, 3), _keeping("1 %"), every) for n, events in windows),
        ),
        "free": Experiment(
            "free",
            "window size, without conditions",
            "window, in events of each component",
            tuple(Setting(str(n), 4, n, shape(events, 4)) for n, events in ((5, 30_000), (10, 30_000), (25, 20_000))),
        ),
        "links": Experiment(
            "links",
            "how often links aggregate",
            "events in a run",
            tuple(Setting(str(n), 4, 25, shape(40_000, 4, n)) for n in (1, 2, 4, 8, 16)),
        ),
        "kept": Experiment(
            "kept",
            "how many pairs of the first two events a condition keeps",
            "kept",
            tuple(Setting(name, 3, 300, shape(15_000, 3), _keeping(name)) for name in (*KEEPS, "all")),
        ),
    }


def _keeping(share: str) -> str:
    return f"a.volume + b.volume > {KEEPS[share]}" if share in KEEPS else ""


def bench_flat(
    out: Path, names: Sequence[str] = (), *, scale: float = 1.0, repetitions: int = 3, plots: bool = True
) -> list[Row]:
    """Runs the experiments, prints tables for each, and saves tables and plots in the folder."""
    console = screen(150)
    known = experiments(scale)
    rows: list[Row] = []
    if not names:
        _show_example(console)
    with one_core():
        for name in names or known:
            experiment = known[name]
            results = [row for setting in experiment.settings for row in _measure(experiment, setting, repetitions)]
            _show(console, experiment, results)
            header = {"machine": machine(), "repetitions": repetitions, "scale": scale, "title": experiment.title}
            console.print(f"Saved: {save(out, f'flat-{name}', header, results)}", soft_wrap=True)
            if plots:
                title = f"{experiment.title[0].upper()}{experiment.title[1:]}"
                drawn = draw(out / f"flat-{name}", title, experiment.axis, results, experiment.picture)
                console.print(f"Drawn: {drawn}", soft_wrap=True)
            rows += results
    return rows


def links_of_example() -> dict[str, tuple[int, int]]:
    """The links of the paper's example by each strategy: all of them, and those from the second window on."""
    words = EXAMPLE.split()
    events = pa.table({"ts": [int(w[1:]) for w in words], "type": [w[0].upper() for w in words]})
    found = {}
    for strategy in FIXED:
        runtime = Runtime("PATTERN SEQ(A a, B b, D d) WITHIN 9 events", type="type", flat_strategy=strategy)
        counted = []
        for place in range(events.num_rows):
            list(runtime.push(events.slice(place, 1)))
            counted.append(runtime.counters["links"])
        list(runtime.finish())
        # An event is searched from once the next one has come, so d9 is when b10 came.
        before, links = counted[words.index("b10")], runtime.counters["links"]
        found[strategy] = links, links - before
    return found


def _measure(experiment: Experiment, setting: Setting, repetitions: int) -> Iterator[Row]:
    """The rows of every mode."""
    progress = Console(stderr=True)
    table = setting.trades.table()
    for mode in setting.modes:
        place = f"Experiment {experiment.name} ({experiment.axis}: {setting.x}): {mode}"
        progress.print(place, style="dim", highlight=False, soft_wrap=True)
        first = setting.pushes(mode, table.slice(0, COMPARED))
        # This loads the loops, too.
        same_matches(place, {s: checksum(_batches(setting.query(RETURN), first, s)) for s in EVERY})
        query, pushes = setting.query(mode), setting.pushes(mode, table)
        runs = [{s: _run(query, pushes, s) for s in EVERY} for _ in range(repetitions)]
        # The minimum, as other processes only make a run longer.
        seconds = {s: min(run[s][0] for run in runs) for s in EVERY}
        work = {s: counters for s, (_, counters) in runs[-1].items()}
        same_matches(place, {s: Checksum(counters["matches"]) for s, counters in work.items()})
        yield from _rows(experiment, setting, mode, seconds, work)


def _rows(
    experiment: Experiment,
    setting: Setting,
    mode: str,
    seconds: Mapping[str, float],
    work: Mapping[str, Mapping[str, int]],
) -> Iterator[Row]:
    best = min(seconds[s] for s in FIXED)
    for strategy, counters in work.items():
        links = counters["links"]
        yield Row(
            experiment.name,
            setting.x,
            mode,
            strategy,
            setting.trades.events,
            seconds[strategy],
            counters["matches"],
            links,
            counters["partials_kept"],
            counters["candidates"],
            counters["view_bytes"],
            seconds["sase"] / seconds[strategy],
            work["sase"]["links"] / links if links else None,
            seconds[strategy] / best,
        )


def _batches(query: str, pushes: Sequence[pa.Table], strategy: str) -> Iterator[pa.RecordBatch]:
    runtime = Runtime(
        query, type="symbol", flat_strategy=strategy, aggregates=ENUMERATE, schema=pushes[0].schema, advise=False
    )
    for piece in pushes:
        yield from runtime.push(piece)
    yield from runtime.finish()


def _run(query: str, pushes: Sequence[pa.Table], strategy: str) -> tuple[float, Mapping[str, int]]:
    """The processor seconds of a run whose results are dropped, and its counters."""
    gc.collect()
    runtime = Runtime(
        query, type="symbol", flat_strategy=strategy, aggregates=ENUMERATE, schema=pushes[0].schema, advise=False
    )
    begun = time.process_time()
    for piece in pushes:
        for _ in runtime.push(piece):
            pass
    for _ in runtime.finish():
        pass
    return time.process_time() - begun, runtime.counters


def _show(console: Console, experiment: Experiment, rows: Sequence[Row]) -> None:
    """Print a table for each mode, with as many columns as fit."""
    columns = [Column(experiment.axis, lambda r: r.x), *COLUMNS]
    chosen = widths(columns, rows, console.width)
    for mode in dict.fromkeys(r.mode for r in rows):
        title = f"Experiment {experiment.name}: {experiment.title} ({mode})"
        console.print(grouped(title, columns, chosen, [r for r in rows if r.mode == mode]), crop=False)
    worst = max((r for r in rows if r.strategy == "auto"), key=lambda r: r.of_best)
    console.print(
        f"auto takes {worst.of_best:.2f} times the time of the best fixed one at most ({worst.x}, {worst.mode})"
    )


def _show_example(console: Console) -> None:
    console.print("Links in the example of the paper, all of them and from its second window on:")
    for strategy, (links, since) in links_of_example().items():
        paper = PAPER_LINKS.get(strategy)
        console.print(f"  {strategy}: {links}, {since}" + (f" (paper: {paper})" if paper else ""), highlight=False)


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


# The most important columns come first: on a narrow screen the last ones are dropped.
COLUMNS: Sequence[Column] = (
    Column("strategy", lambda r: r.strategy),
    Column("s", lambda r: f"{r.seconds:.3f}"),
    Column("times faster", lambda r: _ratio(r.faster)),
    Column("of the best", lambda r: f"{r.of_best:.2f}"),
    Column("links", lambda r: f"{r.links:,}"),
    Column("fewer", lambda r: _ratio(r.fewer)),
    Column("kept", lambda r: f"{r.partials_kept:,}"),
    Column("candidates", lambda r: f"{r.candidates:,}"),
    Column("KiB held", lambda r: f"{r.view_bytes / 1024:,.0f}"),
    Column("matches", lambda r: f"{r.matches:,}"),
)
