"""What a whole program would cost, before it runs: step by step, from how many events of each slot a window holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from eventcube.optimizer.cost import (
    BIND,
    BY_STATE,
    CACHED,
    CALL,
    CHUNK,
    COPY,
    COUNTED,
    EVENTS_IN_LINE,
    EXTEND,
    FENCE,
    IN_ORDER,
    KEEP_LATEST,
    LINE,
    NARROW,
    NARROWED,
    RANGE,
    REJECT,
    Load,
    PartProfile,
)
from eventcube.optimizer.load import window_load
from eventcube.optimizer.statistics import Events, Statistics
from eventcube.plan.expressions import Expression
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.steps import (
    Bind,
    FilterByState,
    InOrder,
    KeepLatest,
    Narrow,
    Nested,
    Program,
    Reject,
    StandalonePart,
    State,
    Step,
    Term,
    Union,
    form_of,
    recomputed,
)

# What a load would cost by the strategy of that name.
StrategyCost = Callable[[str, Load], float]

NOTHING_NARROWED: Mapping[int, float] = MappingProxyType({})
_DUE = frozenset({State.DUE})
_WINDOWS = (Term.WINDOW_START, Term.WINDOW_END)
_ORDERED = (Term.BEFORE_FIRST, Term.BEFORE_LAST, Term.AFTER_LAST, Term.AFTER_FIRST)


def due_events(plan: PhysicalQuery, events: Events) -> int:
    """How many events matches are to be found for."""
    return sum(len(events.rows(slot, _DUE)) for slot in (plan.first if plan.forward else plan.last))


def combinations(plan: PhysicalQuery, events: Events, most: float) -> float:
    """How many combinations of a due event and others could be matches, if they are more than so many in a window."""
    triggers = plan.first if plan.forward else plan.last
    due = [events.rows(slot, _DUE) for slot in triggers]
    counts = [float(len(events.rows(slot))) for slot in plan.positive if slot not in triggers]
    found = sum(map(len, due)) * prod(counts)
    if found <= most:
        return found
    # In one window there are fewer.
    rows = max(due, key=len)
    middle = rows[len(rows) // 2 :][:1]
    width = abs(int(events.windows(middle, forward=plan.forward)[0]) - int(middle[0])) + 1
    return found * (width / events.size) ** len(counts)


class Partial(NamedTuple):
    """Partial matches: how many, the events that each has, and among how many of these a window is divided.

    Two events with a fence between them are close to each other, and divide it as one does. `tables` is how many
    tables the partial matches come in: each is a call of every step that follows, however little of it is left.
    `folded` is how many each one stands for, if it has clusters of events.
    """

    rows: float = 1.0
    bound: int = 0
    spread: float = 0.0
    tables: float = 1.0
    folded: float = 1.0

    def of(self, rows: float) -> Partial:
        """So many of the same."""
        return self._replace(rows=rows)


NOTHING = Partial()


class Slots(Protocol):
    """What an estimate needs to know about the events of a query's slots."""

    @property
    def size(self) -> int:
        """How many events there are."""

    @property
    def new(self) -> float:
        """The part of the events that make matches due that are due."""

    def count(self, slot: int, states: frozenset[State] | None = None) -> float:
        """How many events a slot takes."""

    def in_window(self, slot: int) -> float:
        """How many events of a slot lie in a window, on average."""

    def distinct(self, slot: int, expression: Expression) -> float:
        """How many different values the events of a slot have."""


class SampledSlots(Statistics):
    """The same from a sample of the windows of the events that are due."""

    def __init__(self, plan: PhysicalQuery, events: Events) -> None:
        super().__init__(events)
        triggers = plan.first if plan.forward else plan.last
        due = [events.rows(slot, _DUE) for slot in triggers]
        rows = due[0] if len(due) == 1 else np.unique(np.concatenate(due))
        self.new = len(rows) / max(1, sum(self.count(slot) for slot in triggers))
        self._windows = self.windows(rows, forward=plan.forward)
        self._per_window: dict[int, float] = {}

    def in_window(self, slot: int) -> float:
        """How many events of a slot lie in a window, on average."""
        if slot not in self._per_window:
            inside = self.inside((slot,), *self._windows)
            self._per_window[slot] = float(inside.mean()) if inside.size else 0.0
        return self._per_window[slot]


