"""The logical plan: a query bound to a schema, with scopes resolved and predicates classified.

A *region* is an area in which all parts are positive: the whole query is one, and so is the inside of every negated
part. Within a region everything is one conjunction, however deeply its operators nest; a negated part is a test of a
region's match against the region inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, cast

import pyarrow as pa

from eventcube.errors import Diagnostic
from eventcube.language.syntax import Attribute, CountWindow, Qual, Query, TimeWindow
from eventcube.options import ITERATIVE
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import Condition, Expression
from eventcube.plan.levels import LevelKey
from eventcube.schema import EventSchema, Kind


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one event: a component. `types` are the types that fit, None for events of any type or of none.

    `type` is the type as written, None for ANY; `alternatives` are the OR alternatives around the slot in its region,
    outermost first.
    """

    index: int
    name: str
    type: str | None
    types: frozenset[str] | None
    region: int
    alternatives: tuple[int, ...]


class PredicateClass(Enum):
    """How a predicate is used: filter events first, split the work, look events up, or filter partial matches."""

    LOCAL = "local"
    KEY = "key"
    EQUALITY = "equality"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Predicate:
    """One conjunct, bound (`condition`) and as written (`qual`).

    It applies only to matches that bind all of `slots` and take the alternative `guard`, if there is one.
    """

    condition: Condition
    qual: Qual
    slots: frozenset[int]
    guard: int | None
    kind: PredicateClass

    @property
    def is_tested(self) -> bool:
        """Whether partial matches are tested by it: it is neither local nor implied by the key."""
        return self.kind in (PredicateClass.EQUALITY, PredicateClass.OTHER)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive part: one event."""

    slot: int


# As a nested part, an operator is answered by a strategy; without one, its events are bound with those around it.


@dataclass(frozen=True, slots=True)
class Seq:
    """The positive parts one after the other."""

    parts: tuple[Node | Negation, ...]
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class And:
    """The positive parts in any order."""

    parts: tuple[Node | Negation, ...]
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class Or:
    """One of the parts; `alternatives` numbers them in the query."""

    parts: tuple[Node, ...]
    alternatives: tuple[int, ...]
    strategy: str | None = None


Operator = Seq | And | Or
Node = Leaf | Operator


@dataclass(frozen=True, slots=True)
class Region:
    """A positive area: its parts and its predicates, without those of negations inside it.

    `never_applied` are predicates over two alternatives of one OR: no match is tested by them.
    """

    index: int
    node: Node
    predicates: tuple[Predicate, ...]
    never_applied: tuple[Predicate, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it is a SEQ of single events, none negated, that are not tested against each other."""
        if not isinstance(self.node, Seq) or not all(isinstance(part, Leaf) for part in self.node.parts):
            return False
        return not any(predicate.is_tested for predicate in self.predicates)


