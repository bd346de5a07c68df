"""A pattern as stages that a match passes through, so that matches can be counted without being made.

In stage 0 nothing is bound, in the last one all is. A move takes partial matches from one stage to the next by an event
of a slot; a barrier ends those that wait in a stage, by an event of a negated slot. How many partial matches are in
each stage follows from how many there were before, event by event (Poppe et al. 2017 call this propagation).

```
SEQ(A a, !N n, B b):   0 --a--> 1 --b--> 2      with a barrier n in stage 1
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

from eventcube.language.printer import print_qual
from eventcube.plan.logical import And, Leaf, LogicalQuery, Negation, Node, Operator, Or, Region, Seq, slots_of

# More stages than this are not worth it, and slots are numbered in 8 bits.
_MOST_STAGES, MOST_SLOTS = 64, 120


@dataclass(frozen=True, slots=True)
class Move:
    """An event of the slot takes partial matches from the stage `start` to the stage `end`."""

    slot: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """An event of the negated slot ends the partial matches that wait in the stage."""

    slot: int
    stage: int


Step = Move | Barrier


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a pattern, numbered so that moves lead upwards, and what events do.

    Events of equal rank are taken together, in the order of `steps`: what must be strictly later comes first, so that
    it finds the partial matches as they were before. `leading` and `trailing`: a negated part looks back to the start
    of the window, or ahead to its end.
    """

    count: int
    steps: tuple[Step, ...]
    leading: bool = False
    trailing: bool = False

    @property
    def final(self) -> int:
        """The stage in which all is bound."""
        return self.count - 1

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves among the steps."""
        return tuple(step for step in self.steps if isinstance(step, Move))

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots of the steps, each once; events of equal rank are taken in their order."""
        return tuple(dict.fromkeys(step.slot for step in self.steps))

    @property
    def last_slots(self) -> tuple[int, ...]:
        """The slots of the moves into the final stage."""
        return tuple(dict.fromkeys(move.slot for move in self.moves if move.end == self.final))

    @property
    def ends_strictly(self) -> bool:
        """Whether the last event of a match is later than all others, so that the match can be ascribed to it."""
        entered: set[int] = set()
        for step in self.steps:
            if isinstance(step, Move):
                if step.end == self.final and step.start in entered:
                    return False
                entered.add(step.end)
        return True

    def mirrored(self) -> Stages:
        """The same pattern, read from its last event to its first."""
        last = self.final
        return Stages(
            self.count,
            tuple(
                Move(step.slot, last - step.end, last - step.start)
                if isinstance(step, Move)
                else Barrier(step.slot, last - step.stage)
                for step in reversed(self.steps)
            ),
            self.trailing,
            self.leading,
        )


class NoStagesError(Exception):
    """Why matches of a query can only be counted by making them."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


def stages_of(logical: LogicalQuery) -> Stages:
    """The stages of a query; raises NoStagesError if its conditions or negations tie events together otherwise."""
    reasons = [*_ties(logical.region), *(reason for n in _negations(logical.region.node) for reason in _of_negation(n))]
    if reasons:
        raise NoStagesError(*dict.fromkeys(reasons))
    stages = _Builder(logical).outermost(logical.region.node)
    if stages.leading and stages.trailing:
        raise NoStagesError("negated parts look back from the last event and ahead from the first one")
    return stages


def _ties(region: Region) -> Iterable[str]:
    """The conditions that only whole matches can be tested by."""
    for predicate in region.predicates:
        if predicate.is_tested:
            yield f"{print_qual(predicate.qual)} compares events with each other"


def _of_negation(negation: Negation) -> Iterable[str]:
    if not isinstance(negation.region.node, Leaf):
        yield "a negated part has several events"
    yield from _ties(negation.region)


def _negations(node: Node) -> Iterable[Negation]:
    for part in () if isinstance(node, Leaf) else node.parts:
        if isinstance(part, Negation):
            yield part
        else:
            yield from _negations(part)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Stages of a part, from 0 to the last, with steps in the order of the text."""

    count: int
    steps: tuple[Step, ...]


