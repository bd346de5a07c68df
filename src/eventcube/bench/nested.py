"""The papers' experiments on nested queries: all strategies over window sizes, inner queries, correlations and memory.

Trades are one second apart, so that a window of 1000 seconds holds 1000 of them. Each setting runs in one batch and
trigger by trigger, counting matches and returning them; the work is reported beside the time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from eventcube.bench.checksum import Checksum, checksum, same_matches
from eventcube.bench.measure import Column, grouped, machine, one_core, save, screen, widths
from eventcube.bench.plots import Picture, draw
from eventcube.bench.trades import SYMBOLS, Trades, up_to_each
from eventcube.options import ENUMERATE
from eventcube.runtime.runtime import Runtime

SECOND = 1_000_000
VIEWS = ("semantic", "aggressive", "passive", "balanced")
EVERY = ("iterative", "rewrite", *VIEWS, "auto")
OUTER = ("YHOO", "ORCL", "IPIX")
# Short runs are repeated this many times more often.
OFTEN = 5
WARM_EVENTS, WARM_WINDOW = 500, 100
# Compare at most this many matches event by event.
COMPARED_MATCHES = 200_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of an experiment: a query, its trades and the strategies to compare."""

    x: str
    pattern: str
    window: int
    trades: Trades
    strategies: tuple[str, ...] = EVERY
    # The number of trades for the runs that return matches; 0: only count matches.
    returned: int = 0
    by_trigger: bool = True


