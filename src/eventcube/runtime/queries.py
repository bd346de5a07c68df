"""The `queries` argument of the API: parsed, named and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.options import Options, invalid_argument
from eventcube.plan.parts import check_strategies
from eventcube.runtime.shared_result import check_result_columns

Queries = str | Query | Sequence[str | Query] | Mapping[str, str | Query]


def queries_by_name(queries: Queries) -> dict[str, Query]:
    """Queries, parsed, by name; those without one are called q1, q2, …"""
    argument: Any = queries
    if isinstance(argument, str | Query):
        return {"q1": _query(argument)}
    if not isinstance(argument, Iterable) or isinstance(argument, bytes | bytearray):
        raise invalid_argument("queries", argument, _QUERIES)
    pairs = argument.items() if isinstance(argument, Mapping) else ((f"q{i}", q) for i, q in enumerate(argument, 1))
    parsed: dict[str, Query] = {}
    for name, query in pairs:
        if not isinstance(name, str):
            raise invalid_argument("the name of a query", name, "a text")
        if _has_half_a_character(name):
            raise OptionError("the name of a query holds half a character", code="EC413", hint="write no surrogates")
        parsed[name] = _query(query, name)
    if not parsed:
        raise OptionError("there is no query", code="EC413", hint=f"give {_QUERIES}")
    return parsed


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
    """Refuse a limit on queries with AGG, and strategies that do not fit the queries."""
    for name, query in queries.items():
        if options.limit is not None and query.agg:
            raise OptionError(
                f"limit picks matches, but AGG of query {name!r} counts all of them",
                code="EC416",
                hint="leave limit out, or take the first rows of the result",
            )
    check_strategies(options.strategy, queries.values(), strategies())
