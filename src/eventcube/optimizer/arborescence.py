"""The cheapest way to reach every node of a graph from its root: a minimum spanning arborescence.

The algorithm is that of Edmonds, with heaps of incoming edges that are merged where a cycle is contracted (Tarjan 1977,
Gabow et al. 1986): O(edges log nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# From a node, to a node, at a cost.
Edge = tuple[int, int, float]


class _Heap:
    """A leftist heap of edges by cost; `less` is what all costs in it are less than the edges' own."""

    __slots__ = ("cost", "edge", "left", "less", "rank", "right")

    def __init__(self, edge: int, cost: float) -> None:
        self.edge, self.cost, self.less, self.rank = edge, cost, 0.0, 1
        self.left: _Heap | None = None
        self.right: _Heap | None = None

    def push_down(self) -> None:
        if self.less:
            self.cost -= self.less
            for below in (self.left, self.right):
                if below is not None:
                    below.less += self.less
            self.less = 0.0


def _merged(one: _Heap | None, other: _Heap | None) -> _Heap | None:
    """Two heaps as one; iterative, as heaps of many edges are deep on their left."""
    path: list[_Heap] = []
    while one is not None and other is not None:
        one.push_down()
        other.push_down()
        # Of equal costs the first edge, so that the result does not depend on the order of merging.
        if (other.cost, other.edge) < (one.cost, one.edge):
            one, other = other, one
        path.append(one)
        one = one.right
    last = one if one is not None else other
    for heap in reversed(path):
        heap.right = last
        if heap.left is None or (heap.right is not None and heap.left.rank < heap.right.rank):
            heap.left, heap.right = heap.right, heap.left
        heap.rank = 1 + (0 if heap.right is None else heap.right.rank)
        last = heap
    return last


class _Contracted:
    """Which nodes are contracted into one, with a way back."""

    def __init__(self, nodes: int) -> None:
        self._parent = [-1] * nodes
        self._changes: list[tuple[int, int]] = []

    def find(self, node: int) -> int:
        while self._parent[node] >= 0:
            node = self._parent[node]
        return node

    @property
    def time(self) -> int:
        return len(self._changes)

    def join(self, one: int, other: int) -> bool:
        one, other = self.find(one), self.find(other)
        if one == other:
            return False
        if self._parent[one] > self._parent[other]:
            one, other = other, one
        self._changes += [(one, self._parent[one]), (other, self._parent[other])]
        self._parent[one] += self._parent[other]
        self._parent[other] = one
        return True

    def return_to(self, time: int) -> None:
        while len(self._changes) > time:
            node, parent = self._changes.pop()
            self._parent[node] = parent


@dataclass(slots=True)
class _Cycle:
    node: int
    time: int
    edges: list[int]


def minimum_arborescence(nodes: int, edges: Sequence[Edge], root: int = 0) -> list[int]:
    """For each node but the root the number of the edge by which it is reached, -1 for the root.

    Every node must be reachable from the root.
    """
    heaps: list[_Heap | None] = [None] * nodes
    for number, (_, target, cost) in enumerate(edges):
        heaps[target] = _merged(heaps[target], _Heap(number, cost))
    contracted = _Contracted(nodes)
    seen = [-1] * nodes
    seen[root] = root
    entering = [-1] * nodes
    cycles: list[_Cycle] = []
    for start in range(nodes):
        node, taken, path = start, list[int](), list[int]()
        while seen[node] < 0:
            heap = heaps[node]
            if heap is None:
                raise ValueError(f"node {node} cannot be reached")
            heap.push_down()
            taken.append(heap.edge)
            path.append(node)
            # Another edge costs what it costs more than this one.
            heap.less = heap.cost
            heap.push_down()
            heaps[node] = _merged(heap.left, heap.right)
            seen[node] = start
            node = contracted.find(edges[taken[-1]][0])
            if seen[node] == start:
                node = _contract(node, path, taken, heaps, contracted, cycles)
                seen[node] = -1
        for edge in taken:
            entering[contracted.find(edges[edge][1])] = edge
    for cycle in reversed(cycles):
        contracted.return_to(cycle.time)
        entered = entering[cycle.node]
        for edge in cycle.edges:
            entering[contracted.find(edges[edge][1])] = edge
        entering[contracted.find(edges[entered][1])] = entered
    entering[root] = -1
    return entering


def _contract(
    node: int,
    path: list[int],
    taken: list[int],
    heaps: list[_Heap | None],
    contracted: _Contracted,
    cycles: list[_Cycle],
) -> int:
    """Make one node of the cycle at the end of the path; gives that node."""
    time, heap, edges = contracted.time, None, list[int]()
    while True:
        last = path.pop()
        edges.append(taken.pop())
        heap = _merged(heap, heaps[last])
        if not contracted.join(node, last):
            break
    merged = contracted.find(node)
    heaps[merged] = heap
    cycles.append(_Cycle(merged, time, edges))
    return merged
