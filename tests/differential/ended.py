"""Groups by buckets of time and rows of events, most of which are final long before the input ends.

Each row comes once, in whatever batches, from a runtime that is restored anywhere or as a stream; in time zones, too,
close to where clocks change.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from eventcube.language.parse import parse
from eventcube.language.syntax import Attribute, CountWindow, Every, Item, Not, Query, Seq, TimeWindow, Variable
from tests.differential.streamed import check_streamed, gives_once
from tests.differential.workload import check_workload, draw_stream
from tests.oracle.brute import positive_variables
from tests.oracle.clauses import LENGTHS, ends_of, with_groups
from tests.oracle.generate import Case, Options, Workload, draw_options, draw_query
from tests.oracle.patterns import PatternMaker
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text, with_text
from tests.oracle.zoned import with_zones

# Lengths of buckets that end while the events of a case last.
SHORT = tuple(length for length in LENGTHS if length <= 11 * TICK)


def draw_ended(rng: Random) -> Workload:
    """One query, or a few that differ in their results, and a stream in which they match now and then."""
    options = draw_options(rng)
    first = _pattern(rng, options)
    queries = [_with_rows(rng, first, options) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    events = draw_stream(rng, options, queries)
    if events and chance(rng, 40):
        zoned = with_zones(rng, Case(first, events, options))
        events, queries = zoned.events, [_with_rows(rng, zoned.query, options)]
    return Workload(tuple(parse(query_to_text(query)) for query in queries), events, options)


def _pattern(rng: Random, options: Options) -> Query:
    window = TimeWindow(rng.choice([1, 1, 2, 3, 5]) * TICK) if chance(rng, 75) else CountWindow(rng.choice([2, 3, 5]))
    if chance(rng, 40):
        return replace(draw_query(rng, options), within=window, limit=None)
    maker = PatternMaker(rng, ("A", "B", "P") if options.concepts else ("A", "B"), components=4)
    parts = [maker.component() for _ in range(rng.choice([1, 2, 2, 3]))]
    negated = [Not(maker.component())] if chance(rng, 40) else []
    place = rng.randint(0, len(parts))
    return Query(Seq((*parts[:place], *negated, *parts[place:])), within=window)


def _with_rows(rng: Random, query: Query, options: Options) -> Query:
    """The query with AGG, and PER or a bucket of the time."""
    found = with_groups(rng, query, options)
    if (ends := ends_of(query)) and chance(rng, 40):
        # A condition on what GROUPBY had cannot stay.
        having = found.having if found.per is not None else ()
        return with_text(replace(found, group_by=(), per=Variable(rng.choice(ends)), having=having))
    having = () if found.per is not None else found.having
    every = Every(Attribute(rng.choice(positive_variables(query.pattern)), "ts"), rng.choice(SHORT))
    group_by = (Item(every, "bucket"), *found.group_by)
    return with_text(replace(found, group_by=group_by, per=None, having=having))


def check_ended(case: Workload, rng: Random) -> int:
    """Each query gives every row once; the number of rows."""
    if not case.events:
        return 0
    if chance(rng, 50):
        query = case.queries[0]
        query = query if gives_once(query) else parse(query_to_text(replace(query, having=())))
        return check_streamed(case._replace(queries=(query,)), rng)
    return check_workload(case, rng)
