"""What programs of flat strategies cost, from samples: how much conditions leave, and how large clusters are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace

import numpy as np

from eventcube.optimizer.cost import BIND, CALL, CHUNK, COPY, EXTEND, RANGE, Load
from eventcube.optimizer.program import NOTHING, NOTHING_NARROWED, Partial, ProgramEstimate, SampledSlots, StrategyCost
from eventcube.optimizer.statistics import Events, Ints
from eventcube.options import PRC
from eventcube.plan.expressions import Comparison, Condition, slots_in
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.steps import (
    Bind,
    BindClusters,
    ExpandClusters,
    Filter,
    Link,
    Nested,
    Program,
    StandalonePart,
    Step,
    Term,
    form_of,
)

# What a program costs by the flat strategy of a name.
FlatCost = Callable[[str, Program, ProgramEstimate], float]
# Combinations of events on which conditions are tried; windows, and events of each, whose links are looked up.
TUPLES, LINKED = 512, 16
# Beside what a join costs: one test of one candidate, one condition on a match that was made, one cluster.
TEST, FILTER, CLUSTER = 0.6, 4.0, 0.7


class FlatSlots(SampledSlots):
    """Slots of a plan, with what conditions leave and how large clusters are."""

    def __init__(self, plan: PhysicalQuery, events: Events) -> None:
        super().__init__(plan, events)
        self._shares: dict[tuple[Condition, ...], float] = {}
        self._sizes: dict[int, float] = {}

    def share(self, step: Bind | Filter) -> float:
        """The part of the candidates of a join, or of matches, for which its conditions hold."""
        conditions = _conditions(step)
        if conditions not in self._shares:
            self._shares[conditions] = self._sampled_share(step, conditions)
        return self._shares[conditions]

    def _sampled_share(self, step: Bind | Filter, conditions: tuple[Condition, ...]) -> float:
        slots = sorted(frozenset().union(*map(slots_in, conditions)))
        if not slots:
            return 1.0
        tuples = self._tuples(tuple(slots))
        if isinstance(step, Bind):
            tuples = _in_order(step, tuples)
        size = len(tuples[slots[0]])
        kept = np.ones(size, np.bool_)
        for condition in conditions:
            kept &= self._events.holds(condition, tuples)
        return float((np.count_nonzero(kept) + 0.5) / (size + 1))

    def _tuples(self, slots: tuple[int, ...]) -> Mapping[int, Ints]:
        """Events of each slot that lie in one window, chosen by chance, but always the same."""
        lo, hi = self._windows
        chance = np.random.default_rng(len(slots)).random((len(slots), TUPLES))
        rows, some = {}, np.ones(TUPLES, np.bool_)
        for slot, part in zip(slots, chance, strict=True):
            stack = self._events.rows(slot)
            first = stack.searchsorted(lo)
            count = stack.searchsorted(hi, side="right") - first
            some &= np.resize(count > 0, TUPLES)
            place = np.resize(first, TUPLES) + (part * np.resize(count, TUPLES)).astype(np.int64)
            rows[slot] = stack[np.minimum(place, len(stack) - 1)] if len(stack) else place
        return {slot: own[some] for slot, own in rows.items()}

    def cluster_size(self, step: BindClusters) -> float:
        """How many events a cluster has, on average."""
        if step.id not in self._sizes:
            self._sizes[step.id] = self._sampled_size(step)
        return self._sizes[step.id]

    def _sampled_size(self, step: BindClusters) -> float:
        stack = self._events.rows(step.bind.slot)
        if not len(stack):
            return 1.0
        begins = stack.searchsorted(self._windows[0][:: 1 + len(self._windows[0]) // LINKED])
        places = np.unique(np.minimum(np.add.outer(begins, np.arange(LINKED)), len(stack) - 1))
        rows = stack[places]
        differ = np.diff(places, prepend=-2) > 1
        for link in step.links:
            linked = self._places(link, rows)
            differ[1:] |= linked[1:] != linked[:-1]
        return len(rows) / max(1, int(np.count_nonzero(differ)))

    def _places(self, link: Link, rows: Ints) -> Ints:
        """Where the search goes on from some rows."""
        stack, term = self._events.rows(link.slot, link.states), link.bound.term
        if term in (Term.WINDOW_START, Term.WINDOW_END):
            rows = self._events.windows(rows, forward=term is Term.WINDOW_END)
        return stack.searchsorted(rows)


def _conditions(step: Bind | Filter) -> tuple[Condition, ...]:
    """The conditions of a step that hold for every alternative."""
    filters = step.filters if isinstance(step, Bind) else step.predicates
    residual = tuple(f.condition for f in filters if not (f.optional or f.guard))
    compared = tuple(Comparison(c.op, c.new, c.bound) for c in step.compare) if isinstance(step, Bind) else ()
    return *compared, *residual


def _in_order(bind: Bind, tuples: Mapping[int, Ints]) -> Mapping[int, Ints]:
    """The tuples whose event for the join lies between the others as it has to, if there are any."""
    new = tuples[bind.slot]
    kept = np.ones(len(new), np.bool_)
    for slot in () if bind.upper is None else bind.upper.slots:
        if slot in tuples and bind.upper is not None and bind.upper.term is Term.BEFORE_FIRST:
            kept &= new < tuples[slot]
    for slot in () if bind.lower is None else bind.lower.slots:
        if slot in tuples and bind.lower is not None and bind.lower.term is Term.AFTER_LAST:
            kept &= new > tuples[slot]
    return {slot: rows[kept] for slot, rows in tuples.items()} if kept.any() else tuples


class FlatEstimate(ProgramEstimate):
    """Estimates for programs of flat strategies, in which conditions leave what they leave of a sample."""

    _slots: FlatSlots

    @classmethod
    def of_events(
        cls, plan: PhysicalQuery, events: Events, strategy_cost: StrategyCost, *, materialize: bool
    ) -> FlatEstimate:
        """Estimates from a sample of some events."""
        return cls(plan, FlatSlots(plan, events), strategy_cost, materialize=materialize)

    def _step(self, step: Step, at: Partial, narrowed: Mapping[int, float], *, counted: bool) -> tuple[float, Partial]:
        match step:
            case Bind() if step.is_anchor:
                return BIND, at._replace(bound=at.bound + 1, spread=at.spread + 1.0)
            case Bind() if step.compare or step.filters:
                return self._tested(step, at, counted=counted)
            case BindClusters(bind):
                cost, after = super()._step(bind, at, narrowed, counted=True)
                events = after.rows / max(at.rows, 1e-9)
                clusters = min(1.0, events)
                if step.links:
                    clusters = max(clusters, events / self._slots.cluster_size(step))
                # A cluster has two columns: its first event, and its size.
                cost += at.rows * (RANGE + clusters * (CLUSTER + COPY * (at.bound + 1)))
                rows, folded = at.rows * clusters, at.folded * events / max(clusters, 1e-9)
                tables = at.tables + rows / CHUNK
                return cost, after._replace(rows=rows, bound=at.bound + 2, tables=tables, folded=folded)
            case ExpandClusters(slots):
                if counted:
                    return at.rows, at
                # One slot after the other, as if all clusters had as many events.
                bound = at.bound - len(slots)
                sizes = [at.rows * at.folded ** (k / len(slots)) for k in range(len(slots) + 1)]
                cost = sum(sizes[:-1]) * RANGE + sum(sizes[1:]) * (EXTEND + COPY * bound)
                cost += len(slots) * (BIND + (at.tables - 1.0) * CALL)
                rows, tables = sizes[-1], at.tables + sizes[-1] / CHUNK
                return cost, at._replace(rows=rows, bound=bound, tables=tables, folded=1.0)
            case Filter():
                cost, after = super()._step(step, at, narrowed, counted=counted)
                return cost, after.of(at.rows * self._slots.share(step))
        return super()._step(step, at, narrowed, counted=counted)

    def _tested(self, bind: Bind, at: Partial, *, counted: bool) -> tuple[float, Partial]:
        """A join whose candidates are tested."""
        cost, after = super()._step(replace(bind, compare=(), filters=()), at, NOTHING_NARROWED, counted=True)
        passing = after.rows * self._slots.share(bind)
        cost += after.rows * (EXTEND + TEST * len(bind.compare))
        if bind.filters:
            cost += after.rows * (COPY * at.bound + FILTER * len(bind.filters))
        elif not counted:
            cost += passing * (EXTEND + COPY * at.bound)
        return cost, after._replace(rows=passing, tables=at.tables + passing / CHUNK)

    def _load(self, part: Nested, at: Partial, counted: bool) -> Load:
        """What partial matches ask of a nested part; of one whose matches are kept, what it costs to find new ones."""
        load = super()._load(part, at, counted)
        standalone = form_of(part, StandalonePart)
        if part.strategy != PRC or standalone is None:
            return load
        kept = copy(self)
        kept._materialize = True
        made = list(kept.steps(standalone.program, NOTHING.of(load.missing)))
        each = made[-1][1].rows / max(1e-9, load.missing)
        lasts = sum(self._slots.in_window(slot) for slot in standalone.last)
        inside = lasts * each / len(standalone.slots)
        return replace(
            load,
            partial=(lasts, inside * load.selectivity),
            extended=(each,),
            selectivity=1.0,
            extending=sum(cost for cost, _ in made),
        )
