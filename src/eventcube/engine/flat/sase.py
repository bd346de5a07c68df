"""The search of SASE: from the event that makes a match due, component by component and event by event."""

from __future__ import annotations

from eventcube.engine.flat.strategy import FlatStrategy, register
from eventcube.optimizer.program import ProgramEstimate
from eventcube.options import SASE
from eventcube.plan.steps import Program


@register(SASE)
class Sase(FlatStrategy):
    """Extends every partial match by each event of the next component that fits; nothing is kept."""

    @classmethod
    def cost(cls, program: Program, estimate: ProgramEstimate) -> float:
        """The steps of the program."""
        return estimate.cost(program)
