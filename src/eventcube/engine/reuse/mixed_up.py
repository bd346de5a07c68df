"""Specific to general by pattern and concept: both at once."""

from __future__ import annotations

from eventcube.cube.refinement import Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.upward import difference, generalized
from eventcube.plan.workload import Derivation


@register("mixed-up")
class MixedUp(ReuseCase):
    """Takes over matches without their run, each once.

    It finds those of the same types without a run, and those of other types.

    Liu et al. 2011 (E-Cube), section 5.6.
    """

    general_to_specific = False

    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source, if they differ so, and in nothing else."""
        change = difference(source, target, refinement)
        if change is None or not (change.run and change.narrowed):
            return None
        return generalized(self.name, source, target, change)
