"""Forward link aggregation: events with the same links are one cluster, which is followed once and expanded last."""

from __future__ import annotations

from eventcube.engine.flat.strategy import FlatStrategy, register
from eventcube.optimizer.program import ProgramEstimate
from eventcube.options import FLA
from eventcube.plan.steps import Program


@register(FLA)
class Fla(FlatStrategy):
    """Extends every partial match by the clusters of events of the next component (`flat/clusters.py`)."""

    @classmethod
    def cost(cls, program: Program, estimate: ProgramEstimate) -> float:
        """The steps of the program."""
        return estimate.cost(program)
