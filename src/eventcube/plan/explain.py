"""The plan of a query in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.language.parse import parse
from eventcube.language.printer import print_pattern, print_qual, print_query, print_value, print_window
from eventcube.language.syntax import CountWindow, Query
from eventcube.options import REWRITE, options
from eventcube.plan.bind import bind
from eventcube.plan.build import build
from eventcube.plan.flat import flat_patterns
from eventcube.plan.logical import LogicalQuery, PredicateClass, Region, regions
from eventcube.plan.physical import (
    Absent,
    Apart,
    Bind,
    Compare,
    Filter,
    Fits,
    Limit,
    Nested,
    PhysicalQuery,
    Program,
    Reject,
    Stated,
    Term,
    Union,
)
from eventcube.plan.result import result_schema


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
    plan = build(bind(query, chosen.schema(schema), concepts), chosen.strategy)
    return "\n".join(_lines(plan))


def _lines(plan: PhysicalQuery) -> Iterator[str]:
    logical = plan.logical
    yield print_query(logical.query)
    yield ""
    window = "none: every event can matter to every other" if logical.window is None else print_window(logical.window)
    yield f"window      {window}"
    yield f"split by    {_split(logical)}"
    yield f"reads       {', '.join(logical.columns) or 'no column beyond time and type'}"
    yield f"reports     {'once the window of a match has closed' if plan.forward else 'at the last event of a match'}"
    yield "predicates"
    shown = [line for region in regions(logical.region) for line in _predicates(region, plan)]
    yield from shown or ["  none"]
    yield "steps"
    yield from _steps(plan.program, plan, 1)
    if plan.ways.default == REWRITE:
        yield "flat queries"
        for pattern in flat_patterns(logical.query.pattern):
            yield f"  {' '.join(print_pattern(pattern).split())}"
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


def _predicates(region: Region, plan: PhysicalQuery) -> Iterator[str]:
    for predicate in region.predicates:
        kind = "key" if predicate.qual in plan.logical.implied else predicate.kind.value
        where = "" if region.index == plan.logical.region.index else " (in a negated part)"
        use = {PredicateClass.LOCAL: " before any join"}.get(predicate.kind, "")
        yield f"  {kind:<9} {print_qual(predicate.qual)}{where}{use}"


def _steps(program: Program, plan: PhysicalQuery, depth: int) -> Iterator[str]:
    indent = "  " * depth
    slots = plan.logical.slots
    for step in program:
        match step:
            case Bind():
                slot = slots[step.slot]
                types = "" if slot.types is None or slot.types == {slot.type} else f" ({len(slot.types)} types)"
                yield f"{indent}bind {slot.name}: {slot.type}{types}{_where(step, plan)}"
            case Union(programs):
                yield f"{indent}any of"
                for i, inner in enumerate(programs, 1):
                    yield f"{indent}  {i}."
                    yield from _steps(inner, plan, depth + 2)
            case Absent(absent):
                yield f"{indent}leave out {_names(absent, plan)}"
            case Filter(predicates):
                yield f"{indent}keep where {', '.join(print_qual(p.qual) for p in predicates)}"
            case Apart(pairs):
                shown = ", ".join(f"{slots[a].name} is not {slots[b].name}" for a, b in pairs)
                yield f"{indent}keep where {shown}"
            case Stated(own, forward, states):
                which = "first" if forward else "last"
                named = " or ".join(sorted(s.name.lower() for s in states))
                yield f"{indent}keep where the {which} of {_names(own, plan)} is {named}"
            case Fits(own):
                yield f"{indent}keep where {_names(own, plan)} lie in one window"
            case Nested():
                yield f"{indent}nested part ({step.name}) {_range(step.lower, step.upper, plan)}{_way(step)}"
                yield from _view(step, plan, depth + 1)
                yield from _steps(step.program, plan, depth + 1)
            case Reject():
                yield f"{indent}remove if there is ({step.name}) {_range(step.lower, step.upper, plan)}{_way(step)}"
                yield from _view(step, plan, depth + 1)
                yield from _steps(step.program, plan, depth + 1)
            case _:
                assert_never(step)


def _way(part: Nested | Reject) -> str:
    return f", by {part.way}" if part.inner is not None else ""


def _view(part: Nested | Reject, plan: PhysicalQuery, depth: int) -> Iterator[str]:
    """What a view of the part would be like."""
    indent, inner = "  " * depth, part.inner
    if inner is None:
        return
    if part.way == REWRITE and isinstance(part, Reject) and part.flat is not None:
        yield f"{indent}kept by flat cases"
        yield from _steps(part.flat, plan, depth + 1)
        return
    split = (
        "" if inner.link is None else f", split by {print_value(inner.link.inner)} = {print_value(inner.link.outer)}"
    )
    tuples = isinstance(part, Nested) or bool(inner.after) or (inner.link is not None and inner.link.end is None)
    yield f"{indent}a view keeps {'its results' if tuples else 'where the nearest result begins'}{split}"
    if inner.after:
        yield f"{indent}then, for each outer row"
        yield from _steps(inner.after, plan, depth + 1)
    if isinstance(part, Reject):
        yield f"{indent}{'a flat form exists' if part.flat is not None else f'no flat form: {part.refusal}'}"


def _where(bind: Bind, plan: PhysicalQuery) -> str:
    parts = []
    if bind.lower is None or bind.upper is None:
        parts.append("every event that is due")
    else:
        parts.append(_range(bind.lower, bind.upper, plan))
    if bind.key is not None:
        parts.append(f"looked up by {_compare(bind.key)}")
    parts += [f"where {_compare(c)}" for c in bind.compare]
    if bind.distinct:
        parts.append(f"not the event of {_names(bind.distinct, plan)}")
    for fence in bind.fences:
        side = "after" if fence.new_is_earlier else "before"
        parts.append(f"no {plan.logical.slots[fence.slot].name} {side} that and {_limit(fence.limit, plan)}")
    parts += [f"then where {print_qual(p.qual)}" for p in bind.filters]
    return ", " + ", ".join(parts)


def _compare(compare: Compare) -> str:
    return f"{print_value(compare.new)} {compare.op} {print_value(compare.bound)}"


def _range(lower: Limit | None, upper: Limit | None, plan: PhysicalQuery) -> str:
    return ", ".join(_limit(limit, plan) for limit in (lower, upper) if limit is not None)


def _limit(limit: Limit, plan: PhysicalQuery) -> str:
    single = len(limit.slots) == 1
    names = _names(limit.slots, plan)
    match limit.term:
        case Term.AFTER_LAST | Term.AFTER_FIRST if single:
            return f"after {names}"
        case Term.BEFORE_FIRST | Term.BEFORE_LAST if single:
            return f"before {names}"
        case Term.REGION_START | Term.REGION_END:
            return str(limit.term.value)
        case term:
            return f"{term.value!s} {names}"


def _names(slots: tuple[int, ...], plan: PhysicalQuery) -> str:
    return ", ".join(plan.logical.slots[s].name for s in slots)
