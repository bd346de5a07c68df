"""Random drill-downs and roll-ups of random queries, and how many of them are found to be related.

`python -m tests.differential.moved --cases 3000 --seed 1` prints for each kind of move how many pairs are related, and
of those that are not, how many a random stream tells apart.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from random import Random
from typing import NamedTuple

from eventcube.concepts.concepts import Concepts
from eventcube.cube.moves import moves
from eventcube.cube.operations import concept_drill_down, concept_roll_up, pattern_drill_down, pattern_roll_up
from eventcube.cube.places import parts_of
from eventcube.cube.refinement import refinements
from eventcube.errors import EventCubeError
from eventcube.language.parse import parse
from eventcube.language.syntax import Component, Not, Part, Query
from tests.differential.changes import TYPES
from tests.differential.refinement import bound, draw_reading, schema_of
from tests.differential.related import draw_base
from tests.oracle.brute import evaluate, positive_variables
from tests.oracle.generate import Options, draw_stream
from tests.oracle.patterns import CONCEPTS
from tests.oracle.quals import chance
from tests.oracle.text import query_to_text

HIERARCHY = Concepts.from_parents(CONCEPTS)


class Moved(NamedTuple):
    """Two queries that a move leads between, and whether `moves` calls them related.

    What it says of insertions holds for parts of all types. `negations`: the coarser query has a negated part.
    """

    kind: str
    claimed: bool
    inserted: bool
    negations: bool
    finer: Query
    coarser: Query
    options: Options


def draw_move(rng: Random) -> Moved | None:
    """A random move of a random query; None if there is none."""
    options = replace(draw_reading(rng), typed=True, concepts=CONCEPTS)
    query = replace(draw_base(rng, options), limit=None)
    try:
        query = parse(query_to_text(query))
        bound(query, options)
    except EventCubeError:
        return None
    there = moves(query, schema_of(options), HIERARCHY)
    if not there:
        return None
    move = rng.choice(there)
    parts = parts_of(query)
    if move.change is None:
        part = ("!" if chance(rng, 40) else "") + rng.choice(TYPES)
        position = rng.randint(1, len(parts) + 1)
        other = pattern_drill_down(query, [(part, position)])
        negated = part.startswith("!")
        claimed = negated or position not in move.unrelated_at
    else:
        match move.operation, move.change:
            case "concept_drill_down", (old, new, int(position)):
                other = concept_drill_down(query, [(old, new, position)], HIERARCHY)
            case "concept_roll_up", (old, new, int(position)):
                other = concept_roll_up(query, [(old, new, position)], HIERARCHY)
            case _, (name, int(position)):
                other = pattern_roll_up(query, [(name, position)])
            case _:
                raise AssertionError(move)
        negated = isinstance(parts[position - 1], Not)
        claimed = move.related
    down = move.operation.endswith("drill_down")
    kind = f"{move.operation} of a {'negated' if negated else 'positive'} part"
    finer, coarser = (other, query) if down else (query, other)
    return Moved(kind, claimed, move.change is None, _has_negation(coarser.pattern), finer, coarser, options)


def _has_negation(part: Part) -> bool:
    if isinstance(part, Component | Not):
        return isinstance(part, Not)
    return any(_has_negation(inner) for inner in part.parts)


def is_related(moved: Moved) -> bool:
    """Whether the relation that the move promises was found."""
    return bool(refinements(bound(moved.finer, moved.options), bound(moved.coarser, moved.options)))


def shown_apart(moved: Moved, rng: Random, streams: int = 60) -> bool:
    """Whether a random stream has a match of the finer query that holds none of the coarser one."""
    names = positive_variables(moved.coarser.pattern)
    for _ in range(streams):
        events = draw_stream(rng, moved.options, moved.finer)[:9]
        found, wanted = (
            evaluate(query, events, concepts=moved.options.concepts) for query in (moved.finer, moved.coarser)
        )
        keys = {match.key() for match in wanted}
        if any(tuple(match.bound[name] for name in names) not in keys for match in found):
            return True
    return False


def main() -> int:
    """Print how many moves of each kind lead to related queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    made: Counter[tuple[str, bool]] = Counter()
    related: Counter[tuple[str, bool]] = Counter()
    apart: Counter[tuple[str, bool]] = Counter()
    for case in range(arguments.cases):
        rng = Random(arguments.seed * 10**9 + case)
        moved = draw_move(rng)
        if moved is None:
            continue
        kind = moved.kind, moved.negations
        made[kind] += 1
        if is_related(moved):
            related[kind] += 1
        elif shown_apart(moved, rng):
            apart[kind] += 1
    for kind, count in sorted(made.items()):
        beside = "with negations" if kind[1] else "without negations"
        missed = count - related[kind]
        sys.stdout.write(
            f"{kind[0]}, {beside}: {related[kind]} of {count}; of {missed} others {apart[kind]} shown apart\n"
        )
    sys.stdout.write(f"in all {related.total()} of {made.total()}, {apart.total()} of the others shown apart\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
