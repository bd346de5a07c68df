"""Programs that derivations of a workload have in common: those of queries that differ in nothing but their types."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from eventcube.plan.logical import Leaf, LogicalQuery, Seq, regions
from eventcube.plan.order import may_share

T = TypeVar("T")


def outline(logical: LogicalQuery) -> Hashable | None:
    """What programs of a query depend on beside its types; None if it has conditions, which they depend on, too.

    Steps name slots, not types: which slots may hold the same event is all that types decide. Names are of use to
    people, where a part is negated or nested.
    """
    if any(region.predicates for region in regions(logical.region)):
        return None
    slots, node = logical.slots, logical.region.node
    direct = {part.slot for part in node.parts if isinstance(part, Leaf)} if isinstance(node, Seq) else set()
    shared = tuple(may_share(one, other) for one in slots for other in slots[: one.index])
    named = tuple((None if s.index in direct else s.name, s.region, s.alternatives) for s in slots)
    per = logical.results.per
    return logical.region, logical.alternatives, logical.or_of, named, shared, None if per is None else per.slot


class Known:
    """What was made for a query, for others with the same outline."""

    def __init__(self) -> None:
        self._made: dict[Hashable, object] = {}
        self._outlines: dict[Hashable, int] = {}

    def outline(self, logical: LogicalQuery) -> int | None:
        """The number of a query's outline, as that takes long to compare; None without one."""
        found = outline(logical)
        return None if found is None else self._outlines.setdefault(found, len(self._outlines))

    def get(self, of: Hashable | None, what: Hashable, make: Callable[[], T]) -> T:
        """What was made for an outline, or is now; without an outline it is always made."""
        if of is None:
            return make()
        key = of, what
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]  # type: ignore[assignment]
        return made
