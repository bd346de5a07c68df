"""The `queries` argument of the API: parsed, named and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eventcube.engine.flat.strategy import check_flat_strategy
from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError, for_each
from eventcube.language.parse import parse
from eventcube.language.printer import print_query
from eventcube.language.syntax import Query
from eventcube.options import Options, invalid_argument
from eventcube.plan.parts import check_strategies
from eventcube.runtime.shared_result import check_result_columns

Queries = str | Query | Sequence[str | Query] | Mapping[str, str | Query]

# Settings, beside the limit, that must be the same to restore a state.
_SAVED_SETTINGS = ("time", "type", "partition_by", "order_by", "lateness", "time_unit")


def queries_by_name(queries: Queries) -> dict[str, Query]:
    """Queries, parsed, by name; those without one are called q1, q2, …"""
    if isinstance(queries, str | Query):
        return {"q1": _query(queries)}
    named = named_queries(queries)
    return for_each(named, lambda name: _query(named[name], name))


def named_queries(queries: Any) -> dict[str, Any]:
    """Several queries by name, as they are given."""
    if isinstance(queries, set | frozenset):
        raise invalid_argument("queries", queries, "a list or dict of queries, as the order of a set is not known")
    if hasattr(queries, "concept_drill_down"):
        raise OptionError(
            "a Cube is more than its queries: it has a hierarchy and settings, too",
            code="EC414",
            hint="ask it: cube.match(events), over a stream cube.match(events, lateness=…); or give cube.queries alone",
        )
    if not isinstance(queries, Iterable) or isinstance(queries, bytes | bytearray):
        raise invalid_argument("queries", queries, _QUERIES)
    named = dict(queries if isinstance(queries, Mapping) else ((f"q{i}", q) for i, q in enumerate(queries, 1)))
    for name in named:
        if not isinstance(name, str):
            raise invalid_argument("the name of a query", name, "a text")
        if not name.strip():
            raise OptionError("the name of a query is empty", code="EC413", hint="write, say, {'q1': 'PATTERN …'}")
        if _has_half_a_character(name):
            raise OptionError("the name of a query holds half a character", code="EC413", hint="write no surrogates")
    if not named:
        raise OptionError("there is no query", code="EC413", hint=f"give {_QUERIES}")
    return named


_QUERIES = "a query as text, or a list or dict of queries"


def _query(query: Any, source: str = "query") -> Query:
    if not isinstance(query, str | Query):
        raise invalid_argument("a query" if source == "query" else f"query {source!r}", query, "its text")
    if isinstance(query, str):
        if _has_half_a_character(query):
            raise OptionError("the query holds half a character", code="EC413", hint="write no surrogates")
        query = parse(query, source)
    assert isinstance(query, Query)
    check_result_columns(query)
    return query


def _has_half_a_character(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def check_options(queries: Mapping[str, Query], options: Options) -> None:
    """Refuse a limit on queries with AGG, `until` with either, and strategies that do not fit the queries."""
    for name, query in queries.items():
        if options.limit is not None and query.agg:
            raise OptionError(
                f"limit picks matches, but AGG of query {name!r} counts all of them",
                code="EC416",
                hint="leave limit out, or take the first rows of the result",
            )
        groups = bool(query.agg) and query.per is None
        if options.until is not None and (groups or query.limit is not None or options.limit is not None):
            raise OptionError(
                f"until gives the matches that a watermark decides, and query {name!r} has LIMIT or AGG, whose results "
                "are only final at the end",
                code="EC603",
                hint="leave until out, or LIMIT and AGG",
            )
    check_strategies(options.strategy, queries.values(), strategies())
    check_flat_strategy(options.flat_strategy)


def fingerprint_of(queries: Mapping[str, Query], options: Options) -> str:
    """The queries and settings that must be the same to go on from a saved state."""
    texts = [f"{name}: {print_query(query)}" for name, query in queries.items()]
    concepts = options.concepts
    parents = sorted(concepts.parents.items()) if concepts is not None else []
    settings = ", ".join(f"{name}={getattr(options, name)!r}" for name in _SAVED_SETTINGS)
    # Any strategy can continue from another's state; states of version 1 write it like this.
    fixed = f"Options({settings}, strategy=Ways(default='auto', parts={{}}), limit={options.limit!r})"
    return f"({texts!r}, {fixed}, {parents!r})"
