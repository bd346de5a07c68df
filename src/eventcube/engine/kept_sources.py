"""Matches of queries that others are computed from, kept from batch to batch.

Where the last event of a match is not that of the match it is computed from, an event of a new batch completes matches
of old ones. These are kept, as a view keeps the results of a nested part: extended by those that are due, and dropped
with their events. Otherwise they would be found again in each batch among all retained events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from eventcube.engine.kept_matches import KeptMatches
from eventcube.engine.query import RunningQuery
from eventcube.engine.rows import Rows
from eventcube.engine.state import BEGINNING
from eventcube.engine.store import Store
from eventcube.engine.table import Table
from eventcube.plan.routes import Route
from eventcube.plan.workload import Derivation

# Matches of one query that are kept at most; of one that has more, they are found again each time.
MOST_KEPT = 1 << 20
# They are not needed any more after so many batches that add to them and do not use them.
MOST_UNUSED = 1 << 10
# Keep them only if at most one of so many events is new: otherwise most are found in the same batch.
SHARE = 2


class KeptSources:
    """The kept matches of a group's queries, by name: all of those whose events are retained, for each that is here."""

    def __init__(self, queries: Mapping[str, RunningQuery]) -> None:
        self._queries = queries
        self._kept: dict[str, KeptMatches] = {}
        self._too_many: set[str] = set()
        # Batches that added to them since they were needed last.
        self._unused: Counter[str] = Counter()
        # Those to which this batch adds.
        self._extended: dict[str, KeptMatches] = {}

    def available(self, derivations: Mapping[str, Derivation]) -> frozenset[str]:
        """The queries of which earlier matches are needed, and all of them are at hand."""
        return frozenset(_needed(derivations) & set(self._kept))

    def begin(self, route: Route, rows: Rows, due: int, first_sequence: int) -> None:
        """Get ready for a batch, of which so many events are due; none is retained with a number below the first."""
        needed = _needed(route.derivations)
        for name in needed:
            if name not in self._kept and self.keeps(name, len(rows), due):
                self._kept[name] = KeptMatches(self._queries[name].plan.positive, MOST_KEPT, BEGINNING)
        for name in [name for name in self._kept if name in needed or name in route.names]:
            self._unused[name] = 0 if name in needed else self._unused[name] + 1
            if self._unused[name] > MOST_UNUSED:
                # Another plan is at work.
                del self._kept[name]
        self._extended = {name: kept for name, kept in self._kept.items() if name in route.names}
        for kept in self._extended.values():
            kept.drop_before(first_sequence)

    def keeps(self, name: str, rows: int, due: int) -> bool:
        """Whether matches of a query are kept if others need them, where so many events are due."""
        # With the first event as the trigger, a match is due before those that it is computed from.
        return due * SHARE <= rows and not self._queries[name].plan.forward and name not in self._too_many

    def extended(self, name: str) -> KeptMatches | None:
        """Where the matches of a query that are found in this batch are added."""
        return self._extended.get(name)

    def past(self, names: Iterable[str], stores: Mapping[str, Store], rows: Rows) -> dict[str, list[Table]]:
        """The matches of earlier batches."""
        return {name: list(self._kept[name].tables(stores[name], rows)) for name in names}

    def end(self) -> None:
        """Keep what was added, unless it is too much."""
        for name, kept in self._extended.items():
            kept.flush()
            if kept.has_dropped:
                self._too_many.add(name)
                del self._kept[name]


def _needed(derivations: Mapping[str, Derivation]) -> set[str]:
    """The queries of whose matches earlier ones are needed, too."""
    return {d.source for d in derivations.values() if not d.same_trigger}
