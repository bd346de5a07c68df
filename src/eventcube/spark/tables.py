"""Tables and views that queries name with FROM, read from a session's catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from eventcube.errors import BindError, Diagnostic, InputError, OptionError, Span, did_you_mean
from eventcube.language.identifiers import read_name, write_name
from eventcube.language.syntax import Query
from eventcube.language.tokens import text_to_tokens, tokens_to_clauses
from eventcube.spark.columns import quoted

_UNKNOWN = "TABLE_OR_VIEW_NOT_FOUND"


def one_table(events: Any, queries: Mapping[str, Query]) -> DataFrame:
    """The events themselves, or if they are a session, the table that all the queries name with FROM."""
    if isinstance(events, DataFrame):
        return events
    # Spark Connect has another class of the same name.
    if not any(kind.__name__ == SparkSession.__name__ for kind in type(events).__mro__):
        raise InputError(
            f"cannot read events from {type(events).__module__}.{type(events).__qualname__}",
            code="EC307",
            hint="give a Spark DataFrame, or a SparkSession and a query with FROM",
        )
    tables = {name: _named_table(name, query) for name, query in queries.items()}
    if len(set(tables.values())) > 1:
        shown = ", ".join(sorted({".".join(map(write_name, parts)) for parts in tables.values()}))
        raise OptionError(
            f"the queries name different tables ({shown}), and one result has one",
            code="EC435",
            hint="ec.match_all gives each query a result of its own, from the table that it names",
        )
    first = next(iter(queries.values()))
    return _read(events, tables[next(iter(tables))], first)


def _named_table(name: str, query: Query) -> tuple[str, ...]:
    """The parts of the name after FROM."""
    if query.from_ is None:
        raise OptionError(
            f"query {name!r} names no table, and events were given as a session",
            code="EC435",
            hint="add FROM and the name of a table or view, or give a DataFrame",
        )
    written, _ = _place(query)
    return written or tuple(query.from_.split("."))


def _place(query: Query) -> tuple[tuple[str, ...], Span | None]:
    """The parts of the name after FROM as they are written, and where."""
    tokens, _ = text_to_tokens(query.text)
    for clause in tokens_to_clauses(tokens, len(query.text)):
        if clause.tokens[0].type == "FROM":
            names = [t for t in clause.tokens[1:] if t.type not in ("DOT", "SEMICOLON")]
            span = Span(names[0].start_pos or 0, names[-1].end_pos or 0)
            return tuple(read_name(t.value) for t in names), span
    return (), None


def _read(session: SparkSession, parts: tuple[str, ...], query: Query) -> DataFrame:
    try:
        frame = session.table(".".join(map(quoted, parts)))
        # Spark Connect looks the table up only now.
        _ = frame.schema
    except AnalysisException as error:
        if error.getCondition() == _UNKNOWN:
            message = f"there is no table or view {'.'.join(parts)!r} in the session"
            hint = did_you_mean(parts[-1], _tables(session, parts[:-1]), "the session") or "it has no tables"
        else:
            message, hint = f"cannot read the table {'.'.join(parts)!r}: {str(error).splitlines()[0]}", None
        diagnostic = Diagnostic("EC336", message, _place(query)[1], hint)
        raise BindError([diagnostic], query.text, query.source) from None
    return frame


def _tables(session: SparkSession, database: tuple[str, ...]) -> list[str]:
    """The tables and views that the catalog lists."""
    try:
        return [t.name for t in session.catalog.listTables(".".join(map(quoted, database)) or None)]
    except PySparkException:
        return [t.name for t in session.catalog.listTables()] if database else []
