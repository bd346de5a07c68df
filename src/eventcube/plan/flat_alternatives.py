"""The programs of a query by flat strategy: event by event, by clusters of events, or from kept partial matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from eventcube.options import AUTO, FLA, PRC, SASE
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.physical import FLAT, NESTED, Alternative
from eventcube.plan.rules.aggregate_links import aggregate_in_kept, aggregate_links, aggregates
from eventcube.plan.rules.keep_prefixes import keep_prefixes
from eventcube.plan.rules.rewrite import rewrite_steps
from eventcube.plan.steps import Program, numbered

NO_CLUSTERS = "no sequence has an event in the middle that is not compared with others"
NO_PREFIX = "no sequence has three events"
NO_TEST = "nothing is tested on the events of a sequence before its last one comes"


class FlatAlternatives(NamedTuple):
    """The programs of a plan; flat strategies that do not suit it, and why; and the rules that changed steps."""

    alternatives: tuple[Alternative, ...]
    unsuited: tuple[tuple[str, str], ...]
    fired: tuple[str, ...]


def flat_alternatives(
    forms: Mapping[str, LogicalQuery], flat: str, steps_of: Callable[[LogicalQuery], Program], *, forward: bool
) -> FlatAlternatives:
    """The programs by one flat strategy, or with `auto` by all that may pay.

    `forms` has the query by itself and, if nested parts are left to the optimizer, with those bound in place. Where a
    strategy has nothing to do, its program is that of `sase`.
    """
    queries = dict(forms)
    if flat == PRC:
        queries = {name: keep_prefixes(query, forward=forward) for name, query in forms.items()}
    elif flat == AUTO:
        queries[PRC] = keep_prefixes(forms[NESTED], forward=forward, only_tested=True)
    unsuited: dict[str, str] = {}
    if PRC in (flat, *queries) and queries.get(PRC, queries[NESTED]) is forms[NESTED]:
        unsuited[PRC] = NO_PREFIX if flat == PRC else NO_TEST
        queries.pop(PRC, None)
    steps, fired = rewrite_steps(tuple(map(steps_of, queries.values())))
    programs = dict(zip(queries, steps, strict=True))
    for name in queries if flat == PRC else programs.keys() & {PRC}:
        programs[name] = aggregate_in_kept(programs[name])
    if flat == FLA:
        programs = {name: aggregate_links(program) for name, program in programs.items()}
    elif flat == AUTO:
        programs[FLA] = aggregate_links(programs.get(FLAT, programs[NESTED]))
    if FLA in (flat, *programs) and not any(map(aggregates, programs.values())):
        unsuited[FLA] = NO_CLUSTERS
        programs.pop(FLA, None)
    used = SASE if flat == AUTO or flat in unsuited else flat
    if len(forms) == 1:
        programs = {used if name == NESTED else name: program for name, program in programs.items()}
    alternatives = tuple(
        Alternative(name, program, name if name in (FLA, PRC) else used)
        for name, program in zip(programs, numbered(tuple(programs.values())), strict=True)
    )
    return FlatAlternatives(alternatives, tuple(unsuited.items()), fired)
