"""What the optimizer may ask of the engine."""

from __future__ import annotations

from typing import Protocol

from eventcube.optimizer.program import StrategyCost
from eventcube.optimizer.statistics import Events
from eventcube.plan.workload import StackKey


class Workings(Protocol):
    """What the optimizer may ask of the engine about one evaluation."""

    @property
    def size(self) -> int:
        """How many events there are."""

    @property
    def due(self) -> int:
        """How many of them are due."""

    def events(self, name: str, stacks: tuple[StackKey, ...] | None = None) -> Events:
        """The events as a query sees them, or as it does with other stacks."""

    def materializes(self, name: str) -> bool:
        """Whether the matches of a query are made, not only counted."""

    def keeps_matches(self, name: str) -> bool:
        """Whether matches of a query are kept from batch to batch, if others that end later are computed from them."""

    def strategy_cost(self, name: str) -> StrategyCost:
        """What strategies for the nested parts of a query cost."""
