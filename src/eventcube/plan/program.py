"""The steps of a region: choose the order of binding, and test as early as possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from eventcube.errors import OptionError
from eventcube.options import ITERATIVE, REWRITE
from eventcube.plan.flat_cases import flat_cases
from eventcube.plan.logical import (
    And,
    Leaf,
    LogicalQuery,
    Node,
    NoFlatForm,
    Or,
    Predicate,
    PredicateClass,
    Region,
    Seq,
    positive_parts,
    regions,
    slots_of,
)
from eventcube.plan.order import Order, PlacedNegation, may_share
from eventcube.plan.parts import part_label
from eventcube.plan.predicates import residual, with_predicates
from eventcube.plan.progress import NOTHING_BOUND, Due, Progress
from eventcube.plan.rules.flatten_negated import flat_form
from eventcube.plan.standalone import correlation_key, stands_alone
from eventcube.plan.steps import (
    Absent,
    Bind,
    Bound,
    DistinctEvents,
    Filter,
    FilterByState,
    FlatCases,
    Form,
    Nested,
    Program,
    Recompute,
    Reject,
    StandalonePart,
    Step,
    Term,
    Union,
    WithinWindow,
)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Caches for one query, without which the work would double with each level of nesting.

    Orders of negated regions, outer slots of negated parts, and programs of standalone parts by node, tests and
    alternatives taken.
    """

    orders: dict[int, Order] = field(default_factory=dict)
    outer_slots: dict[int, frozenset[int]] = field(default_factory=dict)
    standalone: dict[tuple[object, ...], tuple[Program, Progress]] = field(default_factory=dict)


