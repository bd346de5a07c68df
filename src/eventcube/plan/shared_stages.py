"""The stages of several queries as one: those that begin with the same components share the stages of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eventcube.plan.stages import MOST_SLOTS, Barrier, Move, Stages, Step

# More stages in one walk cost more than they share.
_MOST_STAGES = 48


@dataclass(frozen=True, slots=True)
class SharedStages:
    """Stages of several queries: `stacks` has the stack of each slot of them, `ends` the step that ends each query."""

    stages: Stages
    stacks: tuple[int, ...]
    ends: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Chain:
    """A query whose stages follow each other: the stack that leads out of each, and those that are barred from it."""

    name: str
    moves: tuple[int, ...]
    barriers: tuple[frozenset[int], ...]


def shared_stages(queries: Mapping[str, tuple[Stages, Sequence[int]]]) -> Iterator[SharedStages]:
    """The stages of queries that can share some, by the stack of each of their slots; one walk counts each of them."""
    chains = [
        chain for name, (stages, stacks) in queries.items() if (chain := _chain(name, stages, stacks)) is not None
    ]
    # Nothing is shared unless the beginning is.
    begun: dict[object, list[_Chain]] = {}
    for chain in chains:
        begun.setdefault((chain.moves[0], *chain.barriers[:2]) if len(chain.moves) > 1 else chain.name, []).append(
            chain
        )
    for alike in begun.values():
        tree = _Tree()
        for chain in sorted(alike, key=lambda chain: tuple(map(str, chain.moves))):
            if tree.size + len(chain.moves) > _MOST_STAGES or tree.steps > MOST_SLOTS - 2 * len(chain.moves):
                yield from tree.shared()
                tree = _Tree()
            tree.add(chain)
        yield from tree.shared()


def _chain(name: str, stages: Stages, stacks: Sequence[int]) -> _Chain | None:
    """The stages of a query, if each leads to the next one by one slot."""
    moves = sorted(stages.moves, key=lambda move: move.start)
    if [(move.start, move.end) for move in moves] != [(i, i + 1) for i in range(stages.final)]:
        return None
    barred: list[set[int]] = [set() for _ in range(stages.final)]
    for step in stages.steps:
        if isinstance(step, Barrier):
            barred[step.stage].add(stacks[step.slot])
    return _Chain(name, tuple(stacks[move.slot] for move in moves), tuple(map(frozenset, barred)))


class _Tree:
    """Stages by what leads to them, and what is barred from them."""

    def __init__(self) -> None:
        self._stages: dict[object, int] = {}
        # Of each step its depth, whether it is a barrier, and its stack: those of one slot have these in common.
        self._steps: dict[tuple[int, bool, int, int, int], list[str]] = {}
        self._names = 0

    @property
    def size(self) -> int:
        """How many stages there are."""
        return len(self._stages)

    @property
    def steps(self) -> int:
        """How many steps there are; no more slots than that are needed."""
        return len(self._steps)

    def add(self, chain: _Chain) -> None:
        """Add the stages of a query that are not there yet."""
        self._names += 1
        key: object = chain.barriers[0]
        stage = self._stage(key, 0, chain.barriers[0])
        for depth, stack in enumerate(chain.moves):
            if depth + 1 == len(chain.moves):
                self._steps.setdefault((depth, False, stack, stage, -1), []).append(chain.name)
                return
            key = (key, stack, chain.barriers[depth + 1])
            following = self._stage(key, depth + 1, chain.barriers[depth + 1])
            self._steps.setdefault((depth, False, stack, stage, following), [])
            stage = following

    def _stage(self, key: object, depth: int, barriers: frozenset[int]) -> int:
        if key not in self._stages:
            self._stages[key] = len(self._stages)
            for stack in barriers:
                self._steps[depth, True, stack, self._stages[key], self._stages[key]] = []
        return self._stages[key]

    def shared(self) -> Iterator[SharedStages]:
        """All stages as one, if there are several queries."""
        if self._names < 2:
            return
        # What leads out of a stage comes before its barriers, and these before what leads into it.
        steps = sorted(self._steps.items(), key=lambda item: (-item[0][0], item[0][1], str(item[0][2])))
        slots = list(dict.fromkeys(key[:3] for key, _ in steps))
        listed: list[Step] = []
        ends: dict[int, list[str]] = {}
        for (depth, barred, stack, start, end), names in steps:
            slot = slots.index((depth, barred, stack))
            if names:
                ends[len(listed)] = names
            target = self.size if end < 0 else end
            listed.append(Barrier(slot, start) if barred else Move(slot, start, target))
        stages = Stages(self.size + 1, tuple(listed))
        yield SharedStages(
            stages, tuple(stack for _, _, stack in slots), {name: o for o, own in ends.items() for name in own}
        )
