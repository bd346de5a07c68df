"""Specific to general by concept: unite the matches of narrower types with those of the types that are left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from eventcube.cube.refinement import Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.upward import difference, generalized
from eventcube.plan.workload import Delta, Derivation, StackKey, United


@register("concept-up")
class ConceptUp(ReuseCase):
    """Takes over all matches of the query with narrower types, and finds those with events of other types.

    Liu et al. 2011 (E-Cube), section 5.5.
    """

    general_to_specific = False

    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source, if they differ so, and in nothing else."""
        change = difference(source, target, refinement)
        if change is None or not (change.narrowed and not change.run):
            return None
        return generalized(self.name, source, target, change)

    def unions(self, target: Member, ways: Sequence[tuple[Member, Derivation]]) -> Iterator[Derivation]:
        """For each slot the union of queries with narrower types there, and nowhere else, that have none in common."""
        narrower: dict[int, list[_Narrower]] = {}
        for source, way in (both for both in ways if both[1].case == self.name):
            stacks = source.query.stacks, target.query.stacks
            (own, slot), *others = ((own, slot) for own, slot in way.slots if stacks[0][own] != stacks[1][slot])
            types = source.query.plan.scan.components[own].types
            if not others and types is not None:
                narrower.setdefault(slot, []).append(_Narrower(way, types, stacks[0][own]))
        for slot, sources in narrower.items():
            disjoint: list[_Narrower] = []
            for one in sorted(sources, key=lambda n: -len(n.types)):
                disjoint += [one] if all(one.types.isdisjoint(other.types) for other in disjoint) else []
            if len(disjoint) > 1:
                yield _union(target, slot, disjoint)


class _Narrower(NamedTuple):
    """A way from a source that has narrower types in one slot: these types, and their stack."""

    way: Derivation
    types: frozenset[str]
    stack: int


def _union(target: Member, slot: int, sources: Sequence[_Narrower]) -> Derivation:
    """The matches of all sources, and those with types that none of them has."""
    first, *others = (source.way for source in sources)
    stacks: list[StackKey] = [*target.query.stacks]
    stacks[slot] = (target.query.stacks[slot], *(source.stack for source in sources))
    left = target.query.plan.scan.components[slot].types != frozenset().union(*(source.types for source in sources))
    delta = Delta(target.query.plan.program, target.unrestricted, tuple(stacks))
    united = tuple(United(way.source, way.slots) for way in others)
    return replace(first, deltas=(delta,) if left else (), united=united)
