"""Nested parts of several queries that mean the same by themselves, and so can share one view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eventcube.nodes import walk
from eventcube.options import ITERATIVE, REWRITE
from eventcube.plan.step_tree import without_names
from eventcube.plan.steps import (
    Bound,
    Nested,
    Part,
    Program,
    Reject,
    StandalonePart,
    Step,
    Term,
    Union,
    WithinWindow,
    form_of,
    only_emptiness,
    recomputed,
)
from eventcube.plan.workload import StackKey, WorkloadQuery


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


def meaning(part: Part, stacks: Sequence[StackKey], width: int | None) -> object:
    """What parts that can share a view have in common, in queries that sort the events alike; None if there is no view.

    It is all that results depend on: events by their stacks instead of slots, and the window only where it matters.
    The intervals that are asked for, and tests against the events around, may differ.
    """
    inner = form_of(part, StandalonePart)
    if inner is None:
        return None
    nearest = only_emptiness(part)
    program = inner.nearest if nearest else inner.program
    key = None if inner.key is None else replace(inner.key, outer=inner.key.inner)
    numbers: dict[int, int] = {}
    same = without_names(
        replace(inner, program=program, nearest=(), key=key, residual=()),
        lambda slot: numbers.setdefault(slot, len(numbers)),
    )
    return same, nearest, tuple(stacks[slot] for slot in numbers), width if _needs_window(program) else None


def _needs_window(program: Program) -> bool:
    windows = (Term.WINDOW_START, Term.WINDOW_END)
    return any(
        isinstance(node, WithinWindow) or (isinstance(node, Bound) and node.term in windows) for node in walk(program)
    )


def meanings(query: WorkloadQuery) -> Iterator[tuple[object, Part]]:
    """The nested parts of a query, each after what it means."""
    for part in parts_with_strategies(query.plan.program):
        yield meaning(part, query.stacks, query.arrangement.width), part


def equal_parts(queries: Mapping[str, WorkloadQuery]) -> list[list[tuple[str, Part]]]:
    """The parts that share a view if their strategies keep one, each with the name of its query."""
    found: dict[object, list[tuple[str, Part]]] = {}
    for name, query in queries.items():
        # A query with LIMIT looks for matches by itself.
        for same, part in meanings(query) if query.plan.sink.limit is None else ():
            if part.strategy not in (ITERATIVE, REWRITE):
                key = query.arrangement.due_alike, part.strategy, same
                found.setdefault(key, []).append((name, part))
    return [parts for parts in found.values() if len(parts) > 1]
