"""Bind a query to a schema: number its slots, resolve its variables, classify its predicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from eventcube.concepts.concepts import Concepts
from eventcube.errors import MOST_COUNTED, BindError, Diagnostic, Span, did_you_mean
from eventcube.language import syntax
from eventcube.language.scopes import resolve
from eventcube.language.syntax import Component, Not, Pattern, Qual, Query
from eventcube.language.tree import attributes, conjuncts
from eventcube.nodes import walk
from eventcube.plan.bind_expressions import ExpressionBinder
from eventcube.plan.bind_results import ResultBinder
from eventcube.plan.expressions import ColumnRef, Comparison, Condition, slots_in
from eventcube.plan.logical import (
    And,
    EventColumn,
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    Or,
    Predicate,
    PredicateClass,
    Region,
    Results,
    Seq,
    Slot,
    excluded,
)
from eventcube.plan.partition import partitioned
from eventcube.plan.per_event import check_per
from eventcube.plan.timestamps import localize_timestamps
from eventcube.schema import EventSchema


def bind(query: Query, schema: EventSchema, concepts: Concepts | None = None) -> LogicalQuery:
    """Bind a query to a schema of events; raises BindError with every problem at once."""
    resolved, problems = resolve(query)
    warnings: list[Diagnostic] = []
    warnings_if_zoned: list[Diagnostic] = []
    resolved = localize_timestamps(resolved, schema, problems.append, warnings.append, warnings_if_zoned.append)
    binder = _Binder(resolved, partitioned(query, schema, problems.append), concepts, problems)
    logical = replace(binder.bind(), warnings=tuple(warnings), warnings_if_zoned=tuple(warnings_if_zoned))
    if not binder.problems and logical.results.per is not None:
        check_per(logical, binder.problems.append)
    if binder.problems:
        raise BindError(binder.problems, query.text, query.source)
    return logical


@dataclass
class _Draft:
    """A region under construction: its conditions, each with its guard, until all slots are known.

    `enclosing` are the OR alternatives of outer regions that it lies in.
    """

    index: int
    parent: _Draft | None
    enclosing: tuple[int, ...] = ()
    quals: list[tuple[Qual, int | None]] = field(default_factory=list)


class _Binder:
    def __init__(
        self, query: Query, schema: EventSchema, concepts: Concepts | None, problems: list[Diagnostic]
    ) -> None:
        self.query, self.schema, self.concepts, self.problems = query, schema, concepts, problems
        self.slots: list[Slot] = []
        self.drafts: list[_Draft] = []
        self.alternatives: list[set[int]] = []
        # For each alternative: the alternatives around it and itself, and the number of its OR.
        self.paths: list[tuple[int, ...]] = []
        self.or_of: list[int] = []

    def bind(self) -> LogicalQuery:
        query = self.query
        top = self._draft(None)
        node = self._node(query.pattern, top, ())
        top.quals += [(q, None) for q in query.where]
        region = self._region(top, node)
        results = self._results()
        alternatives = tuple(frozenset(a) for a in self.alternatives)
        return LogicalQuery(
            query,
            self.schema,
            tuple(self.slots),
            region,
            alternatives,
            query.within,
            self._columns(results),
            tuple(self.or_of),
            results,
        )

    # Slots and structure.

    def _draft(self, parent: _Draft | None, around: tuple[int, ...] = ()) -> _Draft:
        draft = _Draft(len(self.drafts), parent, (*(parent.enclosing if parent is not None else ()), *around))
        self.drafts.append(draft)
        return draft

    def _node(self, pattern: Pattern, draft: _Draft, around: tuple[int, ...]) -> Node:
        match pattern:
            case Component():
                return self._leaf(pattern, draft, around)
            case syntax.Or(parts, quals):
                numbers: list[int] = []
                nodes: list[Node] = []
                or_number = len(self.alternatives)
                for part in parts:
                    number = len(self.alternatives)
                    self.alternatives.append(set())
                    self.paths.append((*around, number))
                    self.or_of.append(or_number)
                    numbers.append(number)
                    nodes.append(self._node(part, draft, (*around, number)))
                self._quals(quals, draft, around)
                return Or(tuple(nodes), tuple(numbers))
            case syntax.Seq(parts, quals) | syntax.And(parts, quals):
                bound = tuple(
                    self._negation(p, draft, around) if isinstance(p, Not) else self._node(p, draft, around)
                    for p in parts
                )
                self._quals(quals, draft, around)
                return Seq(bound) if isinstance(pattern, syntax.Seq) else And(bound)

    def _leaf(self, component: Component, draft: _Draft, around: tuple[int, ...]) -> Leaf:
        index, name, type_ = len(self.slots), component.name, component.type
        types = None
        if self.schema.type is not None and type_ is not None:
            # Events may have a type that the hierarchy does not list.
            types = self.concepts.closure(type_) if self.concepts is not None else frozenset({type_})
        self.slots.append(Slot(index, name, type_, types, draft.index, around))
        for number in around:
            self.alternatives[number].add(index)
        return Leaf(index)

    def _negation(self, part: Not, outer: _Draft, around: tuple[int, ...]) -> Negation:
        draft = self._draft(outer, around)
        node = self._node(part.pattern, draft, ())
        self._quals(part.quals, draft, ())
        # The region's predicates are bound once all slots are known.
        return Negation(Region(draft.index, node, ()), around[-1] if around else None)

    def _quals(self, quals: tuple[Qual, ...], draft: _Draft, around: tuple[int, ...]) -> None:
        draft.quals += [(q, around[-1] if around else None) for q in quals]

    def _region(self, draft: _Draft, node: Node) -> Region:
        applied: list[Predicate] = []
        never: list[Predicate] = []
        for qual, guard in draft.quals:
            around = (*draft.enclosing, *(self.paths[guard] if guard is not None else ()))
            for predicate in self._predicates(qual, draft, guard):
                needed = (number for s in predicate.slots for number in self.slots[s].alternatives)
                (never if excluded((*around, *needed), self.or_of) else applied).append(predicate)
        return Region(draft.index, self._with_regions(node), tuple(applied), tuple(never))

    def _with_regions(self, node: Node) -> Node:
        match node:
            case Leaf():
                return node
            case Or(parts, numbers):
                return Or(tuple(self._with_regions(p) for p in parts), numbers)
            case Seq(parts) | And(parts):
                return type(node)(
                    tuple(
                        replace(p, region=self._region(self.drafts[p.region.index], p.region.node))
                        if isinstance(p, Negation)
                        else self._with_regions(p)
                        for p in parts
                    )
                )

    # Predicates.

    def _predicates(self, qual: Qual, draft: _Draft, guard: int | None) -> Iterator[Predicate]:
        visible = self._visible(draft)
        if not self._resolved(qual, visible):
            return
        binder = ExpressionBinder(self.schema, {n: s.index for n, s in visible.items()}, self.problems.append)
        for part in conjuncts([qual]):
            slots = frozenset(visible[a.var].index for a in attributes(part))
            # A predicate on variables of the guard's alternative applies only where they are bound: it needs no guard.
            needed_guard = None if guard is not None and slots & self.alternatives[guard] else guard
            condition = binder.condition(part)
            yield Predicate(condition, part, slots, needed_guard, self._classify(condition, slots, draft, needed_guard))

    def _classify(
        self, condition: Condition, slots: frozenset[int], draft: _Draft, guard: int | None
    ) -> PredicateClass:
        if len(slots) == 1 and guard is None and all(self.slots[s].region == draft.index for s in slots):
            return PredicateClass.LOCAL
        if isinstance(condition, Comparison) and condition.op == "=" and guard is None:
            left, right = slots_in(condition.left), slots_in(condition.right)
            if left and right and not left & right:
                return PredicateClass.EQUALITY
        return PredicateClass.OTHER

    def _visible(self, draft: _Draft | None) -> dict[str, Slot]:
        visible: dict[str, Slot] = {}
        while draft is not None:
            visible.update({s.name: s for s in self.slots if s.region == draft.index})
            draft = draft.parent
        return visible

    def _resolved(self, node: Qual | syntax.Value, visible: dict[str, Slot]) -> bool:
        """Whether all attributes are known; reports unknown columns (unknown variables were reported before)."""
        known = True
        for attribute in attributes(node):
            slot = visible.get(attribute.var)
            if slot is None:
                known = False
            elif attribute.name not in self.schema.visible.names:
                known = False
                span = attribute.span
                width = len(attribute.name)
                if self.query.text[span.end - width : span.end] == attribute.name:
                    span = type(span)(span.end - width, span.end)
                of_type = "" if slot.type is None else f" of event type {slot.type}"
                hint = None
                if len(self.problems) < MOST_COUNTED:
                    hint = did_you_mean(attribute.name, self.schema.visible.names, "the input")
                self._problem("EC203", f"unknown attribute {attribute.name!r}{of_type}", span, hint)
        return known

    # Clauses.

    def _results(self) -> Results:
        positive = [s for s in self.slots if s.region == 0]
        visible = {s.name: s for s in positive}
        if self.query.agg and self.query.limit is not None:
            self._problem(
                "EC207",
                "LIMIT picks matches, but AGG counts all of them",
                self.query.agg[0].span,
                "leave LIMIT out, or take the first rows of the result",
            )
        return ResultBinder(
            self.query,
            self.schema,
            self.concepts,
            lambda value: self._resolved(value, visible),
            positive,
            self.problems.append,
        ).bind()

    def _columns(self, results: Results) -> tuple[str, ...]:
        """The columns that running the query needs, in the order of the schema."""
        needed = set(self.schema.partition_by)
        for draft in self.drafts:
            for qual, _ in draft.quals:
                needed |= {a.name for a in attributes(qual)}
        returned = (*results.returns, *results.group_by, *results.agg)
        needed |= {node.column for column in returned for node in walk(column) if isinstance(node, ColumnRef)}
        if results.per is not None or any(isinstance(column, EventColumn) for column in results.returns):
            needed |= set(self.schema.visible.names)
        return tuple(n for n in self.schema.columns.names if n in needed)

    def _problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.problems.append(Diagnostic(code, message, span, hint))
