"""Answers to the same question from eventcube and from DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

import eventcube as ec

SHOWN_ROWS = 3


def ask(events: pa.Table, query: str, **settings: Any) -> pd.DataFrame:
    """The columns that a query returns, without `start` and `end`, sorted."""
    result = ec.match(events, query, **settings)
    names = [name for name in result.column_names if name not in ("start", "end")]
    return _sorted(result.select(names).to_pylist(), names)


def ask_sql(tables: Mapping[str, pa.Table], sql: str) -> pd.DataFrame:
    """The rows of a SQL statement over these tables, sorted."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        result = connection.execute(sql)
        names = [column[0] for column in result.description]
        return _sorted([dict(zip(names, row, strict=True)) for row in result.fetchall()], names)


def rows(answer: pd.DataFrame) -> Counter[tuple[Any, ...]]:
    """The rows of an answer, each with how often it is there."""
    return Counter(answer.itertuples(index=False, name=None))


def shown(answer: pd.DataFrame) -> str:
    """An answer as the pages show it."""
    count = f"{len(answer)} row{'' if len(answer) == 1 else 's'}"
    return f"{count}\n{answer.head(SHOWN_ROWS).to_string(index=False)}\n"


def _sorted(found: list[dict[str, Any]], names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(found, columns=names).sort_values(names, ignore_index=True)
