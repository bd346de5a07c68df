"""The plan of several queries in words: the stacks that they share, and the tree of their steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eventcube.language.printer import print_qual, print_query, print_window
from eventcube.options import INDEPENDENT
from eventcube.plan.equal_parts import equal_parts
from eventcube.plan.logical import PredicateClass, regions
from eventcube.plan.physical import GROUPS, MADE
from eventcube.plan.planned import Planned
from eventcube.plan.step_text import step_lines
from eventcube.plan.step_tree import Branch, Leaf, Node, shareable, step_tree
from eventcube.plan.steps import Program
from eventcube.plan.workload import Arrangement, WorkloadPlan, WorkloadQuery

# Stacks that are listed, and components of each.
_SHOWN_STACKS, _SHOWN_USERS = 20, 8


def workload_lines(plans: Mapping[str, Planned], workload: WorkloadPlan) -> Iterator[str]:
    """A workload in words."""
    for name, planned in plans.items():
        yield f"{name}: {' '.join(print_query(planned.logical.query).split())}"
    yield ""
    yield f"reads       {', '.join(workload.columns) or 'no column beyond time and type'}, once for all queries"
    used = sum(len(query.stacks) for query in workload.queries.values())
    yield f"stacks      {len(workload.stacks)} lists of events by type and own conditions, for {used} components"
    yield from _stacks(plans, workload)
    yield from _views(workload)
    counted = [name for name, query in workload.queries.items() if query.plan.sink.name in MADE]
    if counted:
        by_cost = all(workload.queries[name].plan.sink.by_cost for name in counted)
        unless = ", or from all matches, if that should cost less" if by_cost else ""
        yield f"aggregates  of {_shown(counted)}: without making matches, counted by stages{unless}"
    groups: dict[Arrangement, list[str]] = {}
    for name, query in workload.queries.items():
        if name in counted:
            continue
        groups.setdefault(query.arrangement, []).append(name)
    for arrangement, names in groups.items():
        yield f"steps of {', '.join(names)}: {_arrangement(arrangement, plans[names[0]])}"
        backward = {name: workload.queries[name].plan.program for name in names}
        yield from _tree(backward, plans, workload, 1)
        from_start = {name: p for name in names if (p := workload.queries[name].from_start) is not None}
        if len(from_start) > 1:
            yield "  or from the first components on, where that should cost less"
            yield from _tree(from_start, plans, workload, 2)


def _stacks(plans: Mapping[str, Planned], workload: WorkloadPlan) -> Iterator[str]:
    """The stacks, those of most components first, with who uses each."""
    users: dict[int, list[str]] = {}
    texts: dict[int, str] = {}
    for name, query in workload.queries.items():
        logical = plans[name].logical
        for slot, number in zip(logical.slots, query.stacks, strict=True):
            users.setdefault(number, []).append(f"{name}.{slot.name}")
            own = [
                print_qual(predicate.qual)
                for region in regions(logical.region)
                for predicate in region.predicates
                if predicate.kind is PredicateClass.LOCAL and predicate.slots == {slot.index}
            ]
            texts.setdefault(number, ", ".join([slot.type or "any type", *own]))
    by_use = sorted(users, key=lambda number: -len(users[number]))
    for number in by_use[:_SHOWN_STACKS]:
        yield f"  {texts[number]}: {_shown(users[number])}"
    if len(by_use) > _SHOWN_STACKS:
        yield f"  and {len(by_use) - _SHOWN_STACKS} more"


def _views(workload: WorkloadPlan) -> Iterator[str]:
    """The nested parts of which views keep results once for several queries."""
    equal = equal_parts(workload.queries) if workload.sharing != INDEPENDENT else []
    if equal:
        yield "views       shared by equal nested parts, if their strategies keep results"
    for parts in equal:
        yield f"  {_shown([f'{name} ({part.name})' for name, part in parts])}"


def _shown(users: Sequence[str]) -> str:
    more = f" and {len(users) - _SHOWN_USERS} more" if len(users) > _SHOWN_USERS else ""
    return f"{', '.join(users[:_SHOWN_USERS])}{more}"


def _arrangement(arrangement: Arrangement, planned: Planned) -> str:
    window = planned.logical.window
    parts = ["no window" if window is None else f"within {print_window(window)}"]
    if arrangement.sort_key:
        parts.append(f"split by {', '.join(arrangement.sort_key)}")
    parts.append("reported once the window has closed" if arrangement.forward else "reported at the last event")
    return ", ".join(parts)


def branch(name: str, query: WorkloadQuery, program: Program) -> Branch:
    """A program of a query for a tree of steps."""
    only_counts = query.plan.sink.name == GROUPS and query.plan.sink.results.only_counts
    return Branch(name, program, query.stacks, shareable(program, counted=only_counts))


def _tree(
    programs: Mapping[str, Program], plans: Mapping[str, Planned], workload: WorkloadPlan, depth: int
) -> Iterator[str]:
    # A query with LIMIT looks for matches by itself.
    shared = [
        branch(name, workload.queries[name], program)
        for name, program in programs.items()
        if workload.queries[name].plan.sink.limit is None
    ]
    tree = step_tree(shared)
    yield from _below(tree.nodes, tree.leaves, programs, plans, depth, 0)
    alone = [Leaf(name, {}, program) for name, program in programs.items() if name not in {b.query for b in shared}]
    yield from _below((), alone, programs, plans, depth, 0)


def _below(
    nodes: Sequence[Node],
    leaves: Sequence[Leaf],
    programs: Mapping[str, Program],
    plans: Mapping[str, Planned],
    depth: int,
    done: int,
) -> Iterator[str]:
    """What follows after so many steps, which the queries have in common."""
    indent = "  " * depth
    for node in nodes:
        names = [leaf.query for leaf in node.all_leaves()]
        # In the names of the first of them.
        first = names[0]
        lines = list(step_lines(programs[first][done : done + 1], plans[first].logical, depth))
        yield f"{lines[0]}  [{', '.join(names)}]"
        yield from lines[1:]
        yield from _below(node.nodes, node.leaves, programs, plans, depth + 1, done + 1)
    for leaf in leaves:
        yield f"{indent}{leaf.query}:" if leaf.rest else f"{indent}{leaf.query}"
        yield from step_lines(leaf.rest, plans[leaf.query].logical, depth + 1)
