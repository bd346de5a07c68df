"""The papers' experiments on nested queries: every strategy over windows, lengths, numbers, correlations, memory.

Trades come one a second, so that a window of 1000 seconds holds 1000 of them. Each setting runs in one batch and
trigger by trigger, counting matches and returning them, with the work that was done beside the time it took.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from eventcube.bench.measure import machine, one_core, save, screen
from eventcube.bench.plots import draw
from eventcube.bench.trades import SYMBOLS, Trades
from eventcube.runtime.runtime import Runtime

SECOND = 1_000_000
VIEWS = ("object", "semantic", "aggressive", "passive", "balanced")
EVERY = ("iterative", "rewrite", *VIEWS, "auto")
OUTER = ("YHOO", "ORCL", "IPIX")


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of an experiment: what is asked of which trades, and by which strategies."""

    x: str
    pattern: str
    window: int
    trades: Trades
    strategies: tuple[str, ...] = EVERY
    # How many of the trades are asked where every match is returned; 0: matches are only counted.
    returned: int = 0
    by_trigger: bool = True


@dataclass(frozen=True, slots=True)
class Experiment:
    """Settings along one axis, and what the papers found there."""

    name: str
    title: str
    axis: str
    settings: tuple[Setting, ...]
    paper: Mapping[str, str] = field(default_factory=dict)


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
    fewer: float
    paper: str


def experiments(scale: float = 1.0) -> dict[str, Experiment]:
    """All of them, by name; a scale below 1 shortens the streams."""

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
        Setting(str(w), of(f"SEQ({lengths[1]})"), w, shape(10_000), returned=int(n * min(1.0, scale)))
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
        ),
    }


def bench_nested(
    out: Path, names: Sequence[str] = (), *, scale: float = 1.0, repetitions: int = 3, plots: bool = True
) -> list[Row]:
    """Runs the experiments, prints a table for each, and saves tables and plots in the folder."""
    console = Console(width=170) if not screen().is_terminal else screen()
    known = experiments(scale)
    rows: list[Row] = []
    with one_core():
        for name in names or known:
            experiment = known[name]
            own = [row for setting in experiment.settings for row in _measure(experiment, setting, repetitions)]
            console.print(_shown(experiment, own))
            header = {"machine": machine(), "repetitions": repetitions, "scale": scale, "title": experiment.title}
            console.print(f"Saved: {save(out, f'nested-{name}', header, own)}")
            if plots:
                console.print(f"Drawn: {draw(out / f'nested-{name}', experiment.title, experiment.axis, own)}")
            rows += own
    return rows


def _measure(experiment: Experiment, setting: Setting, repetitions: int) -> Iterator[Row]:
    table = setting.trades.table()
    runs: dict[str, tuple[str, list[pa.Table]]] = {"count, batch": (_counting(setting), [table])}
    if setting.by_trigger:
        runs["count, by trigger"] = (_counting(setting), _by_trigger(table))
    if setting.returned:
        runs["matches, batch"] = (_returning(setting), [table.slice(0, setting.returned)])
    for mode, (query, pushes) in runs.items():
        taken: dict[str, list[float]] = {s: [] for s in setting.strategies}
        for strategy in setting.strategies:
            # The first use of a compiled loop reads or makes it.
            _run(query, [pushes[0].slice(0, 300)], strategy)
        counted: dict[str, dict[str, int]] = {}
        for _ in range(repetitions):
            for strategy in setting.strategies:
                # What takes long is timed once: it is far from the others.
                if taken[strategy] and sum(taken[strategy]) > 5:
                    continue
                seconds, counted[strategy] = _run(query, pushes, strategy)
                taken[strategy].append(seconds)
        if len({c["matches"] for c in counted.values()}) > 1:
            raise RuntimeError(f"{experiment.name}, {setting.x}: strategies found different matches")
        events = sum(p.num_rows for p in pushes)
        yield from _rows(experiment, setting, mode, events, taken, counted)


def _rows(
    experiment: Experiment,
    setting: Setting,
    mode: str,
    events: int,
    taken: Mapping[str, list[float]],
    counted: Mapping[str, dict[str, int]],
) -> Iterator[Row]:
    times = {s: statistics.median(t) for s, t in taken.items()}
    for strategy, work in counted.items():
        anew = counted["iterative"]["inner_computed"]
        yield Row(
            experiment.name,
            setting.x,
            mode,
            strategy,
            events,
            times[strategy],
            work["matches"],
            work["inner_computed"],
            work["inner_reused"],
            work["inner_unused"],
            work["view_lookups"],
            work["view_intervals"],
            work["view_bytes"],
            times["iterative"] / times[strategy],
            anew / max(1, work["inner_computed"]),
            experiment.paper.get(setting.x, ""),
        )


def _run(query: str, pushes: Sequence[pa.Table], strategy: str) -> tuple[float, dict[str, int]]:
    gc.collect()
    runtime = Runtime(query, type="symbol", strategy=strategy, schema=pushes[0].schema)
    begun = time.perf_counter()
    for piece in pushes:
        _read(lambda piece=piece: runtime.push(piece))  # type: ignore[misc]
    _read(runtime.finish)
    return time.perf_counter() - begun, runtime.counters


def _read(batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
    for _ in batches():
        pass


def _by_trigger(table: pa.Table) -> list[pa.Table]:
    """The trades in pieces that each end with an event that can end a match."""
    last = np.flatnonzero(np.asarray(table.column("symbol")) == OUTER[-1]) + 1
    cuts = [0, *last.tolist(), table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts) if b > a]


def _counting(setting: Setting) -> str:
    return f"PATTERN {setting.pattern} WITHIN {setting.window} s AGG COUNT(*)"


def _returning(setting: Setting) -> str:
    return f"PATTERN {setting.pattern} WITHIN {setting.window} s RETURN y.ts AS y, o.ts AS o, i.ts AS i"


def _shown(experiment: Experiment, rows: Sequence[Row]) -> Table:
    table = Table(title=f"Experiment {experiment.name}: {experiment.title}", title_justify="left")
    columns = (
        *(experiment.axis, "mode", "strategy", "s", "/iterative", "inner computed", "fewer", "reused", "unused"),
        *("intervals", "KiB held", "matches"),
    )
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            *(row.x, row.mode, row.strategy, f"{row.seconds:.3f}", f"{row.faster:.1f}", f"{row.computed:,}"),
            *(f"{row.fewer:.0f}", f"{row.reused:,}", f"{row.unused:,}", f"{row.intervals:,}"),
            *(f"{row.view_bytes / 1024:.0f}", f"{row.matches:,}"),
        )
    said = "; ".join(f"{x}: {words}" for x, words in experiment.paper.items())
    table.caption = f"The paper: {said}" if said else None
    return table
