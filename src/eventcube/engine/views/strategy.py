"""The interface of a strategy, which answers one nested part, and the registry in which strategies are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Protocol, TypeVar

from eventcube.engine.columns import Column
from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.registry import import_all
from eventcube.engine.store import Store
from eventcube.engine.table import END, START, Table
from eventcube.optimizer.choose import Choice, IndexChoice
from eventcube.optimizer.cost import Load
from eventcube.options import ITERATIVE
from eventcube.plan.expressions import Expression
from eventcube.plan.inequalities import inequalities
from eventcube.plan.steps import Bind, Bound, Nested, Part, Program, Reject, StandalonePart, form_of


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

    def rows_at(self, bound: Bound, table: Table) -> Ints:
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
    return executor.rows_at(part.lower, table), executor.rows_at(part.upper, table)


class Strategy(ABC):
    """Answers one nested part for sets of outer rows, each with its own interval."""

    # Whether what is kept from earlier calls makes later ones cheaper.
    keeps_results: ClassVar[bool] = True

    def __init__(self, part: Part) -> None:
        self.part = part
        self.views = Views()

    def keep_in(self, views: Views) -> None:
        """Take note of where what it keeps can be found."""
        self.views = views

    def twin(self, part: Part) -> Strategy:
        """A strategy of the same kind for an equal part, with all that this one keeps."""
        twin = type(self)(part)
        twin.keep_in(self.views)
        return twin

    @abstractmethod
    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""

    @abstractmethod
    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""

    @abstractmethod
    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval (from START to END)."""

    @classmethod
    @abstractmethod
    def cost(cls, load: Load) -> float | None:
        """What a load would cost, in events looked at; None if the strategy does not compete for such a part."""

    def missing(self, lo: Ints, hi: Ints, executor: Executor) -> int | None:
        """How many last events between the ends of the intervals are not in the view; None for all."""
        return None

    @property
    def bytes(self) -> int:
        """Bytes that are kept for later."""
        return 0

    def close(self, counters: Counters) -> None:  # noqa: B027 - most keep nothing
        """Nothing more will be asked."""

    @property
    def choice(self) -> Choice | None:
        """What was chosen among other strategies, for one that leaves the work to them."""
        return None

    def report(self) -> Iterator[str]:
        """What was done, in words, for `explain` with `analyze`."""
        return iter(())


def standalone(part: Part) -> StandalonePart:
    """The part by itself, which every strategy that keeps results needs."""
    form = form_of(part, StandalonePart)
    assert form is not None
    return form


_Strategy = TypeVar("_Strategy", bound=type[Strategy])
_registered: dict[str, type[Strategy]] = {}


def register(*names: str) -> Callable[[_Strategy], _Strategy]:
    """Make a strategy known by its names; a file in this folder does so when it is imported."""

    def add(strategy: _Strategy) -> _Strategy:
        _registered.update(dict.fromkeys(names, strategy))
        return strategy

    return add


def strategies() -> dict[str, type[Strategy]]:
    """Every strategy in this folder, by name."""
    import_all("eventcube.engine.views")
    return dict(_registered)


class Views:
    """What strategies keep for a part, and for others that are equal to it: of each kind of strategy once."""

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared
        # Those who asked first, among whose bytes it counts.
        self.owner: Parts | None = None
        self._first: dict[type[Strategy], Strategy] = {}

    def __contains__(self, kind: type[Strategy]) -> bool:
        return kind in self._first

    def strategy(self, kind: type[Strategy], part: Part) -> Strategy:
        """A strategy for one of the parts, which goes on from what is kept."""
        if kind in self._first:
            return self._first[kind].twin(part)
        first = self._first[kind] = kind(part)
        first.keep_in(self)
        return first

    def forget(self) -> None:
        """Let strategies to come start anew."""
        self._first.clear()

    @property
    def bytes(self) -> int:
        """Bytes that are kept for later."""
        return sum(strategy.bytes for strategy in self._first.values())

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        for strategy in self._first.values():
            strategy.close(counters)
        self.forget()


class Parts:
    """The strategies at work for one program: one for each nested part, with what it keeps.

    `views_of` gives what is kept for a part, and for others that are equal to it.
    """

    def __init__(self, views_of: Callable[[Part], Views] = lambda _: Views()) -> None:
        self.views_of = views_of
        self._known = strategies()
        self._at_work: dict[int, Strategy] = {}
        self._newest = -1
        # How joins look at their candidates, by number.
        self._index_choices: dict[int, IndexChoice] = {}
        # The most bytes that were kept at a time.
        self.peak_bytes = 0

    def turn_to(self, store: Store) -> None:
        """Forget everything if the newest events of the store before are not in this one."""
        newest = int(store.events.seq[-1]) if store.size else -1
        if newest < self._newest:
            self.forget()
        self._newest = newest

    def forget(self) -> None:
        """Forget everything that is kept."""
        for views in self.views:
            views.forget()
        self._at_work.clear()

    def forget_positive(self) -> None:
        """Forget the results of parts that are not negated."""
        for number in [n for n, strategy in self._at_work.items() if isinstance(strategy.part, Nested)]:
            del self._at_work[number]

    def __getitem__(self, part: Part) -> Strategy:
        if part.id not in self._at_work:
            # One event, or a part inside another that is recomputed, has nothing but a program.
            name = part.strategy if form_of(part, StandalonePart) is not None else ITERATIVE
            views = self.views_of(part)
            views.owner = views.owner or self
            self._at_work[part.id] = views.strategy(self._known[name], part)
        return self._at_work[part.id]

    def index_choice(self, bind: Bind) -> IndexChoice:
        """The choice of how a join looks at its candidates."""
        if bind.id not in self._index_choices:
            self._index_choices[bind.id] = IndexChoice(inequalities(bind))
        return self._index_choices[bind.id]

    def cost(self, strategy: str, load: Load) -> float:
        """What a load would cost by a strategy."""
        cost = self._known[strategy].cost(load)
        return load.recompute_cost() if cost is None else cost

    def choices(self) -> Iterator[tuple[Strategy, Choice]]:
        """The strategies that leave the work to others, with what they chose."""
        for strategy in self._at_work.values():
            if strategy.choice is not None:
                yield strategy, strategy.choice

    @property
    def index_choices(self) -> list[IndexChoice]:
        """How joins look at their candidates, where there was so much to do that it was weighed."""
        return [choice for choice in self._index_choices.values() if choice.expected]

    @property
    def views(self) -> set[Views]:
        """What is kept for the parts, each once."""
        return {strategy.views for strategy in self._at_work.values()}

    def note_bytes(self) -> None:
        """Take note of what is kept now, once for all who share it."""
        for parts in {views.owner or self for views in self.views}:
            kept = sum(views.bytes for views in parts.views if views.owner is parts)
            parts.peak_bytes = max(parts.peak_bytes, kept)
