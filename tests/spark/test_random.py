"""Spark, the engine in process and the oracle give the same answers to random questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import eventcube as ec
from eventcube.language.syntax import CountWindow
from eventcube.options import options
from eventcube.plan.planned import plan_query
from eventcube.spark import slices
from eventcube.spark.passes import Keyed, Sliced, passes
from tests.differential.compare import engine_matches, oracle_matches, read_settings
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Case, random_case, to_arrow

EACH = 16
TOGETHER = 8
WAYS = ("keyed", "slices behind", "slices ahead", "slices both ways", "count window, keyed", "one task")


def way_of(case: Case) -> str:
    """How Spark will spread the events of a case."""
    chosen = options(**read_settings(case.options))
    plan = plan_query(case.query, chosen.schema(to_arrow(case.events).schema), chosen)
    match passes({"q": plan})[0].distribution:
        case Keyed():
            return "count window, keyed" if isinstance(case.query.within, CountWindow) else "keyed"
        case Sliced(_, behind, ahead):
            return "slices both ways" if behind and ahead else "slices behind" if behind else "slices ahead"
    return "one task"


def cases_of(way: str) -> Iterator[tuple[int, Case]]:
    """Cases that are spread that way, most of them with matches."""
    found = empty = 0
    for seed in range(100_000):
        case = random_case(seed)
        # Spark has the zone of the session for all columns that have one.
        case = case._replace(events=[replace(e, zones={"ts": None, "t": "UTC"}) for e in case.events])
        if case.query.limit is not None or way_of(case) != way:
            continue
        some = bool(oracle_matches(*case))
        if not some and empty >= EACH // 4:
            continue
        empty += not some
        found += 1
        yield seed, case
        if found == EACH:
            return
    raise AssertionError(f"too few cases: {way}")


@pytest.mark.filterwarnings("ignore::eventcube.errors.EventCubeWarning")
@pytest.mark.parametrize("way", WAYS)
def test_spark_agrees_with_engine_and_oracle(way: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # Slices of one window each, so that even a few events lie in several.
    monkeypatch.setattr(slices, "_WINDOWS", ((2**62, 1),))
    monkeypatch.setattr(slices, "_MIN_WIDTH", 1)
    monkeypatch.setattr("eventcube.spark.batch.partitions", lambda _: 2)
    cases = list(cases_of(way))
    for at in range(0, len(cases), TOGETHER):
        group = cases[at : at + TOGETHER]
        found = reduce(DataFrame.union, [_asked(spark, seed, case) for seed, case in group]).collect()
        for seed, case in group:
            answers = Counter(tuple(r["answer"]) for r in found if r["seed"] == seed)
            expected = Counter(oracle_matches(*case))
            assert Counter(engine_matches(*case)) == expected
            assert answers == expected, f"seed {seed}: {case.query.text}"


def _asked(spark: SparkSession, seed: int, case: Case) -> DataFrame:
    """The matches of a case as its seed, start, end and the ids of the events."""
    matches = ec.match(spark.createDataFrame(to_arrow(case.events)), case.query, **read_settings(case.options))
    times: list[Column] = [F.unix_micros(n) for n in ("start", "end")]
    ids = [F.col(f"`{v}`.id") for v in positive_variables(case.query.pattern)]
    return matches.select(F.lit(seed).alias("seed"), F.array(*times, *ids).alias("answer"))
