"""General to specific by concept: keep the matches whose events have the narrower types."""

from __future__ import annotations

from eventcube.cube.refinement import Change, Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.downward import completed
from eventcube.plan.workload import Derivation


@register("concept-down")
class ConceptDown(ReuseCase):
    """Looks at the types of the events in each match of the coarser query, and tests negations of coarser types again.

    Liu et al. 2011 (E-Cube), section 5.2.
    """

    general_to_specific = True

    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source, if they differ in types."""
        return completed(self.name, source, target, refinement) if refinement.change is Change.CONCEPT else None
