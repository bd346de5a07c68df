"""The rules, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from eventcube.plan.logical import LogicalQuery
from eventcube.plan.rules.bind_in_place import bind_in_place
from eventcube.plan.rules.compare_exactly import compare_exactly
from eventcube.plan.rules.fence_negated_events import fence_negated_events
from eventcube.plan.rules.flatten_negated import flatten_negated
from eventcube.plan.rules.infer_key import infer_key
from eventcube.plan.rules.merge_nested import merge_nested
from eventcube.plan.rules.split_negated_or import split_negated_or
from eventcube.plan.rules.take_latest import take_latest
from eventcube.plan.steps import Form, Program, Reject, StandalonePart, Step, rebuilt

LogicalRule = Callable[[LogicalQuery], LogicalQuery]
StepRule = Callable[[Program], Program]

# Rewrites of the bound query; each gives the same object back where it has nothing to do.
LOGICAL_RULES: tuple[LogicalRule, ...] = (
    compare_exactly,
    infer_key,
    split_negated_or,
    bind_in_place,
    merge_nested,
    flatten_negated,
)
# Rewrites of every program of the plan.
STEP_RULES: tuple[StepRule, ...] = (fence_negated_events,)
# Rewrites of a negated part's program, of which only the result that begins last matters.
NEAREST_RULES: tuple[StepRule, ...] = (take_latest,)

_Programs = TypeVar("_Programs")


def rewrite(query: LogicalQuery) -> tuple[LogicalQuery, tuple[str, ...]]:
    """The query after all logical rules, and the names of those that changed it."""
    if query.region.is_plain and not query.region.predicates:
        return query, ()
    fired: list[str] = []
    for rule in LOGICAL_RULES:
        before, query = query, rule(query)
        if query is not before:
            fired.append(rule.__name__)
    return query, tuple(fired)


def rewrite_steps(programs: _Programs) -> tuple[_Programs, tuple[str, ...]]:
    """The programs after all rules for steps, and the names of those that changed one."""
    fired: dict[str, None] = {}

    def apply(program: Program, rule: StepRule) -> Program:
        after = rule(program)
        if after != program:
            fired[rule.__name__] = None
        return after

    def with_nearest(form: Form) -> Form:
        if not isinstance(form, StandalonePart):
            return form
        return replace(form, nearest=reduce(apply, NEAREST_RULES, form.program))

    def change(node: Any) -> Any:
        if isinstance(node, tuple) and node and all(isinstance(step, Step) for step in node):
            return reduce(apply, STEP_RULES, node)
        if isinstance(node, Reject):
            return replace(node, forms=tuple(map(with_nearest, node.forms)))
        return node

    return rebuilt(programs, change), tuple(fired)
