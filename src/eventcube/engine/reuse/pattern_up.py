"""Specific to general by pattern: take over the matches of a longer query, and find those that it cannot have."""

from __future__ import annotations

from eventcube.cube.refinement import Refinement
from eventcube.engine.reuse.case import Member, ReuseCase, register
from eventcube.engine.reuse.upward import difference, generalized
from eventcube.plan.workload import Derivation


@register("pattern-up")
class PatternUp(ReuseCase):
    """Takes over the finer query's matches without the run of events that it has more, each once.

    It finds those that have no such run by negating it.

    Liu et al. 2011 (E-Cube), section 5.4.
    """

    general_to_specific = False

    def derivation(self, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
        """How to compute the target from the source, if they differ so, and in nothing else."""
        change = difference(source, target, refinement)
        if change is None or not (change.run and not change.narrowed):
            return None
        return generalized(self.name, source, target, change)
