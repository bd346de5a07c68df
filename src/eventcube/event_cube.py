"""`Cube`: related queries over one stream of events, and the moves between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from typing import Any, Unpack, cast

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.cube import operations
from eventcube.cube.columns import guessed_schema, not_guessed, of_any_kind
from eventcube.cube.graph import CubeGraph
from eventcube.cube.moves import Move, Moves, change_of, moves
from eventcube.cube.places import ConceptChanges, PatternChanges
from eventcube.cube_runtime import CubeRuntime, KeptRun
from eventcube.engine.counts import Counts
from eventcube.errors import BindError, InputError, OptionError, did_you_mean, for_each, warn
from eventcube.explain import Explanation, columns_of, explain_queries
from eventcube.language.check import components
from eventcube.language.syntax import Query
from eventcube.match import (
    Start,
    count_levels,
    count_matches,
    counting_queries,
    find_matches,
    match_each,
    queries_at_levels,
)
from eventcube.options import (
    MEANING_SETTINGS,
    MatchSettings,
    MeaningSettings,
    Options,
    Settings,
    StreamSettings,
    invalid_argument,
    options,
)
from eventcube.plan.bind import bind
from eventcube.plan.logical import LogicalQuery
from eventcube.runtime.changing import Answer
from eventcube.runtime.frames import is_spark
from eventcube.runtime.queries import Queries, queries_by_name
from eventcube.runtime.runtime import Runtime
from eventcube.schema import EventSchema
from eventcube.settings import takes_settings
from eventcube.slips import misspelt_types
from eventcube.workload_files.workload import read_workload


class Cube:
    """Related queries over one stream of events, at several levels of a hierarchy of types.

    Queries that refine each other share their work; `graph` shows which do. Drill-downs and roll-ups make new queries
    of the cube from those that it has.

    >>> cube = Cube({"q": "PATTERN SEQ(TX a, OK b) WITHIN 1 hour"}, concepts={"TX": ["D", "G"], "OK": ["T"]})
    >>> cube.concept_drill_down("q", [("TX", "D", 1)], name="q2")
    parse('PATTERN SEQ(D a, OK b) WITHIN 1 hour')
    >>> print(cube)
    q: SEQ(TX a, OK b) WITHIN 1 hour
      concept → q2: SEQ(D a, OK b) WITHIN 1 hour
    """

    @takes_settings
    def __init__(
        self, queries: Queries, *, columns: Any = None, advise: bool = True, **settings: Unpack[MeaningSettings]
    ) -> None:
        """Parse the queries.

        `columns` are those of the events, as a schema of Arrow, Spark or polars, the dtypes of pandas, or the events
        themselves: without them, `graph` guesses what kinds of values they have. The settings hold for `graph` and all
        answers; what is not set here can be set for each answer. Warns of types that look like those of the hierarchy,
        unless `advise` is False.
        """
        self.queries: dict[str, Query] = {}
        self.columns = None if columns is None else _columns_of(columns)
        self.concepts = options(**settings).concepts
        self.settings: MeaningSettings = {**settings, "concepts": self.concepts} if "concepts" in settings else settings
        # Settings of answers that do not set them.
        self._defaults: dict[str, Any] = {}
        self.advises = advise
        self._kept: KeptRun | None = None
        self._take(queries_by_name(queries))

    @classmethod
    def from_yaml(cls, path: str | PathLike[str], *, columns: Any = None, advise: bool = True) -> Cube:
        """A cube from a workload file of the command line: queries, hierarchy and settings.

        Settings that do not say what queries mean, as `sharing`, hold for answers that do not set them.
        """
        workload = read_workload(str(path))
        meaning = {name: value for name, value in workload.settings.items() if name in MEANING_SETTINGS}
        cube = cls(workload.queries, columns=columns, advise=advise, **cast("MeaningSettings", meaning))
        cube._defaults = {name: value for name, value in workload.settings.items() if name not in meaning}
        return cube

    def copy(self) -> Cube:
        """Another cube with the same queries, hierarchy and settings."""
        other = Cube(self.queries, columns=self.columns, advise=False, **self.settings)
        other.advises, other._defaults = self.advises, self._defaults
        return other

    def add(self, name: str, query: str | Query) -> Query:
        """Add a query; `cube[name] = query` replaces one that is there."""
        if name in self.queries:
            raise OptionError(f"the cube has a query {name!r} already", code="EC469", hint="give it another name")
        self[name] = query
        return self[name]

    def remove(self, name: str) -> None:
        """Remove a query."""
        del self.queries[self._known(name)]

    def __getitem__(self, name: str) -> Query:
        return self.queries[self._known(name)]

    def __setitem__(self, name: str, query: str | Query) -> None:
        added = queries_by_name({name: query})
        if self.columns is not None:
            bind(added[name], guessed_schema(added.values(), self.settings, self.columns), self.concepts)
        self._take(added)

    def _take(self, added: Mapping[str, Query]) -> None:
        """Take queries, and warn of types in them that are probably misspelt, if others have not got them already."""
        if self.advises and self.concepts is not None:
            known = {component.type for query in self.queries.values() for component in components(query.pattern)}
            for query in added.values():
                for problem in misspelt_types(query, self.concepts, known):
                    warn(problem, query.text, query.source)
        self.queries.update(added)

    def _known(self, name: str) -> str:
        if name not in self.queries:
            hint = did_you_mean(str(name), self.queries, "the cube")
            raise OptionError(f"the cube has no query {name!r}", code="EC467", hint=hint)
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"<Cube: {', '.join(self.queries) or 'no queries'}>"

    def __str__(self) -> str:
        return str(self.graph)

    def _repr_html_(self) -> str:
        return self.graph._repr_html_()

    # How the queries relate, and moves between them.

    @property
    def graph(self) -> CubeGraph:
        """Which queries refine which: as text, or by `to_mermaid()` and `to_json()`."""
        return CubeGraph(self._bound(self.queries, self._schema()))

    def _schema(self) -> EventSchema:
        return guessed_schema(self.queries.values(), self.settings, self.columns)

    def _bound(self, names: Iterable[str], schema: EventSchema) -> dict[str, LogicalQuery]:
        try:
            return for_each(names, lambda name: bind(self.queries[name], schema, self.concepts))
        except BindError as error:
            if self.columns is not None:
                raise
            # Tell mistakes that have nothing to do with kinds of columns.
            any_kind = of_any_kind(schema)
            for_each(names, lambda name: bind(self.queries[name], any_kind, self.concepts))
            raise not_guessed(error, self.queries.values(), schema) from None

    def moves(self, name: str) -> Moves:
        """The drill-downs and roll-ups that there are from a query; `apply` makes one of them."""
        query, schema = self[name], self._schema()
        self._bound([name], schema)
        return moves(query, schema, self.concepts)

    def concept_drill_down(self, query: str, changes: ConceptChanges, *, name: str | None = None) -> Query:
        """Add a query with finer types, (type, finer type, position) each; a negated type becomes a coarser one.

        Give one change or a list of them. Positions count the parts of the query from 1, negated ones too. Without a
        name, it gets that of the query and a number.
        """
        return self._add(query, operations.concept_drill_down(self[query], changes, self._hierarchy()), name)

    def concept_roll_up(self, query: str, changes: ConceptChanges, *, name: str | None = None) -> Query:
        """Add a query with coarser types, (type, coarser type, position) each; a negated type becomes a finer one."""
        return self._add(query, operations.concept_roll_up(self[query], changes, self._hierarchy()), name)

    def pattern_drill_down(self, query: str, insertions: PatternChanges, *, name: str | None = None) -> Query:
        """Add a query with more parts, `Type`, `!Type` or `Type variable`, each with its position in the new query."""
        return self._add(query, operations.pattern_drill_down(self[query], insertions), name)

    def pattern_roll_up(self, query: str, removals: PatternChanges, *, name: str | None = None) -> Query:
        """Add a query without some parts, (type, position in the old query) each."""
        return self._add(query, operations.pattern_roll_up(self[query], removals), name)

    def apply(self, query: str, move: Move, *, name: str | None = None) -> Query:
        """Add the query that a move gives, one of `moves(query)`."""
        changes = change_of(move)
        return cast("Query", getattr(self, move.operation)(query, changes, name=name))

    def _hierarchy(self) -> Concepts:
        if self.concepts is None:
            raise OptionError("the cube has no hierarchy of types", code="EC458", hint="give Cube(…, concepts=…)")
        return self.concepts

    def _add(self, source: str, query: Query, name: str | None) -> Query:
        if name is None:
            name = next(n for i in range(1, len(self) + 2) if (n := f"{source}.{i}") not in self.queries)
        return self.add(name, query)

    # Answers.

    @takes_settings
    def match(
        self,
        events: Any,
        *,
        keep: int | None = None,
        counters: Counts | None = None,
        **settings: Unpack[StreamSettings],
    ) -> Any:
        """All matches of all queries over events, as `ec.match` gives them: in one table, by the name of the query.

        With `keep`, up to so many matches are kept, and the events, so that `answer` can tell those of finer queries.
        """
        start = self._keeping(events, keep)
        return find_matches(events, self._asked(), self._options(settings), counters=counters, start=start)

    @takes_settings
    def match_all(
        self,
        events: Any,
        *,
        flat: bool = False,
        keep: int | None = None,
        counters: Counts | None = None,
        **settings: Unpack[StreamSettings],
    ) -> dict[str, Any]:
        """The matches of each query by its name, as `ec.match_all` gives them: each in a table of its own.

        `keep` is as in `match`.
        """
        start = self._keeping(events, keep)
        return match_each(events, self._asked(), self._options(settings), flat=flat, counters=counters, start=start)

    @takes_settings
    def counts(
        self,
        events: Any,
        *,
        levels: bool | str | Sequence[str] = False,
        keep: int | None = None,
        counters: Counts | None = None,
        **settings: Unpack[MatchSettings],
    ) -> Any:
        """How many matches each query has: a row for each, with its name in `query` and the number in `matches`.

        Matches are counted without being made where that is possible; clauses like RETURN and AGG play no part. `keep`
        is as in `match`: matches that are kept are made.

        With `levels`, of all queries or of those that it names, there is a row for each combination of types: those of
        the query and those below them in the hierarchy, as far as there are matches. Columns `a` and `a_level` have the
        type of a component `a` and its level, 1 for a root. Events of just a type that has others below it have rows of
        their own, one level deeper than those for all of them. Keys of GROUPBY and aggregates of AGG are further
        columns, and HAVING picks rows; without AGG, there is the number of `matches`.
        """
        asked = self._asked() if levels is False else self._drilled(levels)
        count = count_matches if levels is False else count_levels
        return count(events, asked, self._options(settings), counters=counters, start=self._keeping(events, keep))

    def answer(self, name: str) -> Answer:
        """The result of a query of the cube, from the kept matches of a coarser one: no event is searched again.

        `match`, `match_all` or `counts` must have been asked with `keep` before; the query may be a drill-down that was
        added since then.
        """
        query = self[name]
        if self._kept is None:
            hint = "cube.match(events, keep=1_000_000) keeps up to a million of them"
            raise OptionError("no matches are kept", code="EC482", hint=hint)
        return self._kept.answer(name, query)

    def _keeping(self, events: Any, keep: int | None) -> Start:
        if keep is None:
            return Runtime.from_options
        if is_spark(events):
            hint = "cache the DataFrame of matches, or give the events as Arrow, pandas or polars"
            raise OptionError("matches of a DataFrame of Spark cannot be kept", code="EC482", hint=hint)
        self._kept = KeptRun(keep, self.queries)
        return self._kept.start

    @takes_settings
    def explain(
        self,
        events: Any,
        *,
        counts: bool = False,
        levels: bool | str | Sequence[str] = False,
        analyze: bool = False,
        **settings: Unpack[MatchSettings],
    ) -> Explanation:
        """How the queries would run over events: what they share, and which are computed from which.

        See `ec.explain`; with `counts` they run as for `counts`, which costs less, with `levels` as for counts at every
        level, and with `analyze` over all events.
        """
        queries, chosen = self._asked() if levels is False else self._drilled(levels), self._options(settings)
        if counts or levels is not False:
            queries = counting_queries(queries) if levels is False else queries_at_levels(queries, chosen)
            chosen = replace(chosen, limit=None)
        return explain_queries(queries, events, chosen, analyze=analyze)

    @takes_settings
    def runtime(
        self,
        *,
        schema: pa.Schema | None = None,
        separate: bool = False,
        advise: bool = True,
        keep: str | timedelta | None = None,
        **settings: Unpack[Settings],
    ) -> CubeRuntime:
        """The queries over a stream, as `ec.Runtime`, with the moves of the cube.

        Moves are answered from what windows need, or from matches and events of the time `keep`, as `"10 minutes"`.
        """
        options = self._options(settings)
        return CubeRuntime.of(self, options, keep, schema=schema, separate=separate, advise=advise)

    def _asked(self) -> dict[str, Query]:
        """The queries, of which there must be one."""
        return queries_by_name(self.queries)

    def _drilled(self, levels: object) -> dict[str, Query]:
        """The queries that are counted at every level: all, or one or some by their names."""
        names = list(self._asked()) if levels is True else [levels] if isinstance(levels, str) else levels
        if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
            raise invalid_argument("levels", levels, "True, or the name of a query, or a list of names")
        return {name: self[name] for name in names}

    def _options(self, settings: Mapping[str, Any]) -> Options:
        """The options of an answer: the cube's settings, and others that do not contradict them."""
        own: dict[str, Any] = {**self.settings, "concepts": self.concepts}
        chosen = options(**{**self._defaults, **settings, **own})
        for name in settings:
            if name in own and getattr(options(**{name: settings[name]}), name) != getattr(chosen, name):
                raise OptionError(
                    f"the cube has its own {name}, {own[name]!r}",
                    code="EC459",
                    hint=f"leave {name} out here, or make a Cube(…, {name}=…) with the other one",
                )
        return chosen


def _columns_of(given: Any) -> pa.Schema:
    try:
        return columns_of(given)
    except InputError:
        raise invalid_argument("columns", given, "the schema of the events, or the events") from None
