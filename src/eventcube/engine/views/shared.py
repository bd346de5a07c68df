"""Views that several queries share, because parts of them are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from eventcube.engine.views.strategy import Views
from eventcube.plan.equal_parts import meaning, meanings
from eventcube.plan.steps import Part
from eventcube.plan.workload import StackKey, WorkloadQuery


class SharedViews:
    """What is kept for the nested parts of queries that sort the events alike: once for those that are equal."""

    def __init__(self, queries: Iterable[WorkloadQuery]) -> None:
        self._times = Counter(same for query in queries for same, _ in meanings(query))
        self._views: dict[object, Views] = {}

    def of(self, part: Part, stacks: Sequence[StackKey], width: int | None) -> Views:
        """What is kept for a part of a query that sees the events by these stacks, in a window of this width."""
        same = meaning(part, stacks, width)
        if same is None:
            return Views()
        return self._views.setdefault(same, Views(shared=self._times[same] > 1))
