"""The physical plan of a workload: the events that its queries read, stacked once, and what they have in common.

It is plain data that can be pickled. One query is a workload of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from eventcube.concepts.concepts import Concepts
from eventcube.nodes import transform
from eventcube.options import AUTO
from eventcube.plan.dictionary import Dictionary, merged
from eventcube.plan.expressions import ColumnRef, Condition
from eventcube.plan.physical import ComponentScan, PhysicalQuery
from eventcube.plan.steps import Program


@dataclass(frozen=True, slots=True)
class StackScan:
    """The events of one stack (HIS of E-Cube): types (None: any), own conditions, and columns that are not null.

    `ahead`: events that a slice borrows from the next one belong to it. `since`: events before that time do not.
    Components of several queries that agree in all of this share the stack.
    """

    types: frozenset[str] | None
    conditions: tuple[Condition, ...]
    not_null: tuple[str, ...]
    ahead: bool
    since: int | None = None

    def covers(self, other: StackScan) -> bool:
        """Whether every event of the other stack is in this one, outside of slices."""
        return (
            self.since == other.since
            and (self.types is None or (other.types is not None and other.types <= self.types))
            and set(self.conditions) <= set(other.conditions)
            and set(self.not_null) <= set(other.not_null)
        )


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How a query sees the events: their order, the measure and width of the window, and what makes a match due.

    `positions` is the number of the partitioning whose positions a window of events counts; None for windows of time.
    Queries with the same arrangement can share steps.
    """

    sort_key: tuple[str, ...]
    positions: int | None
    width: int | None
    forward: bool

    @property
    def due_alike(self) -> Arrangement:
        """The same for all queries that sort the events alike, and of whose events the same are due."""
        return self if self.forward else replace(self, width=None)


# A stack by its number, or the events of one stack that are in none of some others.
StackKey = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """Matches that the source of a derivation does not have: a program over other stacks.

    `unrestricted` finds those that are not due, too.
    """

    program: Program
    unrestricted: Program
    stacks: tuple[StackKey, ...]


@dataclass(frozen=True, slots=True)
class United:
    """Another source of a derivation, whose matches are taken as they are; `slots` are as in the derivation."""

    source: str
    slots: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the matches of a query, the target, are computed from those of another, the source, by a reuse case.

    Matches of the source go through `source_steps`, in its slots; then their events are those of the target's slots
    that `slots` names (the source's slot comes first), and `program` completes them; `due_program` does so for those
    that are due only. Their steps are not numbered. `same_trigger`: a match of the target is due when the one of the
    source is. What the source does not have is found by `deltas`, or taken from the queries that are `united` with it,
    which have no match in common. `downward`: the source is the coarser query.
    """

    case: str
    source: str
    target: str
    slots: tuple[tuple[int, int], ...]
    source_steps: Program
    program: Program
    due_program: Program
    same_trigger: bool
    deltas: tuple[Delta, ...] = ()
    downward: bool = True
    united: tuple[United, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The queries whose matches are used."""
        return self.source, *(other.source for other in self.united)


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """A query in a workload: its plan, how it sees the events, and the number of the stack of each slot.

    `from_start` is a program that binds from the first component on, for queries that have it in common; None if the
    query can only be bound back from its last event. `unrestricted` finds matches that are not due, too, for queries
    that are computed from them; `derivations` are those by which the query itself can be computed. A query that was
    added to others at work sees the events `since` then.
    """

    plan: PhysicalQuery
    arrangement: Arrangement
    stacks: tuple[int, ...]
    since: int | None = None
    from_start: Program | None = None
    unrestricted: Program | None = None
    derivations: tuple[Derivation, ...] = ()

    @property
    def triggers(self) -> tuple[int, ...]:
        """The slots among which is the event that makes a match due: its first or its last."""
        return self.plan.first if self.plan.forward else self.plan.last


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """Queries over one stream of events.

    `types` are the type names in the order of their codes: depth-first, so that a concept is a range of codes, then
    those outside of the hierarchy. `conditions` is the dictionary of the stacks' conditions, `dictionary` that of all
    programs. `partitionings` are the columns by which windows of events count. `sharing` says how work is shared.
    """

    queries: Mapping[str, WorkloadQuery]
    stacks: tuple[StackScan, ...]
    types: tuple[str, ...]
    columns: tuple[str, ...]
    conditions: Dictionary
    dictionary: Dictionary
    partitionings: tuple[tuple[str, ...], ...]
    sharing: str = AUTO

    @property
    def takes_any(self) -> bool:
        """Whether some stack takes events of any type."""
        return any(stack.types is None for stack in self.stacks)

    @property
    def alike(self) -> list[list[str]]:
        """The queries that sort the events alike, of whose events the same are due; only those share matches."""
        groups: dict[Arrangement, list[str]] = {}
        for name, query in self.queries.items():
            groups.setdefault(query.arrangement.due_alike, []).append(name)
        return list(groups.values())


# Queries that were added to others at work, each with the time (microseconds) from which on it sees events.
Added = Mapping[str, int]


def plan_workload(
    plans: Mapping[str, PhysicalQuery], concepts: Concepts | None = None, added: Added | None = None
) -> WorkloadPlan:
    """The plan of queries that run together, each bound back from its last event."""
    stacks: dict[StackScan, int] = {}
    partitionings: dict[tuple[str, ...], int] = {}
    queries = {}
    for name, plan in plans.items():
        scan, since = plan.scan, (added or {}).get(name)
        numbers = tuple(stacks.setdefault(_stack(c, plan, since), len(stacks)) for c in scan.components)
        positions = partitionings.setdefault(scan.partition_by, len(partitionings)) if scan.by_count else None
        arrangement = Arrangement(scan.sort_key, positions, scan.width, plan.forward)
        queries[name] = WorkloadQuery(plan, arrangement, numbers, since)
    needed = {column for plan in plans.values() for column in plan.scan.columns}
    schema = next(iter(plans.values())).schema.columns
    return WorkloadPlan(
        queries,
        tuple(stacks),
        _numbered_types((t for stack in stacks for t in stack.types or ()), concepts),
        tuple(name for name in schema.names if name in needed),
        merged(plan.scan.dictionary for plan in plans.values()),
        merged(plan.dictionary for plan in plans.values()),
        tuple(partitionings),
    )


def _stack(component: ComponentScan, plan: PhysicalQuery, since: int | None) -> StackScan:
    conditions = tuple(dict.fromkeys(transform(c, _of_any_slot) for c in component.conditions))
    not_null = tuple(sorted(plan.scan.key)) if component.keyed else ()
    # A match ends no earlier than its events do: without looking ahead, one that ends in the next slice is found there.
    return StackScan(component.types, conditions, not_null, plan.forward, since)


def _of_any_slot(node: object) -> object:
    return replace(node, slot=0) if isinstance(node, ColumnRef) else node


def _numbered_types(names: Iterable[str], concepts: Concepts | None) -> tuple[str, ...]:
    wanted = dict.fromkeys(sorted(set(names)))
    placed = [name for name in (concepts.depth_first if concepts is not None else ()) if name in wanted]
    return (*placed, *(name for name in wanted if name not in set(placed)))
