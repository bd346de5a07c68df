"""What a refinement claims, checked by meaning: the oracle's matches of the finer query hold matches of the coarser.

`python -m tests.differential.refinement --pairs 30000 --seed 1` draws pairs until so many are related.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from eventcube.concepts.concepts import Concepts
from eventcube.cube.refinement import Change, Refinement, refinements
from eventcube.errors import EventCubeError
from eventcube.language.scopes import resolve
from eventcube.language.syntax import Query
from eventcube.plan.bind import bind
from eventcube.plan.logical import LogicalQuery
from eventcube.schema import EventSchema
from tests.differential.compare import describe
from tests.differential.related import draw_pair, is_valid, without_negated
from tests.oracle.brute import Event, evaluate, positive_variables
from tests.oracle.generate import Options, draw_options, draw_stream, to_arrow
from tests.oracle.patterns import CONCEPTS
from tests.oracle.quals import chance
from tests.oracle.text import query_to_text

# Many short streams find more than few long ones.
STREAMS = 5
LENGTH = 8

Key = tuple[int | None, ...]


class UnsoundError(AssertionError):
    """A refinement claims what does not hold."""


@dataclass
class Tally:
    """What a stretch of pairs came to. `tried` counts claims that a match of the finer query put to the test."""

    pairs: int = 0
    invalid: int = 0
    related: int = 0
    tried: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.changes.items()))
        return (
            f"{self.pairs} pairs ({self.invalid} invalid), {self.related} related ({kinds}), "
            f"{self.tried} tried by matches, {len(self.failures)} failures"
        )


def draw_reading(rng: Random) -> Options:
    """How events are read: mostly with a hierarchy of types."""
    options = draw_options(rng)
    return replace(options, concepts=CONCEPTS) if options.typed and chance(rng, 70) else options


_COLUMNS = to_arrow([]).schema


def schema_of(options: Options) -> EventSchema:
    """The schema of random events."""
    return EventSchema(
        _COLUMNS,
        "ts",
        "type" if options.typed else None,
        ("k",) if options.partitioned else (),
        ("o",) if options.ordered else (),
    )


def bound(query: Query, options: Options) -> LogicalQuery:
    """The query bound to the columns of random events."""
    return bind(query, schema_of(options), Concepts.from_parents(options.concepts) if options.concepts else None)


def check_refinements(
    finer: Query, coarser: Query, options: Options, streams: Sequence[list[Event]]
) -> tuple[tuple[Refinement, ...], bool]:
    """The refinements of a pair, and whether a match tried them; raises UnsoundError where one does not hold."""
    specific, general = bound(finer, options), bound(coarser, options)
    return _check(finer, coarser, specific, general, options, streams)


def _check(
    finer: Query,
    coarser: Query,
    specific: LogicalQuery,
    general: LogicalQuery,
    options: Options,
    streams: Sequence[list[Event]],
) -> tuple[tuple[Refinement, ...], bool]:
    found = refinements(specific, general)
    tried = False
    if all(refinement.change is Change.EQUAL for refinement in found):
        streams = streams[:1]
    for events in streams if found else ():
        matches = _matches(finer, events, options)
        wanted = _matches(coarser, events, options)
        tried = tried or bool(matches)
        for refinement in found:
            projected = {_project(match, refinement, specific, general) for match in matches}
            if not projected <= wanted:
                raise UnsoundError(_shown("not all matches are", finer, coarser, options, refinement, events))
            if refinement.change is Change.EQUAL and projected != wanted:
                raise UnsoundError(_shown("not equal", finer, coarser, options, refinement, events))
            if refinement.kept:
                loose = _without(finer, refinement.kept)
                more = _matches(loose, events, options)
                for match in more - matches:
                    if _project(match, refinement, specific, general) in wanted:
                        raise UnsoundError(_shown("not kept", finer, coarser, options, refinement, events))
    return found, tried


def _without(query: Query, kept: frozenset[int]) -> Query:
    placed, _ = resolve(query)
    return replace(placed, pattern=without_negated(placed.pattern, kept))


def _matches(query: Query, events: list[Event], options: Options) -> set[Key]:
    found = evaluate(replace(query, limit=None), events, typed=options.typed, concepts=options.concepts)
    return {match.key() for match in found}


def _project(match: Key, refinement: Refinement, finer: LogicalQuery, coarser: LogicalQuery) -> Key:
    """The events of a match at the places of the coarser query's positive slots."""
    order = {slot.index: i for i, slot in enumerate(finer.positive)}
    places = (refinement.slots[slot.index] for slot in coarser.positive)
    return tuple(None if place is None else match[order[place]] for place in places)


def _shown(
    problem: str, finer: Query, coarser: Query, options: Options, refinement: Refinement, events: Sequence[Event]
) -> str:
    return "\n".join(
        [
            f"{problem}: {refinement}",
            f"finer:   {query_to_text(finer)}",
            f"coarser: {query_to_text(coarser)}",
            f"options: {options}",
            f"columns: {positive_variables(finer.pattern)} → {positive_variables(coarser.pattern)}",
            *(f"  {describe(event)}" for event in events),
        ]
    )


def check_seed(seed: int, tally: Tally, streams: int = STREAMS) -> None:
    """Draw the pair of a seed and check it both ways."""
    rng = Random(seed)
    options = draw_reading(rng)
    one, other = draw_pair(rng, options)
    tally.pairs += 1
    if not (is_valid(one.pattern) and is_valid(other.pattern)):
        tally.invalid += 1
        return
    try:
        logical = {one.text: bound(one, options), other.text: bound(other, options)}
    except EventCubeError:
        tally.invalid += 1
        return
    drawn = [draw_stream(rng, options, rng.choice([one, other]))[:LENGTH] for _ in range(streams)]
    for finer, coarser in ((one, other), (other, one)):
        try:
            found, tried = _check(finer, coarser, logical[finer.text], logical[coarser.text], options, drawn)
        except UnsoundError as error:
            tally.failures.append((seed, str(error)))
            continue
        if found:
            tally.related += 1
            tally.tried += tried
            tally.changes.update({refinement.change.value for refinement in found})


def main() -> int:
    """Check pairs until enough were related; the exit code is 1 if one was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30_000, help="how many related pairs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5)
    arguments = parser.parse_args()
    tally, began = Tally(), time.monotonic()
    seed = arguments.seed * 10**9
    while tally.related < arguments.pairs and time.monotonic() - began < 60 * arguments.minutes:
        check_seed(seed, tally)
        seed += 1
        if len(tally.failures) > 20:
            break
    for failed, text in tally.failures[:5]:
        sys.stdout.write(f"\nseed {failed}\n{text}\n")
    sys.stdout.write(f"{tally}; seeds up to {seed}; {time.monotonic() - began:.0f} s\n")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
