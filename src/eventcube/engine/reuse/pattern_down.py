"""General to specific by pattern: bind the components that were added, or reject by what was added to negate."""

from __future__ import annotations

from eventcube.cube.refinement import Change, Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.downward import completed
from eventcube.plan.workload import Derivation


@register("pattern-down")
class PatternDown(ReuseCase):
    """Joins each match of the coarser query with events of the added components, and drops it for an added negation.

    So it is for conditions that were added and for smaller windows. Liu et al. 2011 (E-Cube), section 5.1.
    """

    general_to_specific = True

    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source, if both have the same types."""
        if refinement.change in (Change.CONCEPT, Change.BOTH):
            return None
        return completed(self.name, source, target, refinement)
