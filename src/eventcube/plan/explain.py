"""The plan of a query in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.language.parse import parse
from eventcube.language.printer import print_qual, print_query, print_window
from eventcube.language.syntax import CountWindow, Query
from eventcube.options import REWRITE, options
from eventcube.plan.expressions import Expression
from eventcube.plan.flat_text import flat_lines
from eventcube.plan.logical import LogicalQuery, PredicateClass, Region, regions
from eventcube.plan.never_applied import no_match_has
from eventcube.plan.planned import Planned, plan_query
from eventcube.plan.result import result_schema
from eventcube.plan.steps import (
    Absent,
    Bind,
    Bound,
    Compare,
    DistinctEvents,
    Filter,
    FilterByState,
    FlatCases,
    Nested,
    NoFlatForm,
    Part,
    Program,
    Reject,
    StandalonePart,
    Step,
    Term,
    Union,
    WithinWindow,
    form_of,
    recomputed,
)
from eventcube.plan.written import written


def explain(
    query: str | Query,
    schema: pa.Schema,
    *,
    concepts: Concepts | Mapping[str, Any] | None = None,
    **settings: Any,
) -> str:
    """How a query would run over events with these columns: keys, predicates by class, steps, and the result."""
    query = parse(query) if isinstance(query, str) else query
    concepts = Concepts(concepts) if isinstance(concepts, Mapping) else concepts
    chosen = options(**settings)
    return plan_text(plan_query(query, chosen.schema(schema), concepts, chosen))


def plan_text(plan: Planned) -> str:
    """A plan in words."""
    return "\n".join(_lines(plan))


def _lines(plan: Planned) -> Iterator[str]:
    logical = plan.logical
    yield print_query(logical.query)
    yield ""
    window = "none: every event can matter to every other" if logical.window is None else print_window(logical.window)
    yield f"window      {window}"
    yield f"split by    {_split(logical)}"
    yield f"reads       {', '.join(logical.columns) or 'no column beyond time and type'}"
    when = "once the window of a match has closed" if plan.physical.forward else "at the last event of a match"
    yield f"reports     {when}"
    yield "predicates"
    shown = [line for region in regions(logical.region) for line in _predicates(region, plan)]
    yield from shown or ["  none"]
    yield "steps"
    yield from _steps(plan.physical.program, plan, 1, {})
    for alternative in plan.physical.alternatives[1:]:
        yield f"  or {alternative.name}, if that should cost less: the nested parts bound like the rest"
    yield from flat_lines(logical, plan.choice)
    yield "result"
    for field in result_schema(logical):
        yield f"  {field.name}: {field.type}"


def _split(logical: LogicalQuery) -> str:
    """The columns that the work can be split by: a window that counts events counts those of other keys, too."""
    own = logical.schema.partition_by
    if isinstance(logical.window, CountWindow):
        return ", ".join(own) or "nothing (a window of events is split only by partition_by)"
    key = (*own, *(k for k in logical.key if k not in own))
    return ", ".join(key) or "nothing (no equality covers all components)"


def _predicates(region: Region, plan: Planned) -> Iterator[str]:
    for predicate in region.predicates:
        kind = "key" if predicate.condition in plan.logical.implied else predicate.kind.value
        where = "" if region.index == plan.logical.region.index else " (in a negated part)"
        use = {PredicateClass.LOCAL: " before any join"}.get(predicate.kind, "")
        yield f"  {kind:<9} {print_qual(predicate.qual)}{where}{use}"
    for predicate in region.never_applied:
        yield f"  {'never':<9} {print_qual(predicate.qual)}: not applied, as {no_match_has(predicate, plan.logical)}"


def _steps(program: Program, plan: Planned, depth: int, inside: Mapping[str, str]) -> Iterator[str]:
    """The steps in words; `inside` has the strategies of parts inside one that is kept as a view."""
    indent = "  " * depth
    slots = plan.logical.slots
    for step in program:
        match step:
            case Bind():
                slot = slots[step.slot]
                types = "" if slot.types is None or slot.types == {slot.type} else f" ({len(slot.types)} types)"
                kind = slot.type or "event of any type"
                head = f"take the last {kind} {slot.name}" if step.latest else f"bind {slot.name}: {kind}"
                yield f"{indent}{head}{types}{_where(step, plan)}"
            case Union(programs):
                yield f"{indent}any of"
                for i, inner in enumerate(programs, 1):
                    yield f"{indent}  {i}."
                    yield from _steps(inner, plan, depth + 2, inside)
            case Absent(absent):
                yield f"{indent}leave out {_names(absent, plan)}"
            case Filter(predicates):
                yield f"{indent}keep where {', '.join(p.text for p in predicates)}"
            case DistinctEvents(pairs):
                shown = ", ".join(f"{slots[a].name} is not {slots[b].name}" for a, b in pairs)
                yield f"{indent}keep where {shown}"
            case FilterByState(own, forward, states):
                which = "first" if forward else "last"
                named = " or ".join(sorted(s.name.lower() for s in states))
                yield f"{indent}keep where the {which} of {_names(own, plan)} is {named}"
            case WithinWindow(own):
                yield f"{indent}keep where {_names(own, plan)} lie in one window"
            case Nested() | Reject():
                head = "nested part" if isinstance(step, Nested) else "remove if there is"
                where = _range(step.lower, step.upper, plan)
                yield f"{indent}{head} ({step.name}) {where}{_strategy(step, plan, inside)}"
                yield from _part(step, plan, depth + 1, inside)
            case _:
                assert_never(step)


def _strategy(part: Nested | Reject, plan: Planned, inside: Mapping[str, str]) -> str:
    """The strategy of a nested part; a single negated event has none."""
    if isinstance(part, Reject) and any(s.name == part.name for s in plan.logical.slots):
        return ""
    if form_of(part, StandalonePart) is None and part.name in inside:
        return f", by {inside[part.name]} inside the view"
    return f", by {part.strategy}"


def _part(part: Part, plan: Planned, depth: int, inside: Mapping[str, str]) -> Iterator[str]:
    """How a part is answered: by its flat cases, or by its steps or a view of what they find."""
    flat, standalone = form_of(part, FlatCases), form_of(part, StandalonePart)
    if part.strategy == REWRITE and flat is not None:
        yield f"{'  ' * depth}kept by flat cases"
        yield from _steps(flat.program, plan, depth + 1, inside)
        return
    if standalone is not None:
        inside = {inner.name: inner.strategy for inner in parts_with_strategies(standalone.program)}
        yield from _view(part, standalone, plan, depth, inside)
    yield from _steps(recomputed(part), plan, depth, inside)


def parts_with_strategies(program: Program) -> Iterator[Part]:
    """The nested parts in a program that a strategy answers, at any depth."""
    todo: list[Step] = list(program)
    seen: set[int] = set()
    while todo:
        step = todo.pop()
        if step.id in seen:
            continue
        seen.add(step.id)
        match step:
            case Union(programs):
                todo += (inner for branch in programs for inner in branch)
            case Nested() | Reject():
                standalone = form_of(step, StandalonePart)
                if standalone is None:
                    todo += recomputed(step)
                else:
                    yield step
                    todo += (*standalone.program, *standalone.residual)


def _view(
    part: Part, standalone: StandalonePart, plan: Planned, depth: int, inside: Mapping[str, str]
) -> Iterator[str]:
    """What a view of the part would be like."""
    indent, key = "  " * depth, standalone.key
    split = "" if key is None else f", split by {_written(key.inner, '=', key.outer, plan)}"
    tuples = isinstance(part, Nested) or bool(standalone.residual) or (key is not None and key.end is None)
    yield f"{indent}a view keeps {'its results' if tuples else 'where the nearest result begins'}{split}"
    if standalone.residual:
        yield f"{indent}then, for each outer row"
        yield from _steps(standalone.residual, plan, depth + 1, inside)
    refusal = form_of(part, NoFlatForm)
    if refusal is not None:
        yield f"{indent}no flat form: {refusal.reason}"
    elif form_of(part, FlatCases) is not None:
        yield f"{indent}a flat form exists (strategy rewrite shows it)"


def _where(bind: Bind, plan: Planned) -> str:
    parts = []
    if bind.lower is None or bind.upper is None:
        parts.append("each new event")
    else:
        parts.append(_range(bind.lower, bind.upper, plan))
    if bind.key is not None:
        parts.append(f"looked up by {_compare(bind.key, plan)}")
    parts += [f"where {_compare(c, plan)}" for c in bind.compare]
    if bind.distinct:
        parts.append(f"not the event of {_names(bind.distinct, plan)}")
    for fence in bind.fences:
        side = "after" if fence.new_is_earlier else "before"
        parts.append(f"no {plan.logical.slots[fence.slot].name} {side} that and {_limit(fence.limit, plan)}")
    parts += [f"then where {p.text}" for p in bind.filters]
    return ", " + ", ".join(parts)


def _compare(compare: Compare, plan: Planned) -> str:
    return _written(compare.new, compare.op, compare.bound, plan)


def _written(left: Expression, op: str, right: Expression, plan: Planned) -> str:
    slots = plan.logical.slots
    return f"{written(left, slots)} {op} {written(right, slots)}"


def _range(lower: Bound | None, upper: Bound | None, plan: Planned) -> str:
    shown = [_limit(limit, plan) for limit in (lower, upper) if limit is not None]
    match lower, upper:
        case Bound(Term.WINDOW_START, (a,)), Bound(Term.BEFORE_FIRST | Term.BEFORE_LAST, (b,)) if a == b:
            return shown[0]
        case Bound(Term.AFTER_LAST | Term.AFTER_FIRST, (a,)), Bound(Term.WINDOW_END, (b,)) if a == b:
            return shown[1]
        case Bound(Term.WINDOW_START, (a,)), Bound(Term.WINDOW_END, (b,)) if a == b:
            return f"{_reach(plan)} before or after {_names((a,), plan)}"
    return ", ".join(shown)


def _limit(limit: Bound, plan: Planned) -> str:
    single = len(limit.slots) == 1
    names = _names(limit.slots, plan)
    match limit.term:
        case Term.AFTER_LAST | Term.AFTER_FIRST if single:
            return f"after {names}"
        case Term.BEFORE_FIRST | Term.BEFORE_LAST if single:
            return f"before {names}"
        case Term.WINDOW_START:
            return f"{_reach(plan)} before {'' if single else 'the last of '}{names}"
        case Term.WINDOW_END:
            return f"{_reach(plan)} after {'' if single else 'the first of '}{names}"
        case Term.REGION_START | Term.REGION_END:
            return str(limit.term.value)
        case term:
            return f"{term.value!s} {names}"


def _reach(plan: Planned) -> str:
    """How far apart the events of a match may be."""
    match plan.logical.window:
        case None:
            return "any time"
        case CountWindow(events):
            return f"up to {events - 1} event{'' if events == 2 else 's'}"
        case window:
            return f"up to {print_window(window)}"


def _names(slots: tuple[int, ...], plan: Planned) -> str:
    return ", ".join(plan.logical.slots[s].name for s in slots)
