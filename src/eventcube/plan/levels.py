"""Keys of groups that are rolled up over the hierarchy: the types of events, and those above them."""

from __future__ import annotations

from dataclasses import dataclass

from eventcube.concepts.concepts import Concepts


@dataclass(frozen=True, slots=True)
class LevelKey:
    """A key with the type of an event, by its number, that is rolled up; `name` is that of the column of its level.

    `cells` are the types with their levels, each followed by what is below it: a type that has others below it is there
    once with the events of all of them, and once more, a level deeper, with those of the type itself. `counted_in`
    has the places of the cells that an event of each type is counted in.
    """

    number: int
    name: str
    cells: tuple[tuple[str, int], ...]
    counted_in: tuple[tuple[str, tuple[int, ...]], ...]


def level_key(number: int, name: str, top: str, concepts: Concepts) -> LevelKey:
    """The key for events of a type and those below it.

    >>> key = level_key(0, "c_level", "Computer", Concepts({"Stock": {"Computer": ["INTC"]}}))
    >>> key.cells
    (('Computer', 2), ('Computer', 3), ('INTC', 3))
    >>> key.counted_in
    (('Computer', (0, 1)), ('INTC', (0, 2)))
    """
    cells: list[tuple[str, int]] = []
    counted_in: list[tuple[str, tuple[int, ...]]] = []
    totals: dict[str | None, tuple[int, ...]] = {}
    highest = len(concepts.ancestors(top)) + 1
    for type_ in (top, *concepts.descendants(top)):
        above = totals.get(concepts.parents.get(type_), ())
        level = highest + len(above)
        counted = totals[type_] = (*above, len(cells))
        cells.append((type_, level))
        if concepts.children(type_):
            counted = (*counted, len(cells))
            cells.append((type_, level + 1))
        counted_in.append((type_, counted))
    return LevelKey(number, name, tuple(cells), tuple(counted_in))
