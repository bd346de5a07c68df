"""The flat queries that `explain` shows find together what the nested query finds, each match by just one of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.differential.compare import Key, engine_batches, oracle_matches
from tests.differential.modes import draw_nested
from tests.oracle.brute import Event, positive_variables
from tests.oracle.generate import Case, Options, components, to_arrow
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text

from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Component, Not, Pattern, Query
from eventcube.options import options
from eventcube.plan.explain import explain

# Of each kind; a seed is a case.
CASES = max(60, int(os.environ.get("FUZZ_EXAMPLES", "0")))


class _Maker:
    """Draws texts of queries that have a flat form: conditions inside a negation tie its events to outer ones only."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.count = rng, 0
        self.types = rng.choice(["ABCD", "ABC", "AB"])
        self.keyed = chance(rng, 20)

    def query(self) -> str:
        outer = [self._event() for _ in range(self.rng.choice([1, 2, 2, 2, 3]))]
        parts = [self._negated(outer)] if chance(self.rng, 15) else []
        for i, (type_, name) in enumerate(outer):
            parts.append(f"{type_} {name}" if self.keyed else self._positive(type_, name))
            count = self.rng.choice([0, 1, 1, 1, 1, 2] if i < len(outer) - 1 else [0, 0, 0, 1])
            parts += [self._negated(outer) for _ in range(count)]
        tied = [" = ".join(f"{name}.k" for _, name in outer)] if self.keyed and len(outer) > 1 else []
        within = self.rng.choice([" WITHIN 8 ms", " WITHIN 12 ms", " WITHIN 9 events", ""])
        return f"PATTERN {'AND' if chance(self.rng, 5) else 'SEQ'}({', '.join([*parts, *tied])}){within}"

    def _event(self) -> tuple[str, str]:
        self.count += 1
        return self.rng.choice(self.types), f"v{self.count}"

    def _positive(self, type_: str, name: str) -> str:
        one, two = f"{type_} {name}", " ".join(self._event())
        shapes = [f"SEQ({one}, {two})", f"AND({one}, {two})", f"SEQ({one}, !{two})", f"AND({one}, AND({two}))"]
        shapes += [f"OR({one}, {two}, {name}.x > 0)", f"AND({one}, SEQ(!D d{name}, {two}))"]
        return self.rng.choice(shapes) if chance(self.rng, 35) else one

    def _negated(self, outer: list[tuple[str, str]]) -> str:
        kind = self.rng.choice(["SEQ", "SEQ", "SEQ", "SEQ", "AND", "OR"])
        events = [self._event() for _ in range(self.rng.choice([1, 2, 2, 2, 2, 3]))]
        quals = [self._qual(name, outer) for _, name in events if chance(self.rng, 40)]
        if self.keyed:
            names = [outer[0][1], *(name for _, name in events)]
            quals.append(" = ".join(f"{n}.k" for n in self.rng.sample(names, len(names))))
        return f"!{kind}({', '.join([*(f'{t} {n}' for t, n in events), *quals])})"

    def _qual(self, name: str, outer: list[tuple[str, str]]) -> str:
        other = f"{self.rng.choice(outer)[1]}.x" if chance(self.rng, 50) else self.rng.choice("012")
        return f"{name}.x {self.rng.choice(['=', '<=', '!='])} {other}"


def _draw_made(rng: Random) -> Case:
    maker = _Maker(rng)
    return _with_streams(rng, parse(maker.query()), maker.types, keyed=maker.keyed)


def _with_streams(rng: Random, query: Query, types: str, *, keyed: bool = False) -> Case:
    """The query and many short streams, by a key; where conditions speak of the key it is one stream."""
    wanted = [c.type for c in components(query.pattern)]
    step = rng.choice([[1], [0, 1, 1], [0, 0, 1]])
    events: list[Event] = []
    for key in range(1 if keyed else 25):
        clock = 0
        for type_ in (t for w in wanted for t in (w, *rng.choices(types, k=rng.choice([0, 1, 2, 2])))):
            clock += rng.choice(step)
            attrs = {"x": rng.choice([0, 1, 2, None]), "k": rng.choice([1, 1, 1, 2]) if keyed else key}
            events.append(Event(len(events), type_, clock * TICK, None, None if keyed else key, attrs))
    return Case(query, events, Options(partitioned=not keyed, in_order=False))


