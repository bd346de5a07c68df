"""The tree of steps of several programs: equal leading steps are one node, and its results flow into every branch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from eventcube.nodes import walk
from eventcube.options import ITERATIVE
from eventcube.plan.steps import Bind, BindClusters, Nested, Program, Reject, Step
from eventcube.plan.workload import StackKey

# Slots that a step binds, in keys of steps: whatever their numbers are.
_NEW = 1 << 40
# Fields with slots, and fields that are only for people.
_SLOTS = frozenset({"slots", "distinct", "last", "outer", "guard", "optional"})
_TEXTS = frozenset({"text", "name", "region"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a query goes on by itself: its remaining steps, and its slot for each slot of the tree that is bound."""

    query: str
    slots: Mapping[int, int]
    rest: Program
    delta: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A step that several queries have in common, in slots of the tree."""

    step: Step
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]

    def all_leaves(self) -> Iterator[Leaf]:
        """The leaves of the node and of those below it."""
        yield from self.leaves
        for node in self.nodes:
            yield from node.all_leaves()


@dataclass(frozen=True, slots=True)
class StepTree:
    """The common steps of programs; `leaves` have none. `stacks` has the stack of each slot."""

    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    stacks: tuple[StackKey, ...]

    def walk(self) -> Iterator[Node]:
        """All nodes, each before those below it."""
        todo = list(reversed(self.nodes))
        while todo:
            node = todo.pop()
            yield node
            todo += reversed(node.nodes)


@dataclass(frozen=True, slots=True)
class Branch:
    """A program that may share its first steps, at most `most` of them; `stacks` has the stack of each slot.

    Some slots may be bound before: `bound` has the slot of the tree for each. A query can have several programs, of
    which `delta` is the number.
    """

    query: str
    program: Program
    stacks: tuple[StackKey, ...]
    most: int
    bound: Mapping[int, int] = field(default_factory=dict)
    delta: int = 0


def shareable(program: Program, *, counted: bool) -> int:
    """How many leading steps of a program can be shared: none that keeps results, nor a last one that only counts."""
    kept = next((i for i, step in enumerate(program) if _keeps_results(step)), len(program))
    return max(0, min(kept, len(program) - counted))


def _keeps_results(step: Step) -> bool:
    if isinstance(step, BindClusters):
        # Its clusters are known to the steps that follow in the same program.
        return True
    if isinstance(step, Bind):
        # It holds no other steps.
        return False
    return any(isinstance(node, Nested | Reject) and node.strategy != ITERATIVE for node in walk(step))


def step_tree(branches: Iterable[Branch], bound: Sequence[StackKey] = (), *, runs: bool = True) -> StepTree:
    """The tree of some programs that see the events alike; `bound` has the stacks of slots that are bound before.

    Unless it `runs`, its steps are those of one of the programs, in slots of that one.
    """
    grower = _Grower(bound, runs=runs)
    nodes, leaves = grower.grow([(branch, dict(branch.bound)) for branch in branches], 0)
    return StepTree(nodes, leaves, tuple(grower.stacks))


class _Grower:
    def __init__(self, bound: Sequence[StackKey], *, runs: bool) -> None:
        self.stacks: list[StackKey] = [*bound]
        self._ids = itertools.count(1)
        self._runs = runs

    def grow(
        self, members: list[tuple[Branch, dict[int, int]]], depth: int
    ) -> tuple[tuple[Node, ...], tuple[Leaf, ...]]:
        """What follows for programs whose first steps are the same; each comes with its slots as slots of the tree."""
        leaves: list[Leaf] = []
        groups: dict[object, list[tuple[Branch, dict[int, int], list[int]]]] = {}
        for branch, known in members:
            if depth == branch.most or len(members) == 1:
                leaves.append(self._leaf(branch, known, depth))
            else:
                key, new = _key(branch, known, depth)
                groups.setdefault(key, []).append((branch, known, new))
        nodes: list[Node] = []
        for group in groups.values():
            if len(group) == 1:
                leaves.append(self._leaf(group[0][0], group[0][1], depth))
                continue
            branch, known, new = group[0]
            first = len(self.stacks)
            self.stacks += [branch.stacks[slot] for slot in new]
            followers = [
                (other, {**slots, **{slot: first + i for i, slot in enumerate(bound)}}) for other, slots, bound in group
            ]
            step = branch.program[depth]
            if self._runs:
                step = _Relabel(followers[0][1].__getitem__, self._ids).node(step)
            below, ends = self.grow(followers, depth + 1)
            nodes.append(Node(step, below, ends))
        return tuple(nodes), tuple(leaves)

    def _leaf(self, branch: Branch, known: Mapping[int, int], depth: int) -> Leaf:
        slots = {tree: slot for slot, tree in known.items()} if self._runs else {}
        return Leaf(branch.query, slots, branch.program[depth:], branch.delta)


def _key(branch: Branch, known: Mapping[int, int], depth: int) -> tuple[object, list[int]]:
    """What makes a step equal to others, and the slots that it binds, in the order of their mention."""
    new: dict[int, int] = {}

    def number(slot: int) -> int:
        return known[slot] if slot in known else _NEW + new.setdefault(slot, len(new))

    step = branch.program[depth]
    if isinstance(step, Bind) and step.is_plain:
        key: object = _plain_key(step, number)
    else:
        key = without_names(step, number)
    return (key, tuple(branch.stacks[slot] for slot in new)), list(new)


def _plain_key(bind: Bind, number: Callable[[int], int]) -> object:
    """The same of a join without conditions, which most are: slots in the order of their mention, and no copies."""
    slot = number(bind.slot)
    bounds = [
        bound and (bound.term, tuple(map(number, bound.slots)), bound.optional)
        for bound in (bind.lower, bind.upper, *(fence.bound for fence in bind.fences))
    ]
    fences = [(number(fence.slot), fence.new_is_earlier) for fence in bind.fences]
    return Bind, slot, tuple(bounds), bind.states, tuple(fences), bind.latest


def without_names(node: Any, number: Callable[[int], int]) -> Any:
    """A step, a form or an expression in other slots, without what is only for people."""
    return _Relabel(number, None).node(node)


class _Relabel:
    """Steps with other slots. With ids, steps are numbered by them; without, what is only for people is left out."""

    def __init__(self, slot: Any, ids: Iterator[int] | None) -> None:
        self._slot, self._ids = slot, ids
        self._known: dict[int, Any] = {}

    def node(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(self.node(part) for part in node)
        names = _fields_of(type(node))
        if not names:
            return node
        if id(node) not in self._known:
            changed = {name: self._field(name, getattr(node, name)) for name in names}
            if isinstance(node, Step):
                changed["id"] = 0 if self._ids is None else next(self._ids)
            self._known[id(node)] = replace(node, **changed)
        return self._known[id(node)]

    def _field(self, name: str, value: Any) -> Any:
        if name == "slot":
            return self._slot(value)
        if name == "pairs":
            return tuple((self._slot(one), self._slot(other)) for one, other in value)
        if name in _SLOTS and isinstance(value, tuple):
            return tuple(map(self._slot, value))
        if name in _SLOTS and isinstance(value, frozenset):
            return frozenset(map(self._slot, sorted(value)))
        if name in _TEXTS and self._ids is None:
            return None
        return self.node(value)


_field_names: dict[type, tuple[str, ...]] = {}
_PACKAGES = ("eventcube.plan.steps", "eventcube.plan.expressions", "eventcube.plan.logical")


def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a step, a form, an expression, or a part of one."""
    if kind not in _field_names:
        is_node = kind.__module__ in _PACKAGES and hasattr(kind, "__dataclass_fields__")
        _field_names[kind] = tuple(f.name for f in fields(kind)) if is_node else ()
    return _field_names[kind]
