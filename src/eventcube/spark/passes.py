"""Groups queries into passes over the events, and chooses how the events are distributed over tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventcube.plan.logical import LogicalQuery
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.planned import Planned
from eventcube.spark.slices import WIDEST


@dataclass(frozen=True, slots=True)
class Keyed:
    """Events are hashed by a key."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sliced:
    """Events are cut into time slices, each with a window of events from the slice before, after, or both."""

    window: int
    behind: bool
    ahead: bool


@dataclass(frozen=True, slots=True)
class Whole:
    """All events go to one task."""


Distribution = Keyed | Sliced | Whole


@dataclass(frozen=True, slots=True)
class Pass:
    """Queries that share one read and shuffle of the events."""

    plans: Mapping[str, Planned]
    distribution: Distribution

    @property
    def queries(self) -> list[LogicalQuery]:
        return [p.logical for p in self.plans.values()]

    @property
    def physical(self) -> list[PhysicalQuery]:
        return [p.physical for p in self.plans.values()]


def key_of(plan: Planned) -> tuple[str, ...]:
    """The columns by which the events of a query can be partitioned; empty if there are none."""
    scan = plan.physical.scan
    # A window of events counts all of them in the partition, so nothing else may split them.
    return scan.partition_by if scan.by_count else scan.sort_key


def can_slice(plan: Planned) -> bool:
    """Whether the window bounds matches in time, so that time slices are possible."""
    scan = plan.physical.scan
    return not scan.by_count and scan.width is not None and scan.width <= WIDEST


def passes(plans: Mapping[str, Planned]) -> list[Pass]:
    """The fewest passes: one if all queries share a key or all can be sliced, else one for each distribution."""
    common = _distribution(list(plans.values()))
    if len(plans) == 1 or not isinstance(common, Whole):
        return [Pass(plans, common)]
    groups = _by_column(plans)
    sliceable = [group for group in groups if all(can_slice(p) for p in group.values())]
    if len(sliceable) > 1:
        groups = [group for group in groups if group not in sliceable]
        groups.append({name: plan for group in sliceable for name, plan in group.items()})
    return [Pass(group, _distribution(list(group.values()))) for group in groups]


def _by_column(plans: Mapping[str, Planned]) -> list[dict[str, Planned]]:
    """The queries by a common key column, the most frequent first; those without a key by `can_slice`."""
    groups: list[dict[str, Planned]] = []
    left = dict(plans)
    while columns := Counter(column for plan in left.values() for column in key_of(plan)):
        shared = columns.most_common(1)[0][0]
        groups.append({name: plan for name, plan in left.items() if shared in key_of(plan)})
        left = {name: plan for name, plan in left.items() if name not in groups[-1]}
    for sliced in (True, False):
        group = {name: plan for name, plan in left.items() if can_slice(plan) is sliced}
        groups += [group] if group else []
    return groups


def _distribution(plans: Sequence[Planned]) -> Distribution:
    first, *rest = (key_of(plan) for plan in plans)
    common = tuple(k for k in first if all(k in other for other in rest))
    if common:
        return Keyed(common)
    if not all(map(can_slice, plans)):
        return Whole()
    window = max(plan.physical.scan.width or 0 for plan in plans)
    behind = any(not p.physical.forward or p.physical.looks_back for p in plans)
    return Sliced(window, behind, ahead=any(p.physical.forward for p in plans))
