"""A cube over a stream: drill-downs and roll-ups add queries while it runs, and are answered from what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from eventcube.cube.moves import Move
from eventcube.cube.places import ConceptChanges, PatternChanges
from eventcube.cube.refinement import refinements
from eventcube.engine.kept_matches import Keep
from eventcube.errors import EventCubeError, OptionError, did_you_mean
from eventcube.language.identifiers import ANY
from eventcube.language.syntax import Query
from eventcube.options import Options, invalid_argument, is_whole, microseconds
from eventcube.plan.logical import LogicalQuery, Slot
from eventcube.runtime.changing import Answer, add_query, answer_from
from eventcube.runtime.queries import Queries
from eventcube.runtime.runtime import Runtime

if TYPE_CHECKING:
    from eventcube.event_cube import Cube

# Matches of all queries that are kept at most, while a cube runs.
MOST_MATCHES = 1 << 20
# As long as anything can be kept: without end.
_FOR_EVER = 2**61


class CubeRuntime(Runtime):
    """The queries of a cube over a stream of events; see `ec.Runtime`.

    Matches are kept for as long as windows need events, or for the time `keep`, at most a million of them. A
    drill-down is answered from the kept matches of the query that it comes from, and says from when on it is complete.
    A query that cannot be answered so sees the events from now on, see `add`: a leading `!` knows no earlier ones.
    `cube` has the queries of the runtime, those that came and without those that went.

    >>> import pyarrow as pa
    >>> from eventcube import Cube
    >>> cube = Cube({"q": "PATTERN SEQ(TX a, OK b) WITHIN 1 hour"}, concepts={"TX": ["D", "G"], "OK": ["T"]})
    >>> runtime = cube.runtime(type="place")
    >>> events = {"ts": [1, 2, 3, 4], "place": ["D", "G", "T", "X"]}
    >>> sum(batch.num_rows for batch in runtime.push(pa.table(events)))
    2
    >>> print(runtime.concept_drill_down("q", ("TX", "D", 1), name="q2"))
    q2: 1 row from 2 kept matches of q, complete from the beginning on
    """

    cube: Cube

    @classmethod
    def of(
        cls,
        cube: Cube,
        options: Options,
        keep: str | timedelta | None,
        *,
        schema: pa.Schema | None,
        separate: bool,
        advise: bool,
    ) -> CubeRuntime:
        """The queries of a cube; `keep` is None for what windows need."""
        if keep is not None and not isinstance(keep, str | timedelta):
            raise invalid_argument("keep", keep, "a duration such as '10 minutes', or a timedelta")
        # Matches that are only counted are not made for the sake of moves that may never come, unless asked to.
        kept = Keep(0 if keep is None else microseconds(keep), MOST_MATCHES, counted=keep is not None)
        runtime = cls.from_options(cube.queries, options, schema=schema, separate=separate, advise=advise, keep=kept)
        runtime.cube = cube.copy()
        runtime.cube.advises = advise
        return runtime

    def set_queries(self, queries: Mapping[str, Query]) -> None:
        """Have other queries from now on, in the cube of the runtime, too."""
        super().set_queries(queries)
        self.cube.queries = dict(queries)

    def concept_drill_down(self, query: str, changes: ConceptChanges, *, name: str | None = None) -> Answer:
        """Add a query with finer types; see `Cube.concept_drill_down`."""
        return self._move(query, lambda: self.cube.concept_drill_down(query, changes, name=name))

    def concept_roll_up(self, query: str, changes: ConceptChanges, *, name: str | None = None) -> Answer:
        """Add a query with coarser types, which sees the events from now on; see `Cube.concept_roll_up`."""
        return self._move(query, lambda: self.cube.concept_roll_up(query, changes, name=name))

    def pattern_drill_down(self, query: str, insertions: PatternChanges, *, name: str | None = None) -> Answer:
        """Add a query with more parts; see `Cube.pattern_drill_down`."""
        return self._move(query, lambda: self.cube.pattern_drill_down(query, insertions, name=name))

    def pattern_roll_up(self, query: str, removals: PatternChanges, *, name: str | None = None) -> Answer:
        """Add a query without some parts, which sees the events from now on; see `Cube.pattern_roll_up`."""
        return self._move(query, lambda: self.cube.pattern_roll_up(query, removals, name=name))

    def apply(self, query: str, move: Move, *, name: str | None = None) -> Answer:
        """Add the query that a move gives, one of `cube.moves(query)`; see `Cube.apply`."""
        return self._move(query, lambda: self.cube.apply(query, move, name=name))

    def _move(self, source: str, move: Callable[[], Query]) -> Answer:
        self.check_ready()
        if source not in self.queries:
            hint = did_you_mean(str(source), self.queries, "the runtime")
            raise OptionError(f"the runtime has no query {source!r}", code="EC481", hint=hint)
        try:
            query = move()
            # The cube has given it a name.
            return add_query(self, next(reversed(self.cube.queries)), query, source)
        except EventCubeError:
            self.cube.queries = dict(self.queries)
            raise


class KeptRun:
    """A run of queries over a whole table, `most` of whose matches are kept, so that others can be answered later."""

    def __init__(self, most: int, queries: Mapping[str, Query]) -> None:
        if not is_whole(most) or most < 1:
            raise invalid_argument("keep", most, "how many matches to keep at most")
        self._keep = Keep(_FOR_EVER, int(most))
        self.runtime: Runtime | None = None
        # The queries that the run knows, those that were answered since, too.
        self._queries = dict(queries)
        self._answers: dict[str, Answer] = {}

    def start(self, queries: Queries, options: Options, *, schema: pa.Schema, separate: bool = False) -> Runtime:
        """A runtime that keeps matches."""
        self.runtime = Runtime.from_options(queries, options, schema=schema, separate=separate, keep=self._keep)
        return self.runtime

    def answer(self, name: str, query: Query) -> Answer:
        """The result of a query, computed from kept matches of a coarser one."""
        if self._queries.get(name, query) != query:
            hint = "give this one another name, or call cube.match(events, keep=…) again"
            raise OptionError(f"the kept matches know another query {name!r}", code="EC482", hint=hint)
        if name in self._answers:
            return self._answers[name]
        runtime = self.runtime
        assert runtime is not None
        assert runtime.workload is not None
        if name in runtime.queries:
            hint = "answer is for queries that the cube got after that call"
            raise OptionError(
                f"the call that kept matches gave the result of {name!r} already", code="EC482", hint=hint
            )
        bound = runtime.plans_of({name: query}, runtime.workload.schema)[name].bound
        coarser = [other for other, plan in runtime.plans.items() if refinements(bound, plan.bound)]
        # Those that were not dropped for their number come first, and then those with the fewest to go through.
        for source in sorted(coarser, key=runtime.workload.engine.kept_of):
            answer = answer_from(runtime, name, query, source)
            if answer is not None:
                self._queries[name], self._answers[name] = query, answer
                return answer
        why = self._refusal(runtime, bound, coarser)
        hint = "cube.match(events, keep=…) searches the events again, for this query, too"
        raise OptionError(f"{name!r} cannot be answered from kept matches: {why}", code="EC482", hint=hint)

    @staticmethod
    def _refusal(runtime: Runtime, bound: LogicalQuery, coarser: Sequence[str]) -> str:
        """Why a query cannot be computed from kept matches, in words."""
        if not coarser:
            return "no query whose matches are kept is coarser"
        kept = [slot for other in runtime.bound_queries.values() for slot in other.slots]
        missing = [slot for slot in bound.slots if not any(_has_types_of(other, slot) for other in kept)]
        if missing:
            types = " and ".join(dict.fromkeys(slot.type or ANY for slot in missing))
            return f"the events of type {types} were not kept"
        return f"those of {', '.join(coarser)}, with the events that were kept, are not enough"


def _has_types_of(kept: Slot, wanted: Slot) -> bool:
    return kept.types is None or (wanted.types is not None and wanted.types <= kept.types)
