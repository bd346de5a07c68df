"""Counts at every level: random queries over random hierarchies, against the oracle, and each cell asked by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from eventcube.cube.levels import levels_queries
from eventcube.engine import levels
from eventcube.language.syntax import Component, Levels, Query
from eventcube.nodes import transform
from eventcube.options import AUTO, COUNT, ENUMERATE
from tests.differential.compare import DisagreementError, draw_cut, engine_batches
from tests.differential.rows import compare_rows, shown
from tests.differential.totals import draw_query, either_way
from tests.oracle.generate import Case, Options, draw_options, draw_stream
from tests.oracle.patterns import LEAVES
from tests.oracle.quals import chance
from tests.oracle.text import with_text

_CONCEPTS = ("P", "Q", "R")


def draw_hierarchy(rng: Random) -> dict[str, str]:
    """Each type with the one above it; types of events stand above others, too."""
    names = [*LEAVES, *_CONCEPTS[: rng.choice([1, 2, 3])]]
    rng.shuffle(names)
    return {name: rng.choice(names[:i]) for i, name in enumerate(names) if i and chance(rng, 75)}


def draw_levels(rng: Random) -> Case:
    """A query whose groups are cells, and some events."""
    options = replace(draw_options(rng), typed=True, concepts=draw_hierarchy(rng))
    types = [*LEAVES, *{*options.concepts.values()} - {*LEAVES}]
    query = draw_query(rng, options, types)
    if chance(rng, 20):
        query = replace(query, agg=(), having=(), group_by=())
    query = with_text(levels_queries({"q": query})["q"])
    return Case(query, draw_stream(rng, options, query), options)


def check_levels(case: Case, rng: Random) -> int:
    """Any batch cut and restarts against the oracle, and some cells against their own queries."""
    query, events, options = case
    cut = draw_cut(rng, len(events))
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 50)} if chance(rng, 50) else set()
    with (
        either_way(rng),
        patch.object(levels, "_PIECE_ROWS", rng.choice([1, 3, 1 << 16])),
    ):
        chosen: Any = {"aggregates": rng.choice([AUTO, AUTO, COUNT, ENUMERATE])}
        batches = list(engine_batches(query, events, options, cut, restarts, **chosen))
        cells = compare_rows(query, events, options, batches, cut, restarts)
        _check_alone(case, batches, rng)
    return cells


def _check_alone(case: Case, batches: Sequence[pa.RecordBatch], rng: Random) -> None:
    """A query with the types of a cell has the keys and aggregates of all cells with these types."""
    query, events, options = case
    drilled = [item.value.name for item in query.group_by if isinstance(item.value, Levels)]
    rows = [row for batch in batches for row in batch.to_pylist() if _are_totals(row, drilled, options)]
    for chosen in rng.sample(rows, min(len(rows), 2)):
        cell = {column: chosen[column] for name in drilled for column in (name, f"{name}_level")}
        alone = _with_types(query, {name: chosen[name] for name in drilled})
        found, expected = _rows(batches, cell), _rows(list(engine_batches(alone, events, options)), {})
        if found != expected:
            raise DisagreementError(f"{query.text} {options}: {cell} has {found}, {alone.text} {expected}")


def _are_totals(row: Mapping[str, Any], drilled: Sequence[str], options: Options) -> bool:
    return all(row[name] is not None and row[f"{name}_level"] == _level(row[name], options) for name in drilled)


def _level(type_: str, options: Options) -> int:
    return 1 + _level(options.concepts[type_], options) if type_ in options.concepts else 1


def _with_types(query: Query, types: Mapping[str, str]) -> Query:
    """The query for these types of its components, without levels."""

    def change(node: object) -> object:
        return replace(node, type=types[node.name]) if isinstance(node, Component) and node.name in types else node

    items = tuple(item for item in query.group_by if not isinstance(item.value, Levels))
    return with_text(replace(query, pattern=transform(query.pattern, change), group_by=items))


def _rows(batches: Sequence[pa.RecordBatch], cell: Mapping[str, Any]) -> Counter[Any]:
    """The rows of a cell, without its types and levels."""
    found: Counter[Any] = Counter()
    for batch in batches:
        kept = [all(row[column] == value for column, value in cell.items()) for row in batch.to_pylist()]
        columns = [shown(batch.column(name)) for name in batch.schema.names if name not in cell]
        found.update(row for row, keep in zip(zip(*columns, strict=True), kept, strict=True) if keep)
    return found
