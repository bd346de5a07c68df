"""The interface of a reuse case, which computes a query from another, and the registry in which cases are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

from eventcube.cube.refinement import Refinement
from eventcube.engine.registry import import_all
from eventcube.engine.reuse.known import Known
from eventcube.plan.build import unrestricted_program
from eventcube.plan.logical import Leaf, LogicalQuery, Seq, positive_parts
from eventcube.plan.order import Order
from eventcube.plan.planned import Planned
from eventcube.plan.steps import Program
from eventcube.plan.workload import Derivation, WorkloadQuery


@dataclass(frozen=True)
class Member:
    """A query of a workload: its plan by itself, and the one in the workload."""

    name: str
    planned: Planned
    query: WorkloadQuery
    # Programs that derivations of the workload have in common.
    known: Known = field(default_factory=Known, compare=False)

    @property
    def logical(self) -> LogicalQuery:
        """The query as rules rewrote it."""
        return self.planned.logical

    @cached_property
    def order(self) -> Order:
        """The order of its events."""
        logical = self.logical
        return self.known.get(self.outline, "order", lambda: Order(logical.region, logical.slots, outermost=True))

    @cached_property
    def in_line(self) -> bool:
        """Whether its events come one after the other, in a fixed order."""
        node = self.logical.region.node
        return isinstance(node, Seq) and all(isinstance(part, Leaf) for part in positive_parts(node))

    @cached_property
    def outline(self) -> int | None:
        """The number of what programs depend on beside types, if it is all."""
        return self.known.outline(self.logical)

    @cached_property
    def unrestricted(self) -> Program:
        """A program that finds all matches, due or not."""
        return self.known.get(self.outline, "unrestricted", lambda: unrestricted_program(self.logical))


class ReuseCase(ABC):
    """Computes the matches of a target from those of a source; one of them refines the other."""

    name: ClassVar[str]
    # Whether the source is the coarser one.
    general_to_specific: ClassVar[bool]

    @abstractmethod
    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source; None if the case does not apply.

        Steps are not numbered: most derivations are never used.
        """

    def unions(self, target: Member, ways: Sequence[tuple[Member, Derivation]]) -> Iterator[Derivation]:
        """How to compute the target from several sources at once, from the ways in which it is from each of them."""
        return iter(())


_Case = TypeVar("_Case", bound=type[ReuseCase])
_registered: dict[str, ReuseCase] = {}


def register(name: str) -> Callable[[_Case], _Case]:
    """Make a case known by its name; a file in this folder does so when it is imported."""

    def add(case: _Case) -> _Case:
        case.name = name
        _registered[name] = case()
        return case

    return add


def reuse_cases() -> dict[str, ReuseCase]:
    """Every reuse case in this folder, by name."""
    import_all("eventcube.engine.reuse")
    return dict(_registered)
