"""The steps of a plan in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import assert_never

from eventcube.language.printer import print_window
from eventcube.language.syntax import CountWindow
from eventcube.options import REWRITE
from eventcube.plan.equal_parts import parts_with_strategies
from eventcube.plan.expressions import Expression
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.steps import (
    Absent,
    Bind,
    BindClusters,
    Bound,
    Compare,
    DistinctEvents,
    ExpandClusters,
    Filter,
    FilterByState,
    FlatCases,
    InOrder,
    KeepLatest,
    Narrow,
    Nested,
    NoFlatForm,
    Part,
    Program,
    Reject,
    StandalonePart,
    State,
    Term,
    Union,
    WithinWindow,
    form_of,
    recomputed,
)
from eventcube.plan.value_text import value_text


def step_lines(
    program: Program, query: LogicalQuery, depth: int = 0, inside: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """The steps in words; `inside` has the strategies of parts inside a view."""
    indent = "  " * depth
    slots = query.slots
    for step in program:
        match step:
            case Bind():
                slot = slots[step.slot]
                types = "" if slot.types is None or slot.types == {slot.type} else f" ({len(slot.types)} types)"
                kind = slot.type or "event of any type"
                head = f"take the last {kind} {slot.name}" if step.latest else f"bind {slot.name}: {kind}"
                yield f"{indent}{head}{types}{_bind_text(step, query)}"
            case BindClusters(bind):
                (line,) = step_lines((bind,), query, depth)
                yield line.replace("bind ", "bind clusters of ", 1)
            case ExpandClusters(clustered):
                yield f"{indent}expand the clusters of {_slot_names(clustered, query)}"
            case Union(programs):
                yield f"{indent}any of"
                for i, inner in enumerate(programs, 1):
                    yield f"{indent}  {i}."
                    yield from step_lines(inner, query, depth + 2, inside)
            case Absent(absent):
                yield f"{indent}leave out {_slot_names(absent, query)}"
            case Filter(predicates):
                yield f"{indent}keep where {', '.join(p.text for p in predicates)}"
            case DistinctEvents(pairs):
                differing = ", ".join(f"{slots[a].name} is not {slots[b].name}" for a, b in pairs)
                yield f"{indent}keep where {differing}"
            case FilterByState(compared, forward, states):
                which = "first" if forward else "last"
                named = " or ".join(sorted(s.name.lower() for s in states))
                yield f"{indent}keep where the {which} of {_slot_names(compared, query)} is {named}"
            case WithinWindow(compared):
                yield f"{indent}keep where {_slot_names(compared, query)} lie in one window"
            case InOrder(pairs):
                ordered = ", ".join(f"{slots[a].name} is before {slots[b].name}" for a, b in pairs)
                yield f"{indent}keep where {ordered}"
            case Narrow(narrowed):
                narrow = slots[narrowed]
                yield f"{indent}keep where {narrow.name} fits: {narrow.type or 'any type'}, with its own conditions"
            case KeepLatest(bind):
                yield f"{indent}keep where {slots[bind.slot].name} is the latest{_bind_text(bind, query)}"
            case Nested() | Reject():
                head = "nested part" if isinstance(step, Nested) else "remove if there is"
                where = _range_text(step.lower, step.upper, query)
                yield f"{indent}{head} ({step.name}) {where}{_strategy_text(step, query, inside)}"
                yield from _part_lines(step, query, depth + 1, inside)
            case _:
                assert_never(step)


def _strategy_text(part: Nested | Reject, query: LogicalQuery, inside: Mapping[str, str]) -> str:
    """The strategy of a nested part; a single negated event has none."""
    if isinstance(part, Reject) and any(s.name == part.name for s in query.slots):
        return ""
    if form_of(part, StandalonePart) is None and part.name in inside:
        return f", by {inside[part.name]} inside the view"
    return f", by {part.strategy}"


def _part_lines(part: Part, query: LogicalQuery, depth: int, inside: Mapping[str, str]) -> Iterator[str]:
    """How a part is answered: by its flat cases, by its steps, or by a view."""
    flat, standalone = form_of(part, FlatCases), form_of(part, StandalonePart)
    if part.strategy == REWRITE and flat is not None:
        yield f"{'  ' * depth}kept by flat cases"
        yield from step_lines(flat.program, query, depth + 1, inside)
        return
    if standalone is not None:
        inside = {inner.name: inner.strategy for inner in parts_with_strategies(standalone.program)}
        yield from _view_lines(part, standalone, query, depth, inside)
    yield from step_lines(recomputed(part), query, depth, inside)


def _view_lines(
    part: Part, standalone: StandalonePart, query: LogicalQuery, depth: int, inside: Mapping[str, str]
) -> Iterator[str]:
    """The view of a part."""
    indent, key = "  " * depth, standalone.key
    split = "" if key is None else f", split by {_comparison_text(key.inner, '=', key.outer, query)}"
    tuples = isinstance(part, Nested) or bool(standalone.residual) or (key is not None and key.end is None)
    yield f"{indent}a view keeps {'its results' if tuples else 'where the nearest result begins'}{split}"
    if standalone.residual:
        yield f"{indent}then, for each outer row"
        yield from step_lines(standalone.residual, query, depth + 1, inside)
    refusal = form_of(part, NoFlatForm)
    if refusal is not None:
        yield f"{indent}no flat form: {refusal.reason}"
    elif form_of(part, FlatCases) is not None:
        yield f"{indent}a flat form exists (strategy rewrite shows it)"


def _bind_text(bind: Bind, query: LogicalQuery) -> str:
    parts = []
    if bind.lower is None or bind.upper is None:
        parts.append("each new event" if bind.states else "each event")
    else:
        parts += ["new"] if bind.states == frozenset({State.DUE}) else []
        parts.append(_range_text(bind.lower, bind.upper, query))
    if bind.key is not None:
        parts.append(f"looked up by {_compare_text(bind.key, query)}")
    parts += [f"where {_compare_text(c, query)}" for c in bind.compare]
    if bind.distinct:
        parts.append(f"not the event of {_slot_names(bind.distinct, query)}")
    for fence in bind.fences:
        side = "after" if fence.new_is_earlier else "before"
        parts.append(f"no {query.slots[fence.slot].name} {side} that and {_bound_text(fence.bound, query)}")
    parts += [f"then where {p.text}" for p in bind.filters]
    return ", " + ", ".join(parts)


def _compare_text(compare: Compare, query: LogicalQuery) -> str:
    return _comparison_text(compare.new, compare.op, compare.bound, query)


def _comparison_text(left: Expression, op: str, right: Expression, query: LogicalQuery) -> str:
    slots = query.slots
    return f"{value_text(left, slots)} {op} {value_text(right, slots)}"


def _range_text(lower: Bound | None, upper: Bound | None, query: LogicalQuery) -> str:
    texts = [_bound_text(bound, query) for bound in (lower, upper) if bound is not None]
    match lower, upper:
        case Bound(Term.WINDOW_START, (a,)), Bound(Term.BEFORE_FIRST | Term.BEFORE_LAST, (b,)) if a == b:
            return texts[0]
        case Bound(Term.AFTER_LAST | Term.AFTER_FIRST, (a,)), Bound(Term.WINDOW_END, (b,)) if a == b:
            return texts[1]
        case Bound(Term.REGION_START), Bound(Term.REGION_END):
            return "there"
        case Bound(Term.WINDOW_START, (a,)), Bound(Term.WINDOW_END, (b,)) if a == b:
            return f"{_window_text(query)} before or after {_slot_names((a,), query)}"
    return ", ".join(texts)


def _bound_text(bound: Bound, query: LogicalQuery) -> str:
    single = len(bound.slots) == 1
    names = _slot_names(bound.slots, query)
    match bound.term:
        case Term.AFTER_LAST | Term.AFTER_FIRST if single:
            return f"after {names}"
        case Term.BEFORE_FIRST | Term.BEFORE_LAST if single:
            return f"before {names}"
        case Term.WINDOW_START:
            return f"{_window_text(query)} before {'' if single else 'the last of '}{names}"
        case Term.WINDOW_END:
            return f"{_window_text(query)} after {'' if single else 'the first of '}{names}"
        case Term.REGION_START | Term.REGION_END:
            return str(bound.term.value)
        case term:
            return f"{term.value!s} {names}"


def _window_text(query: LogicalQuery) -> str:
    """The largest distance between events of a match."""
    match query.window:
        case None:
            return "any time"
        case CountWindow(events):
            return f"up to {events - 1} event{'' if events == 2 else 's'}"
        case window:
            return f"up to {print_window(window)}"


def _slot_names(slots: tuple[int, ...], query: LogicalQuery) -> str:
    return ", ".join(query.slots[s].name for s in slots)
