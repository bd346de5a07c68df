"""The cheapest way to reach every node, against all ways there are and against networkx."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from eventcube.optimizer.arborescence import Edge, minimum_arborescence


def draw(rng: Random, most: int) -> tuple[int, list[Edge]]:
    """A graph whose nodes can all be reached from node 0."""
    nodes = rng.randint(1, most)
    edges = [(0, node, _cost(rng, 20)) for node in range(1, nodes)]
    for _ in range(rng.randint(0, 3 * nodes)):
        source, target = rng.randrange(nodes), rng.randrange(nodes)
        if target and source != target:
            edges.append((source, target, _cost(rng, 8)))
    rng.shuffle(edges)
    return nodes, edges


def _cost(rng: Random, most: int) -> float:
    return rng.choice([float(rng.randint(0, most)), rng.random() * most])


def reaches_all(nodes: int, edges: list[Edge], entering: tuple[int, ...]) -> bool:
    parents = {edges[edge][1]: edges[edge][0] for edge in entering}
    for node in range(1, nodes):
        for _ in range(nodes):
            node = parents.get(node, 0)
        if node:
            return False
    return True


def least_cost(nodes: int, edges: list[Edge]) -> float:
    """The cost of the cheapest arborescence, by trying all."""
    incoming = [[i for i, edge in enumerate(edges) if edge[1] == node] for node in range(1, nodes)]
    found = (way for way in itertools.product(*incoming) if reaches_all(nodes, edges, way))
    return min(sum(edges[edge][2] for edge in way) for way in found)


@pytest.mark.parametrize("seed", range(300))
def test_it_is_the_cheapest_of_all_ways(seed: int) -> None:
    nodes, edges = draw(Random(seed), 5)
    entering = minimum_arborescence(nodes, edges)
    assert entering[0] == -1
    assert [edges[edge][1] for edge in entering[1:]] == list(range(1, nodes))
    assert reaches_all(nodes, edges, tuple(entering[1:]))
    assert sum(edges[edge][2] for edge in entering[1:]) == pytest.approx(least_cost(nodes, edges))


@pytest.mark.parametrize("seed", range(20))
def test_it_costs_what_networkx_finds(seed: int) -> None:
    networkx = pytest.importorskip("networkx")
    nodes, edges = draw(Random(seed), 40)
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from(edges)
    expected = networkx.minimum_spanning_arborescence(graph).size("weight") if nodes > 1 else 0.0
    found = minimum_arborescence(nodes, edges)
    assert sum(edges[edge][2] for edge in found[1:]) == pytest.approx(expected)


def test_large_graphs_do_not_recurse() -> None:
    rng = Random(1)
    nodes = 3000
    edges = [(0, 1, 1.0)] + [(node, node + 1, rng.random()) for node in range(1, nodes - 1)]
    edges += [(node + 1, node, rng.random() / 2) for node in range(1, nodes - 1)]
    assert reaches_all(nodes, edges, tuple(minimum_arborescence(nodes, edges)[1:]))


def test_a_node_that_nothing_leads_to() -> None:
    with pytest.raises(ValueError, match="node 2 cannot be reached"):
        minimum_arborescence(3, [(0, 1, 1.0)])