class ProgramEstimate:
    """Estimates for the programs of a plan over some events; `materialize`: matches are made, not only counted."""

    def __init__(self, plan: PhysicalQuery, slots: Slots, strategy_cost: StrategyCost, *, materialize: bool) -> None:
        self._slots, self._strategy_cost, self._materialize = slots, strategy_cost, materialize
        self._sorted = bool(plan.scan.sort_key)

    @classmethod
    def of_events(
        cls, plan: PhysicalQuery, events: Events, strategy_cost: StrategyCost, *, materialize: bool
    ) -> ProgramEstimate:
        """Estimates from a sample of some events."""
        return cls(plan, SampledSlots(plan, events), strategy_cost, materialize=materialize)

    def events(self, slot: int) -> float:
        """How many events a slot takes."""
        return self._slots.count(slot)

    def cost(self, program: Program) -> float:
        """What the program costs."""
        return sum(cost for cost, _ in self.steps(program))

    def step_costs(self, program: Program) -> list[float]:
        """What each step of the program costs."""
        return [cost for cost, _ in self.steps(program)]

    def results(self, program: Program) -> Partial:
        """The results of the program."""
        return ([NOTHING] + [partial for _, partial in self.steps(program)])[-1]

    def making(self, program: Program, before: Partial, end: Partial) -> float:
        """What it costs more to make the results, if they are only counted, of the partial matches before them."""
        last = program[-1] if program else None
        if self._materialize or not isinstance(last, Bind) or not last.is_range:
            return 0.0
        return before.rows * (RANGE - COUNTED) + end.rows * (EXTEND + COPY * before.bound)

    def filtered(self, rows: float) -> float:
        """What it costs to leave out partial matches that are not due; nothing if all events are."""
        return rows * BY_STATE if self._slots.new < 1.0 else 0.0

    def steps(
        self, program: Program, at: Partial = NOTHING, narrowed: Mapping[int, float] = NOTHING_NARROWED
    ) -> Iterator[tuple[float, Partial]]:
        """The cost of each step, for some partial matches, and what is made of these.

        `narrowed` has, for slots that are narrowed, the share of events that is left.
        """
        for i, step in enumerate(program):
            counted = i == len(program) - 1 and not self._materialize
            cost, at = self._step(step, at, narrowed, counted=counted)
            yield cost, at

    def _step(self, step: Step, at: Partial, narrowed: Mapping[int, float], *, counted: bool) -> tuple[float, Partial]:
        """The cost of one step, for some partial matches, and what is made of these, or only counted."""
        calls = (at.tables - 1.0) * CALL
        match step:
            case Bind():
                fenced = sum(self._slots.in_window(fence.slot) for fence in step.fences) / max(1.0, at.spread)
                extensions = self._extensions(step, at) / (1.0 + fenced)
                only_range = counted and step.is_range
                row = COUNTED if only_range else RANGE + extensions * (EXTEND + COPY * at.bound)
                cost = BIND + calls + at.rows * (row + FENCE * len(step.fences))
                cost += self._looked_up(step, at.rows, 1 if only_range else 2)
                rows = at.rows * extensions
                spread = at.spread + 1.0 / (1.0 + fenced)
                return cost, Partial(rows, at.bound + 1, spread, at.tables + rows / CHUNK)
            case Nested(slots=slots):
                load = self._load(step, at, counted)
                tables = at.tables + load.results / CHUNK
                made = Partial(load.results, at.bound + len(slots), at.spread + len(slots), tables)
                return self._strategy_cost(step.strategy, load), made
            case Union(programs):
                branches = [list(self.steps(branch, at)) for branch in programs]
                ends = [branch[-1][1] if branch else at for branch in branches]
                rows, tables = sum(end.rows for end in ends), sum(end.tables for end in ends)
                bound, spread = max(end.bound for end in ends), max(end.spread for end in ends)
                return sum(cost for branch in branches for cost, _ in branch), Partial(rows, bound, spread, tables)
            case Reject():
                return calls + at.rows * REJECT, at.of(at.rows / (1.0 + self._negated(step, at)))
            case Narrow(slot):
                left = at.rows * narrowed.get(slot, 1.0)
                return calls + at.rows * NARROW + left * NARROWED, at.of(left)
            case FilterByState():
                return calls + self.filtered(at.rows), at.of(at.rows * self._slots.new)
            case InOrder(pairs):
                return calls + at.rows * IN_ORDER, at.of(at.rows * 0.5 ** len(pairs))
            case KeepLatest():
                return calls + at.rows * KEEP_LATEST, at
            case _:
                return calls + at.rows, at

    def _looked_up(self, bind: Bind, rows: float, passes: int) -> float:
        """What it costs that links, in so many passes, and windows lie far apart in memory if events are many."""
        size = self._slots.size
        if size <= CACHED or bind.lower is None or bind.upper is None:
            return 0.0
        windows = (bind.lower.term in _WINDOWS) + (bind.upper.term in _WINDOWS)
        return LINE * min(rows, size / EVENTS_IN_LINE) * (passes + windows + len(bind.fences))

    def _negated(self, reject: Reject, at: Partial) -> float:
        """How many events of a negated component lie in its interval; 0 for a part of several."""
        match recomputed(reject):
            case (Bind(key=None, compare=(), filters=()) as only,):
                return self._slots.in_window(only.slot) / (1.0 + at.spread)
        return 0.0

    def _load(self, part: Nested, at: Partial, counted: bool) -> Load:
        """What the partial matches ask of a nested part."""
        profile, standalone = PartProfile.of(part), form_of(part, StandalonePart)
        key = None if standalone is None else standalone.key
        load = Load(
            profile,
            at.rows,
            materialize=not counted,
            sorted_view=self._sorted or profile.keyed,
            missing=self._slots.new * max(self._slots.count(slot) for slot in profile.last),
            selectivity=1.0 if key is None else 1.0 / self._slots.distinct(key.slot, key.inner),
        )
        return window_load(load, [self._slots.in_window(slot) for slot in profile.slots], at.bound)

    def _extensions(self, bind: Bind, at: Partial) -> float:
        """How many events each partial match is extended by, if there is no fence."""
        if bind.lower is None or bind.upper is None:
            return float(self._slots.count(bind.slot, bind.states))
        events = self._slots.in_window(bind.slot)
        if (at.bound > 1 and bind.lower.term in _ORDERED) or bind.upper.term in _ORDERED:
            events /= max(1.0, at.spread)
        if bind.states is not None:
            events *= self._slots.new
        return events if bind.key is None else events / self._slots.distinct(bind.slot, bind.key.new)
