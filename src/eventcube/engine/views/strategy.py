"""How a nested part is answered: the interface that every strategy fills, and where strategies are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from eventcube.engine.columns import Column
from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.store import Store
from eventcube.engine.table import END, START, Table
from eventcube.errors import OptionError, did_you_mean
from eventcube.language.syntax import Query
from eventcube.options import ITERATIVE, StrategyChoice
from eventcube.plan.expressions import Expression
from eventcube.plan.parts import check_parts
from eventcube.plan.steps import Bound, Nested, Part, Program, Reject, StandalonePart, form_of


class Executor(Protocol):
    """What a strategy may ask of the engine."""

    store: Store
    counters: Counters

    def run(self, program: Program, table: Table) -> Iterator[Table]:
        """Every way to take each partial match through the program, in chunks."""

    def any(self, program: Program, table: Table) -> Bools:
        """For each partial match whether there is a way through the program."""

    def count(self, program: Program, table: Table) -> int:
        """How many ways there are through the program."""

    def limit(self, limit: Bound, table: Table) -> Ints:
        """One end of each partial match's range of rows."""

    def value(self, value: Expression, table: Table) -> Column:
        """A value that depends on bound events, for each partial match."""

    def value_of(self, value: Expression, rows: Ints) -> Column:
        """A value that depends on one event, for each of some rows."""

    def note_bytes(self) -> None:
        """Take note of what views hold now."""


def interval(part: Part, table: Table, executor: Executor) -> tuple[Ints, Ints]:
    """The rows between which each outer row asks for results of the part."""
    if isinstance(part, Reject):
        return table[START], table[END]
    assert part.lower is not None
    assert part.upper is not None
    return executor.limit(part.lower, table), executor.limit(part.upper, table)


class Strategy(Protocol):
    """One way to answer one nested part for sets of outer rows, each with its own interval."""

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval (from START to END)."""

    @property
    def bytes(self) -> int:
        """What is kept for later."""

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""


def standalone(part: Part) -> StandalonePart:
    """The part by itself, which every strategy that keeps results needs."""
    form = form_of(part, StandalonePart)
    assert form is not None
    return form


Make = Callable[[Part], Strategy]
_registered: dict[str, Make] = {}


def register(*names: str) -> Callable[[Make], Make]:
    """Make a strategy known by its names; a file in this folder does so when it is imported."""

    def add(make: Make) -> Make:
        _registered.update(dict.fromkeys(names, make))
        return make

    return add


def strategies() -> dict[str, Make]:
    """Every strategy in this folder, by name."""
    package = importlib.import_module("eventcube.engine.views")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"eventcube.engine.views.{module.name}")
    return dict(_registered)


def check_strategies(choice: StrategyChoice, queries: Iterable[Query]) -> None:
    """Refuse strategies that are not known, or are for parts that no query has."""
    known = strategies()
    for name in (choice.default, *choice.parts.values()):
        if name not in known:
            raise OptionError(f"unknown strategy {name!r}", code="EC404", hint=did_you_mean(name, sorted(known)))
    check_parts(choice, queries)


class Parts:
    """The strategies at work in one engine: one for each nested part, with what it keeps."""

    def __init__(self) -> None:
        self._known = strategies()
        self._found: dict[int, Strategy] = {}
        self._parts: dict[int, Part] = {}
        self._newest = -1

    def turn_to(self, store: Store) -> None:
        """Forget everything if the newest events of the store before are not in this one."""
        newest = int(store.events.seq[-1]) if store.size else -1
        if newest < self._newest:
            self._found.clear()
            self._parts.clear()
        self._newest = newest

    def forget_positive(self) -> None:
        """Forget the results of parts that are not negated."""
        for number in [number for number, part in self._parts.items() if isinstance(part, Nested)]:
            del self._found[number], self._parts[number]

    def __getitem__(self, part: Part) -> Strategy:
        if part.id not in self._found:
            # One event, or a part inside another that is recomputed, has nothing but a program.
            strategy = part.strategy if form_of(part, StandalonePart) is not None else ITERATIVE
            self._found[part.id] = self._known[strategy](part)
            self._parts[part.id] = part
        return self._found[part.id]

    def report(self) -> Iterator[str]:
        """For each part that decides for itself what it expected and what it did, in words."""
        for part, strategy in zip(self._parts.values(), self._found.values(), strict=True):
            lines = getattr(strategy, "report", None)
            if lines is not None:
                yield f"({part.name})"
                yield from (f"  {line}" for line in lines())

    def count_bytes(self, counters: Counters) -> None:
        """Take note of what is kept now."""
        counters.view_bytes = max(counters.view_bytes, sum(s.bytes for s in self._found.values()))

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        for strategy in self._found.values():
            strategy.close(counters)
