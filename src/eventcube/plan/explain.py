"""The plan of a query in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.language.parse import parse
from eventcube.language.printer import print_qual, print_query, print_value, print_window
from eventcube.language.syntax import CountWindow, Query
from eventcube.options import REWRITE, options
from eventcube.plan.bind import bind
from eventcube.plan.build import build
from eventcube.plan.flat_text import flat_lines
from eventcube.plan.logical import LogicalQuery, PredicateClass, Region, regions
from eventcube.plan.physical import (
    Absent,
    Apart,
    Bind,
    Compare,
    Filter,
    Fits,
    Inner,
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
    yield from _steps(plan.program, plan, 1, {})
    if plan.flat is not None:
        yield "  or, where that should cost less, with the nested parts bound like the rest"
    yield from flat_lines(logical, plan.ways)
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


def _steps(program: Program, plan: PhysicalQuery, depth: int, ways: Mapping[str, str]) -> Iterator[str]:
    """The steps in words; `ways` are the strategies of parts inside a part that is kept as a view."""
    indent = "  " * depth
    slots = plan.logical.slots
    for step in program:
        match step:
            case Bind():
                slot = slots[step.slot]
                types = "" if slot.types is None or slot.types == {slot.type} else f" ({len(slot.types)} types)"
                head = f"take the last {slot.type} {slot.name}" if step.latest else f"bind {slot.name}: {slot.type}"
                yield f"{indent}{head}{types}{_where(step, plan)}"
            case Union(programs):
                yield f"{indent}any of"
                for i, inner in enumerate(programs, 1):
                    yield f"{indent}  {i}."
                    yield from _steps(inner, plan, depth + 2, ways)
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
            case Nested() | Reject():
                head = "nested part" if isinstance(step, Nested) else "remove if there is"
                where = _range(step.lower, step.upper, plan)
                yield f"{indent}{head} ({step.name}) {where}{_way(step, plan, ways)}"
                yield from _part(step, plan, depth + 1, ways)
            case _:
                assert_never(step)


def _way(part: Nested | Reject, plan: PhysicalQuery, ways: Mapping[str, str]) -> str:
    """The strategy of a nested part; a single negated event has none."""
    if isinstance(part, Reject) and any(s.name == part.name for s in plan.logical.slots):
        return ""
    inside = part.inner is None and part.name in ways
    return f", by {ways[part.name]} inside the view" if inside else f", by {part.way}"


def _part(part: Nested | Reject, plan: PhysicalQuery, depth: int, ways: Mapping[str, str]) -> Iterator[str]:
    """How a part is answered: by its flat cases, or by its steps or a view of what they find."""
    if part.inner is not None and part.way == REWRITE and isinstance(part, Reject) and part.flat is not None:
        yield f"{'  ' * depth}kept by flat cases"
        yield from _steps(part.flat, plan, depth + 1, ways)
        return
    if part.inner is not None:
        ways = dict(_ways_of(part.inner.program))
        yield from _view(part, part.inner, plan, depth, ways)
    yield from _steps(part.program, plan, depth, ways)


def _ways_of(program: Program) -> Iterator[tuple[str, str]]:
    """The strategies of the nested parts in a program, at any depth."""
    for step in program:
        match step:
            case Union(programs):
                for inner in programs:
                    yield from _ways_of(inner)
            case Nested(inner=None) | Reject(inner=None):
                yield from _ways_of(step.program)
            case Nested(inner=Inner() as inner) | Reject(inner=Inner() as inner):
                yield step.name, step.way
                yield from _ways_of((*inner.program, *inner.after))


def _view(
    part: Nested | Reject, inner: Inner, plan: PhysicalQuery, depth: int, ways: Mapping[str, str]
) -> Iterator[str]:
    """What a view of the part would be like."""
    indent = "  " * depth
    split = (
        "" if inner.link is None else f", split by {print_value(inner.link.inner)} = {print_value(inner.link.outer)}"
    )
    tuples = isinstance(part, Nested) or bool(inner.after) or (inner.link is not None and inner.link.end is None)
    yield f"{indent}a view keeps {'its results' if tuples else 'where the nearest result begins'}{split}"
    if inner.after:
        yield f"{indent}then, for each outer row"
        yield from _steps(inner.after, plan, depth + 1, ways)
    if isinstance(part, Reject):
        flat = "a flat form exists (strategy rewrite shows it)" if part.flat is not None else None
        yield f"{indent}{flat or f'no flat form: {part.refusal}'}"


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