class _Builder:
    def __init__(self, logical: LogicalQuery) -> None:
        self.logical = logical

    def outermost(self, node: Node) -> Stages:
        """The stages of the whole pattern."""
        piece = self._piece(node, (True, True))
        if len({step.slot for step in piece.steps}) > MOST_SLOTS:
            raise NoStagesError(f"the pattern has more than {MOST_SLOTS} components")
        barred = {step.stage for step in piece.steps if isinstance(step, Barrier)}
        return Stages(piece.count, tuple(reversed(piece.steps)), 0 in barred, piece.count - 1 in barred)

    def _piece(self, node: Node, bounded: tuple[bool, bool]) -> _Piece:
        """The stages of a part; `bounded`: what is negated at its start, or end, reaches to what is around it."""
        match node:
            case Leaf(slot):
                return _Piece(2, (Move(slot, 0, 1),))
            case Seq():
                return self._seq(node, bounded)
            case Or(parts):
                return self._or([self._piece(part, (False, False)) for part in parts])
            case And(parts):
                pieces = []
                for part in parts:
                    if isinstance(part, Negation):
                        raise NoStagesError("a part is negated inside AND")
                    pieces.append(self._piece(part, (False, False)))
                self._check_disjoint(node)
                return reduce(self._and, pieces)

    def _seq(self, node: Seq, bounded: tuple[bool, bool]) -> _Piece:
        steps: list[Step] = []
        last = 0
        *_, final = (place for place, part in enumerate(node.parts) if not isinstance(part, Negation))
        for place, part in enumerate(node.parts):
            around = bounded[0] or last > 0, bounded[1] or place < final
            if isinstance(part, Negation):
                if not all(around):
                    raise NoStagesError("a part at the edge of an operator inside AND or OR is negated")
                assert isinstance(part.region.node, Leaf)
                steps.append(Barrier(part.region.node.slot, last))
            else:
                piece = self._piece(part, around)
                steps += (_moved(step, last) for step in piece.steps)
                last += piece.count - 1
        return self._checked(_Piece(last + 1, tuple(steps)))

    def _or(self, pieces: list[_Piece]) -> _Piece:
        """The alternatives begin and end in the same stages."""
        last = 1 + sum(piece.count - 2 for piece in pieces)
        steps: list[Step] = []
        inner = 0
        for piece in pieces:
            places = [0, *range(inner + 1, inner + piece.count - 1), last]
            inner += piece.count - 2
            steps += (_placed(step, places) for step in piece.steps)
        return self._checked(_Piece(last + 1, tuple(steps)))

    def _and(self, one: _Piece, other: _Piece) -> _Piece:
        """Every stage of one part beside every stage of the other; events of equal rank may be of both."""

        def steps_of(piece: _Piece, beside: int, step: int, stride: int) -> Iterable[Step]:
            for each in piece.steps:
                for place in range(beside):
                    yield _placed(each, [i * step + place * stride for i in range(piece.count)])

        steps = (*steps_of(one, other.count, other.count, 1), *steps_of(other, one.count, 1, other.count))
        return self._checked(_Piece(one.count * other.count, steps))

    def _checked(self, piece: _Piece) -> _Piece:
        if piece.count > _MOST_STAGES:
            raise NoStagesError(f"the pattern has more than {_MOST_STAGES} stages")
        return piece

    def _check_disjoint(self, node: Operator) -> None:
        """Events of different parts of an AND must differ, which their types must make sure of."""
        slots = self.logical.slots
        for one, other in combinations([part for part in node.parts if not isinstance(part, Negation)], 2):
            for a in slots_of(one):
                for b in slots_of(other):
                    ours, theirs = slots[a].types, slots[b].types
                    if ours is None or theirs is None or ours & theirs:
                        names = f"{slots[a].name} and {slots[b].name}"
                        raise NoStagesError(f"the same event fits {names} of an AND")


def _moved(step: Step, by: int) -> Step:
    match step:
        case Move(slot, start, end):
            return Move(slot, start + by, end + by)
        case Barrier(slot, stage):
            return Barrier(slot, stage + by)


def _placed(step: Step, places: list[int]) -> Step:
    match step:
        case Move(slot, start, end):
            return Move(slot, places[start], places[end])
        case Barrier(slot, stage):
            return replace(step, stage=places[stage])
