"""Bind the result clauses of a query: RETURN, GROUPBY, AGG and HAVING."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.errors import Diagnostic, Span, did_you_mean
from eventcube.language.printer import column_name, print_value
from eventcube.language.syntax import Aggregate, Attribute, Column, Every, Item, Level, Levels, Query, Value, Variable
from eventcube.nodes import children, with_children
from eventcube.plan.bind_expressions import ExpressionBinder
from eventcube.plan.expressions import GROUP, ColumnRef, Constant, Expression, Translate
from eventcube.plan.functions import Report
from eventcube.plan.levels import LevelKey, level_key
from eventcube.plan.logical import AggregateColumn, EventColumn, Results, Slot, ValueColumn
from eventcube.plan.result import aggregate_type, computed, group_columns
from eventcube.schema import EventSchema, GroupColumns, Kind

_NULL = Constant(None, Kind.NULL)


@dataclass(frozen=True, slots=True)
class ResultBinder:
    """Binds the result clauses of one query.

    `resolved` says whether all names in a value are known, and reports the others; `slots` are those of a match.
    """

    query: Query
    schema: EventSchema
    concepts: Concepts | None
    resolved: Callable[[Value], bool]
    slots: Sequence[Slot]
    report: Report

    def bind(self) -> Results:
        """Bind the clauses; the outcome is unusable if a problem was reported."""
        query = self.query
        if not query.agg:
            items = query.returns or tuple(Item(Variable(slot.name)) for slot in self.slots)
            return Results(tuple(self._returned(item) for item in items))
        results = Results(
            (),
            tuple(self._key(item) for item in query.group_by),
            tuple(self._aggregate(a) for a in query.agg),
            len(query.agg),
            per=None if query.per is None else self._event(query.per, query.per.name),
            levels=tuple(self._level_keys()),
        )
        return self._having(results) if query.having else results

    def _returned(self, item: Item) -> EventColumn | ValueColumn:
        if not isinstance(item.value, Variable):
            return self._column(item)
        name = column_name(item)
        return self._event(item.value, name) or ValueColumn(name, computed(_NULL, self.schema))

    def _event(self, variable: Variable, name: str) -> EventColumn | None:
        """The column with a variable's event; None for an unknown one."""
        slot = self._slot(variable.name)
        return None if slot is None else EventColumn(name, slot, pa.struct(list(self.schema.visible)))

    def _column(self, item: Item) -> ValueColumn:
        match item.value:
            case Variable() as variable:
                value: Expression = self._type(variable, "group by")
            case Level() as level:
                value = _NULL if self._slot(level.name) is None else self._level(level)
            case Levels() as levels:
                value = self._type(levels, "roll up")
            case Every() as every:
                value = self._binder().bucket(every) if self.resolved(every.value) else _NULL
            case unbound:
                value = self._value(unbound)
        return ValueColumn(column_name(item), computed(value, self.schema))

    def _slot(self, name: str) -> int | None:
        """The slot of a variable; None for an unknown one, which was reported before."""
        return next((slot.index for slot in self.slots if slot.name == name), None)

    def _value(self, value: Value) -> Expression:
        """Bind a value; one with unknown names is null."""
        return self._binder().value(value) if self.resolved(value) else _NULL

    def _binder(self) -> ExpressionBinder:
        return ExpressionBinder(self.schema, {slot.name: slot.index for slot in self.slots}, self.report)

    def _level(self, level: Level) -> Expression:
        type_ = self._type(level, "take a level of")
        if self.concepts is None:
            hint = 'give one: concepts={"Computer": ["Dell", "Lenovo"]}, or --concepts kinds.yaml'
            self._problem("EC224", "AT LEVEL needs a hierarchy of types", level.span, hint)
            return type_
        return Translate(type_, self.concepts.at_level(level.level))

    def _type(self, variable: Variable | Level | Levels, purpose: str) -> Expression:
        """The type of a variable's event."""
        slot = self._slot(variable.name)
        if self.schema.type is None:
            hint = "group by an attribute, or name a type column"
            self._problem("EC206", f"events have no type to {purpose}", variable.span, hint)
        if slot is None or self.schema.type is None:
            return _NULL
        return self._binder().column(slot, self.schema.type)

    def _level_keys(self) -> Iterator[LevelKey]:
        types = {slot.name: slot.type for slot in self.slots}
        for number, item in enumerate(self.query.group_by):
            top = types.get(item.value.name) if isinstance(item.value, Levels) else None
            if top is not None:
                yield level_key(number, f"{column_name(item)}_level", top, self.concepts or Concepts({}))

    def _key(self, item: Item) -> ValueColumn:
        key = self._column(item)
        if isinstance(key.value.expression, ColumnRef) and pa.types.is_nested(key.value.type):
            self._problem("EC216", f"cannot group by {Kind.OTHER.value}: {key.value.type}", item.span)
        return key

    def _aggregate(self, agg: Aggregate) -> AggregateColumn:
        argument = None if agg.argument is None else computed(self._value(agg.argument), self.schema)
        if argument is not None:
            kind = argument.expression.kind
            summable = kind.numeric or kind in (Kind.DURATION, Kind.NULL)
            if kind is Kind.OTHER or (agg.function in ("SUM", "AVG") and not summable):
                hint = "SUM and AVG take numbers and durations; MIN, MAX and COUNT take text and times, too"
                self._problem("EC215", f"cannot take {agg.function} of {kind.value}", agg.span, hint)
        type_ = aggregate_type(agg.function, argument)
        return AggregateColumn(column_name(agg), agg.function, argument, agg.distinct, type_)

    def _having(self, results: Results) -> Results:
        rewriter = _HavingRewriter(self.query, self._problem)
        quals = [rewriter(qual) for qual in self.query.having]
        results = replace(results, agg=(*results.agg, *(self._aggregate(a) for a in rewriter.hidden)))
        if rewriter.unknown or not all(self.resolved(value) for value in self._arguments(rewriter.hidden)):
            return results
        binder = ExpressionBinder(GroupColumns(group_columns(results)), {"": GROUP}, self.report)
        return replace(results, having=tuple(map(binder.condition, quals)))

    def _arguments(self, hidden: Sequence[Aggregate]) -> list[Value]:
        keys = [item.value for item in self.query.group_by]
        grouped = [k.value if isinstance(k, Every) else k for k in keys if isinstance(k, Value | Every)]
        return [*grouped, *(a.argument for a in (*self.query.agg, *hidden) if a.argument is not None)]

    def _problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.report(Diagnostic(code, message, span, hint))


