"""Spark and the oracle give the same answers to random workloads, whose queries share passes, events and steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from random import Random
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import eventcube as ec
from eventcube.language.syntax import Query
from eventcube.options import options
from eventcube.plan.planned import plan_query
from eventcube.spark import slices
from eventcube.spark.passes import Keyed, Sliced, passes
from tests.differential.compare import Key, oracle_matches, read_settings
from tests.differential.workload import draw_workload
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Workload, to_arrow
from tests.oracle.text import with_text

EACH = 3
WAYS = ("keyed", "sliced", "mixed")


def workloads_of(way: str, seeds: range) -> Iterator[tuple[int, Workload]]:
    """Workloads whose events are spread that way."""
    for seed in seeds:
        case = draw_workload(Random(seed))
        # Events only, as results of several queries in one table are; Spark has the session's zone for all columns.
        queries = tuple(_plain(query) for query in case.queries[:6])
        events = [replace(e, zones={"ts": None, "t": "UTC"}) for e in case.events]
        case = Workload(queries, events, case.options)
        # Spark has no column of unsigned numbers.
        if not any("u" in e.attrs for e in events) and way_of(case) == way:
            yield seed, case


def _plain(query: Query) -> Query:
    return with_text(replace(query, returns=(), group_by=(), agg=(), having=()))


def named(case: Workload) -> dict[str, Query]:
    """The queries by name."""
    return {f"q{i}": query for i, query in enumerate(case.queries, 1)}


def way_of(case: Workload) -> str:
    """How Spark will spread the events of a workload."""
    chosen = options(**read_settings(case.options))
    schema = chosen.schema(to_arrow(case.events).schema)
    found = passes({name: plan_query(query, schema, chosen) for name, query in named(case).items()})
    if len(found) > 1:
        return "mixed"
    match found[0].distribution:
        case Keyed():
            return "keyed"
        case Sliced():
            return "sliced"
    return "whole"


@pytest.mark.filterwarnings("ignore::eventcube.errors.EventCubeWarning")
@pytest.mark.parametrize("way", WAYS)
def test_workloads_together(way: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_small(monkeypatch)
    found = [case for case, _ in zip(workloads_of(way, range(10_000)), range(EACH), strict=False)]
    assert sum(disagreements(spark, found).values()) > 0


@pytest.mark.filterwarnings("ignore::eventcube.errors.EventCubeWarning")
def test_each_query_has_a_result_of_its_own(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_small(monkeypatch)
    _, case = next(workloads_of("mixed", range(10_000)))
    frames = ec.match_all(spark.createDataFrame(to_arrow(case.events)), named(case), **read_settings(case.options))
    asked = [
        frame.select(F.lit(name).alias("name"), _answer([F.col(f"`{v}`.id") for v in _variables(case, name)]))
        for name, frame in frames.items()
    ]
    found = reduce(DataFrame.union, asked).collect()
    for name, query in named(case).items():
        answers = Counter(tuple(r["answer"]) for r in found if r["name"] == name)
        assert answers == Counter(oracle_matches(query, case.events, case.options)), query.text


def _variables(case: Workload, name: str) -> list[str]:
    return positive_variables(named(case)[name].pattern)


def _in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of one window each, so that even a few events lie in several."""
    monkeypatch.setattr(slices, "_WINDOWS", ((2**62, 1),))
    monkeypatch.setattr(slices, "_MIN_WIDTH", 1)
    monkeypatch.setattr("eventcube.spark.batch.partitions", lambda _: 2)


def disagreements(spark: SparkSession, cases: list[tuple[int, Workload]]) -> Counter[int]:
    """Ask Spark for the matches of workloads in one job, and compare; gives the number of matches for each seed."""
    found = reduce(DataFrame.union, [_asked(spark, seed, case) for seed, case in cases]).collect()
    by_query: dict[tuple[int, str], Counter[Key]] = {}
    for row in found:
        by_query.setdefault((row["seed"], row["query"]), Counter())[_key(row, dict(cases)[row["seed"]])] += 1
    matches: Counter[int] = Counter()
    for seed, case in cases:
        for name, query in named(case).items():
            expected = Counter(oracle_matches(query, case.events, case.options))
            assert by_query.get((seed, name), Counter()) == expected, f"seed {seed}, {name}: {query.text}"
            matches[seed] += expected.total()
    return matches


def _asked(spark: SparkSession, seed: int, case: Workload) -> DataFrame:
    """The matches of a workload as its seed, the query, start, end and the events' variables and ids."""
    matches = ec.match(spark.createDataFrame(to_arrow(case.events)), named(case), **read_settings(case.options))
    bound = F.transform("events", lambda e: F.struct(e["variable"], e["id"]))
    return matches.select(F.lit(seed).alias("seed"), "query", _answer([]), bound.alias("bound"))


def _answer(ids: list[Column]) -> Column:
    return F.array(F.unix_micros("start"), F.unix_micros("end"), *ids).alias("answer")


def _key(row: Any, case: Workload) -> Key:
    ids = dict(row["bound"])
    return (*row["answer"], *(ids.get(variable) for variable in _variables(case, row["query"])))
