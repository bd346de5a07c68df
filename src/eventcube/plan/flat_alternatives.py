"""The programs of a query by flat strategy: event by event, by clusters of events, or from kept partial matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from eventcube.options import AUTO, FLA, PRC, SASE
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.physical import Alternative
from eventcube.plan.rules.aggregate_links import aggregate_in_kept, aggregate_links
from eventcube.plan.rules.keep_prefixes import keep_prefixes
from eventcube.plan.rules.rewrite import rewrite_steps
from eventcube.plan.steps import Program, numbered

# To plan a longer query in another way takes too long to be done unasked.
_MOST_SLOTS = 16
# Why a flat strategy has nothing to do.
_UNSUITED = {
    FLA: "no sequence has an event in the middle that is not compared with others",
    PRC: "no sequence has three events",
}


class FlatAlternatives(NamedTuple):
    """The programs of a plan; why it has none of the flat strategy asked for; and the rules that changed steps."""

    alternatives: tuple[Alternative, ...]
    unsuited: str | None
    fired: tuple[str, ...]


def flat_alternatives(
    forms: Mapping[str, LogicalQuery], flat: str, steps_of: Callable[[LogicalQuery], Program], *, forward: bool
) -> FlatAlternatives:
    """The programs of a query by one flat strategy, or with `auto` by all that may pay, `sase` first.

    `forms` has the query by itself and, if nested parts are left to the optimizer, with those bound in place. Where a
    strategy has nothing to do, its program is that of `sase`.
    """
    if flat == AUTO and len(forms) > 1:
        # The choice is between the strategies of nested parts.
        flat = SASE
    queries = {(name, SASE): query for name, query in forms.items()}
    for name, query in forms.items():
        if flat == PRC or (flat == AUTO and len(query.slots) <= _MOST_SLOTS):
            kept = keep_prefixes(query, forward=forward, only_tested=flat == AUTO)
            if kept is not query:
                queries[name, PRC] = kept
    steps, fired = rewrite_steps(tuple(map(steps_of, queries.values())))
    programs = dict(zip(queries, steps, strict=True))
    for name in forms:
        if (name, PRC) in programs:
            programs[name, PRC] = aggregate_in_kept(programs[name, PRC])
        if flat in (AUTO, FLA):
            program = aggregate_links(programs[name, SASE])
            if program is not programs[name, SASE]:
                programs[name, FLA] = program
    chosen = [*programs] if flat == AUTO else [(name, flat if (name, flat) in programs else SASE) for name in forms]
    numbers = numbered(tuple(programs[key] for key in chosen))
    alternatives = tuple(
        Alternative(name if len(forms) > 1 else strategy, program, strategy)
        for (name, strategy), program in zip(chosen, numbers, strict=True)
    )
    suited = flat == AUTO or any(strategy == flat for _, strategy in chosen)
    return FlatAlternatives(alternatives, None if suited else _UNSUITED[flat], fired)
