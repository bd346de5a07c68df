"""How a workload is run: what is drawn for it, and what the engine decides by chance instead of by costs and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest.mock import patch

from eventcube.engine import aggregate, flow, kept_sources, limit, min_max, payload, query_group, state
from eventcube.engine.execute import Execution
from eventcube.engine.query_group import QueryGroup
from eventcube.engine.sinks import matches
from eventcube.engine.views import auto, sliding, view
from eventcube.engine.views.strategy import strategies
from eventcube.optimizer import aggregates, choose, derivations, sharing
from eventcube.optimizer.derivations import DerivationChoice, with_sources
from eventcube.optimizer.sharing import SharingChoice
from eventcube.plan.routes import leads_back
from eventcube.plan.workload import Derivation, WorkloadQuery
from tests.differential.gaps import rows_leave_in_the_middle
from tests.differential.knobs import any_costs, any_of, in_chunks
from tests.oracle.quals import TICK, chance


@dataclass(frozen=True)
class Setup:
    """What is drawn for a run before anything is known of its case, so that it stays while a case is made smaller."""

    strategies: tuple[str, str]
    # The sharing of the first runtime, and of those that go on from its state.
    sharings: tuple[str, str]
    by_changes: bool
    restarts: int
    advances: int
    small_cuts: bool
    slack: int
    sharing: str
    seed: int
    knobs: tuple[tuple[Any, str, Any], ...]
    chosen: tuple[bool, bool]
    chunk: int
    gaps: bool
    at_once: bool
    looks: bool
    reuse: str

    @classmethod
    def draw(cls, rng: Random) -> Setup:
        """A setup from a source of chance."""
        stride, many = rng.choice([(1, 1), (2, 3), (1 << 14, 1 << 15)])
        pairs = rng.choice([0, 0, 50, 1 << 22])
        return cls(
            strategies=(_draw_strategy(rng), _draw_strategy(rng)),
            sharings=rng.choice([*[("auto", "auto")] * 5, ("independent", "auto"), ("auto", "independent")]),
            by_changes=chance(rng, 60),
            restarts=rng.choice([0, 0, 10, 40]),
            advances=rng.choice([0, 0, 20]),
            small_cuts=chance(rng, 40),
            slack=rng.choice([0, 0, 1, 3]) * TICK,
            sharing=rng.choice(["costs", "always", "always", "any", "any", "never"]),
            seed=rng.randrange(1 << 32),
            knobs=(
                (sliding, "STRIDE", stride),
                (view.View, "purge_threshold", many),
                (view.View, "max_results", rng.choice([2, 10, 1 << 22])),
                (choose, "HOLD_PAIRS", pairs),
                (sharing, "HOLD_PAIRS", pairs),
                (derivations, "HOLD_PAIRS", pairs),
                (choose, "HOLD_CALLS", rng.choice([0, 15])),
                (aggregates, "WEIGHING", rng.choice([0.0, 50_000.0])),
                (aggregates, "MAKE_CALL", rng.choice([-1e6, -1e6, 35_000.0])),
                (aggregates, "MOST", rng.choice([0.01, 0.1, 1e9])),
                (limit, "_MAX_FOUND", rng.choice([1, 99, 1 << 18])),
                (state, "_MIN_ACTIVE", rng.choice([0, 2, 1 << 13])),
                (state, "_ACTIVE_PER_EVENT", rng.choice([0, 1])),
                (state, "_MIN_COMPACTED", rng.choice([0, 4, 1 << 10])),
                (query_group, "_MAX_TREES", rng.choice([1, 2, 64])),
                (payload, "_FEW", rng.choice([0, 1 << 10])),
                (matches, "OUTPUT_ROWS", rng.choice([1, 3, 1 << 13])),
                (aggregate, "_FOLD_ROWS", rng.choice([1, 1 << 16])),
                (view, "REQUESTS", rng.choice([1, 1 << 18])),
                (kept_sources, "MOST_KEPT", rng.choice([1, 1 << 20, 1 << 20])),
                (kept_sources, "SHARE", rng.choice([0, 0, 2])),
                (kept_sources, "MOST_UNUSED", rng.choice([0, 2, 1 << 10])),
                (min_max, "LEAST_PER_MATCH", rng.choice([-1, 16])),
                (min_max, "LEAST_PER_EVENT", -1),
            ),
            chosen=(chance(rng, 50), chance(rng, 50)),
            chunk=rng.choice([1, 4, 1 << 16, 1 << 16]),
            gaps=chance(rng, 10),
            at_once=chance(rng, 8),
            looks=chance(rng, 8),
            reuse=rng.choice(["costs", "any", "any", "any", "same", "never"]),
        )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run the engine so."""
        rng = Random(self.seed)
        with ExitStack() as patches:
            for owner, name, value in self.knobs:
                patches.enter_context(patch.object(owner, name, value))
            if self.chunk < 1 << 16:
                patches.enter_context(patch.object(Execution, "_bind", in_chunks(self.chunk)))
            if self.chosen[0]:
                patches.enter_context(patch.object(choose, "cheapest", any_of(rng)))
            if self.chosen[1]:
                patches.enter_context(patch.object(auto, "weigh", any_costs(rng)))
            if self.sharing != "costs":
                patches.enter_context(patch.object(SharingChoice, "choose", self._chosen_by(rng)))
            if self.reuse != "costs":
                patches.enter_context(patch.object(DerivationChoice, "derivations", self._derived_by(rng)))
            if self.gaps:
                patches.enter_context(rows_leave_in_the_middle())
            yield

    def _chosen_by(self, rng: Random) -> Callable[..., frozenset[str]]:
        """A choice of the queries that are bound from the start: all, none, or each time any of them."""
        percent = {"always": 100, "never": 0, "any": 60}[self.sharing]
        return lambda _, candidates, *__: frozenset(c.name for c in candidates if chance(rng, percent))

    def _derived_by(self, rng: Random) -> Callable[..., dict[str, Derivation]]:
        """A choice of how queries are computed from others: none, the same each time, or each time another."""
        plans: dict[int, dict[str, Derivation]] = {}

        def derivations(choice: DerivationChoice, names: Sequence[str], _: object) -> dict[str, Derivation]:
            if self.reuse == "never":
                return {}
            if self.reuse == "any" or id(choice) not in plans:
                plans[id(choice)] = _draw_plan(rng, choice.queries)
            return with_sources(names, plans[id(choice)])

        return derivations

    def __str__(self) -> str:
        knobs = ", ".join(f"{name}={value}" for _, name, value in self.knobs)
        own = {n: v for n, v in vars(self).items() if n != "knobs"}
        return f"{', '.join(f'{n}={v}' for n, v in own.items())}, {knobs}"


