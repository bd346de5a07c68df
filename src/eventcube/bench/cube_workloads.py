"""The workloads of the event cube: those of the paper (Liu et al. 2011, section 7), and generated ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from eventcube.bench.trades import SYMBOLS, Trades
from eventcube.concepts.concepts import Concepts

# The paper's concepts.
SECTORS = {
    "Computer": ["INTC", "MSFT", "DELL"],
    "Finance": ["QQQ", "FCF", "ROM"],
    "Education": ["EFC", "ANAT", "OREL"],
}
# Three levels: sector, group, symbol.
LEVELS = {
    "Technology": {"Computer": ["INTC", "MSFT", "DELL"], "Software": ["ORCL", "AMAT"], "Internet": ["YHOO", "IPIX"]},
    "Services": {"Finance": ["QQQ", "FCF", "ROM"], "Education": ["EFC", "ANAT", "OREL"]},
}
RARE, OFTEN = 1 / 20, 8.0


@dataclass(frozen=True, slots=True)
class CubeWorkload:
    """Queries of the paper by name, each a SEQ of types, `!` before a negated one, and what to run them over."""

    name: str
    # What makes queries finer than others.
    change: str
    queries: Mapping[str, str]
    # The window in ms, which is as many events, if matches are counted, and if they are returned.
    window: int
    returned_window: int
    # Rates other than 1, by the name of the setting.
    rates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def coarsest(self) -> str:
        """The query that all others refine, in workloads of two."""
        return next(iter(self.queries))

    @property
    def settings(self) -> tuple[str, ...]:
        """The rates that it runs with, by name."""
        return ("equal rates", *self.rates)

    def trades(self, setting: str, events: int) -> Trades:
        """Trades with the rates of a setting, one a millisecond."""
        return Trades(events, rates={**dict.fromkeys(SYMBOLS, 1.0), **self.rates.get(setting, {})})

    def texts(self, window: int, *, counted: bool) -> dict[str, str]:
        """The queries as text, by name."""
        return {name: query_text(types.split(), window, counted=counted) for name, types in self.queries.items()}


def query_text(types: list[str], window_ms: int, *, counted: bool) -> str:
    """A SEQ of types, `!` before a negated one, that counts its matches or returns the times of their events."""
    parts, returned = [], []
    for number, name in enumerate(types, 1):
        variable = f"v{number}"
        parts.append(f"{name} {variable}")
        if not name.startswith("!"):
            returned.append(f"{variable}.ts AS {variable}")
    result = "AGG COUNT(*)" if counted else f"RETURN {', '.join(returned)}"
    return f"PATTERN SEQ({', '.join(parts)}) WITHIN {window_ms} ms {result}"


def _ends(first: str, numbers: range, lasts: str) -> dict[str, str]:
    """A query, and the same with one more type at its end."""
    return dict(zip((f"q{n}" for n in numbers), (first, *(f"{first} {last}" for last in lasts.split())), strict=True))


def _workloads() -> list[CubeWorkload]:
    first = {
        "1": ("INTC !MSFT FCF", range(1, 6), "ROM EFC ANAT OREL", 200),
        "2": ("DELL INTC !MSFT FCF", range(6, 11), "ROM OREL ANAT QQQ", 100),
        "3": ("QQQ DELL INTC !MSFT FCF", range(11, 16), "ROM ANAT OREL EFC", 100),
    }
    patterns = []
    for name, (shared, numbers, lasts, returned) in first.items():
        rare = shared.split()[0]
        rates = {f"{rare} at 1/20": {rare: RARE}}
        patterns.append(CubeWorkload(name, "pattern", _ends(shared, numbers, lasts), 400, returned, rates))
    coarse = "Computer Finance Education"
    often = {"EFC at 8": {"EFC": OFTEN}}
    q7 = {
        "q20": "DELL QQQ ANAT",
        "q21": "DELL QQQ ANAT ROM",
        "q22": "FCF DELL QQQ ANAT",
        "q23": "DELL QQQ ANAT OREL",
        "q24": "DELL QQQ ANAT INTC",
        "q25": "DELL QQQ ANAT INTC EFC",
        "q16": coarse,
        "q26": "Computer Finance ANAT",
        "q27": "DELL Finance ANAT",
        "q28": "QQQ DELL Finance ANAT",
    }
    q8 = {
        "q16": coarse,
        "q29": "Computer Finance OREL",
        "q30": "INTC QQQ Education",
        "q31": "INTC QQQ EFC",
        "q32": "MSFT INTC QQQ EFC",
        "q33": "INTC QQQ EFC DELL",
        "q34": "Computer ROM Education",
        "q35": "Computer ROM ANAT",
        "q36": "INTC ROM ANAT",
    }
    return [
        *patterns,
        CubeWorkload("4", "concept", {"q16": coarse, "q17": "Computer Finance EFC"}, 200, 50, often),
        CubeWorkload("5", "concept", {"q18": coarse, "q19": "Computer QQQ EFC"}, 200, 50),
        CubeWorkload("6", "concept", {"q16": coarse, "q19": "INTC QQQ EFC"}, 200, 50),
        CubeWorkload("7", "both", q7, 200, 50),
        CubeWorkload("8", "both", q8, 200, 50),
    ]


WORKLOADS = {workload.name: workload for workload in _workloads()}


def generated_queries(count: int, *, window_ms: int = 20, seed: int = 0, counted: bool = True) -> dict[str, str]:
    """Different SEQs of two to four types on three levels; fewer are the first of more."""
    draw = Random(seed)
    levels = [list(LEVELS), [group for groups in LEVELS.values() for group in groups], list(SYMBOLS)]
    chosen: dict[tuple[str, ...], None] = {}
    while len(chosen) < count:
        # Symbols are most, as analysts look at details more often than at everything.
        depths = draw.choices(range(3), weights=(1, 2, 4), k=draw.choice((2, 3, 3, 4)))
        chosen[tuple(draw.choice(levels[depth]) for depth in depths)] = None
    return {f"q{n}": query_text([*types], window_ms, counted=counted) for n, types in enumerate(chosen, 1)}


def level_concepts() -> Concepts:
    """The hierarchy of the generated queries."""
    return Concepts(LEVELS)
