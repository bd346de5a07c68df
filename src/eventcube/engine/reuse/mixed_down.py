"""General to specific by pattern and concept: keep what fits the narrower types, then complete it."""

from __future__ import annotations

from eventcube.cube.refinement import Change, Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.downward import completed
from eventcube.plan.workload import Derivation


@register("mixed-down")
class MixedDown(ReuseCase):
    """Drops matches of the coarser query by the types of their events first, as that costs least, and joins the rest.

    Liu et al. 2011 (E-Cube), section 5.3.
    """

    general_to_specific = True

    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source, if they differ in types and in components."""
        return completed(self.name, source, target, refinement) if refinement.change is Change.BOTH else None