@dataclass(frozen=True, slots=True)
class FlatForm:
    """A negated SEQ (`ordered`) or AND of single events, each with the predicates on it alone.

    It has no match in an interval in exclusive cases: SEQ(B1, …, Bn) if there is no Bn, or no Bn-1 before the last Bn,
    and so on; AND(B1, …, Bn) if there is no B1, or a B1 but no B2, and so on.
    """

    ordered: bool
    slots: tuple[int, ...]
    predicates: tuple[tuple[Predicate, ...], ...]

    def cases(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The cases by the positions of their events: the missing one, and those that are present.

        In a SEQ an event is missing before the last of the next one, which is before the last of the one after it.

        >>> list(FlatForm(True, (4, 5, 6), ((), (), ())).cases())
        [(2, ()), (1, (2,)), (0, (1, 2))]
        >>> list(FlatForm(False, (4, 5, 6), ((), (), ())).cases())
        [(0, ()), (1, (0,)), (2, (0, 1))]
        """
        places = range(len(self.slots))
        for missing in reversed(places) if self.ordered else places:
            yield missing, tuple(places[missing + 1 :] if self.ordered else places[:missing])


@dataclass(frozen=True, slots=True)
class NoFlatForm:
    """A negated part has no flat form, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated part: the region must have no match. `guard` is the OR alternative that it stands in, if any."""

    region: Region
    guard: int | None
    strategy: str = ITERATIVE
    flat: FlatForm | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """A value with the type of its column, and the dictionary of the text in it."""

    expression: Expression
    type: pa.DataType
    dictionary: Dictionary


@dataclass(frozen=True, slots=True)
class EventColumn:
    """A column of the result with the event of a slot, as a struct."""

    name: str
    slot: int
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column of the result, or of the groups, with a value."""

    name: str
    value: Computed


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """A column of the groups with an aggregate: the function in upper case, and its argument (None for `*`)."""

    name: str
    function: str
    argument: Computed | None
    distinct: bool
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a query: the columns `returns` of each match or, with `agg`, one row for each group, or for each
    event of `per`.

    `agg` has the aggregates that AGG lists, `listed` of them, and then those that only HAVING uses. In `having` the
    columns of the groups are k0, k1, … (keys) and a0, a1, … (aggregates). The keys of `levels` are rolled up.
    """

    returns: tuple[EventColumn | ValueColumn, ...] = ()
    group_by: tuple[ValueColumn, ...] = ()
    agg: tuple[AggregateColumn, ...] = ()
    listed: int = 0
    having: tuple[Condition, ...] = ()
    per: EventColumn | None = None
    levels: tuple[LevelKey, ...] = ()

    @property
    def only_counts(self) -> bool:
        """Whether the number of matches is all that is asked for."""
        only = bool(self.agg) and all(a.function == "COUNT" and a.argument is None for a in self.agg)
        return only and not self.group_by and self.per is None


@dataclass(frozen=True, slots=True)
class LogicalQuery:
    """A bound query. `alternatives` gives the slots of each OR alternative; `or_of` the number of its OR.

    `key` has the columns that all events of a match agree on, which the work can be split by. `warnings_if_zoned` apply
    if the time is text with zones in it.
    """

    query: Query
    schema: EventSchema
    slots: tuple[Slot, ...]
    region: Region
    alternatives: tuple[frozenset[int], ...]
    window: TimeWindow | CountWindow | None
    columns: tuple[str, ...]
    or_of: tuple[int, ...] = ()
    results: Results = Results()
    warnings: tuple[Diagnostic, ...] = ()
    warnings_if_zoned: tuple[Diagnostic, ...] = ()
    key: tuple[str, ...] = ()

    @property
    def positive(self) -> tuple[Slot, ...]:
        """The slots a match binds, in the order of the text."""
        return tuple(s for s in self.slots if s.region == self.region.index)

    def kind(self, attribute: Attribute) -> Kind:
        """The kind of an attribute's values."""
        return self.schema.kind(attribute.name)

    def slot(self, name: str) -> Slot:
        """The slot of a variable."""
        return next(s for s in self.slots if s.name == name)

    def exclusive(self, one: Slot, other: Slot) -> bool:
        """Whether no match has both: they lie in different alternatives of one OR."""
        return excluded((*one.alternatives, *other.alternatives), self.or_of)


def excluded(alternatives: Iterable[int], or_of: Sequence[int]) -> bool:
    """Whether no match takes all the alternatives; `or_of` is the number of each one's OR."""
    taken: dict[int, int] = {}
    return any(taken.setdefault(or_of[number], number) != number for number in alternatives)


def positive_parts(node: Seq | And) -> tuple[Node, ...]:
    """The parts of an operator that bind events."""
    return tuple(p for p in node.parts if not isinstance(p, Negation))


def slots_of(node: Node) -> frozenset[int]:
    """The slots that a match of the node can bind."""
    match node:
        case Leaf(slot):
            return frozenset({slot})
        case Or(parts):
            return frozenset().union(*(slots_of(p) for p in parts))
        case _:
            return frozenset().union(*(slots_of(p) for p in positive_parts(node)))


def negations(node: Node) -> Iterator[Negation]:
    """The negated parts of the node, without those inside other negated parts."""
    match node:
        case Leaf():
            return
        case _:
            for part in node.parts:
                if isinstance(part, Negation):
                    yield part
                else:
                    yield from negations(part)


def map_nodes(node: Node, change: Callable[[Node], Node], region: Callable[[Region], Region]) -> Node:
    """The node with `change` applied to every node of its region from the bottom up, and `region` to negated regions.

    What does not change stays the same object.
    """
    if isinstance(node, Leaf):
        return change(node)
    parts = tuple(
        _with_region(part, region) if isinstance(part, Negation) else map_nodes(part, change, region)
        for part in node.parts
    )
    same = all(one is other for one, other in zip(parts, node.parts, strict=True))
    # An OR holds no negation.
    return change(node if same else replace(node, parts=cast("Any", parts)))


def map_query(query: LogicalQuery, change: Callable[[Node], Node]) -> LogicalQuery:
    """The query with `change` applied to every node, from the bottom up, in negated parts too."""

    def inside(region: Region) -> Region:
        node = map_nodes(region.node, change, inside)
        return region if node is region.node else replace(region, node=node)

    region = inside(query.region)
    return query if region is query.region else replace(query, region=region)


def map_regions(region: Region, change: Callable[[Region], Region]) -> Region:
    """The region with `change` applied to it and every region inside it, from the inside out."""
    node = map_nodes(region.node, lambda node: node, lambda inner: map_regions(inner, change))
    return change(region if node is region.node else replace(region, node=node))


def _with_region(negation: Negation, change: Callable[[Region], Region]) -> Negation:
    region = change(negation.region)
    return negation if region is negation.region else replace(negation, region=region)


def regions(region: Region) -> Iterator[Region]:
    """The region and all regions inside it."""
    yield region
    for negation in negations(region.node):
        yield from regions(negation.region)
