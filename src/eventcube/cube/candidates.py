"""Pairs of queries that may refine each other, found by an index of their types instead of comparing all pairs.

A query can only refine another if it has an event for each of the other's components: as many of a type, or of types
below it, as the other one needs. Sets of queries are bit masks, so that a look-up takes as many operations as a query
has types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eventcube.cube.shape import Area, Shape
from eventcube.plan.order import slots_in_mask

# The types of a slot; None for events of any type.
Types = frozenset[str] | None


def candidate_pairs(shapes: Sequence[Shape]) -> Iterator[tuple[int, int]]:
    """The pairs (finer, coarser) of places in the list that are worth a comparison, by the coarser query.

    It takes time in proportion to queries × types, and to the pairs found.
    """
    index = _Index(shapes)
    for coarser, shape in enumerate(shapes):
        for finer in slots_in_mask(index.finer_candidates(shape) & ~(1 << coarser)):
            yield finer, coarser


@dataclass(slots=True)
class _Index:
    """The queries with a property, as a mask, for properties that a finer query must have."""

    shapes: Sequence[Shape]
    # For each set of types: the sets that include it, itself first.
    wider: dict[Types, list[Types]] = field(init=False)
    # Queries with at least so many slots of the types.
    counts: dict[tuple[Types, int], int] = field(default_factory=dict)
    # Queries with a single negated event of the types or wider ones, or with a larger negated part.
    negated: dict[Types, int] = field(default_factory=dict)
    any_negated: int = 0
    large_negated: int = 0
    schemas: dict[object, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {slot.types for shape in self.shapes for slot in shape.slots}
        self.wider = {one: [other for other in known if _includes(other, one)] for one in known}
        for number, shape in enumerate(self.shapes):
            self._add(shape, 1 << number)

    def _add(self, shape: Shape, bit: int) -> None:
        self.schemas[_schema(shape)] = self.schemas.get(_schema(shape), 0) | bit
        found = Counter(wider for slot in shape.area.slots for wider in self.wider[shape.slots[slot].types])
        for types, count in found.items():
            for least in range(1, count + 1):
                self.counts[types, least] = self.counts.get((types, least), 0) | bit
        for part in shape.area.negated:
            self.any_negated |= bit
            single = _single(part.area)
            if single is None:
                self.large_negated |= bit
            else:
                types = shape.slots[single].types
                self.negated[types] = self.negated.get(types, 0) | bit

    def finer_candidates(self, shape: Shape) -> int:
        """The queries that may refine one, as a mask."""
        found = self.schemas[_schema(shape)]
        required = [shape.slots[slot] for slot in shape.area.slots if not shape.slots[slot].alternatives]
        for types in {slot.types for slot in required}:
            needed = sum(_includes(types, slot.types) for slot in required)
            found &= self.counts.get((types, needed), 0)
        for part in shape.area.negated:
            if part.guard is not None:
                continue
            found &= self.any_negated
            single = _single(part.area)
            if single is not None:
                covering = self.large_negated
                for types in self.wider[shape.slots[single].types]:
                    covering |= self.negated.get(types, 0)
                found &= covering
        return found


def _includes(types: Types, others: Types) -> bool:
    return types is None or (others is not None and others <= types)


def _single(area: Area) -> int | None:
    """The only slot of a negated part; None if it has several."""
    return area.slots[0] if len(area.slots) == 1 else None


def _schema(shape: Shape) -> object:
    """What queries must have in common to see the same events in the same order."""
    schema = shape.query.schema
    return schema.time, schema.type, schema.partition_by, schema.order_by, schema.time_unit
