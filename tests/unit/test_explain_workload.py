"""`ec.explain` of several queries shows what they share: stacks, and the tree of their steps."""

from __future__ import annotations

import pyarrow as pa

import eventcube as ec

QUERIES = {
    "one": "PATTERN SEQ(A a, B b, C c) WITHIN 20 us AGG COUNT(*)",
    "two": "PATTERN SEQ(A x, B y, D z, x.v < z.v) WITHIN 20 us",
    "first": "PATTERN SEQ(A x, B y) WITHIN 20 us LIMIT 3",
    "trailing": "PATTERN SEQ(A a, !B b) WITHIN 1 ms",
}
COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string(), "v": pa.int64()})


def test_the_tree_of_several_queries() -> None:
    text = ec.explain(QUERIES, COLUMNS, type="type", aggregates="enumerate")
    assert text.partition("\n\n")[2].splitlines() == [
        "reads       ts, type, v, once for all queries",
        # Those of `trailing` see events of the next slice, too.
        "stacks      6 lists of events by type and own conditions, for 10 components",
        "  A: one.a, two.x, first.x",
        "  B: one.b, two.y, first.y",
        "  C: one.c",
        "  D: two.z",
        "  A: trailing.a",
        "  B: trailing.b",
        "steps of one, two, first: within 20 microseconds, reported at the last event",
        "  one:",
        "    bind c: C, each new event",
        "    bind b: B, up to 20 microseconds before c",
        "    bind a: A, up to 20 microseconds before c, before b",
        "  two:",
        "    bind z: D, each new event",
        "    bind y: B, up to 20 microseconds before z",
        "    bind x: A, up to 20 microseconds before z, before y, where x.v < z.v",
        "  first:",
        "    bind y: B, each new event",
        "    bind x: A, up to 20 microseconds before y",
        "  or from the first components on, where that should cost less",
        "    bind a: A, each event  [one, two]",
        "      bind b: B, up to 20 microseconds after a  [one, two]",
        "        one:",
        "          bind c: C, new, after b, up to 20 microseconds after a",
        "        two:",
        "          bind z: D, new, after y, up to 20 microseconds after x, where z.v > x.v",
        "steps of trailing: within 1 millisecond, reported once the window has closed",
        "  trailing:",
        "    bind a: A, each new event",
        "    remove if there is (b) up to 1 millisecond after a",
        "      bind b: B, there",
    ]


def test_equal_last_components_are_bound_once() -> None:
    queries = ["PATTERN SEQ(A a, B b, C c) WITHIN 9 us", "PATTERN SEQ(D d, B e, C f) WITHIN 9 us"]
    lines = ec.explain(queries, COLUMNS, type="type").splitlines()
    assert "  bind c: C, each new event  [q1, q2]" in lines
    assert "    bind b: B, up to 9 microseconds before c  [q1, q2]" in lines


def test_a_fixed_plan_needs_no_events() -> None:
    queries = {"wide": "PATTERN SEQ(A a, C c) WITHIN 9 us", "narrow": "PATTERN SEQ(A a, B b, C c) WITHIN 9 us"}
    fixed = ec.explain(queries, COLUMNS, type="type", sharing="top-down").splitlines()
    assert fixed[-2:] == ["choices     the same for all events", "  narrow: computed from wide (pattern-down)"]
    chosen = ec.explain(queries, COLUMNS, type="type").splitlines()
    assert chosen[-1] == "choices     by cost, as events come, among 2 ways to compute a query from others"
    assert "choices" not in ec.explain(queries, COLUMNS, type="type", sharing="independent")


def test_over_events_it_says_what_is_chosen() -> None:
    size = 20_000
    table = pa.table({"ts": range(size), "type": ["ABCD"[i % 4] for i in range(size)], "v": range(size)})
    text = ec.explain(QUERIES, table, type="type", aggregates="enumerate")
    assert "one, two: bound from their first components on; estimated" in text
    counted = ec.explain(QUERIES, table, type="type", analyze=True)
    assert "measured" in counted
    assert "candidates" in counted


def test_aggregates_without_matches_have_no_steps() -> None:
    text = ec.explain(QUERIES, COLUMNS, type="type")
    assert "aggregates  of one: without making matches, counted by stages" in text
    assert "steps of two, first:" in text
    assert "one:\n" not in text
