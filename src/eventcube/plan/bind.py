"""Bind a query to a schema: find its slots, resolve its variables, class its predicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.errors import BindError, Diagnostic, Span, did_you_mean
from eventcube.language import syntax
from eventcube.language.syntax import (
    AllOf,
    Attribute,
    Comparison,
    Component,
    Not,
    Pattern,
    Qual,
    Query,
    Variable,
)
from eventcube.plan.keys import infer_key
from eventcube.plan.kinds import attributes, check_qual, value_kind
from eventcube.plan.logical import (
    And,
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    Or,
    Predicate,
    PredicateClass,
    Region,
    Seq,
    Slot,
)
from eventcube.schema import EventSchema, Kind


def bind(query: Query, schema: EventSchema, concepts: Concepts | None = None) -> LogicalQuery:
    """The logical plan of a query over events of a schema; raises BindError with all that does not fit."""
    binder = _Binder(query, schema, concepts)
    logical = binder.bind()
    if binder.problems:
        raise BindError(binder.problems, query.text, query.source)
    return logical


def conjuncts(quals: Iterable[Qual]) -> Iterator[Qual]:
    """The quals with every AND at their top taken apart."""
    for qual in quals:
        if isinstance(qual, AllOf):
            yield from conjuncts(qual.quals)
        else:
            yield qual


@dataclass
class _Draft:
    """A region in the making: where its quals were written, until all slots are known."""

    index: int
    parent: _Draft | None
    quals: list[tuple[Qual, int | None]] = field(default_factory=list)


class _Binder:
    def __init__(self, query: Query, schema: EventSchema, concepts: Concepts | None) -> None:
        self.query, self.schema, self.concepts = query, schema, concepts
        self.problems: list[Diagnostic] = []
        self.slots: list[Slot] = []
        self.drafts: list[_Draft] = []
        self.alternatives: list[set[int]] = []
        self.spans: dict[str, syntax.Component] = {}

    def bind(self) -> LogicalQuery:
        query = self.query
        top = self._draft(None)
        node = self._node(query.pattern, top, ())
        top.quals += [(q, None) for q in query.where]
        region = self._region(top, node)
        self._check_clauses()
        alternatives = tuple(frozenset(a) for a in self.alternatives)
        key, implied = ((), frozenset[Qual]()) if self.problems else infer_key(region, self.slots)
        return LogicalQuery(
            query,
            self.schema,
            tuple(self.slots),
            region,
            alternatives,
            query.within,
            key,
            implied,
            self._columns(region),
        )

    # Slots and structure.

    def _draft(self, parent: _Draft | None) -> _Draft:
        draft = _Draft(len(self.drafts), parent)
        self.drafts.append(draft)
        return draft

    def _node(self, pattern: Pattern, draft: _Draft, around: tuple[int, ...]) -> Node:
        match pattern:
            case Component():
                return self._leaf(pattern, draft, around)
            case syntax.Or(parts, quals):
                numbers, nodes = [], []
                for part in parts:
                    number = len(self.alternatives)
                    self.alternatives.append(set())
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
        if self.schema.type is not None:
            # A type that the hierarchy does not name may still be one that events have.
            types = self.concepts.closure(type_) if self.concepts is not None else frozenset({type_})
        if name in self.spans:
            self._problem("EC204", f"two components are called {name!r}", component.span, "give one another variable")
        self.spans[name] = component
        self.slots.append(Slot(index, name, type_, types, draft.index, around))
        for number in around:
            self.alternatives[number].add(index)
        return Leaf(index)

    def _negation(self, part: Not, outer: _Draft, around: tuple[int, ...]) -> Negation:
        draft = self._draft(outer)
        node = self._node(part.pattern, draft, ())
        self._quals(part.quals, draft, ())
        # The region's predicates are bound later, when every slot around it is known.
        return Negation(Region(draft.index, node, ()), around[-1] if around else None)

    def _quals(self, quals: tuple[Qual, ...], draft: _Draft, around: tuple[int, ...]) -> None:
        draft.quals += [(q, around[-1] if around else None) for q in quals]

    def _region(self, draft: _Draft, node: Node) -> Region:
        predicates = tuple(
            predicate for qual, guard in draft.quals for predicate in self._predicates(qual, draft, guard)
        )
        return Region(draft.index, self._with_regions(node), predicates)

    def _with_regions(self, node: Node) -> Node:
        match node:
            case Leaf():
                return node
            case Or(parts, numbers):
                return Or(tuple(self._with_regions(p) for p in parts), numbers)
            case Seq(parts) | And(parts):
                return type(node)(
                    tuple(
                        Negation(self._region(self.drafts[p.region.index], p.region.node), p.guard)
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
        qual = check_qual(qual, self._kind, self.problems.append)
        for part in conjuncts([qual]):
            slots = frozenset(visible[a.var].index for a in attributes(part))
            # A variable of the guarding alternative says by itself whether that is taken.
            own = None if guard is not None and slots & self.alternatives[guard] else guard
            yield Predicate(part, slots, own, self._class(part, slots, draft, own))

    def _class(self, qual: Qual, slots: frozenset[int], draft: _Draft, guard: int | None) -> PredicateClass:
        if len(slots) == 1 and guard is None and all(self.slots[s].region == draft.index for s in slots):
            return PredicateClass.LOCAL
        if isinstance(qual, Comparison) and qual.op == "=" and guard is None:
            left = {a.var for a in attributes(qual.left)}
            right = {a.var for a in attributes(qual.right)}
            if left and right and not left & right:
                return PredicateClass.EQUALITY
        return PredicateClass.OTHER

    def _visible(self, draft: _Draft | None) -> dict[str, Slot]:
        found: dict[str, Slot] = {}
        while draft is not None:
            found.update({s.name: s for s in self.slots if s.region == draft.index})
            draft = draft.parent
        return found

    def _resolved(self, node: Qual | syntax.Value, visible: dict[str, Slot]) -> bool:
        before = len(self.problems)
        for attribute in attributes(node):
            if attribute.var not in visible:
                self._unknown_variable(attribute.var, attribute.span, visible)
            elif attribute.name not in self.schema.visible.names:
                type_ = visible[attribute.var].type
                span = attribute.span
                width = len(attribute.name)
                if self.query.text[span.end - width : span.end] == attribute.name:
                    span = type(span)(span.end - width, span.end)
                self._problem(
                    "EC203",
                    f"unknown attribute {attribute.name!r} of event type {type_}",
                    span,
                    did_you_mean(attribute.name, self.schema.visible.names, type_),
                )
        return len(self.problems) == before

    def _unknown_variable(self, name: str, span: Span, visible: dict[str, Slot]) -> None:
        hidden = any(s.name == name for s in self.slots)
        self._problem(
            "EC205" if hidden else "EC201",
            f"variable {name!r} lies inside a negated part and cannot be used here"
            if hidden
            else f"unknown variable {name!r}",
            span,
            "move the condition into the negated part: !(… , condition)"
            if hidden
            else did_you_mean(name, visible, "the query"),
        )

    def _kind(self, attribute: Attribute) -> Kind:
        return self.schema.kind(attribute.name)

    # Clauses.

    def _check_clauses(self) -> None:
        visible = {s.name: s for s in self.slots if s.region == 0}
        for item in (*self.query.returns, *self.query.group_by):
            if isinstance(item.value, Variable):
                if item.value.name not in visible:
                    self._unknown_variable(item.value.name, item.value.span, visible)
            elif self._resolved(item.value, visible):
                value_kind(item.value, self._kind, self.problems.append)
        for item in self.query.group_by:
            if isinstance(item.value, Variable) and self.schema.type is None:
                self._problem(
                    "EC206",
                    "events have no type to group by",
                    item.span,
                    "group by an attribute, or name a type column",
                )
            if isinstance(item.value, Attribute) and item.value.name in self.schema.visible.names:
                own = self.schema.visible.field(item.value.name).type
                if pa.types.is_nested(own):
                    self._problem("EC216", f"cannot group by {Kind.OTHER.value}: {own}", item.span)
        if self.query.agg and self.query.limit is not None:
            self._problem(
                "EC207",
                "LIMIT picks matches, but AGG counts all of them",
                self.query.agg[0].span,
                "leave LIMIT out, or take the first rows of the result",
            )
        for agg in self.query.agg:
            if agg.argument is not None and self._resolved(agg.argument, visible):
                kind = value_kind(agg.argument, self._kind, self.problems.append)
                summable = kind.numeric or kind in (Kind.DURATION, Kind.NULL)
                if kind is Kind.OTHER or (agg.function in ("SUM", "AVG") and not summable):
                    self._problem("EC215", f"cannot take {agg.function} of {kind.value}", agg.span)

    def _columns(self, region: Region) -> tuple[str, ...]:
        """The columns that running the query needs, in the order of the schema."""
        query, needed = self.query, set(self.schema.partition_by)
        for draft in self.drafts:
            for qual, _ in draft.quals:
                needed |= {a.name for a in attributes(qual)}
        whole = not query.agg and (not query.returns or any(isinstance(i.value, Variable) for i in query.returns))
        for item in (*query.returns, *query.group_by):
            if isinstance(item.value, Variable):
                needed |= {self.schema.type} if query.agg and self.schema.type else set()
            else:
                needed |= {a.name for a in attributes(item.value)}
        for agg in query.agg:
            needed |= {a.name for a in attributes(agg.argument)} if agg.argument is not None else set()
        needed |= set(self.schema.visible.names) if whole else set()
        return tuple(n for n in self.schema.columns.names if n in needed)

    def _problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.problems.append(Diagnostic(code, message, span, hint))
