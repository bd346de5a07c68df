"""Specific to general by concept: unite the matches of narrower types with those of the types that are left."""

from __future__ import annotations

from eventcube.cube.refinement import Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.upward import difference, generalized
from eventcube.plan.workload import Derivation


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
