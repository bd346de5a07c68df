"""The ways in which random cases are put to the engine and the oracle, by name."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine import limit, min_max, state
from eventcube.engine.execute import Execution
from eventcube.engine.views import auto, sliding, view
from eventcube.engine.views.strategy import strategies
from eventcube.errors import EventCubeWarning, OptionError
from eventcube.language.syntax import Component, Not, Pattern
from eventcube.optimizer import choose
from eventcube.plan.parts import nested_parts
from eventcube.runtime.shared_result import wide_form
from tests.differential.advice import check_advice, draw_pointed_case
from tests.differential.aside import check_unruly, draw_calls, draw_unruly_case
from tests.differential.changed import check_changed, draw_drilled
from tests.differential.compare import (
    DisagreementError,
    Key,
    check,
    check_count,
    draw_cut,
    engine_batches,
    oracle_matches,
)
from tests.differential.ended import check_ended, draw_ended
from tests.differential.exact import draw_exact_case
from tests.differential.gaps import rows_leave_in_the_middle
from tests.differential.inequalities import check_inequalities, draw_inequalities
from tests.differential.knobs import any_costs, any_of, in_chunks
from tests.differential.purged import draw_purged_case, draw_small_cut
from tests.differential.rows import check_rows
from tests.differential.separate import check_separate
from tests.differential.spread import check_spread, draw_spread
from tests.differential.streamed import check_streamed, draw_streamed
from tests.differential.totals import check_enumerated, check_totals, draw_many, draw_totals
from tests.differential.workload import check_workload, draw_workload
from tests.oracle.brute import positive_variables
from tests.oracle.clauses import with_results
from tests.oracle.generate import Case, draw_case, draw_query, draw_tangled_case
from tests.oracle.quals import TICK, chance
from tests.oracle.zoned import with_zones


@dataclass(frozen=True)
class Mode:
    """How cases are drawn, and how one is checked; a check gives the number of matches or rows, or raises.

    The second source of chance says how the input is cut and so on. It is apart from that of the case, so that a
    failing case can be made smaller. Most modes draw a `Case` of one query, `workload` one of several.
    """

    draw: Callable[[Random], Any]
    check: Callable[[Any, Random], int]


def _check_matches(case: Case, rng: Random) -> int:
    return len(check(*case, draw_cut(rng, len(case.events))))


def _draw_rows(rng: Random) -> Case:
    case = draw_case(rng)
    return case._replace(query=with_results(rng, case.query, case.options))


def _check_rows(case: Case, rng: Random) -> int:
    return check_rows(*case, draw_cut(rng, len(case.events)))


def _draw_any(rng: Random) -> Case:
    case = draw_case(rng)
    return case._replace(query=with_results(rng, case.query, case.options)) if chance(rng, 50) else case


def _check_restored(case: Case, rng: Random) -> int:
    cut = draw_cut(rng, len(case.events))
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 50)}
    return check_rows(*case, cut, restarts)


def _check_together(case: Case, rng: Random) -> int:
    """Several queries in one runtime find what each finds alone, and the shared result can be taken apart again."""
    others = [draw_query(rng, case.options) for _ in range(rng.randint(0, 2))]
    queries = [case.query, *others]
    cut = draw_cut(rng, len(case.events))
    batches = list(engine_batches(queries, case.events, case.options, cut))
    total = 0
    for i, query in enumerate(queries, 1):
        expected = Counter(oracle_matches(query, case.events, case.options))
        variables = positive_variables(query.pattern)
        found: Counter[Key] = Counter()
        if batches:
            table = wide_form(pa.Table.from_batches(batches), f"q{i}", variables)
            columns = [table.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
            columns += [pc.struct_field(table.column(v).combine_chunks(), "id").to_pylist() for v in variables]
            found = Counter(zip(*columns, strict=True))
        if found != expected:
            texts = "\n".join(q.text for q in queries)
            raise DisagreementError(
                f"q{i}: missing {expected - found}, extra {found - expected}\n{texts}\n{case.options} cut {cut}\n"
                + "\n".join(map(str, case.events))
            )
        total += expected.total()
    return total


def _check_unruly(case: Case, rng: Random) -> int:
    lateness = rng.choice([0, 1, 2, 4]) * TICK
    return check_unruly(case, lateness, draw_calls(rng, len(case.events)))


def is_nested(pattern: Pattern) -> bool:
    """Whether a part of the pattern is an operator, negated or not."""
    inner = [p.pattern if isinstance(p, Not) else p for p in getattr(pattern, "parts", ())]
    return any(not isinstance(p, Component) for p in inner)


def draw_nested(rng: Random) -> Case:
    """A case with a nested part, if one comes up in a few tries."""
    case = draw_tangled_case(rng) if chance(rng, 25) else draw_case(rng)
    for _ in range(4):
        case = case if is_nested(case.query.pattern) else draw_case(rng)
    return case


def _check_views(case: Case, rng: Random) -> int:
    cut = draw_cut(rng, len(case.events))
    with rows_leave_in_the_middle() if chance(rng, 33) else nullcontext():
        return _check_strategy(case, rng, cut)


def _check_purged(case: Case, rng: Random) -> int:
    cut = draw_small_cut(rng, len(case.events))
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 8)} if chance(rng, 30) else set()
    chunks = in_chunks(rng.choice([1, 4, 1 << 16]))
    with (
        patch.object(Execution, "_bind", chunks),
        patch.object(limit, "_MAX_FOUND", rng.choice([1, 99, 1 << 18])),
        patch.object(state, "_MIN_ACTIVE", rng.choice([0, 2, 1 << 13])),
        patch.object(state, "_ACTIVE_PER_EVENT", rng.choice([0, 1])),
    ):
        return _check_strategy(case, rng, cut, restarts)


def _check_strategy(case: Case, rng: Random, cut: Sequence[int], restarts: Collection[int] = ()) -> int:
    """Any strategy, or one for each part, with views that are extended and purged in small steps."""
    names = sorted(strategies())
    # Half of them by those that keep most of what may not hold any more.
    strategy: str | dict[str, str] = rng.choice(["passive", "semantic"] if chance(rng, 50) else names)
    if chance(rng, 30):
        strategy = {own[0]: rng.choice(names) for own in nested_parts(case.query.pattern) if chance(rng, 70)}
    stride, many = rng.choice([(1, 1), (2, 3), (1 << 14, 1 << 15)])
    with (
        patch.object(sliding, "STRIDE", stride),
        patch.object(view.View, "purge_threshold", many),
        patch.object(view.View, "max_results", rng.choice([2, 10, 1 << 22])),
        patch.object(choose, "HOLD_PAIRS", rng.choice([0, 50, 1 << 22])),
        patch.object(choose, "HOLD_CALLS", rng.choice([0, 15])),
        patch.object(choose, "cheapest", choose.cheapest if chance(rng, 50) else any_of(rng)),
        patch.object(min_max, "LEAST_PER_MATCH", rng.choice([-1, 16])),
        patch.object(min_max, "LEAST_PER_EVENT", -1),
        patch.object(auto, "weigh", choose.weigh if chance(rng, 50) else any_costs(rng)),
    ):
        try:
            if case.query.limit is None and chance(rng, 40):
                check_count(*case, cut, strategy=strategy)
            return len(check(*case, cut, strategy=strategy, restarts=restarts))
        except OptionError as error:
            if error.code != "EC418":
                raise
        return len(check(*case, cut, restarts=restarts))


def _draw_zoned(rng: Random) -> Case:
    return with_zones(rng, draw_tangled_case(rng) if chance(rng, 20) else _draw_any(rng))


def _check_zoned(case: Case, rng: Random) -> int:
    with warnings.catch_warnings():
        # A moment with a zone against a column without one, or such columns against each other.
        warnings.simplefilter("ignore", EventCubeWarning)
        return _check_exact(case, rng)


def _check_exact(case: Case, rng: Random) -> int:
    # Without events nobody says which columns there are.
    return _check_restored(case, rng) if case.events else 0


MODES: Mapping[str, Mode] = {
    "matches": Mode(draw_case, _check_matches),
    "tangled": Mode(draw_tangled_case, _check_matches),
    "rows": Mode(_draw_rows, _check_rows),
    "restored": Mode(_draw_any, _check_restored),
    "together": Mode(draw_case, _check_together),
    "separate": Mode(_draw_rows, check_separate),
    "workload": Mode(draw_workload, check_workload),
    "changed": Mode(draw_workload, check_changed),
    "drilled": Mode(draw_drilled, check_changed),
    "spread": Mode(draw_spread, check_spread),
    "stream": Mode(draw_streamed, check_streamed),
    "totals": Mode(draw_totals, check_totals),
    "many": Mode(draw_many, check_enumerated),
    "ended": Mode(draw_ended, check_ended),
    "unruly": Mode(draw_unruly_case, _check_unruly),
    "views": Mode(draw_nested, _check_views),
    "purged": Mode(draw_purged_case, _check_purged),
    "exact": Mode(draw_exact_case, _check_exact),
    "inequalities": Mode(draw_inequalities, check_inequalities),
    "zones": Mode(_draw_zoned, _check_zoned),
    "advice": Mode(draw_pointed_case, check_advice),
}