class _HavingRewriter:
    """Replaces values and aggregates in HAVING by columns of the groups: k0, … for keys and a0, … for aggregates."""

    def __init__(self, query: Query, problem: Callable[..., None]) -> None:
        self._items, self._agg, self._problem = query.group_by, query.agg, problem
        self._names = {column_name(c): f"k{i}" for i, c in enumerate(query.group_by)}
        self._names |= {column_name(c): f"a{i}" for i, c in enumerate(query.agg)}
        self._per = None if query.per is None else query.per.name
        # Aggregates that AGG does not list.
        self.hidden: list[Aggregate] = []
        self.unknown = False

    def __call__(self, node: Any) -> Any:
        for i, item in enumerate(self._items):
            if node == item.value:
                return Attribute("", f"k{i}", item.span)
        match node:
            case Aggregate():
                return self._aggregate(node)
            case Column(name, span) if name in self._names:
                return Attribute("", self._names[name], span)
            case Column(name, span) if name.upper() == "COUNT":
                return self._aggregate(Aggregate("COUNT", span=span))
            case Column(name, span):
                self.unknown = True
                hint = did_you_mean(name, self._names, "the result")
                self._problem("EC225", f"the groups have no column {name!r}", span, hint)
            case Attribute(span=span):
                self.unknown = True
                text = print_value(node)
                hint = f"GROUPBY it, or say which of its values: MAX({text})"
                if node.var == self._per:
                    hint = "write conditions on the event after WHERE"
                self._problem("EC225", f"a group has no single {text}", span, hint)
        return with_children(node, [self(child) for child in children(node)])

    def _aggregate(self, aggregate: Aggregate) -> Attribute:
        aggregate = replace(aggregate, alias=None)
        known = [replace(a, alias=None) for a in (*self._agg, *self.hidden)]
        if aggregate not in known:
            self.hidden.append(aggregate)
            known.append(aggregate)
        return Attribute("", f"a{known.index(aggregate)}", aggregate.span)