@dataclass(frozen=True, slots=True)
class Experiment:
    """Settings along one axis, and the papers' results for them."""

    name: str
    title: str
    axis: str
    settings: tuple[Setting, ...]
    paper: Mapping[str, str] = field(default_factory=dict)
    picture: Picture = field(default_factory=Picture)


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy in one setting: the time and the work."""

    experiment: str
    x: str
    mode: str
    strategy: str
    events: int
    seconds: float
    matches: int
    computed: int
    reused: int
    unused: int
    lookups: int
    intervals: int
    view_bytes: int
    faster: float
    fewer: float | None
    """Inner results that iterative computes, over those computed here; None where one of them computes none."""
    paper: str


def experiments(scale: float = 1.0) -> dict[str, Experiment]:
    """All experiments, by name; a scale below 1 shortens the streams."""

    def shape(events: int, rates: Mapping[str, float] | None = None, accounts: int = 1000) -> Trades:
        chosen = dict(rates) if rates else dict.fromkeys(SYMBOLS, 1.0)
        return Trades(max(200, int(events * scale)), step_us=SECOND, accounts=accounts, rates=chosen)

    def of(inner: str, before: str = "ORCL o", rest: str = "IPIX i") -> str:
        return f"SEQ(YHOO y, {inner}, {before}, {rest})"

    lengths = ["QQQ q, AMAT a", "QQQ q, AMAT a, DELL d", "QQQ q, AMAT a, DELL d, INTC t"]
    numbers = [
        "SEQ(YHOO y, SEQ(QQQ q, AMAT a), ORCL o, IPIX i)",
        "SEQ(YHOO y, SEQ(QQQ q, AMAT a), ORCL o, SEQ(DELL d, INTC t), IPIX i)",
        "SEQ(YHOO y, SEQ(QQQ q, AMAT a), ORCL o, SEQ(DELL d, INTC t), MSFT m, SEQ(FCF f, ROM r), IPIX i)",
    ]
    few = {s: (4.0 if s in ("EFC", "ANAT", "OREL") else 0.5) for s in SYMBOLS}
    rare_inner = {s: (0.3 if s in ("QQQ", "AMAT", "DELL", "INTC") else 1.0) for s in SYMBOLS}
    rare_outer = {s: (0.25 if s in OUTER else 1.0) for s in SYMBOLS}
    wide = {**dict.fromkeys(SYMBOLS, 0.0), "EFC": 0.978, "QQQ": 0.01, "AMAT": 0.01, **dict.fromkeys(OUTER, 0.0005)}
    mid = {**dict.fromkeys(SYMBOLS, 0.0), "EFC": 0.891, "QQQ": 0.05, "AMAT": 0.05, **dict.fromkeys(OUTER, 0.003)}
    picky = "SEQ(QQQ q, AMAT a, q.volume + a.volume > 1860)"
    tied = "SEQ(QQQ q, AMAT a, {})"
    windows = [
        Setting(str(w), of(f"SEQ({lengths[1]})"), w, shape(10_000), returned=max(1, int(n * min(1.0, scale))))
        for w, n in ((100, 10_000), (500, 1_000), (1000, 700))
    ]
    fast = ("iterative", "aggressive", "balanced", "auto")
    views = ("iterative", *VIEWS, "auto")
    return {
        "1": Experiment(
            "1",
            "window size",
            "window in events",
            tuple(windows),
            {
                "100": "aggressive 6 times as fast as iterative",
                "500": "aggressive 9 times as fast as iterative",
                "1000": "aggressive 16 times as fast as iterative",
            },
        ),
        "2a": Experiment(
            "2a",
            "length of the inner query",
            "components",
            tuple(Setting(str(n), of(f"SEQ({x})"), 500, shape(5_000)) for n, x in enumerate(lengths, 2)),
            {"4": "balanced <= aggressive < passive"},
        ),
        "2b": Experiment(
            "2b",
            "number of inner queries",
            "inner queries",
            tuple(Setting(str(n), x, 500, shape(4_000, few)) for n, x in enumerate(numbers, 1)),
            {"3": "balanced <= aggressive < passive"},
        ),
        "3": Experiment(
            "3",
            "length of the negated inner query",
            "components",
            tuple(Setting(str(n), of(f"!SEQ({x})"), 500, shape(10_000, rare_inner)) for n, x in enumerate(lengths, 2)),
            {"4": "balanced ahead of rewriting, both far ahead of iterative"},
        ),
        "4": Experiment(
            "4",
            "domain of a correlated equality",
            "values",
            tuple(
                Setting(f"{n}, {name}", of(tied.format(by)), 500, shape(10_000, accounts=n), views)
                for n in (1, 10, 100, 1000)
                for name, by in (("split", "a.account = y.account"), ("whole", "a.account - y.account = 0"))
            ),
            {"1000, split": "flat", "1000, whole": "grows"},
            Picture(panels=True),
        ),
        "5": Experiment(
            "5",
            "what views hold",
            "outer events",
            (
                Setting("as many", of(f"SEQ({lengths[1]})"), 100, shape(10_000), views),
                Setting("a quarter", of(f"SEQ({lengths[1]})"), 100, shape(10_000, rare_outer), views),
            ),
            {"as many": "aggressive computes 3 times what passive does; balanced holds least"},
            Picture(shows="KiB held", bars=True),
        ),
        "6": Experiment(
            "6",
            "inner queries that are expensive for what they return",
            "window in events, part",
            (
                Setting("1000, positive", of(picky), 1000, shape(10_000), fast),
                Setting("1000, negated", of(f"!{picky}"), 1000, shape(10_000), fast),
                Setting("10000, negated", of(f"!{picky}"), 10_000, shape(40_000, mid), fast, by_trigger=False),
                Setting("100000, positive", of(picky), 100_000, shape(160_000, wide), fast, by_trigger=False),
                Setting("100000, negated", of(f"!{picky}"), 100_000, shape(160_000, wide), fast, by_trigger=False),
            ),
            picture=Picture(bars=True),
        ),
    }


def bench_nested(
    out: Path, names: Sequence[str] = (), *, scale: float = 1.0, repetitions: int = 3, plots: bool = True
) -> list[Row]:
    """Runs the experiments, prints tables for each, and saves tables and plots in the folder."""
    console = screen(170)
    known = experiments(scale)
    rows: list[Row] = []
    with one_core():
        for name in names or known:
            experiment = known[name]
            results = [row for setting in experiment.settings for row in _measure(experiment, setting, repetitions)]
            _show(console, experiment, results)
            if not results:
                continue
            header = {"machine": machine(), "repetitions": repetitions, "scale": scale, "title": experiment.title}
            console.print(f"Saved: {save(out, f'nested-{name}', header, results)}", soft_wrap=True)
            if plots:
                title = f"Experiment {name}: {experiment.title}"
                drawn = draw(out / f"nested-{name}", title, experiment.axis, results, experiment.picture)
                console.print(f"Drawn: {drawn}", soft_wrap=True)
            rows += results
    return rows


def _measure(experiment: Experiment, setting: Setting, repetitions: int) -> Iterator[Row]:
    """The rows of every mode with matches."""
    progress = Console(stderr=True)
    table = setting.trades.table()
    _compare(f"Experiment {experiment.name} ({experiment.axis}: {setting.x})", setting, table)
    for mode in _modes(setting):
        place = f"Experiment {experiment.name} ({experiment.axis}: {setting.x}): {mode}"
        # No spinner: it would run on the core that is measured.
        progress.print(place, style="dim", highlight=False, soft_wrap=True)
        _warm_up(setting, mode)
        seconds, counted = _timed(_query(setting, mode), _pushes(setting, mode, table), setting.strategies, repetitions)
        matches = same_matches(place, {strategy: Checksum(c["matches"]) for strategy, c in counted.items()})
        if matches:
            yield from _rows(experiment, setting, mode, seconds, counted)


def _compare(place: str, setting: Setting, table: pa.Table) -> None:
    """Check that all strategies find the same matches, event by event, since most timed runs only count them.

    Uses a prefix of the trades with at most COMPARED_MATCHES matches.
    """
    pattern = f"PATTERN {setting.pattern} WITHIN {setting.window} s"
    size = WARM_EVENTS
    while size < len(table):
        counters = _run(f"{pattern} AGG COUNT(*)", [table.slice(0, 2 * size)], setting.strategies[-1])[1]
        if counters["matches"] > COMPARED_MATCHES:
            break
        size *= 2
    first = table.slice(0, size)
    for pushes in ([first], up_to_each(first, OUTER[-1])) if setting.by_trigger else ([first],):
        same_matches(place, {s: checksum(_batches(pattern, pushes, s)) for s in setting.strategies})


def _modes(setting: Setting) -> list[str]:
    modes = {"count, batch": True, "count, by trigger": setting.by_trigger, "matches, batch": bool(setting.returned)}
    return [mode for mode, wanted in modes.items() if wanted]


def _query(setting: Setting, mode: str) -> str:
    result = "RETURN y.ts AS y, o.ts AS o, i.ts AS i" if mode == "matches, batch" else "AGG COUNT(*)"
    return f"PATTERN {setting.pattern} WITHIN {setting.window} s {result}"


def _pushes(setting: Setting, mode: str, table: pa.Table) -> list[pa.Table]:
    if mode == "count, by trigger":
        return up_to_each(table, OUTER[-1])
    return [table.slice(0, setting.returned) if mode == "matches, batch" else table]


def _warm_up(setting: Setting, mode: str) -> None:
    """Run every strategy once in this mode, to load or compile its loops.

    With equal rates and a short window, few trades suffice to fill, query and purge views.
    """
    trades = replace(setting.trades, events=WARM_EVENTS, rates=dict.fromkeys(SYMBOLS, 1.0))
    short = replace(setting, window=min(setting.window, WARM_WINDOW), trades=trades, returned=WARM_EVENTS)
    pushes = _pushes(short, mode, trades.table())
    for strategy in setting.strategies:
        _run(_query(short, mode), pushes, strategy)


def _timed(
    query: str, pushes: Sequence[pa.Table], strategies: Sequence[str], repetitions: int
) -> tuple[dict[str, list[float]], dict[str, dict[str, int]]]:
    """The seconds of each strategy in each repetition, interleaved, and its counters."""
    seconds: dict[str, list[float]] = {s: [] for s in strategies}
    counted: dict[str, dict[str, int]] = {}
    for turn in range(OFTEN * repetitions):
        for strategy in strategies:
            # Long runs are timed once, as they are far from the others; short ones more often.
            if seconds[strategy] and sum(seconds[strategy]) > (5 if turn < repetitions else 1):
                continue
            elapsed, counted[strategy] = _run(query, pushes, strategy)
            seconds[strategy].append(elapsed)
    return seconds, counted


def _rows(
    experiment: Experiment,
    setting: Setting,
    mode: str,
    seconds: Mapping[str, list[float]],
    counted: Mapping[str, dict[str, int]],
) -> Iterator[Row]:
    # The minimum, as other processes only make a run longer.
    times = {s: min(t) for s, t in seconds.items()}
    recomputed = counted["iterative"]["inner_computed"]
    for strategy, work in counted.items():
        yield Row(
            experiment.name,
            setting.x,
            mode,
            strategy,
            setting.returned if mode == "matches, batch" else setting.trades.events,
            times[strategy],
            work["matches"],
            work["inner_computed"],
            work["inner_reused"],
            work["inner_unused"],
            work["view_lookups"],
            work["view_intervals"],
            work["view_bytes"],
            times["iterative"] / times[strategy],
            recomputed / work["inner_computed"] if recomputed and work["inner_computed"] else None,
            experiment.paper.get(setting.x, ""),
        )


def _batches(query: str, pushes: Sequence[pa.Table], strategy: str) -> Iterator[pa.RecordBatch]:
    runtime = Runtime(
        query, type="symbol", strategy=strategy, aggregates=ENUMERATE, schema=pushes[0].schema, advise=False
    )
    for piece in pushes:
        yield from runtime.push(piece)
    yield from runtime.finish()


def _run(query: str, pushes: Sequence[pa.Table], strategy: str) -> tuple[float, dict[str, int]]:
    gc.collect()
    runtime = Runtime(
        query, type="symbol", strategy=strategy, aggregates=ENUMERATE, schema=pushes[0].schema, advise=False
    )
    begun = time.perf_counter()
    for piece in pushes:
        _read(lambda piece=piece: runtime.push(piece))  # type: ignore[misc]
    _read(runtime.finish)
    return time.perf_counter() - begun, runtime.counters


def _read(batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
    for _ in batches():
        pass


def _show(console: Console, experiment: Experiment, rows: Sequence[Row]) -> None:
    """Print a table for each mode, with as many columns as fit, and notes."""
    columns = [Column(experiment.axis, lambda r: r.x), *COLUMNS]
    chosen = widths(columns, rows, console.width)
    for mode in dict.fromkeys(r.mode for r in rows):
        title = f"Experiment {experiment.name}: {experiment.title} ({mode})"
        mode_rows = [r for r in rows if r.mode == mode]
        console.print(grouped(title, columns, chosen, mode_rows), crop=False)
    for note in _notes(experiment, rows, [c.name for c in columns[len(chosen) :]]):
        console.print(note, highlight=False)


def _notes(experiment: Experiment, rows: Sequence[Row], hidden: Sequence[str]) -> Iterator[str]:
    """The paper's results, and what is not shown."""
    if experiment.paper:
        yield "The paper: " + "; ".join(f"{x}: {words}" for x, words in experiment.paper.items())
    shown = {(r.x, r.mode) for r in rows}
    empty = [f"{s.x} ({m})" for s in experiment.settings for m in _modes(s) if (s.x, m) not in shown]
    if empty:
        yield f"Left out, as there are no matches at this scale: {'; '.join(empty)}"
    if rows:
        yield "object is another name of the strategy aggressive, measured once"
    if hidden and rows:
        yield f"Not shown, for want of room: {', '.join(hidden)}; the CSV has all"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


# The most important columns come first: on a narrow screen the last ones are dropped.
COLUMNS: Sequence[Column] = (
    Column("strategy", lambda r: r.strategy),
    Column("s", lambda r: f"{r.seconds:.3f}"),
    Column("times faster", lambda r: f"{r.faster:.1f}"),
    Column("inner computed", lambda r: f"{r.computed:,}"),
    Column("KiB held", lambda r: f"{r.view_bytes / 1024:,.0f}"),
    Column("fewer", lambda r: _ratio(r.fewer)),
    Column("unused", lambda r: f"{r.unused:,}"),
    Column("intervals", lambda r: f"{r.intervals:,}"),
    Column("matches", lambda r: f"{r.matches:,}"),
    Column("reused", lambda r: f"{r.reused:,}"),
)
