"""Random queries with aggregates that can be computed without making matches, against the oracle, or the matches made.

A pattern is a chain of components, some of them alternatives, or in any order, or in brackets, with negated components
anywhere; conditions are about one component each, or a key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from eventcube.engine.counting import decision, grouped, splits
from eventcube.engine.sinks import totals
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.optimizer import aggregates, choose
from eventcube.options import AUTO, COUNT, ENUMERATE
from tests.differential.compare import DisagreementError, draw_cut, engine_batches
from tests.differential.knobs import any_of
from tests.differential.rows import check_rows, shown
from tests.oracle.brute import Event
from tests.oracle.generate import Case, Options, draw_event, draw_options, draw_stream
from tests.oracle.patterns import CONCEPTS
from tests.oracle.quals import TICK, chance

_LEAVES = ("A", "B", "C", "D")
_CONDITIONS = ("{v}.x > 0", "{v}.y IS NOT NULL", "{v}.x IN (1, 2, -1)", "NOT {v}.b", "{v}.s < 'b'", "{v}.k = 1")
_NUMBERS = ("{v}.x", "{v}.y", "{v}.k", "{v}.x * 2 + {v}.y", "{v}.x / {v}.y")
_VALUES = (*_NUMBERS, "{v}.s", "{v}.b", "{v}.t", "{v}.ts", "UPPER({v}.s)", "COALESCE({v}.x, 5)")


class _Maker:
    """Makes the text of one query."""

    def __init__(self, rng: Random, types: Sequence[str]) -> None:
        self.rng, self.types, self.negated = rng, types, 0
        self.positive: list[str] = []
        # What all components agree on, which is that of a first one outside of all brackets.
        self.key = rng.choice(["k", "x", "s"]) if chance(rng, 35) else None

    def component(self, types: Sequence[str] | None = None) -> str:
        name = f"v{len(self.positive)}"
        self.positive.append(name)
        return f"{self.rng.choice(types or self.types)} {name}"

    def negation(self) -> str:
        self.negated += 1
        name = f"n{self.negated}"
        conditions = [f"{name}.{self.key} = v0.{self.key}"] if self.key else []
        if chance(self.rng, 25):
            conditions.append(self.rng.choice(_CONDITIONS).format(v=name))
        component = f"{self.rng.choice(self.types)} {name}"
        return f"!({', '.join([component, *conditions])})" if conditions else f"!{component}"

    def chain(self, length: int, depth: int, *, edges: bool) -> list[str]:
        """The parts of a SEQ; `edges`: negated ones at its ends, too."""
        parts = []
        for i in range(length):
            if (i or edges) and chance(self.rng, 30):
                parts += [self.negation() for _ in range(self.rng.choice([1, 1, 2]))]
            parts.append(self.component() if self.key and not self.positive else self.part(depth))
        if edges and chance(self.rng, 20):
            parts.append(self.negation())
        return parts

    def part(self, depth: int) -> str:
        match self.rng.randint(0, 9) if depth else 9:
            case 0:
                return f"OR({', '.join(self.alternative(depth - 1) for _ in range(self.rng.choice([2, 2, 3])))})"
            case 1:
                kinds = self.rng.sample(_LEAVES, self.rng.choice([2, 2, 3]))
                return f"AND({', '.join(self.component([kind]) for kind in kinds)})"
            case 2:
                return f"SEQ({', '.join(self.chain(self.rng.choice([1, 2]), depth - 1, edges=True))})"
            case 3:
                one, other = self.component(["A"]), self.component(["B"])
                between = [self.negation()] if chance(self.rng, 30) else []
                return f"AND(SEQ({', '.join([one, *between, other])}), {self.component(['C'])})"
            case _:
                return self.component()

    def alternative(self, depth: int) -> str:
        if chance(self.rng, 50):
            return self.part(depth)
        return f"SEQ({', '.join(self.chain(self.rng.choice([1, 2]), depth, edges=False))})"

    def query(self, options: Options) -> str:
        rng = self.rng
        pattern = f"SEQ({', '.join(self.chain(rng.choice([1, 2, 2, 3, 3, 4]), 2, edges=True))})"
        if chance(rng, 8):
            self.positive, self.key = [], None
            pattern = self.part(2)
        where = [rng.choice(_CONDITIONS).format(v=rng.choice(self.positive)) for _ in range(rng.choice([0, 0, 1, 2]))]
        if self.key:
            where += [f"v0.{self.key} = {name}.{self.key}" for name in self.positive[1:]]
        window = rng.choice(
            [f"{rng.choice([1, 3, 5, 8, 12]) * TICK} us"] * 3 + [f"{rng.choice([1, 2, 4, 6, 9])} events"] * 2 + [""]
        )
        clauses = [f"PATTERN {pattern}"]
        if where:
            clauses.append(f"WHERE {' AND '.join(where)}")
        if chance(rng, 10):
            clauses.append("PARTITION BY k")
        if window:
            clauses.append(f"WITHIN {window}")
        groups = [self.group(options, i) for i in range(rng.choice([0, 0, 1, 1, 2]))]
        if groups:
            clauses.append(f"GROUPBY {', '.join(groups)}")
        clauses.append(f"AGG {', '.join(self.aggregate(i) for i in range(rng.choice([1, 1, 2, 3])))}")
        if chance(rng, 15):
            clauses.append(f"HAVING COUNT(*) > {rng.choice([0, 1, 3])}")
        return " ".join(clauses)

    def group(self, options: Options, number: int) -> str:
        name = self.rng.choice(self.positive)
        if options.typed and chance(self.rng, 20):
            return f"{name} AS g{number}"
        if options.concepts and chance(self.rng, 30):
            return f"{name} AT LEVEL {self.rng.choice([1, 2])} AS g{number}"
        return f"{self.rng.choice(['{v}.x', '{v}.k', '{v}.s', '{v}.b', '{v}.x % 2']).format(v=name)} AS g{number}"

    def aggregate(self, number: int) -> str:
        rng, name = self.rng, self.rng.choice(self.positive)
        match rng.choice(["*", "*", "COUNT", "DISTINCT", "SUM", "SUM", "AVG", "MIN", "MAX"]):
            case "*":
                text = "COUNT(*)"
            case "SUM" | "AVG" | "COUNT" as function if len(self.positive) > 1 and chance(rng, 25):
                one, other = rng.sample(self.positive, 2)
                text = f"{function}({one}.ts - {other}.ts)"
            case "DISTINCT":
                text = f"COUNT(DISTINCT {rng.choice(_VALUES).format(v=name)})"
            case "SUM" | "AVG" as function:
                text = f"{function}({rng.choice(_NUMBERS).format(v=name)})"
            case function:
                text = f"{function}({rng.choice(_VALUES).format(v=name)})"
        return f"{text} AS a{number}"


def draw_totals(rng: Random) -> Case:
    """A query with aggregates that mostly can be computed without making matches, and some events."""
    options = draw_options(rng)
    types = ("A", "B", "C", "D", "P") if options.concepts else _LEAVES[: rng.choice([2, 3, 4, 4])]
    query = draw_query(rng, options, types)
    return Case(query, draw_stream(rng, options, query), options)


def draw_query(rng: Random, options: Options, types: Sequence[str]) -> Query:
    """A query over events of these types."""
    return parse(_Maker(rng, types).query(options))


def check_totals(case: Case, rng: Random) -> int:
    """Any batch cut and restarts against the oracle, counted or from matches."""
    cut = draw_cut(rng, len(case.events))
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 50)} if chance(rng, 50) else set()
    with either_way(rng):
        return check_rows(*case, cut, restarts, aggregates=rng.choice([AUTO, AUTO, COUNT, ENUMERATE]))


@contextmanager
def either_way(rng: Random) -> Iterator[None]:
    """Choose by chance to count or to make matches, which may be given up; few groups counted together, or many."""
    most = rng.choice([1, 3, 256, 256])
    with (
        patch.object(splits, "MOST_SPLITS", most),
        patch.object(decision, "MOST_SPLITS", most),
        patch.object(totals, "MOST_COMBINATIONS", rng.choice([1, 5, 1 << 20, 1 << 20])),
        patch.object(totals, "FEW_NUMBERS", rng.choice([0, 1 << 26, 1 << 26])),
        patch.object(grouped, "_ROOM", rng.choice([1, 99, 1 << 23])),
        patch.object(aggregates, "WEIGHING", rng.choice([0.0, 80_000.0])),
        patch.object(aggregates, "MAKE_CALL", -1e6),
        patch.object(aggregates, "MOST", rng.choice([1e-4, 1e-3, 1e9])),
        patch.object(choose, "HOLD_CALLS", rng.choice([0, 15])),
        patch.object(choose, "cheapest", any_of(rng)),
    ):
        yield


def draw_many(rng: Random) -> Case:
    """The same with more events than the oracle can look at."""
    case = draw_totals(rng)
    types = [*_LEAVES, *(CONCEPTS if case.options.concepts else ())]
    keys, orders = [1, 2, None], list(range(4))
    events = [
        draw_event(rng, case.options, rng.choice(types), rng.randint(0, 40) * TICK, keys, orders)
        for _ in range(rng.choice([40, 80, 120]))
    ]
    events.sort(key=lambda event: event.ts)
    return replace_events(case, [replace(event, id=i) for i, event in enumerate(events)])


def replace_events(case: Case, events: list[Event]) -> Case:
    """The case with other events."""
    return case._replace(events=events, options=replace(case.options, in_order=True, ordered=False))


def check_enumerated(case: Case, rng: Random) -> int:
    """As many as if all matches were made, counted by stages and in either way."""
    cut = draw_cut(rng, len(case.events))
    made = _rows(case, cut, aggregates=ENUMERATE)
    for way in (COUNT, AUTO):
        with either_way(rng):
            found = _rows(case, cut, aggregates=way)
        if found != made:
            raise DisagreementError(f"{way}: {case.query.text} {case.options} {cut}: {found - made} for {made - found}")
    return made.total()


def _rows(case: Case, cut: Sequence[int], **settings: Any) -> Counter[Any]:
    batches: list[pa.RecordBatch] = list(engine_batches(case.query, case.events, case.options, cut, **settings))
    return Counter(row for b in batches for row in zip(*map(shown, b.columns), strict=True))
