"""The graph of a cube: its edges, how it is shown, and that the index of candidates misses no pair."""

from __future__ import annotations

import json
from itertools import permutations
from random import Random

import pytest
from tests.unit.cube.transit import CONCEPTS, QUERIES, bound

from eventcube.cube.candidates import candidate_pairs
from eventcube.cube.graph import CubeGraph
from eventcube.cube.reduce import groups_of, reduced_edges
from eventcube.cube.refinement import refinements
from eventcube.cube.shape import shape_of
from eventcube.plan.logical import LogicalQuery


def _graph(**queries: str) -> CubeGraph:
    return CubeGraph({name: bound(text) for name, text in queries.items()})


def _edges(graph: CubeGraph) -> dict[tuple[str, str], str]:
    return {(edge.coarser, edge.finer): edge.change.value for edge in graph.edges}


def test_the_edges_of_the_paper_are_reduced() -> None:
    assert _edges(_graph(**QUERIES)) == {
        ("q1", "q2"): "concept",
        ("q1", "q3"): "both",
        ("q2", "q5"): "both",
        ("q2", "q6"): "pattern",
        ("q3", "q4"): "pattern",
        ("q3", "q6"): "pattern",
        ("q4", "q7"): "concept",
    }


def test_pairs_have_all_relations() -> None:
    graph = _graph(**QUERIES)
    assert ("q7", "q1") in graph.pairs
    assert ("q7", "q3") in graph.pairs
    assert [r.slots for r in graph.pairs["q6", "q1"].refinements] == [(0, 3), (1, 3), (2, 3)]


def test_text() -> None:
    assert (
        str(_graph(**QUERIES))
        == """\
q1: SEQ(TX, OK)
  concept → q2: SEQ(D, T)
    both → q5: SEQ(DBusStation, TBusStation, THospital)
    pattern → q6: SEQ(G, A, D, T)
  both → q3: SEQ(G, A, T)
    pattern → q4: SEQ(G, !DBusStation, A, T)
      concept → q7: SEQ(G, !D, A, T)
    pattern → q6: SEQ(G, A, D, T)"""
    )


def test_a_query_with_two_parents_is_unfolded_once() -> None:
    graph = _graph(a="SEQ(D, A)", b="SEQ(A, T)", c="SEQ(D, A, T)", d="SEQ(D, A, T, G)")
    assert (
        str(graph)
        == """\
a: SEQ(D, A)
  pattern → c: SEQ(D, A, T)
    pattern → d: SEQ(D, A, T, G)
b: SEQ(A, T)
  pattern → c: SEQ(D, A, T) (see above)"""
    )


def test_equal_queries_make_no_circles() -> None:
    graph = _graph(a="SEQ(D x, T y)", b="SEQ(D, T)", fine="SEQ(D, A, T)", c="SEQ(SEQ(D), T)", coarse="SEQ(TX, T)")
    assert graph.groups == (("a", "b", "c"), ("fine",), ("coarse",))
    assert _edges(graph) == {("coarse", "a"): "concept", ("a", "fine"): "pattern"}
    assert (
        str(graph)
        == """\
coarse: SEQ(TX, T)
  concept → a = b = c: SEQ(D x, T y)
    pattern → fine: SEQ(D, A, T)"""
    )


def test_mermaid() -> None:
    graph = _graph(a="SEQ(D d, T t) WHERE d.s = '\"' AND d.x < 1", b="SEQ(D, T)", c="SEQ(D x, T y)")
    assert (
        graph.to_mermaid()
        == """\
flowchart TD
  n0["a: SEQ(D d, T t) WHERE d.s = '&quot;' AND d.x &lt; 1"]
  n1["b: SEQ(D, T)"]
  n2["c: SEQ(D x, T y)"]
  n1 -->|condition| n0
  n1 -.-|equal| n2
"""
    )


def test_json_names_the_variables_of_embeddings() -> None:
    content = json.loads(_graph(coarse="SEQ(D d, T t)", fine="SEQ(DHospital h, !A, T t)").to_json())
    assert [query["name"] for query in content["queries"]] == ["coarse", "fine"]
    assert content["equal"] == []
    assert content["edges"] == [
        {"coarser": "coarse", "finer": "fine", "change": "both", "embeddings": [{"d": "h", "t": "t"}]}
    ]


def test_html_and_repr() -> None:
    graph = _graph(**QUERIES)
    assert "<details" in graph._repr_html_()
    assert repr(graph) == "<CubeGraph: 7 queries, 12 pairs of which one refines the other>"


def test_long_queries_and_large_graphs_are_cut() -> None:
    graph = _graph(**{f"q{i}": f"SEQ(D d, T t) WHERE d.k = {i}" for i in range(600)})
    assert len(str(graph).splitlines()) == 501
    long = _graph(q="SEQ(" + ", ".join(f"D d{i}" for i in range(40)) + ")")
    assert len(str(long)) == len("q: ") + 100


def test_no_queries() -> None:
    assert str(_graph()) == "no queries"


def _random_query(rng: Random) -> LogicalQuery:
    def part(number: int) -> str:
        negated = "!" if rng.random() < 0.25 else ""
        return f"{negated}{rng.choice(['ANY', *CONCEPTS.names])} v{number}"

    parts = [part(i) for i in range(rng.randint(1, 4))]
    if rng.random() < 0.3:
        parts.append(f"OR({rng.choice(CONCEPTS.names)} o1, {rng.choice(CONCEPTS.names)} o2)")
    if all(text.startswith("!") for text in parts):
        parts.append("TX last")
    return bound(f"{rng.choice(['SEQ', 'SEQ', 'AND'])}({', '.join(parts)})" + rng.choice(["", " PARTITION BY k"]))


@pytest.mark.parametrize("seed", range(3))
def test_the_index_misses_no_pair(seed: int) -> None:
    rng = Random(seed)
    queries = [_random_query(rng) for _ in range(60)]
    shapes = [shape for query in queries if (shape := shape_of(query)) is not None]
    assert len(shapes) == len(queries)
    related = {(i, j) for i, j in permutations(range(len(queries)), 2) if refinements(queries[i], queries[j])}
    candidates = set(candidate_pairs(shapes))
    assert related <= candidates
    assert len(candidates) < len(queries) ** 2 / 4


def test_reduction_keeps_what_can_be_reached() -> None:
    rng = Random(7)
    for _ in range(200):
        count = rng.randint(1, 8)
        below = [sum(1 << j for j in range(count) if j != i and rng.random() < 0.3) for i in range(count)]
        groups = groups_of(below)
        edges = set(reduced_edges(below, groups))
        between = {
            (a, b)
            for a, one in enumerate(groups)
            for b, other in enumerate(groups)
            if a != b and _points(below, one, other)
        }
        assert edges <= between
        assert _reachable(edges) == _reachable(between)
        for edge in edges:
            assert edge not in _reachable(edges - {edge})


def _points(below: list[int], one: list[int], other: list[int]) -> bool:
    return any(below[i] >> j & 1 for i in one for j in other)


def _reachable(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    reached = set(edges)
    while more := {(a, d) for a, b in reached for c, d in edges if b == c} - reached:
        reached |= more
    return reached
