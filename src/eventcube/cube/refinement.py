"""Which queries refine which: what a query finds holds all that another finds.

Liu et al. 2011 (E-Cube), definitions 3 and 4, made sound for negated parts anywhere, nesting, alternatives, conditions,
windows and keys. If in doubt queries are not related: that costs speed, where a wrong relation would cost matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import assert_never

from eventcube.cube.embed import Embedding, embeddings_of, is_embedding
from eventcube.cube.shape import Shape, shape_of
from eventcube.language.syntax import CountWindow, TimeWindow
from eventcube.plan.logical import LogicalQuery

# The most embeddings of one query in another; repeated types can have very many.
MOST_EMBEDDINGS = 8

Window = TimeWindow | CountWindow | None


class Change(StrEnum):
    """What makes a query finer than another: its types, its pattern, both, only its conditions and window, or nothing.

    The paper has the first three: `q >c r`, `q >p r` and `q >cp r`.
    """

    CONCEPT = "concept"
    PATTERN = "pattern"
    BOTH = "both"
    CONDITION = "condition"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class Refinement:
    """One way in which a finer query refines a coarser one.

    For every match of the finer query, the events bound to the places of the coarser query's positive slots are a match
    of the coarser query. LIMIT has no part in this: a match is one of all that there are without it.

    `slots` has for each slot of the coarser query its place, a slot of the finer one. It is None in alternatives that
    the finer query does not have, and for components of negated parts that it has no counterpart for: no such event is
    bound in a match. `kept` are the finer query's negated parts, by the index of their region, that have no match
    wherever the coarser query's have none: they need not be tested again.
    """

    slots: tuple[int | None, ...]
    change: Change
    kept: frozenset[int]


def refinements(finer: LogicalQuery, coarser: LogicalQuery) -> tuple[Refinement, ...]:
    """The ways in which one query refines another, both as they were bound to the same events; at most eight.

    They are sorted by the places of the coarser query's slots.
    """
    specific, general = shape_of(finer), shape_of(coarser)
    return () if specific is None or general is None else refinements_of(specific, general)


def refinements_of(finer: Shape, coarser: Shape) -> tuple[Refinement, ...]:
    """The ways in which one query refines another, from their shapes."""
    if not _may_refine(finer, coarser):
        return ()
    found = islice(embeddings_of(coarser, finer), MOST_EMBEDDINGS)
    return tuple(_refinement(finer, coarser, embedding) for embedding in found)


def can_feed(query: LogicalQuery) -> bool:
    """Whether matches of other queries can be made from those of the query: not if LIMIT holds some back."""
    return query.query.limit is None


def fits_window(finer: Window, coarser: Window) -> bool:
    """Whether all that lies in the one window lies in the other, too."""
    match coarser:
        case None:
            return True
        case TimeWindow(microseconds):
            return isinstance(finer, TimeWindow) and finer.microseconds <= microseconds
        case CountWindow(events):
            return isinstance(finer, CountWindow) and finer.events <= events
        case _:
            assert_never(coarser)


def _may_refine(finer: Shape, coarser: Shape) -> bool:
    """Whether a quick look leaves it open that one query refines the other."""
    return (
        coarser.required <= len(finer.area.slots)
        and (bool(finer.area.negated) or not coarser.area.negated)
        and fits_window(finer.query.window, coarser.query.window)
        and finer.query.schema == coarser.query.schema
    )


def _refinement(finer: Shape, coarser: Shape, embedding: Embedding) -> Refinement:
    places = tuple(embedding.slots.get(slot) for slot in range(len(coarser.slots)))
    return Refinement(places, _change(finer, coarser, embedding), embedding.kept)


def _change(finer: Shape, coarser: Shape, embedding: Embedding) -> Change:
    pairs = embedding.slots.items()
    concept = any(coarser.slots[one].types != finer.slots[other].types for one, other in pairs)
    if len(pairs) < len(coarser.slots) or finer.outline != coarser.outline:
        return Change.BOTH if concept else Change.PATTERN
    if concept:
        return Change.CONCEPT
    back = {embedding.slots[slot]: slot for slot in coarser.area.slots}
    same = finer.query.window == coarser.query.window and is_embedding(finer, coarser, back)
    return Change.EQUAL if same else Change.CONDITION
