"""How aggregates are computed without making matches: in which direction, and which event each match is ascribed to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from eventcube.language.syntax import CountWindow
from eventcube.nodes import transform, walk
from eventcube.plan.expressions import Arithmetic, Call, ColumnRef, Expression
from eventcube.plan.logical import AggregateColumn, Computed, LogicalQuery
from eventcube.plan.stages import NoStagesError, Stages, stages_of
from eventcube.schema import Kind

# So many combinations of groups are counted one by one, where they cannot be counted together.
MOST_SPLITS = 256


@dataclass(frozen=True, slots=True)
class Counting:
    """A plan to count matches by stages, in the order of time or, `forward`, from the last event to the first.

    Each match is ascribed to its event of one of the slots `anchors`: its last one, or with `forward` its first; if
    several events of equal rank can be that, there are none, and matches are ascribed to all of them together. Groups
    that depend on events of the slots in `split` are counted by combinations. `due_last`: the anchors are due, else the
    events at the other end. All events of a match agree on the columns `keys`; slots of `optional` may not be taken,
    and no match has both of two that are `excluded`.
    """

    stages: Stages
    forward: bool
    anchors: tuple[int, ...]
    split: tuple[int, ...]
    due_last: bool
    keys: tuple[str, ...]
    optional: frozenset[int] = frozenset()
    time: str = ""
    excluded: frozenset[tuple[int, int]] = frozenset()

    def difference(self, expression: Expression) -> tuple[int, int] | None:
        """The slots of which a value is the time of the first less that of the second; None for another value."""
        match expression:
            case Arithmetic("-", ColumnRef() as one, ColumnRef() as other, Kind.DURATION):
                slots = one.slot, other.slot
                if one.column == other.column == self.time and not self.optional & {*slots} and one.slot != other.slot:
                    return slots
        return None

    def free(self, expression: Expression) -> frozenset[int]:
        """The slots whose events a value depends on; columns that all events of a match agree on are of any of them."""
        refs = [ref for ref in walk(expression) if isinstance(ref, ColumnRef)]
        return frozenset(ref.slot for ref in refs if not self._agreed(ref))

    @property
    def inner(self) -> frozenset[int]:
        """The slots of events that need not end the match."""
        return frozenset(move.slot for move in self.stages.moves if move.end != self.stages.final)

    def inside(self, expression: Expression) -> int | None:
        """The slot of an event that need not end the match, if a value depends on that alone; else None."""
        free = self.free(expression)
        return next(iter(free)) if len(free) == 1 and free <= self.inner else None

    def at(self, computed: Computed, slot: int) -> Computed:
        """The value with what all events of a match agree on read from the event in this slot."""

        def move(node: object) -> object:
            return replace(node, slot=slot) if isinstance(node, ColumnRef) and self._agreed(node) else node

        return replace(computed, expression=transform(computed.expression, move))

    def _agreed(self, ref: ColumnRef) -> bool:
        """Whether all events of a match have the same value of a column."""
        return ref.column in self.keys and ref.slot not in self.optional


@dataclass(frozen=True, slots=True)
class NoCounting:
    """Why aggregates of a query are computed from its matches."""

    reasons: tuple[str, ...]


def counting_of(logical: LogicalQuery, *, forward: bool) -> Counting | NoCounting:
    """How to compute the aggregates of a query; `forward`: its matches are due by their first event."""
    try:
        stages = stages_of(logical)
        _check_values(logical)
        candidates = [*_candidates(logical, stages, forward)]
    except NoStagesError as error:
        return NoCounting(error.reasons)
    return min(candidates, key=lambda counting: (len(counting.split), _passes(logical, counting)))


def _candidates(logical: LogicalQuery, stages: Stages, forward: bool) -> Iterator[Counting]:
    """The plans in both directions; raises NoStagesError if there is none."""
    reasons: list[str] = []
    by_count = isinstance(logical.window, CountWindow)
    found = False
    for backwards in (forward, not forward):
        oriented = stages.mirrored() if backwards else stages
        # Barriers at the far end reach as far as the window that ends, or begins, with the anchor.
        if oriented.trailing:
            continue
        anchors = oriented.last_slots if oriented.ends_strictly else ()
        if not anchors and by_count:
            reasons.append("events of equal rank in a window of events")
            continue
        counting = _counting(logical, oriented, anchors, forward=backwards, due_last=backwards == forward)
        split = {slot for key in logical.results.group_by for slot in counting.free(key.value.expression)} - {*anchors}
        per = logical.results.per
        if per is not None and (not counting.due_last or anchors != (per.slot,)):
            reasons.append(f"rows per {per.name} are not those of the events by which matches are due")
            continue
        if (unclear := next(_of_nothing(logical, counting), None)) is not None:
            reasons.append(f"{unclear} has a value without its event")
            continue
        distinct = [a for a in logical.results.agg if a.distinct and a.argument and not _is_at(counting, a, anchors)]
        if distinct:
            reasons.append(f"{distinct[0].name} counts different values of a component that is neither first nor last")
            continue
        found = True
        yield replace(counting, split=tuple(sorted(split)))
    if not found:
        raise NoStagesError(*dict.fromkeys(reasons))


def _of_nothing(logical: LogicalQuery, counting: Counting) -> Iterator[str]:
    """Arguments that can have a value for matches without their event, and are not of the events that end matches."""
    for aggregate in logical.results.agg:
        if aggregate.argument is not None:
            expression = aggregate.argument.expression
            inner = counting.free(expression) - {*counting.anchors}
            if inner & counting.optional and any(
                isinstance(n, Call) and n.function == "COALESCE" for n in walk(expression)
            ):
                yield aggregate.name


def _is_at(counting: Counting, aggregate: AggregateColumn, anchors: Iterable[int]) -> bool:
    assert aggregate.argument is not None
    return bool(anchors) and counting.free(aggregate.argument.expression) <= {*anchors}


def _passes(logical: LogicalQuery, counting: Counting) -> int:
    """How many arguments of aggregates are of other components than the anchors."""
    arguments = [a.argument for a in logical.results.agg if a.argument is not None]
    return sum(not counting.free(argument.expression) <= {*counting.anchors} for argument in arguments)


def _is_delay(counting: Counting, aggregate: AggregateColumn) -> bool:
    """Whether the times of two events are added up, of which there is one sum for each."""
    summed = aggregate.function in ("SUM", "AVG", "COUNT") and not aggregate.distinct
    return summed and aggregate.argument is not None and counting.difference(aggregate.argument.expression) is not None


def _counting(
    logical: LogicalQuery, stages: Stages, anchors: tuple[int, ...], *, forward: bool, due_last: bool
) -> Counting:
    keys = (*logical.schema.partition_by, *logical.key)
    optional = frozenset(slot.index for slot in logical.positive if slot.alternatives)
    pairs = [(one, other) for one in logical.positive for other in logical.positive if one.index in optional]
    excluded = frozenset((one.index, other.index) for one, other in pairs if logical.exclusive(one, other))
    return Counting(stages, forward, anchors, (), due_last, keys, optional, logical.schema.time, excluded)


def _check_values(logical: LogicalQuery) -> None:
    """Raise NoStagesError if a group or an argument depends on several events, or cannot be added up."""
    counting = _counting(logical, Stages(2, ()), (), forward=False, due_last=True)
    values = [
        *((key.name, key.value) for key in logical.results.group_by),
        *((a.name, a.argument) for a in logical.results.agg if a.argument is not None and not _is_delay(counting, a)),
    ]
    for name, value in values:
        if len(counting.free(value.expression)) > 1:
            raise NoStagesError(f"{name} is computed from several events")
        if value.expression.kind is Kind.OTHER:
            raise NoStagesError(f"{name} is {Kind.OTHER.value}")
