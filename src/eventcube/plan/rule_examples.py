"""Examples of rules at work on a query, for documentation and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from eventcube.language.parse import parse
from eventcube.language.printer import print_pattern, print_qual
from eventcube.nodes import walk
from eventcube.options import AUTO, StrategyChoice, options
from eventcube.plan.bind import bind
from eventcube.plan.build import program_of
from eventcube.plan.expressions import ColumnRef, Encoding
from eventcube.plan.flat_queries import case_texts
from eventcube.plan.logical import FlatForm, Leaf, LogicalQuery, Negation, Node, regions
from eventcube.plan.parts import part_label, with_strategies
from eventcube.plan.rules.rewrite import rewrite
from eventcube.plan.step_text import step_lines
from eventcube.plan.steps import Program
from eventcube.plan.unbind import Unbinder

_COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "type": pa.string(),
        "k": pa.int64(),
        "x": pa.int64(),
        "y": pa.float64(),
        "amount": pa.decimal128(20, 2),
    }
)


def show(rule: Callable[[LogicalQuery], LogicalQuery], pattern: str, strategy: str | None = AUTO) -> None:
    """Print a query before and after a rule; without a strategy, nested parts are bound with the rest."""
    query = _bound(pattern, strategy)
    after = rule(query)
    print(outline(query), "→", "the same" if after is query else outline(after), sep="\n")


def show_steps(rule: Callable[[Program], Program], pattern: str) -> None:
    """Print the steps of a query before and after a rule."""
    query, _ = rewrite(_bound(pattern, AUTO))
    program, _ = program_of(query)
    after = rule(program)
    lines = [*step_lines(program, query), "→", *(["the same"] if after == program else step_lines(after, query))]
    print("\n".join(lines))


def _bound(pattern: str, strategy: str | None) -> LogicalQuery:
    query = bind(parse(f"PATTERN {pattern}"), options(type="type").schema(_COLUMNS))
    return query if strategy is None else with_strategies(query, StrategyChoice(strategy))


def outline(query: LogicalQuery) -> str:
    """A bound query on one line, and below it what its text does not show: key, ranks, strategies, flat forms."""
    unbinder = Unbinder(query, keyed=False)
    where = " AND ".join(print_qual(qual) for qual in unbinder.where())
    first = print_pattern(unbinder.pattern()) + (f" WHERE {where}" if where else "")
    return "\n".join([first, *(f"  {note}" for note in _notes(query))])


def _notes(query: LogicalQuery) -> Iterator[str]:
    if query.key:
        yield f"key: {', '.join(query.key)}"
    conditions = [p.condition for region in regions(query.region) for p in region.predicates]
    refs = [node for condition in conditions for node in walk(condition) if isinstance(node, ColumnRef)]
    ranked = dict.fromkeys(f"{query.slots[r.slot].name}.{r.column}" for r in refs if r.encoding is Encoding.RANK)
    if ranked:
        yield f"by rank: {', '.join(ranked)}"
    yield from _notes_in(query.region.node, query)


def _notes_in(node: Node, query: LogicalQuery) -> Iterator[str]:
    for part in () if isinstance(node, Leaf) else node.parts:
        inner = part.region.node if isinstance(part, Negation) else part
        label = part_label(inner, query.slots)
        match part:
            case Negation(flat=FlatForm() as form):
                yield f"!({label}): {', or '.join(case_texts(form, Unbinder(query, keyed=False)))}"
            case Negation() | Leaf():
                pass
            case _ if part.strategy is not None:
                yield f"({label}): by {part.strategy}"
        yield from _notes_in(inner, query)
