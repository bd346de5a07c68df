"""The default: whichever strategy should cost least for the outer rows at hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.sampling import StoredEvents
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Executor, Strategy, interval, register, standalone, strategies
from eventcube.optimizer.choose import HeldChoice, costs_of, weigh
from eventcube.optimizer.cost import Load, PartProfile
from eventcube.optimizer.load import greatest_load, sampled_load, view_load, with_missing
from eventcube.optimizer.statistics import Statistics, sample_step
from eventcube.plan.steps import NoFlatForm, Part, form_of


def candidates() -> dict[str, type[Strategy]]:
    """The strategies to choose from, each by its first name."""
    names: dict[type[Strategy], str] = {}
    for name, strategy in strategies().items():
        if strategy is not Auto:
            names.setdefault(strategy, name)
    return {name: strategy for strategy, name in names.items()}


def answering(part: Part) -> tuple[str, ...]:
    """The strategies that compete for a part, by name."""
    load = Load(PartProfile.of(part), 0.0, materialize=True)
    return tuple(sorted(costs_of({name: strategy.cost for name, strategy in candidates().items()}, load)))


@register("auto")
class Auto(Strategy):
    """Leaves the work to the strategy that should cost least, chosen again every few calls.

    It is also chosen again when there are many more or fewer outer rows. What views have then counts for them.
    """

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.candidates = candidates()
        self._costs = {name: strategy.cost for name, strategy in self.candidates.items()}
        self._least: dict[str, float] | None = None
        self.profile = PartProfile.of(part)
        # Strategies that were chosen at least once, or that keep something for an equal part.
        self.created: dict[str, Strategy] = {}
        self._choice = HeldChoice()
        # Results so far, and how many there could have been if conditions had let all through.
        self._results = self._possible = self._possible_per_row = 0.0
        self._outer_rows = self._looked_at = self._computed = 0

    @property
    def choice(self) -> HeldChoice:
        """What was chosen so far."""
        return self._choice

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """The cost of the cheapest of the others."""
        costs = costs_of({name: strategy.cost for name, strategy in candidates().items()}, load)
        return min(costs.values(), default=None)

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        results = self._cheapest(table, executor, materialize=True).join(table, executor)
        while True:
            with self._counting(executor.counters):
                out = next(results, None)
            if out is None:
                return
            self._note_results(len(out))
            yield out

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        chosen = self._cheapest(table, executor, materialize=False)
        with self._counting(executor.counters):
            results = chosen.count(table, executor)
        self._note_results(results)
        return results

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        chosen = self._cheapest(table, executor, materialize=False)
        with self._counting(executor.counters):
            return chosen.exists(table, executor)

    def report(self) -> Iterator[str]:
        """What was asked and what was done."""
        yield f"asked for {self._outer_rows:,} outer rows"
        yield f"measured: {self._looked_at:,} events looked at, {self._computed:,} results computed"
        no_flat_form = form_of(self.part, NoFlatForm)
        if no_flat_form is not None:
            yield f"no flat form: {no_flat_form.reason}"
        if self._possible:
            yield f"{self._results:,.0f} results, {self._possible:,.0f} estimated without conditions"

    @contextmanager
    def _counting(self, counters: Counters) -> Iterator[None]:
        """Take note of the work that is done meanwhile."""
        looked_at, computed = counters.candidates, counters.inner_computed
        yield
        self._looked_at += counters.candidates - looked_at
        self._computed += counters.inner_computed - computed

    def _note_results(self, results: int) -> None:
        self._results += results if self._possible_per_row else 0

    def _cheapest(self, table: Table, executor: Executor, *, materialize: bool) -> Strategy:
        """The strategy that was chosen for about as many outer rows a few calls ago, or is chosen now."""
        if not self._choice.holds_for(len(table)):
            loads = _Loads(self, table, executor, materialize=materialize)
            if self._least is None:
                self._least = costs_of(self._costs, replace(loads.empty, outer_rows=0.0))
            self._choice.decide_for(len(table), weigh(self._costs, self._least, loads))
            self._possible_per_row = loads.possible_per_row
        self._possible += len(table) * self._possible_per_row
        self._outer_rows += len(table)
        return self.strategy(self._choice.take())

    def strategy(self, name: str) -> Strategy:
        """The strategy of a name, for this part."""
        if name not in self.created:
            self.created[name] = self.views.strategy(self.candidates[name], self.part)
        return self.created[name]

    def selectivity(self, statistics: Statistics) -> float:
        """The part of the possible results there were; as long as nothing is known, an equality leaves one value."""
        if self._possible:
            return min(1.0, self._results / self._possible)
        key = standalone(self.part).key
        return 1.0 if key is None else 1.0 / statistics.distinct(key.slot, key.inner)


class _Loads:
    """What the outer rows of one call ask of a part, sampled no further than the choice needs it."""

    def __init__(self, auto: Auto, table: Table, executor: Executor, *, materialize: bool) -> None:
        self._auto, self._table, self._executor = auto, table, executor
        self._statistics = Statistics(StoredEvents(executor))
        self._sampled: Load | None = None
        store = executor.store
        # Where rows leave in the middle, what is kept is sorted again for each store, too.
        sorted_view = store.order is not None or not store.gapless or auto.profile.keyed
        self.empty = Load(auto.profile, len(table), materialize, sorted_view)

    @property
    def possible_per_row(self) -> float:
        """Results that one outer row of a positive part could have; 0 if nothing was sampled."""
        return 0.0 if self._sampled is None or self.empty.part.negated else self._sampled.partial[-1]

    def greatest(self) -> Load:
        """No less than is asked for, from totals alone."""
        return greatest_load(self.empty, self._statistics)

    def sampled(self) -> Load:
        """What is asked for, as if views had all of it."""
        if self._sampled is None:
            selectivity = self._auto.selectivity(self._statistics)
            self._sampled = sampled_load(self.empty, *self._intervals, selectivity, self._statistics)
        return self._sampled

    def complete(self, name: str) -> Load:
        """What is asked for, with what the strategy of that name does not have yet."""
        auto, kind = self._auto, self._auto.candidates[name]
        if not kind.keeps_results:
            return self.sampled()
        missing = auto.strategy(name).missing(*self._intervals, self._executor) if kind in auto.views else None
        return self._of_new_view if missing is None else with_missing(self._of_new_view, missing)

    @cached_property
    def _intervals(self) -> tuple[Ints, Ints]:
        """A sample of the intervals."""
        table = self._table
        sampled = Table(table.columns, table.data[:, :: sample_step(len(table))].copy())
        lo, hi = interval(self._auto.part, sampled, self._executor)
        return lo, np.maximum(lo, hi)

    @cached_property
    def _of_new_view(self) -> Load:
        return view_load(self.sampled(), *self._intervals, self._statistics)
