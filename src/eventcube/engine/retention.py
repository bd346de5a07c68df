"""How long the events of each stack are needed: by the queries that use it, not by the longest window of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.positions import Positions
from eventcube.engine.rows import Rows
from eventcube.engine.saved import BOUND
from eventcube.plan.workload import WorkloadQuery


@dataclass(slots=True)
class StackRetention:
    """How far back queries reach for the events of a stack: in time, in positions of a partitioning, or without end."""

    for_ever: bool = False
    time: int | None = None
    counts: dict[int, int] = field(default_factory=dict)

    def reaches(self, other: StackRetention) -> bool:
        """Whether no event is retained for longer in the other way."""
        return self.for_ever or (
            not other.for_ever
            and (self.time or 0) >= (other.time or 0)
            and all(self.counts.get(number, -1) >= reach for number, reach in other.counts.items())
        )

    def add(self, query: WorkloadQuery) -> None:
        """Retain events for a query, too."""
        plan, arrangement = query.plan, query.arrangement
        if len(plan.scan.components) == 1:
            # A match is one event.
            return
        if arrangement.width is None:
            self.for_ever = True
            return
        reach = arrangement.width * (2 if plan.forward and plan.looks_back else 1)
        if arrangement.positions is None:
            self.time = max(reach, self.time or 0)
        else:
            self.counts[arrangement.positions] = max(reach, self.counts.get(arrangement.positions, 0))

    @property
    def numbers(self) -> dict[str, int]:
        """The same as numbers with names; what is not there is 0."""
        time = BOUND if self.for_ever else self.time or 0
        return {"time": time, **{f"count{number}": reach for number, reach in self.counts.items()}}

    @classmethod
    def of_numbers(cls, numbers: Mapping[str, int]) -> StackRetention:
        """What these numbers tell."""
        counts = {int(name.removeprefix("count")): n for name, n in numbers.items() if name != "time" and n}
        time = numbers.get("time", 0)
        return cls(for_ever=time == BOUND, time=time, counts=counts)

    @property
    def is_time_only(self) -> bool:
        """Whether events leave in order of time."""
        return not self.for_ever and not self.counts


class Retention:
    """What to retain of each stack for some queries; with `keep`, all events of that time at least.

    Unless it is `derived`, no query is computed from others.
    """

    def __init__(
        self,
        queries: Mapping[str, WorkloadQuery],
        names: Iterable[str],
        stacks: int,
        keep: int | None = None,
        *,
        derived: bool = True,
    ) -> None:
        self.stacks = [StackRetention(time=keep) for _ in range(stacks)]
        for query in map(queries.__getitem__, names):
            for number in set(query.stacks):
                self.stacks[number].add(query)
            # It may be computed from matches of others that were due before, whose events it needs as long as its own.
            for source in {d.source for d in query.derivations if derived and not d.same_trigger}:
                for number in set(queries[source].stacks):
                    self.stacks[number].add(query)

    def within(self, others: Sequence[StackRetention]) -> Retention:
        """No more of each stack than others retain of it."""
        limited = copy(self)
        limited.stacks = [own if other.reaches(own) else other for own, other in zip(self.stacks, others, strict=True)]
        return limited

    @property
    def is_uniform(self) -> bool:
        """Whether all stacks retain events alike."""
        return all(stack == self.stacks[0] for stack in self.stacks)

    def still_needed(self, rows: Rows, watermark: int, positions: list[Positions]) -> tuple[Ints, ...]:
        """The places of each stack's events that a match still to come can use."""
        cuts: dict[int | None, int] = {None: len(rows)}
        recent: dict[int, Ints] = {}
        out = []
        for stack, retention in zip(rows.stacks, self.stacks, strict=True):
            if retention.for_ever or not len(stack):
                out.append(stack)
                continue
            time = retention.time
            if time not in cuts:
                cuts[time] = int(rows.ts.searchsorted(watermark - (time or 0)))
            if retention.is_time_only:
                out.append(stack[stack.searchsorted(cuts[time]) :])
                continue
            needed = stack >= cuts[time]
            for number, reach in retention.counts.items():
                if number not in recent:
                    recent[number] = positions[number].totals_of(rows.payload)
                needed |= (rows.positions[number] + reach >= recent[number])[stack]
            out.append(stack[needed])
        return tuple(out)


def places_of(stacks: Iterable[Ints], size: int) -> Bools:
    """Which events are in one of the stacks."""
    stacked = np.zeros(size, np.bool_)
    for stack in stacks:
        stacked[stack] = True
    return stacked