class ProgramBuilder:
    """Builds the program of one region."""

    def __init__(
        self,
        logical: LogicalQuery,
        region: Region,
        order: Order,
        outer: Progress | None = None,
        distinct: tuple[int, ...] = (),
        shared: _Shared | None = None,
        *,
        keeps_results: bool = True,
        from_start: bool = False,
    ) -> None:
        self.logical, self.region, self.order = logical, region, order
        # Whether a SEQ is bound from its first part on, whichever part is due.
        self.from_start = from_start
        self.outer, self.distinct = outer, distinct
        self.shared = shared or _Shared()
        # A recomputed form beside a view recomputes its inner parts too, or each level would double the plan.
        self.keeps_results = keeps_results

    @property
    def tests(self) -> tuple[Predicate | PlacedNegation, ...]:
        """All tests of a match of the region."""
        return (*(p for p in self.region.predicates if p.is_tested), *self.order.tests)

    def program(self, due: Due | None) -> tuple[Program, Progress]:
        around = self.outer or NOTHING_BOUND
        return self._complete(self.region.node, due, replace(around, pending=self.tests))

    def _complete(self, node: Node, due: Due | None, at: Progress) -> tuple[Program, Progress]:
        steps, at = self._flush([], at)
        more, at = self._node(node, due, at)
        assert not at.pending, "every test must find its place"
        return (*steps, *more), at

    def standalone(
        self, node: Node, tests: Iterable[Predicate | PlacedNegation], at: Progress, due: Due | None
    ) -> StandalonePart:
        """The part as a standalone one, with its tests, for outer matches with this progress."""
        part_slots = slots_of(node)
        all_tests = tuple(tests)
        own_tests = tuple(
            t for t in all_tests if stands_alone(t, part_slots, at.inside, self.logical, self._outer_slots)
        )
        correlated = [t for t in all_tests if not any(t is test for test in own_tests)]
        last = self.order.latest(part_slots)
        key, key_predicate = correlation_key(
            [t for t in correlated if isinstance(t, Predicate)], own_tests, part_slots, last, self.logical
        )
        program, end = self._standalone_program(node, own_tests, at.inside)
        progress = replace(
            at,
            bound=at.bound | part_slots,
            optional=at.optional | end.optional,
            pending=tuple(t for t in correlated if t is not key_predicate),
        )
        residual_steps, progress = self._flush(self._outer_checks(part_slots, at, due), progress)
        assert not progress.pending, "every test must find its place"
        slots = tuple(sorted(part_slots))
        ordered = isinstance(node, Seq)
        return StandalonePart(slots, last, ordered, program, program, key, tuple(residual_steps))

    def _standalone_program(
        self, node: Node, own_tests: tuple[Predicate | PlacedNegation, ...], inside: frozenset[int]
    ) -> tuple[Program, Progress]:
        """The program of a standalone part, with the tests that need only its events."""
        # Ids are unique here: nodes and tests live as long as the query.
        cache_key = (id(node), inside, *map(id, own_tests))
        if cache_key not in self.shared.standalone:
            builder = self._with(self.region, self.order.standalone(), NOTHING_BOUND)
            anchor = Due(False, frozenset(), anchored=True)
            self.shared.standalone[cache_key] = builder._complete(
                node, anchor, replace(NOTHING_BOUND, inside=inside, pending=own_tests)
            )
        return self.shared.standalone[cache_key]

    def _with(
        self,
        region: Region,
        order: Order,
        outer: Progress | None,
        distinct: tuple[int, ...] = (),
        *,
        keeps_results: bool = True,
    ) -> ProgramBuilder:
        return ProgramBuilder(self.logical, region, order, outer, distinct, self.shared, keeps_results=keeps_results)

    def _outer_checks(self, part_slots: frozenset[int], at: Progress, due: Due | None) -> list[Step]:
        """Checks of a standalone result against the outer match, beside the interval: distinct, state, window."""
        pairs = tuple((slot, other) for slot in sorted(part_slots) for other in self._distinct(slot, at))
        steps: list[Step] = [DistinctEvents(pairs)] if pairs else []
        if due is not None:
            steps.append(FilterByState(tuple(sorted(part_slots)), due.forward, due.states))
        lower, upper = self._range(part_slots, at)
        if lower is not None and upper is not None and (lower.term, upper.term) == (Term.WINDOW_START, Term.WINDOW_END):
            # The part may begin before and end after the bound events, each within a window.
            steps.append(WithinWindow(tuple(sorted(part_slots | (at.bound & self.order.all)))))
        return steps

    # Binding.

    def _node(self, node: Node, due: Due | None, at: Progress) -> tuple[list[Step], Progress]:
        match node:
            case Leaf(slot):
                return self._flush([self.bind(slot, due, at)], replace(at, bound=at.bound | {slot}))
            case Or():
                return self._or(node, due, at)
            case Seq():
                parts = positive_parts(node)
                forward = due is not None and due.forward
                order = list(range(len(parts)))
                dues: list[Due | None] = [None] * len(parts)
                dues[0 if forward else -1] = due
                if not forward and not self.from_start:
                    order.reverse()
                return self._parts(parts, order, dues, at)
            case And():
                return self._and(node, due, at)

    def _parts(
        self, parts: tuple[Node, ...], order: Iterable[int], dues: list[Due | None], at: Progress
    ) -> tuple[list[Step], Progress]:
        """Bind the first part of the order, then single events and inlined parts, then nested parts."""
        first, *rest = order
        inline = {i for i in rest if isinstance(part := parts[i], Leaf) or part.strategy is None}
        ordered = [first, *(i for i in rest if i in inline), *(i for i in rest if i not in inline)]
        steps: list[Step] = []
        for i in ordered:
            part = parts[i]
            if i in inline or not steps:
                more, at = self._node(part, dues[i], at)
                steps += more
            else:
                nested, at = self._nested(part, dues[i], at)
                steps.append(nested)
        return steps, at

    def _nested(self, part: Node, due: Due | None, at: Progress) -> tuple[Nested, Progress]:
        part_slots = slots_of(part)
        strategy = self._strategy(None if isinstance(part, Leaf) else part.strategy)
        lower, upper = self._range(part_slots, at)
        keeps_inner = self.keeps_results and strategy == ITERATIVE
        builder = self._with(self.region, self.order, self.outer, self.distinct, keeps_results=keeps_inner)
        program, end = builder._node(part, due, at)
        forms: list[Form] = [Recompute(tuple(program))]
        if strategy != ITERATIVE:
            forms.append(self.standalone(part, [t for t in at.pending if t not in end.pending], at, due))
        return Nested(
            part_label(part, self.logical.slots), tuple(sorted(part_slots)), lower, upper, strategy, tuple(forms)
        ), end

    def _strategy(self, chosen: str | None) -> str:
        """The strategy of a part."""
        return chosen if self.keeps_results and chosen is not None else ITERATIVE

    def _and(self, node: And, due: Due | None, at: Progress) -> tuple[list[Step], Progress]:
        parts = positive_parts(node)
        indices = range(len(parts))
        if due is None or not due.by_one or len(parts) == 1:
            return self._parts(parts, indices, [due] * len(parts), at)
        programs, ends = [], []
        for chosen in indices:
            order = [chosen, *(i for i in indices if i != chosen)]
            steps, end = self._parts(parts, order, due.of_parts(chosen, len(parts)), at)
            programs.append(tuple(steps))
            ends.append(end)
        return [Union(tuple(programs))], ends[0]

    def _or(self, node: Or, due: Due | None, at: Progress) -> tuple[list[Step], Progress]:
        or_slots = slots_of(node)
        programs, ends = [], []
        # A negation outside of the OR applies whichever alternative is taken, even if it refers to one.
        outer_negations = tuple(p for p in at.pending if isinstance(p, PlacedNegation) and not self._within(p, node))
        inner = replace(at, pending=tuple(p for p in at.pending if p not in outer_negations))
        for part, number in zip(node.parts, node.alternatives, strict=True):
            steps, start = self._flush([], replace(inner, inside=at.inside | {number}))
            more, end = self._node(part, due, start)
            absent = tuple(sorted(or_slots - slots_of(part)))
            programs.append((*steps, *more, *([Absent(absent)] if absent else [])))
            ends.append(end)
        # A test done in the alternative that it refers to need not be done in the others.
        pending = tuple(p for p in at.pending if p in outer_negations or all(p in e.pending for e in ends))
        after = Progress(at.bound | or_slots, at.optional | or_slots, at.inside, pending)
        return self._flush([Union(tuple(programs))], after)

    def _within(self, test: PlacedNegation, node: Or) -> bool:
        guard, slots = test.negation.guard, self.logical.alternatives
        return guard is not None and any(slots[guard] <= slots[number] for number in node.alternatives)

    def _range(self, slots: frozenset[int], at: Progress) -> tuple[Bound | None, Bound | None]:
        """The range of events for the slots, given what is bound."""
        bound_here = at.bound & self.order.all
        earlier, later = self.order.before(slots, bound_here), self.order.after(slots, bound_here)
        lower, upper = self.order.lower, self.order.upper
        if earlier:
            lower = self._bound(Term.AFTER_LAST, self.order.latest(earlier), at)
        elif lower.term is Term.WINDOW_START:
            lower = self._bound(Term.WINDOW_START, self.order.latest(bound_here), at)
        if later:
            upper = self._bound(Term.BEFORE_FIRST, self.order.earliest(later), at)
        elif upper.term is Term.WINDOW_END:
            upper = self._bound(Term.WINDOW_END, self.order.earliest(bound_here), at)
        unbounded = not bound_here and self.outer is None
        return (None, None) if unbounded else (lower, upper)

    def _bound(self, term: Term, slots: tuple[int, ...], at: Progress) -> Bound:
        return Bound(term, slots, bool(at.optional.intersection(slots)))

    def bind(self, slot: int, due: Due | None, at: Progress) -> Bind:
        """The join step of a slot, without its predicates."""
        distinct = self._distinct(slot, at)
        if due is not None and due.anchored:
            return Bind(slot, Bound(Term.ANCHOR), Bound(Term.AFTER_ANCHOR), distinct=distinct)
        lower, upper = self._range(frozenset({slot}), at)
        return Bind(slot, lower, upper, due.states if due else None, distinct=distinct)

    def _distinct(self, slot: int, at: Progress) -> tuple[int, ...]:
        """The bound slots, of this region or around it, whose event a candidate could be but must not be."""
        slots = self.logical.slots
        outside = (s for s in self.distinct if may_share(slots[slot], slots[s]))
        return (*self.order.distinct(slot, at.bound & self.order.all), *outside)

    # Testing.

    def _flush(self, steps: list[Step], at: Progress) -> tuple[list[Step], Progress]:
        """Append the tests that are ready; predicates right after a Bind become part of it."""
        ready = [p for p in at.pending if self._ready(p, at)]
        if not ready:
            return steps, at
        predicates = [self._unguarded(p, at) for p in ready if isinstance(p, Predicate)]
        if predicates:
            if steps and isinstance(steps[-1], Bind):
                steps[-1] = with_predicates(steps[-1], predicates, at.optional, self.logical)
            else:
                steps.append(Filter(tuple(residual(p, self.logical) for p in predicates)))
        tested = set(map(id, ready))
        at = replace(at, pending=tuple(p for p in at.pending if id(p) not in tested))
        steps += (self._reject(test, at) for test in ready if isinstance(test, PlacedNegation))
        return steps, at

    def _ready(self, test: Predicate | PlacedNegation, at: Progress) -> bool:
        guard = test.guard if isinstance(test, Predicate) else test.negation.guard
        needed = test.slots if isinstance(test, Predicate) else self._outer_slots(test)
        decided = guard is None or guard in at.inside or self.logical.alternatives[guard] <= at.bound
        return needed <= at.bound and decided

    def _outer_slots(self, test: PlacedNegation) -> frozenset[int]:
        """The slots outside of a negated part that its bounds and conditions refer to."""
        if id(test) not in self.shared.outer_slots:
            self.shared.outer_slots[id(test)] = self._outer_slots_of(test)
        return self.shared.outer_slots[id(test)]

    def _outer_slots_of(self, test: PlacedNegation) -> frozenset[int]:
        inner_regions = list(regions(test.negation.region))
        inner_slots = frozenset().union(*(slots_of(r.node) for r in inner_regions))
        tested = [p for r in inner_regions for p in r.predicates if p.kind is not PredicateClass.KEY]
        mentioned = frozenset().union(*(p.slots for p in tested))
        return (mentioned - inner_slots) | {*test.lower.slots, *test.upper.slots, *test.distinct}

    def _unguarded(self, predicate: Predicate, at: Progress) -> Predicate:
        return replace(predicate, guard=None) if predicate.guard in at.inside else predicate

    def _reject(self, test: PlacedNegation, at: Progress) -> Reject:
        region, guard = test.negation.region, test.negation.guard
        composite = not isinstance(region.node, Leaf)
        strategy = self._strategy(test.negation.strategy if composite else None)
        if region.index not in self.shared.orders:
            self.shared.orders[region.index] = Order(region, self.logical.slots, outermost=False)
        order = self.shared.orders[region.index]
        progress = replace(at, inside=frozenset(), pending=())
        keeps_inner = self.keeps_results and strategy == ITERATIVE
        builder = self._with(region, order, progress, test.distinct, keeps_results=keeps_inner)
        program, _ = builder.program(None)
        forms: list[Form] = [Recompute(program)]
        if strategy != ITERATIVE:
            builder.keeps_results = self.keeps_results
            forms.append(builder.standalone(region.node, builder.tests, progress, None))
            forms += self._flat(test, progress)
        guarded = () if guard is None or guard in at.inside else tuple(sorted(self.logical.alternatives[guard]))
        return Reject(
            part_label(region.node, self.logical.slots),
            region.index,
            self._with_optional(test.lower, at),
            self._with_optional(test.upper, at),
            guarded,
            tuple(sorted(self._outer_slots(test) | set(test.distinct) | set(guarded))),
            strategy,
            tuple(forms),
        )

    def _flat(self, test: PlacedNegation, at: Progress) -> list[Form]:
        """The flat form of a negated part as steps, or the reason why there is none."""
        negation = test.negation
        if negation.flat is not None:
            join = partial(with_predicates, optional=at.optional, logical=self.logical)
            return [FlatCases(flat_cases(negation.flat, self.logical, join))]
        refusal = flat_form(negation, test.distinct, self.logical)
        if not isinstance(refusal, NoFlatForm):
            # A strategy that keeps a view has no use for one.
            return []
        if negation.strategy == REWRITE:
            raise OptionError(
                f"({part_label(negation.region.node, self.logical.slots)}) cannot be rewritten: {refusal.reason}",
                code="EC418",
                hint="the strategy auto keeps a view where there is no flat form",
            )
        return [refusal]

    def _with_optional(self, bound: Bound, at: Progress) -> Bound:
        return replace(bound, optional=bool(at.optional.intersection(bound.slots)))