def _flat_queries(case: Case, strategy: Any) -> tuple[list[str], bool]:
    """The queries that are shown, and whether they are called flat."""
    given = case.options
    chosen = options(
        type="type" if given.typed else None,
        order_by="o" if given.ordered else None,
        partition_by="k" if given.partitioned else None,
        concepts=_children(given),
        strategy=strategy,
    )
    text = explain(case.query, to_arrow(case.events).schema, chosen)
    section = re.search(r"^(flat|rewritten) queries\n((?:  .*\n)+)", text, re.MULTILINE)
    if section is None:
        return [], False
    shown = [line.strip() for line in section[2].splitlines() if line.startswith("  PATTERN ")]
    return ([] if "… and more" in section[2] else shown), section[1] == "flat"


def _children(options: Options) -> dict[str, list[str]] | None:
    parents = options.concepts
    return {p: [c for c, own in parents.items() if own == p] for p in parents.values()} or None


def _found(query: Query, case: Case) -> Counter[Key]:
    """The matches of a shown query, by what the nested query binds."""
    found: Counter[Key] = Counter()
    variables = positive_variables(case.query.pattern)
    for batch in engine_batches(query, case.events, case.options):
        columns = [batch.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
        assert batch.schema.names == ["start", "end", *variables]
        for column in map(batch.column, variables):
            absent = pa.types.is_null(column.type)
            columns.append([None] * len(column) if absent else pc.struct_field(column, "id").to_pylist())
        found.update(zip(*columns, strict=True))
    return found


def _is_flat(pattern: Pattern) -> bool:
    inner = [p.pattern if isinstance(p, Not) else p for p in getattr(pattern, "parts", ())]
    return all(isinstance(p, Component) for p in inner)


def _check(case: Case, strategy: Any) -> None:
    try:
        shown, flat = _flat_queries(case, strategy)
    except OptionError as error:
        if error.code != "EC418":
            raise
        return
    if not shown:
        return
    queries = [parse(text) for text in shown]
    assert all(_is_flat(query.pattern) for query in queries) == flat
    expected = Counter(oracle_matches(case.query, case.events, case.options))
    found = [_found(query, case) for query in queries]
    together = sum(found, Counter())
    orders = [(e.key, e.ts, e.order) for e in case.events]
    if len(set(orders)) == len(orders):
        assert together == expected, shown
    # Several last events of one time give a match several times: it is still the match of one query only.
    assert together.keys() == expected.keys(), shown
    assert all(sum(key in own for own in found) == 1 for key in together), shown


@pytest.mark.parametrize("start", range(3))
def test_flat_queries_find_the_same(start: int) -> None:
    for seed in range(start, 3 * CASES, 3):
        rng = Random(seed)
        case = _draw_made(rng)
        names = sorted(set(re.findall(r"\bv\d+\b", query_to_text(case.query))))
        strategy = {name: "rewrite" for name in names if chance(rng, 30)} if chance(rng, 15) else "rewrite"
        _check(case, strategy)


def test_flat_queries_of_any_query_find_the_same() -> None:
    for seed in range(CASES):
        case = draw_nested(Random(seed))
        _check(case._replace(query=replace(case.query, limit=None)), "rewrite")


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, !SEQ(B b, C c, b.x = a.x, c.x > 0), D d)",
        "SEQ(A a, !AND(B b, C c), !SEQ(B f, C g), D d)",
        "SEQ(A a, !AND(B b, C c), D d)",
        "SEQ(A a, !SEQ(B b, C c), !B f, D d)",
        "SEQ(A a, !SEQ(B b, C c), AND(D d, SEQ(!B e, C f)))",
        "SEQ(AND(D d, SEQ(A a, !B e)), !SEQ(B b, C c), D f)",
        "SEQ(A a, OR(B b, SEQ(C c, D d)), A e, a.x = b.x = e.x)",
        "SEQ(A a, !SEQ(B b, C c, b.x = d.x), OR(C d, D e))",
        "SEQ(A a, !SEQ(B b, C c), D d, !SEQ(B e, C f))",
        "SEQ(A a, AND(B b, SEQ(C c, D d)), A e)",
    ],
)
def test_flat_queries_of_these_find_the_same(pattern: str) -> None:
    for seed in range(6):
        _check(_with_streams(Random(seed), parse(f"PATTERN {pattern}"), "BBCCD"), "rewrite")
