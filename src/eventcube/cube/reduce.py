"""Transitive reduction: the fewest edges from which the same nodes can be reached."""

from __future__ import annotations

from collections.abc import Sequence

from eventcube.plan.order import slots_in_mask


def groups_of(below: Sequence[int]) -> list[list[int]]:
    """The nodes in groups that reach each other, those that a group reaches before it.

    `below` has for each node the nodes that it points to, as a mask. Tarjan's algorithm, without recursion.

    >>> groups_of([0b010, 0b100, 0b010])
    [[1, 2], [0]]
    """
    groups: list[list[int]] = []
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for root in range(len(below)):
        todo = [(root, slots_in_mask(below[root]))] if root not in number else []
        while todo:
            node, rest = todo[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                stack.append(node)
                waiting.add(node)
            for other in rest:
                if other not in number:
                    todo.append((other, slots_in_mask(below[other])))
                    break
                if other in waiting:
                    lowest[node] = min(lowest[node], number[other])
            else:
                todo.pop()
                if todo:
                    lowest[todo[-1][0]] = min(lowest[todo[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    place = stack.index(node)
                    groups.append(sorted(stack[place:]))
                    waiting.difference_update(stack[place:])
                    del stack[place:]
    return groups


def reduced_edges(below: Sequence[int], groups: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The edges between groups, by their places in the list, that no path of other edges replaces.

    >>> reduced_edges([0b110, 0b100, 0], [[2], [1], [0]])
    [(1, 0), (2, 1)]
    """
    group_of = {node: place for place, group in enumerate(groups) for node in group}
    reached: list[int] = []
    edges: list[tuple[int, int]] = []
    for place, group in enumerate(groups):
        direct = 0
        for node in group:
            for other in slots_in_mask(below[node]):
                direct |= 1 << group_of[other]
        direct &= ~(1 << place)
        beyond = 0
        for other in slots_in_mask(direct):
            beyond |= reached[other]
        reached.append(direct | beyond)
        edges += [(place, other) for other in slots_in_mask(direct & ~beyond)]
    return edges
