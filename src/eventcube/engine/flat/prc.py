"""Partial result caching: partial matches of a sequence are kept, extended by new events, and purged."""

from __future__ import annotations

from eventcube.engine.flat.strategy import FlatStrategy, register
from eventcube.engine.views.balanced import Balanced
from eventcube.engine.views.kept import KeptResults
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.strategy import register_for_sequences
from eventcube.engine.views.view import AttachedView, Requests
from eventcube.optimizer.cost import LOOK_UP, MATERIALIZE, SORTED_VIEW_CALL, TEST, VIEW_CALL, Load
from eventcube.optimizer.program import ProgramEstimate
from eventcube.options import PRC
from eventcube.plan.steps import Program

# One run of kept partial matches, those with one last event, that a look-up goes over; one that is put there.
RUN, KEEP = 2.0, 40.0


class KeptPrefixes(KeptResults):
    """The partial matches, which leave with their first event: none that is asked for later begins before it."""

    def compute(self, requests: Requests, view: AttachedView) -> None:
        """Compute the requested partial matches, and keep those that are new."""
        before = len(self.store)
        super().compute(requests, view)
        view.counters.partials_kept += len(self.store) - before

    def purge(self, intervals: QueryIntervals, view: AttachedView) -> int | None:
        """Forget partial matches that begin before all intervals, once there are many."""
        row = super().purge(intervals, view)
        if row is None or not view.addresses.plain:
            # Where events are sorted by a key, what has lost an event is forgotten with every new store.
            return row
        begins = view.addresses.rows(self.store.firsts)
        view.counters.inner_unused += self.store.keep(self.store.block, begins >= row)
        self.since[row:] = self.since[row:].clip(view.store.seq[row])
        self._purged = len(self.store)
        return row


@register_for_sequences(PRC)
class Prefixes(Balanced):
    """Keeps the partial matches that the events to come are joined with, as a view of all components but one."""

    keeps = KeptPrefixes

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """A look at each kept run, the partial matches that are joined and tested, and those that are new."""
        lasts, *_, inside = load.partial
        call = SORTED_VIEW_CALL if load.sorted_view else VIEW_CALL
        joined = MATERIALIZE * inside if load.materialize or load.part.residual else 0.0
        tested = TEST * inside if load.part.residual else 0.0
        look_up = load.outer_rows * (LOOK_UP + RUN * min(lasts, inside) + joined + tested)
        update = load.extending or load.missing * sum(load.extended)
        return call + look_up + update + load.missing * load.extended[-1] * KEEP


@register(PRC)
class Prc(FlatStrategy):
    """Joins the events that make matches due with kept partial matches of all other components."""

    @classmethod
    def cost(cls, program: Program, estimate: ProgramEstimate) -> float:
        """The steps of the program, of which one is answered by `Prefixes`."""
        return estimate.cost(program)
