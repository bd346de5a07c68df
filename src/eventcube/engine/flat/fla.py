"""Forward link aggregation: events with the same links are one cluster, which is followed once and expanded last."""

from __future__ import annotations

from eventcube.engine.flat.strategy import FlatStrategy, register
from eventcube.optimizer.program import ProgramEstimate
from eventcube.options import FLA
from eventcube.plan.steps import BindClusters, Program

# One event whose link is looked up, to form the clusters of its stack.
FORM = 2.0


@register(FLA)
class Fla(FlatStrategy):
    """Extends every partial match by the clusters of events of the next component (`flat/clusters.py`)."""

    @classmethod
    def cost(cls, program: Program, estimate: ProgramEstimate) -> float:
        """The steps of the program, and what it costs to form the clusters."""
        formed = (step for step in program if isinstance(step, BindClusters))
        return estimate.cost(program) + FORM * sum(estimate.events(s.bind.slot) * len(s.links) for s in formed)
