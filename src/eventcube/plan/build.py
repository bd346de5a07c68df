"""Turn a logical plan into steps: choose the order of binding, and do every test as early as it can be done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eventcube.errors import OptionError
from eventcube.language.syntax import Comparison
from eventcube.options import AUTO, ITERATIVE, REWRITE, Ways
from eventcube.plan.flat import NoFlatFormError, flat_program
from eventcube.plan.inner import link_of, nearest, stands_alone
from eventcube.plan.kinds import FLIPPED, attributes, value_kind
from eventcube.plan.logical import (
    And,
    Leaf,
    LogicalQuery,
    Node,
    Or,
    Predicate,
    PredicateClass,
    Region,
    Seq,
    positive_parts,
    regions,
    slots_of,
)
from eventcube.plan.order import Order, Test, may_share
from eventcube.plan.physical import (
    Absent,
    Apart,
    Bind,
    Compare,
    Filter,
    Fits,
    Inner,
    Limit,
    Nested,
    PhysicalQuery,
    Program,
    Reject,
    State,
    Stated,
    Step,
    Term,
    Union,
    fence_of,
    is_open,
)
from eventcube.plan.progress import NOTHING, Due, Progress
from eventcube.schema import Kind


def build(logical: LogicalQuery, ways: Ways | None = None) -> PhysicalQuery:
    """The physical plan of a bound query; `ways` names the strategies of its nested parts."""
    order = Order(logical.region, logical.slots, outermost=True)
    forward = any(t.upper.term is Term.WINDOW_END for t in order.tests)
    looks_back = any(t.lower.term is Term.WINDOW_START for t in order.tests)
    # Events are sorted by time, so the part that is due comes first and the rest is sought on one side of it.
    due = Due(forward, frozenset({State.DUE}))
    chosen = ways or Ways()
    builder = _Builder(logical, logical.region, order, ways=chosen)
    steps, end = builder.program(due)
    builder.inlined = (REWRITE, AUTO)
    flat = builder.program(due)[0] if is_open(steps) else None
    first, last = order.earliest(order.all), order.latest(order.all)
    return PhysicalQuery(logical, steps, flat, forward, looks_back, first, last, tuple(sorted(end.optional)), chosen)


class _Builder:
    """Builds the program of one region."""

    def __init__(
        self,
        logical: LogicalQuery,
        region: Region,
        order: Order,
        outer: Progress | None = None,
        ways: Ways | None = None,
        distinct: tuple[int, ...] = (),
    ) -> None:
        self.logical, self.region, self.order = logical, region, order
        self.outer, self.ways, self.distinct = outer, ways, distinct
        # Positive parts of these strategies are bound with what is around them.
        self.inlined: tuple[str, ...] = (REWRITE,)

    @property
    def tests(self) -> tuple[Predicate | Test, ...]:
        """All that a match of the region has to meet."""
        predicates = (p for p in self.region.predicates if p.kind is not PredicateClass.LOCAL)
        return (*(p for p in predicates if p.qual not in self.logical.implied), *self.order.tests)

    def program(self, due: Due | None) -> tuple[Program, Progress]:
        around = self.outer or NOTHING
        return self._complete(self.region.node, due, replace(around, pending=self.tests))

    def _complete(self, node: Node, due: Due | None, at: Progress) -> tuple[Program, Progress]:
        steps, at = self._flush([], at)
        more, at = self._node(node, due, at)
        assert not at.pending, "every test must find its place"
        return (*steps, *more), at

    def inner(self, node: Node, tests: Iterable[Predicate | Test], at: Progress, due: Due | None) -> Inner:
        """The part by itself, where these tests belong to it and the rest of the query is as far as this."""
        own = slots_of(node)
        asked = tuple(tests)
        alone = tuple(t for t in asked if stands_alone(t, own, at.inside, self.logical, self._needed))
        tied = [t for t in asked if t not in alone]
        last = self.order.latest(own)
        link, linked = link_of([t for t in tied if isinstance(t, Predicate)], alone, own, last, self.logical)
        builder = _Builder(self.logical, self.region, self.order.alone(), NOTHING, self.ways)
        anchor = Due(False, frozenset(), anchored=True)
        program, end = builder._complete(node, anchor, replace(NOTHING, inside=at.inside, pending=alone))
        around = replace(
            at,
            bound=at.bound | own,
            optional=at.optional | end.optional,
            pending=tuple(t for t in tied if t is not linked),
        )
        after, around = self._flush(self._set_apart(own, at, due), around)
        assert not around.pending, "every test must find its place"
        slots = tuple(sorted(own))
        ordered = isinstance(node, Seq)
        return Inner(slots, last, ordered, program, nearest(program, self.logical), link, tuple(after))

    def _set_apart(self, own: frozenset[int], at: Progress, due: Due | None) -> list[Step]:
        """What a part's events must be, beside lying in its interval, for the events around it."""
        pairs = tuple((slot, other) for slot in sorted(own) for other in self._distinct(slot, at))
        steps: list[Step] = [Apart(pairs)] if pairs else []
        if due is not None:
            steps.append(Stated(tuple(sorted(own)), due.forward, due.states))
        lower, upper = self._range(own, at)
        if lower is not None and upper is not None and (lower.term, upper.term) == (Term.WINDOW_START, Term.WINDOW_END):
            # The part may begin before and end after what is bound, each within a window of that.
            steps.append(Fits(tuple(sorted(own | (at.bound & self.order.all)))))
        return steps

    # Binding.

    def _node(self, node: Node, due: Due | None, at: Progress) -> tuple[list[Step], Progress]:
        match node:
            case Leaf(slot):
                return self._flush([self._bind(slot, due, at)], replace(at, bound=at.bound | {slot}))
            case Or():
                return self._or(node, due, at)
            case Seq():
                parts = positive_parts(node)
                forward = due is not None and due.forward
                order = list(range(len(parts)))
                if not forward:
                    order.reverse()
                dues: list[Due | None] = [None] * len(parts)
                dues[order[0]] = due
                return self._parts(parts, order, dues, at)
            case And():
                return self._and(node, due, at)

    def _parts(
        self, parts: tuple[Node, ...], order: Iterable[int], dues: list[Due | None], at: Progress
    ) -> tuple[list[Step], Progress]:
        """Bind the part that is due first, then the primitive ones, then the nested ones between them."""
        first, *rest = order
        inline = {i for i in rest if isinstance(parts[i], Leaf) or self._way(parts[i])[0] in self.inlined}
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
        own = slots_of(part)
        way, iterative = self._way(part)
        lower, upper = self._range(own, at)
        builder = _Builder(self.logical, self.region, self.order, self.outer, iterative, self.distinct)
        program, end = builder._node(part, due, at)
        inner = None
        if way != ITERATIVE:
            inner = self.inner(part, [t for t in at.pending if t not in end.pending], at, due)
        return Nested(self._name(own), tuple(sorted(own)), lower, upper, tuple(program), inner, way), end

    def _way(self, part: Node) -> tuple[str, Ways | None]:
        """The strategy of a part, and those of the parts inside it where it is computed anew.

        Where a view is kept, only the part by itself has views inside it, or there would be two plans for each level.
        """
        if self.ways is None:
            return ITERATIVE, None
        direct = (part,) if isinstance(part, Leaf) else part.parts
        way = self.ways.of(self.logical.slots[p.slot].name for p in direct if isinstance(p, Leaf))
        return way, self.ways if way == ITERATIVE else None

    def _name(self, own: frozenset[int]) -> str:
        return ", ".join(self.logical.slots[s].name for s in sorted(own))

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
        own = slots_of(node)
        programs, ends = [], []
        # A negation outside of the OR holds whichever alternative is taken, even if it speaks of one.
        around = tuple(p for p in at.pending if isinstance(p, Test) and not self._within(p, node))
        inner = replace(at, pending=tuple(p for p in at.pending if p not in around))
        for part, number in zip(node.parts, node.alternatives, strict=True):
            steps, start = self._flush([], replace(inner, inside=at.inside | {number}))
            more, end = self._node(part, due, start)
            absent = tuple(sorted(own - slots_of(part)))
            programs.append((*steps, *more, *([Absent(absent)] if absent else [])))
            ends.append(end)
        # A test done in the alternative it speaks of need not be done in the others.
        pending = tuple(p for p in at.pending if p in around or all(p in e.pending for e in ends))
        after = Progress(at.bound | own, at.optional | own, at.inside, pending)
        return self._flush([Union(tuple(programs))], after)

    def _within(self, test: Test, node: Or) -> bool:
        guard, slots = test.negation.guard, self.logical.alternatives
        return guard is not None and any(slots[guard] <= slots[number] for number in node.alternatives)

    def _range(self, slots: frozenset[int], at: Progress) -> tuple[Limit | None, Limit | None]:
        """Where events for the slots can lie, given what is bound."""
        own = at.bound & self.order.all
        earlier = [b for b in own if all((b, s) in self.order.before for s in slots)]
        later = [b for b in own if all((s, b) in self.order.before for s in slots)]
        lower, upper = self.order.lower, self.order.upper
        if earlier:
            lower = self._limit(Term.AFTER_LAST, self.order.latest(earlier), at)
        elif lower.term is Term.WINDOW_START:
            lower = self._limit(Term.WINDOW_START, self.order.latest(own), at)
        if later:
            upper = self._limit(Term.BEFORE_FIRST, self.order.earliest(later), at)
        elif upper.term is Term.WINDOW_END:
            upper = self._limit(Term.WINDOW_END, self.order.earliest(own), at)
        unlimited = not own and self.outer is None
        return (None, None) if unlimited else (lower, upper)

    def _limit(self, term: Term, slots: tuple[int, ...], at: Progress) -> Limit:
        return Limit(term, slots, bool(at.optional.intersection(slots)))

    def _bind(self, slot: int, due: Due | None, at: Progress) -> Bind:
        distinct = self._distinct(slot, at)
        if due is not None and due.anchored:
            return Bind(slot, Limit(Term.ANCHOR), Limit(Term.AFTER_ANCHOR), distinct=distinct)
        lower, upper = self._range(frozenset({slot}), at)
        return Bind(slot, lower, upper, due.states if due else None, distinct=distinct)

    def _distinct(self, slot: int, at: Progress) -> tuple[int, ...]:
        """The bound slots, of this region or around it, whose event a candidate could be and must not be."""
        slots = self.logical.slots
        outside = (s for s in self.distinct if may_share(slots[slot], slots[s]))
        return (*self.order.distinct(slot, at.bound & self.order.all), *outside)

    # Testing.

    def _flush(self, steps: list[Step], at: Progress) -> tuple[list[Step], Progress]:
        """Append what can be tested now; a predicate that speaks of the event just bound joins its Bind."""
        ready = [p for p in at.pending if self._ready(p, at)]
        if not ready:
            return steps, at
        predicates = [self._unguarded(p, at) for p in ready if isinstance(p, Predicate)]
        if predicates:
            if steps and isinstance(steps[-1], Bind):
                steps[-1] = self._fuse(steps[-1], predicates, at)
            else:
                steps.append(Filter(tuple(predicates)))
        at = replace(at, pending=tuple(p for p in at.pending if p not in ready))
        for test in ready:
            if isinstance(test, Test):
                reject = self._reject(test, at)
                last = steps[-1] if steps else None
                fence = fence_of(last, reject) if isinstance(last, Bind) else None
                if isinstance(last, Bind) and fence is not None:
                    steps[-1] = replace(last, fences=(*last.fences, fence))
                else:
                    steps.append(reject)
        return steps, at

    def _ready(self, test: Predicate | Test, at: Progress) -> bool:
        guard = test.guard if isinstance(test, Predicate) else test.negation.guard
        needed = test.slots if isinstance(test, Predicate) else self._needed(test)
        decided = guard is None or guard in at.inside or self.logical.alternatives[guard] <= at.bound
        return needed <= at.bound and decided

    def _needed(self, test: Test) -> frozenset[int]:
        """The slots outside of a negated part that say where it looks and what it looks for."""
        inner = list(regions(test.negation.region))
        own = frozenset().union(*(slots_of(r.node) for r in inner))
        tested = [p for r in inner for p in r.predicates if p.qual not in self.logical.implied]
        mentioned = frozenset().union(*(p.slots for p in tested))
        return (mentioned - own) | {*test.lower.slots, *test.upper.slots, *test.distinct}

    def _unguarded(self, predicate: Predicate, at: Progress) -> Predicate:
        return replace(predicate, guard=None) if predicate.guard in at.inside else predicate

    def _fuse(self, bind: Bind, predicates: list[Predicate], at: Progress) -> Bind:
        key: Compare | None = None
        compare: list[Compare] = []
        filters: list[Predicate] = []
        for predicate in predicates:
            split = (
                None
                if at.optional & predicate.slots or predicate.guard is not None
                else self._split(bind.slot, predicate)
            )
            if split is None:
                filters.append(predicate)
            elif split.op == "=" and key is None and not self._float(split):
                key = split
            else:
                compare.append(split)
        return replace(bind, key=key, compare=tuple(compare), filters=tuple(filters))

    def _split(self, slot: int, predicate: Predicate) -> Compare | None:
        """The predicate as `new op bound`, if the new event stands on one side only."""
        name = self.logical.slots[slot].name
        match predicate.qual:
            case Comparison(op, left, right):
                first, second = {a.var for a in attributes(left)}, {a.var for a in attributes(right)}
                if first == {name} and name not in second:
                    return Compare(left, op, right)
                if second == {name} and name not in first:
                    return Compare(right, FLIPPED[op], left)
        return None

    def _float(self, compare: Compare) -> bool:
        kind_of = self.logical.kind
        return any(value_kind(v, kind_of, lambda _: None) is Kind.FLOAT for v in (compare.new, compare.bound))

    def _reject(self, test: Test, at: Progress) -> Reject:
        region, guard = test.negation.region, test.negation.guard
        own = slots_of(region.node)
        way, iterative = self._way(region.node)
        order = Order(region, self.logical.slots, outermost=False)
        around = replace(at, inside=frozenset(), pending=())
        builder = _Builder(self.logical, region, order, around, iterative, test.distinct)
        program, _ = builder.program(None)
        inner, flat, refusal = None, None, ""
        if way != ITERATIVE and not isinstance(region.node, Leaf):
            builder.ways = self.ways
            inner = builder.inner(region.node, builder.tests, around, None)
            flat, refusal = builder._flat(test, around)
            if way == REWRITE and flat is None:
                raise OptionError(
                    f"({self._name(own)}) cannot be rewritten: {refusal}",
                    code="EC418",
                    hint="the strategy auto keeps a view where there is no flat form",
                )
        guarded = () if guard is None or guard in at.inside else tuple(sorted(self.logical.alternatives[guard]))
        return Reject(
            self._name(own),
            region.index,
            self._decided(test.lower, at),
            self._decided(test.upper, at),
            guarded,
            tuple(sorted(self._needed(test) | set(test.distinct) | set(guarded))),
            program,
            inner,
            way,
            flat,
            refusal,
        )

    def _flat(self, test: Test, at: Progress) -> tuple[Program | None, str]:
        """The negated part as flat cases, or why there are none."""

        def fuse(bind: Bind, predicates: list[Predicate]) -> Bind:
            return self._fuse(bind, predicates, at)

        try:
            return flat_program(test, self.tests, self.logical, fuse), ""
        except NoFlatFormError as error:
            return None, str(error)

    def _decided(self, limit: Limit, at: Progress) -> Limit:
        return replace(limit, optional=bool(at.optional.intersection(limit.slots)))
