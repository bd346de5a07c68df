"""`Cube`: related queries over one stream of events, and the moves between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Unpack

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.cube import operations
from eventcube.cube.columns import guessed_schema
from eventcube.cube.graph import CubeGraph
from eventcube.cube.moves import Moves, moves
from eventcube.engine.counts import Counts
from eventcube.errors import BindError, OptionError, did_you_mean
from eventcube.explain import Explanation, explain_queries
from eventcube.language.syntax import Query
from eventcube.match import count_matches, find_matches, match_each
from eventcube.options import MatchSettings, Options, Settings, options
from eventcube.plan.bind import bind
from eventcube.runtime.queries import Queries, queries_by_name
from eventcube.runtime.runtime import Runtime
from eventcube.settings import takes_settings

# What a drill-down or roll-up changes: (type, new type, position), and (type, position).
ConceptChange = tuple[str, str, int]
PatternChange = tuple[str, int]


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

    def __init__(
        self,
        queries: Queries,
        *,
        concepts: Concepts | Mapping[str, Any] | None = None,
        columns: pa.Schema | None = None,
    ) -> None:
        """Parse the queries.

        `columns` are those of the events: without them, `graph` guesses what kinds of values they have.
        """
        self.queries = queries_by_name(queries)
        self.concepts = options(concepts=concepts).concepts
        self.columns = columns

    def __getitem__(self, name: str) -> Query:
        if name not in self.queries:
            hint = did_you_mean(str(name), self.queries, "the cube")
            raise OptionError(f"the cube has no query {name!r}", code="EC467", hint=hint)
        return self.queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"<Cube: {', '.join(self.queries)}>"

    def __str__(self) -> str:
        return str(self.graph)

    def _repr_html_(self) -> str:
        return self.graph._repr_html_()

    # How the queries relate, and moves between them.

    @property
    def graph(self) -> CubeGraph:
        """Which queries refine which: as text, or by `to_mermaid()` and `to_json()`."""
        schema = guessed_schema(self.queries.values(), self.columns)
        try:
            return CubeGraph({name: bind(query, schema, self.concepts) for name, query in self.queries.items()})
        except BindError as error:
            if self.columns is not None:
                raise
            hint = f"give Cube(…, columns=events.schema), as the kinds of columns cannot be guessed: {error.message}"
            raise OptionError("the columns of the events are not known", code="EC468", hint=hint) from None

    def moves(self, name: str) -> Moves:
        """The drill-downs and roll-ups that there are from a query."""
        return moves(self[name], self.concepts)

    def concept_drill_down(self, query: str, changes: Iterable[ConceptChange], *, name: str | None = None) -> Query:
        """Add a query with finer types, (type, finer type, position) each; a negated type becomes a coarser one.

        Positions count the parts of the query from 1, negated ones too. Without a name, it gets that of the query and a
        number.
        """
        return self._add(query, operations.concept_drill_down(self[query], changes, self._hierarchy()), name)

    def concept_roll_up(self, query: str, changes: Iterable[ConceptChange], *, name: str | None = None) -> Query:
        """Add a query with coarser types, (type, coarser type, position) each; a negated type becomes a finer one."""
        return self._add(query, operations.concept_roll_up(self[query], changes, self._hierarchy()), name)

    def pattern_drill_down(self, query: str, insertions: Iterable[PatternChange], *, name: str | None = None) -> Query:
        """Add a query with more parts, `Type`, `!Type` or `Type variable`, each with its position in the new query."""
        return self._add(query, operations.pattern_drill_down(self[query], insertions), name)

    def pattern_roll_up(self, query: str, removals: Iterable[PatternChange], *, name: str | None = None) -> Query:
        """Add a query without some parts, (type, position in the old query) each."""
        return self._add(query, operations.pattern_roll_up(self[query], removals), name)

    def _hierarchy(self) -> Concepts:
        if self.concepts is None:
            raise OptionError("the cube has no hierarchy of types", code="EC469", hint="give Cube(…, concepts=…)")
        return self.concepts

    def _add(self, source: str, query: Query, name: str | None) -> Query:
        if name is None:
            name = next(n for i in range(1, len(self) + 2) if (n := f"{source}.{i}") not in self.queries)
        if name in self.queries:
            raise OptionError(f"the cube has a query {name!r} already", code="EC469", hint="give it another name")
        self.queries.update(queries_by_name({name: query}))
        return self.queries[name]

    # Answers.

    @takes_settings
    def match(self, events: Any, *, counters: Counts | None = None, **settings: Unpack[MatchSettings]) -> Any:
        """All matches of all queries over events, as `ec.match` gives them: in one table, by the name of the query."""
        return find_matches(events, self.queries, self._options(settings), counters=counters)

    @takes_settings
    def match_all(
        self, events: Any, *, flat: bool = False, counters: Counts | None = None, **settings: Unpack[MatchSettings]
    ) -> dict[str, Any]:
        """The matches of each query by its name, as `ec.match_all` gives them: each in a table of its own."""
        return match_each(events, self.queries, self._options(settings), flat=flat, counters=counters)

    @takes_settings
    def counts(self, events: Any, *, counters: Counts | None = None, **settings: Unpack[MatchSettings]) -> Any:
        """How many matches each query has: a row for each, with its name in `query` and the number in `matches`.

        Matches are counted without being made where that is possible; clauses like RETURN and AGG play no part.
        """
        return count_matches(events, self.queries, self._options(settings), counters=counters)

    @takes_settings
    def explain(self, events: Any, *, analyze: bool = False, **settings: Unpack[MatchSettings]) -> Explanation:
        """How the queries would run over events: what they share, and which are computed from which.

        See `ec.explain`; with `analyze` they run over all events.
        """
        return explain_queries(self.queries, events, self._options(settings), analyze=analyze)

    @takes_settings
    def runtime(
        self,
        *,
        schema: pa.Schema | None = None,
        separate: bool = False,
        advise: bool = True,
        **settings: Unpack[Settings],
    ) -> Runtime:
        """The queries over a stream, as `ec.Runtime`."""
        return Runtime.from_options(
            self.queries, self._options(settings), schema=schema, separate=separate, advise=advise
        )

    def _options(self, settings: Mapping[str, Any]) -> Options:
        if settings.get("concepts") is not None:
            raise OptionError("the cube has its own hierarchy", code="EC469", hint="give it to Cube(…, concepts=…)")
        return options(**{**settings, "concepts": self.concepts})
