"""Which queries go over the events together, and how the events are spread for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventcube.language.syntax import CountWindow, TimeWindow
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.planned import Planned
from eventcube.spark.slices import WIDEST


@dataclass(frozen=True, slots=True)
class Keyed:
    """Events of equal key meet in one task."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sliced:
    """The time line is cut into slices that borrow a window of events behind, ahead, or both."""

    window: int
    behind: bool
    ahead: bool


@dataclass(frozen=True, slots=True)
class Whole:
    """All events go to one task."""


Spread = Keyed | Sliced | Whole


@dataclass(frozen=True, slots=True)
class Pass:
    """Queries that read the events once."""

    plans: Mapping[str, Planned]
    spread: Spread

    @property
    def queries(self) -> list[LogicalQuery]:
        return [p.logical for p in self.plans.values()]


def key_of(query: LogicalQuery) -> tuple[str, ...]:
    """The columns by which a query's work may be split, none if it may not."""
    own = query.schema.partition_by
    if isinstance(query.window, CountWindow):
        # Positions count every event of the partition, whatever the other columns say.
        return own
    return (*own, *(k for k in query.key if k not in own))


def can_slice(query: LogicalQuery) -> bool:
    """Whether time alone says which events a match can have."""
    return isinstance(query.window, TimeWindow) and query.window.microseconds <= WIDEST


def passes(plans: Mapping[str, Planned]) -> list[Pass]:
    """As few passes as there can be: one if all queries share a key or all can be sliced, else one for each way."""
    together = _spread(list(plans.values()))
    if len(plans) == 1 or not isinstance(together, Whole):
        return [Pass(plans, together)]
    groups = _by_column(plans)
    sliceable = [group for group in groups if all(can_slice(p.logical) for p in group.values())]
    if len(sliceable) > 1:
        groups = [group for group in groups if group not in sliceable]
        groups.append({name: plan for group in sliceable for name, plan in group.items()})
    return [Pass(group, _spread(list(group.values()))) for group in groups]


def _by_column(plans: Mapping[str, Planned]) -> list[dict[str, Planned]]:
    """The queries by a column of their keys that as many as possible share; those without a key by what they can do."""
    groups: list[dict[str, Planned]] = []
    left = dict(plans)
    while columns := Counter(column for plan in left.values() for column in key_of(plan.logical)):
        shared = columns.most_common(1)[0][0]
        groups.append({name: plan for name, plan in left.items() if shared in key_of(plan.logical)})
        left = {name: plan for name, plan in left.items() if name not in groups[-1]}
    for sliced in (True, False):
        group = {name: plan for name, plan in left.items() if can_slice(plan.logical) is sliced}
        groups += [group] if group else []
    return groups


def _spread(plans: Sequence[Planned]) -> Spread:
    queries = [p.logical for p in plans]
    first, *rest = (key_of(q) for q in queries)
    common = tuple(k for k in first if all(k in other for other in rest))
    if common:
        return Keyed(common)
    if not all(map(can_slice, queries)):
        return Whole()
    window = max(q.window.microseconds for q in queries if isinstance(q.window, TimeWindow))
    behind = any(not p.physical.forward or p.physical.looks_back for p in plans)
    return Sliced(window, behind, ahead=any(p.physical.forward for p in plans))