def _draw_plan(rng: Random, queries: Mapping[str, WorkloadQuery]) -> dict[str, Derivation]:
    """Derivations of some queries, none of which leads in a circle."""
    plan: dict[str, Derivation] = {}
    for name in rng.sample(sorted(queries), len(queries)):
        if queries[name].derivations and chance(rng, 75):
            unions = [d for d in queries[name].derivations if len(d.sources) > 1]
            derivation = rng.choice(unions if unions and chance(rng, 50) else queries[name].derivations)
            if not leads_back(derivation, plan):
                plan[name] = derivation
    return plan


def _draw_strategy(rng: Random) -> str:
    known = strategies()
    keeping = [name for name in sorted(known) if known[name].keeps_results]
    return rng.choice(keeping) if chance(rng, 50) else rng.choice([*sorted(known), "auto", "auto"])


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Counts trees with common steps that ran, chunks that flowed through them, and choices to bind from the start.

    Also chunks of matches that others were computed from, and nested parts that shared a view with an equal one.
    """
    counted: Counter[str] = Counter()
    run, deliver, from_start, follow = query_group.run_tree, flow._deliver, QueryGroup._from_start, flow.Followers.take
    twin = view.ViewStrategy.twin

    def counted_run(tree: Any, *arguments: Any) -> Any:
        counted["trees"] += bool(tree.nodes)
        return run(tree, *arguments)

    def counted_deliver(leaves: Any, table: Any, sinks: Any) -> Any:
        counted["chunks"] += bool(leaves and table.columns)
        return deliver(leaves, table, sinks)

    def counted_follow(followers: Any, table: Any) -> Any:
        counted["derived"] += 1
        return follow(followers, table)

    def counted_twin(strategy: Any, part: Any) -> Any:
        counted["shared views"] += 1
        return twin(strategy, part)

    def counted_from_start(*arguments: Any) -> Any:
        names = from_start(*arguments)
        counted["from start"] += bool(names)
        return names

    with (
        patch.object(query_group, "run_tree", counted_run),
        patch.object(flow, "run_tree", counted_run),
        patch.object(flow, "_deliver", counted_deliver),
        patch.object(flow.Followers, "take", counted_follow),
        patch.object(QueryGroup, "_from_start", counted_from_start),
        patch.object(view.ViewStrategy, "twin", counted_twin),
    ):
        yield counted
