"""The steps that complete matches of a query from those of another, whose events are some of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eventcube.plan.logical import And, Leaf, LogicalQuery, Node, Or, Predicate, Seq, positive_parts, slots_of
from eventcube.plan.order import Order, PlacedNegation
from eventcube.plan.program import ProgramBuilder
from eventcube.plan.progress import Due, Progress
from eventcube.plan.rules.rewrite import rewrite_steps
from eventcube.plan.steps import FilterByState, Program, Step

Settled = Callable[[Predicate | PlacedNegation], bool]


class PartlyBoundError(Exception):
    """A nested part is bound in part, in a way that no steps can complete."""


def completion(
    logical: LogicalQuery,
    order: Order,
    bound: frozenset[int],
    optional: frozenset[int],
    settled: Settled,
    first: Sequence[Step],
    due: Due | None,
) -> Program:
    """The steps after which matches are complete whose `bound` slots hold events.

    `settled` tests hold already. The steps begin with `first`. With `due`, only matches whose first or last event has
    the required state are completed. Raises `PartlyBoundError` if there are no such steps.
    """
    builder = _Completion(logical, logical.region, order)
    pending = tuple(test for test in builder.tests if not settled(test))
    steps, _ = builder.complete(logical.region.node, Progress(bound, optional, frozenset(), pending), first, due)
    (program,), _ = rewrite_steps((tuple(steps),))
    return program


class _Completion(ProgramBuilder):
    """Builds the rest of a program, of which some slots are bound."""

    def complete(self, node: Node, at: Progress, first: Sequence[Step], due: Due | None) -> tuple[list[Step], Progress]:
        triggers = () if due is None else self._triggers(due)
        steps = list(first)
        checked = due is None or at.bound.issuperset(triggers)
        if due is not None and checked:
            steps.append(FilterByState(triggers, due.forward, due.states))
        steps, at = self._flush(steps, at)
        # The part that holds the trigger is bound first, to events that are due.
        chosen = None if due is None or checked else self._part_with(node, triggers, at)
        more, at = self._rest(node, at, chosen, due)
        assert not at.pending, "every test must find its place"
        if due is not None and not checked and chosen is None:
            more.append(FilterByState(triggers, due.forward, due.states))
        return [*steps, *more], at

    def _triggers(self, due: Due) -> tuple[int, ...]:
        return self.order.earliest(self.order.all) if due.forward else self.order.latest(self.order.all)

    def _part_with(self, node: Node, triggers: tuple[int, ...], at: Progress) -> int | None:
        """The number of the part, one unbound event, that must be due; None if any of several may be."""
        if not isinstance(node, Seq) or len(triggers) > 1:
            return None
        parts = positive_parts(node)
        return next((i for i, part in enumerate(parts) if part == Leaf(triggers[0])), None)

    def _rest(
        self, node: Node, at: Progress, chosen: int | None = None, due: Due | None = None
    ) -> tuple[list[Step], Progress]:
        """The steps that bind what is not bound of a node."""
        slots = slots_of(node)
        if slots <= at.bound:
            return [], at
        if isinstance(node, Leaf | Or):
            if slots & at.bound:
                raise PartlyBoundError
            return self._node(node, None, at)
        parts = positive_parts(node)
        steps: list[Step] = []
        for part in parts:
            if slots_of(part) & at.bound:
                more, at = self._rest(part, at)
                steps += more
        unbound = _outwards(node, parts, at.bound)
        if unbound:
            dues: list[Due | None] = [None] * len(parts)
            if chosen is not None:
                dues[chosen] = due
                unbound = [chosen, *(i for i in unbound if i != chosen)]
            more, at = self._parts(parts, unbound, dues, at)
            steps += more
        return steps, at


def _outwards(node: Seq | And, parts: tuple[Node, ...], bound: frozenset[int]) -> list[int]:
    """The parts that are not bound, those of a SEQ from the bound ones on outwards."""
    unbound = [i for i, part in enumerate(parts) if not slots_of(part) & bound]
    first = next((i for i, part in enumerate(parts) if slots_of(part) & bound), 0)
    if isinstance(node, And):
        return unbound
    return [*(i for i in unbound if i > first), *(i for i in reversed(unbound) if i < first)]
