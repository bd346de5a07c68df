"""What a whole program would cost, before it runs: step by step, from how many events of each slot a window holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from eventcube.optimizer.cost import (
    BIND,
    BY_STATE,
    CALL,
    CHUNK,
    COPY,
    EXTEND,
    FENCE,
    IN_ORDER,
    KEEP_LATEST,
    NARROW,
    REJECT,
    Load,
    PartProfile,
)
from eventcube.optimizer.load import window_load
from eventcube.optimizer.statistics import Events, Statistics
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
    Term,
    Union,
    form_of,
    recomputed,
)

# What a load would cost by the strategy of that name.
StrategyCost = Callable[[str, Load], float]

NOTHING_NARROWED: Mapping[int, float] = MappingProxyType({})
_DUE = frozenset({State.DUE})
_TESTS = {FilterByState: BY_STATE, Narrow: NARROW, InOrder: IN_ORDER, KeepLatest: KEEP_LATEST}
_ORDERED = (Term.BEFORE_FIRST, Term.BEFORE_LAST, Term.AFTER_LAST, Term.AFTER_FIRST)


def due_events(plan: PhysicalQuery, events: Events) -> int:
    """How many events matches are to be found for."""
    return sum(len(events.rows(slot, _DUE)) for slot in _triggers(plan))


def _is_range(bind: Bind) -> bool:
    """Whether the events of a join are all those of a range, so that their number is known without looking at them."""
    return not (bind.compare or bind.distinct or bind.filters)


def _triggers(plan: PhysicalQuery) -> tuple[int, ...]:
    return plan.first if plan.forward else plan.last


class ProgramEstimate:
    """Estimates for the programs of a plan over some events; `materialize`: matches are made, not only counted."""

    def __init__(self, plan: PhysicalQuery, events: Events, strategy_cost: StrategyCost, *, materialize: bool) -> None:
        self._statistics, self._strategy_cost, self._materialize = Statistics(events), strategy_cost, materialize
        self._sorted = bool(plan.scan.sort_key)
        due = [events.rows(slot, _DUE) for slot in _triggers(plan)]
        rows = due[0] if len(due) == 1 else np.unique(np.concatenate(due))
        # The part of all last events that views do not have yet.
        self._new = len(rows) / max(1, sum(self._statistics.count(slot) for slot in _triggers(plan)))
        self._windows = self._statistics.windows(rows, forward=plan.forward)
        self._per_window: dict[int, float] = {}

    def cost(self, program: Program) -> float:
        """What the program costs."""
        return sum(cost for cost, _ in self.steps(program))

    def step_costs(self, program: Program) -> list[float]:
        """What each step of the program costs."""
        return [cost for cost, _ in self.steps(program)]

    def results(self, program: Program) -> float:
        """How many results the program has."""
        return ([1.0] + [partial for _, partial in self.steps(program)])[-1]

    def steps(
        self, program: Program, partial: float = 1.0, bound: int = 0, narrowed: Mapping[int, float] = NOTHING_NARROWED
    ) -> Iterator[tuple[float, float]]:
        """The cost of each step and the partial matches after it; so many begin, each with so many events bound.

        `narrowed` has, for slots that are narrowed, the share of events that is left.
        """
        most = partial
        for i, step in enumerate(program):
            counted = i == len(program) - 1 and not self._materialize
            # A step is called for each chunk of what came before, however little of it is left.
            most = max(most, partial)
            calls = most // CHUNK * CALL
            match step:
                case Bind():
                    extensions = self._extensions(step, bound)
                    made = 0.0 if counted and _is_range(step) else extensions * (EXTEND + COPY * bound)
                    row = 1.0 + FENCE * len(step.fences) + made
                    yield BIND + calls + partial * row, partial * extensions
                    partial, bound = partial * extensions, bound + 1
                case Nested(slots=slots):
                    load = self._load(step, partial, bound, counted)
                    yield self._strategy_cost(step.strategy, load), load.results
                    partial, bound = load.results, bound + len(slots)
                case Union(programs):
                    branches = [list(self.steps(branch, partial, bound)) for branch in programs]
                    partial = sum(branch[-1][1] for branch in branches if branch)
                    yield sum(cost for branch in branches for cost, _ in branch), partial
                case Reject():
                    left = partial / (1.0 + self._negated(step, bound))
                    yield calls + partial * REJECT, left
                    partial = left
                case FilterByState() | Narrow() | InOrder():
                    left = partial * self._left(step, narrowed)
                    yield calls + partial * _TESTS[type(step)], left
                    partial = left
                case _:
                    yield calls + partial * _TESTS.get(type(step), 1.0), partial

    def _left(self, step: FilterByState | Narrow | InOrder, narrowed: Mapping[int, float]) -> float:
        """The share of partial matches that a test keeps."""
        match step:
            case FilterByState():
                return self._new
            case Narrow(slot):
                return narrowed.get(slot, 1.0)
            case InOrder(pairs):
                return float(0.5 ** len(pairs))

    def _negated(self, reject: Reject, bound: int) -> float:
        """How many events of a negated component lie in its interval; 0 for a part of several."""
        match recomputed(reject):
            case (Bind(key=None, compare=(), filters=()) as only,):
                return self._in_window(only.slot) / (1 + bound)
        return 0.0

    def _load(self, part: Nested, partial: float, bound: int, counted: bool) -> Load:
        """What the partial matches ask of a nested part."""
        profile, standalone = PartProfile.of(part), form_of(part, StandalonePart)
        key = None if standalone is None else standalone.key
        load = Load(
            profile,
            partial,
            materialize=not counted,
            sorted_view=self._sorted or profile.keyed,
            missing=self._new * max(self._statistics.count(slot) for slot in profile.last),
            selectivity=1.0 if key is None else 1.0 / self._statistics.distinct(key.slot, key.inner),
        )
        return window_load(load, [self._in_window(slot) for slot in profile.slots], bound)

    def _extensions(self, bind: Bind, bound: int) -> float:
        """How many events each partial match is extended by."""
        if bind.lower is None or bind.upper is None:
            return float(self._statistics.count(bind.slot, bind.states))
        events = self._in_window(bind.slot)
        if (bound > 1 and bind.lower.term in _ORDERED) or bind.upper.term in _ORDERED:
            events /= max(1, bound)
        for fence in bind.fences:
            # Of all events in the range, those nearer than the first negated one.
            events /= 1.0 + self._in_window(fence.slot) / max(1, bound)
        if bind.states is not None:
            events *= self._new
        return events if bind.key is None else events / self._statistics.distinct(bind.slot, bind.key.new)

    def _in_window(self, slot: int) -> float:
        """How many events of a slot lie in a window, on average."""
        if slot not in self._per_window:
            inside = self._statistics.inside((slot,), *self._windows)
            self._per_window[slot] = float(inside.mean()) if inside.size else 0.0
        return self._per_window[slot]
