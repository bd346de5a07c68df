"""Run a program's steps over tables of partial matches, in chunks, depth first.

A chunk is taken through all steps before the next one is made, so memory is bounded by the number of steps and the
size of a chunk, however many matches there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar, assert_never

import numpy as np

from eventcube.engine.candidates import NO_TESTS, Candidates, Index, stacked
from eventcube.engine.columns import Column
from eventcube.engine.counters import Counters
from eventcube.engine.expressions import evaluate, holds, valid_mask
from eventcube.engine.kernels import OPERATORS, Array, Bools, Ints, Tests, seek_in
from eventcube.engine.min_max import COUNT, EXIST, EXPAND, LATEST, JoinIndex, Question
from eventcube.engine.order_kernels import group_by_code
from eventcube.engine.store import Store
from eventcube.engine.table import ANCHOR, END, ORIGIN, START, Table
from eventcube.engine.views.strategy import Parts
from eventcube.optimizer.aggregates import Budget
from eventcube.optimizer.cost import COPY, EXTEND, MATERIALIZE, RANGE
from eventcube.plan.expressions import ColumnRef, Expression
from eventcube.plan.steps import (
    Absent,
    Bind,
    Bound,
    Compare,
    DistinctEvents,
    Fence,
    Filter,
    FilterByState,
    InOrder,
    KeepLatest,
    Narrow,
    Nested,
    Program,
    Reject,
    Residual,
    Step,
    Term,
    Union,
    WithinWindow,
)

_Answer = TypeVar("_Answer")

CHUNK = 1 << 16
# From so many partial matches on, ends of ranges are kept for other steps.
_MANY = 1 << 10


def scratch() -> Ints:
    """Buffers for joins, used again for each chunk."""
    return np.empty((4, CHUNK), np.int64)


class Execution:
    """The running of one query's programs over one store."""

    def __init__(self, store: Store, parts: Parts, counters: Counters, scratch: Ints) -> None:
        self.store, self.parts, self.counters = store, parts, counters
        # What joins may cost, if that is bounded.
        self.budget: Budget | None = None
        parts.turn_to(store)
        self._scratch = scratch
        self._indexes: dict[int, Index] = {}
        # The values of candidates that joins compare.
        self._compared: dict[int, list[Column]] = {}
        self._min_max: dict[tuple[int, Question[Any]], JoinIndex] = {}

    def run(self, program: Program, table: Table) -> Iterator[Table]:
        """The results of the program for all partial matches, in chunks."""
        stack = [iter([table])]
        while stack:
            out = next(stack[-1], None)
            if out is None:
                stack.pop()
            elif len(out) and len(stack) > len(program):
                yield out
            elif len(out):
                stack.append(self.step(program[len(stack) - 1], out))

    def is_futile(self, program: Program) -> bool:
        """Whether the program has no result, because there is no event for one of its joins."""
        binds = (step for step in program if isinstance(step, Bind))
        return any(not len(self.store.stack(bind.slot, bind.states).rows) for bind in binds)

    def any(self, program: Program, table: Table) -> Bools:
        """For each partial match whether the program has a result."""
        has_result = np.zeros(len(table), np.bool_)
        last = program[-1] if program else None
        direct = isinstance(last, Bind) and not last.filters
        marked = table.with_columns({ORIGIN: np.arange(len(table))})
        for out in self.run(program[:-1] if direct else program, marked):
            if direct:
                assert isinstance(last, Bind)
                exist = self._ask(last, out, EXIST)
                has_result[out[ORIGIN][exist]] = True
            else:
                has_result[out[ORIGIN]] = True
        return has_result

    def count(self, program: Program, table: Table) -> int:
        """The number of results of the program; the last join is counted without being built."""
        last = program[-1] if program else None
        if isinstance(last, Nested):
            return sum(self.parts[last].count(out, self) for out in self.run(program[:-1], table))
        if not isinstance(last, Bind) or last.filters:
            return sum(len(out) for out in self.run(program, table))
        total = 0
        for out in self.run(program[:-1], table):
            if last.is_range:
                width = self.store.stack(last.slot, last.states).count_between(*self._range(last, out))
                self.counters.candidates += width
                total += width
                continue
            total += self._ask(last, out, COUNT)
        return total

    def step(self, step: Step, table: Table) -> Iterator[Table]:
        """What one step makes of partial matches, in chunks."""
        match step:
            case Bind():
                return self._bind(step, table)
            case Union(programs):
                return chain.from_iterable(self.run(program, table) for program in programs)
            case Absent(slots):
                return iter([table.absent(slots)])
            case Filter(predicates):
                return iter([self._filter(predicates, table)])
            case DistinctEvents(pairs):
                differ = [(table[one] != table[other]) | (table[one] < 0) for one, other in pairs]
                return iter([table.where(np.all(differ, axis=0))])
            case FilterByState(_, _, states) if self.store.all_have(states):
                return iter([table])
            case FilterByState(slots, forward, states):
                trigger = table.first(slots, optional=True) if forward else table.last(slots)
                return iter([table.where(self.store.has_state(trigger, states))])
            case WithinWindow(slots):
                starts = self.store.window_starts[table.last(slots)]
                return iter([table.where(starts <= table.first(slots, optional=True))])
            case InOrder(pairs):
                ordered = [self.store.after(table[one]) <= table[other] for one, other in pairs]
                return iter([table.where(np.all(ordered, axis=0))])
            case Narrow(slot, stack):
                return iter([table.where(self.store.sorted.stack(stack).has(table[slot]))])
            case KeepLatest(bind):
                return iter([self._keep_latest(bind, table)])
            case Nested():
                return self._counted(self.parts[step].join(table, self))
            case Reject():
                return iter([self._reject(step, table)])
            case _:
                assert_never(step)

    def _counted(self, tables: Iterator[Table]) -> Iterator[Table]:
        for out in tables:
            self.counters.made += len(out)
            if self.budget is not None:
                self.budget.spend(MATERIALIZE * len(out))
            yield out

    # Ranges.

    def rows_at(self, bound: Bound, table: Table) -> Ints:
        """One end of each partial match's range of rows."""
        store, slots = self.store, bound.slots
        match bound.term:
            case Term.AFTER_LAST:
                return store.after(table.last(slots))
            case Term.AFTER_FIRST:
                return store.after(table.first(slots, optional=bound.optional))
            case Term.WINDOW_START:
                return store.window_starts[table.last(slots)]
            case Term.BEFORE_FIRST:
                return store.before(table.first(slots, optional=bound.optional))
            case Term.BEFORE_LAST:
                return store.before(table.last(slots))
            case Term.WINDOW_END:
                return store.window_ends[table.first(slots, optional=bound.optional)]
            case Term.REGION_START:
                return table[START]
            case Term.REGION_END:
                return table[END]
            case Term.ANCHOR:
                return table[ANCHOR]
            case Term.AFTER_ANCHOR:
                return table[ANCHOR] + 1
            case _:
                assert_never(bound.term)

    def _found_at(self, bound: Bound, table: Table) -> Ints:
        """The same, found once for all steps that follow on the same partial matches, if they are many."""
        if not bound.slots or len(table) < _MANY:
            return self.rows_at(bound, table)
        key = bound.term, bound.optional, self.store.window, *map(table.columns.index, bound.slots)
        if key not in table.found:
            table.found[key] = self.rows_at(bound, table)
        return table.found[key]

    # Joining.

    def _bind(self, bind: Bind, table: Table) -> Iterator[Table]:
        if bind.latest:
            rows = self._latest(bind, table)
            has_candidate = rows >= 0
            yield table.where(has_candidate).with_columns({bind.slot: rows[has_candidate]})
            return
        candidates = self._candidates_for(bind, table, EXPAND)
        if self.budget is not None:
            self.budget.spend(len(table) * RANGE + candidates.size * (EXTEND + COPY * len(table.columns)))
        for data, looked_at in candidates.expand(table.data, self._scratch):
            self.counters.candidates += looked_at
            out = self._filter(bind.filters, Table((*table.columns, bind.slot), data))
            if len(out):
                self.counters.made += len(out)
                yield out

    def _keep_latest(self, bind: Bind, table: Table) -> Table:
        """The partial matches whose event for the join is the latest candidate."""
        others = table.only(c for c in table.columns if c != bind.slot)
        return table.where(self._latest(bind, others) == table[bind.slot])

    def _latest(self, bind: Bind, table: Table) -> Ints:
        """The row of each partial match's latest candidate, -1 for none."""
        return self._ask(bind, table, LATEST)

    def _ask(self, bind: Bind, table: Table, question: Question[_Answer]) -> _Answer:
        """The answer of the join's candidates to a question."""
        answer, looked_at = question.ask(self._candidates_for(bind, table, question))
        self.counters.candidates += looked_at
        return answer

    def _candidates_for(self, bind: Bind, table: Table, question: Question[Any]) -> Candidates:
        """The join's candidates, by a min-max index if that answers the question for less."""
        candidates = self._candidates(bind, table)
        if not bind.compare or not (choice := self.parts.index_choice(bind)).conditions:
            return candidates
        key = bind.id, question
        if key not in self._min_max:
            self._min_max[key] = JoinIndex(choice, question)
        return self._min_max[key].applied(candidates)

    def _candidates(self, bind: Bind, table: Table) -> Candidates:
        stack = self.store.stack(bind.slot, bind.states)
        if bind.lower is None or bind.upper is None:
            return Candidates(
                np.zeros(len(table), np.int64), np.full(len(table), len(stack.rows)), stack.rows, NO_TESTS
            )
        lower, upper = self._range(bind, table)
        rows = stack.rows
        if bind.key is None:
            lo, hi = stack.positions(lower), stack.positions(upper)
        else:
            index = self._index(bind, bind.key)
            rows, groups = index.rows, self._groups(index, bind.key.bound, table)
            lo, hi = seek_in(rows, index.starts, groups, lower), seek_in(rows, index.starts, groups, upper)
        hi = np.maximum(hi, lo)
        tests = self._tests(bind, table, rows) if bind.compare or bind.distinct else NO_TESTS
        return Candidates(lo, hi, rows, tests)

    def _range(self, bind: Bind, table: Table) -> tuple[Ints, Ints]:
        """The range of rows in which the candidates of each partial match lie."""
        assert bind.lower is not None
        assert bind.upper is not None
        lower, upper = self._found_at(bind.lower, table), self._found_at(bind.upper, table)
        for fence in bind.fences:
            lower, upper = self._fenced(fence, table, lower, upper)
        return lower, upper

    def _fenced(self, fence: Fence, table: Table, lower: Ints, upper: Ints) -> tuple[Ints, Ints]:
        """The range without the candidates that have an event of the fence between them and its bound."""
        negated = self.store.stack(fence.slot)
        if not len(negated.rows):
            return lower, upper
        nearest_at = negated.positions(self.rows_at(fence.bound, table))
        self.counters.candidates += len(table)
        if fence.new_is_earlier:
            nearest = self.store.before(negated.rows[np.maximum(nearest_at - 1, 0)])
            return np.where(nearest_at > 0, np.maximum(lower, nearest), lower), upper
        last = len(negated.rows) - 1
        nearest = self.store.after(negated.rows[np.minimum(nearest_at, last)])
        return lower, np.where(nearest_at <= last, np.minimum(upper, nearest), upper)

    def _index(self, bind: Bind, key: Compare) -> Index:
        """The stack sorted by (value, row)."""
        if bind.id not in self._indexes:
            rows = self.store.stack(bind.slot, bind.states).rows
            column = self.value_of(key.new, rows)
            known = valid_mask(column)
            values, codes = np.unique(column.values[known], return_inverse=True)
            order, starts = group_by_code(codes.astype(np.int64), len(values))
            index = Index(rows[known][order], starts, values, None)
            if isinstance(key.bound, ColumnRef) and len(values):
                index = replace(index, group_of_row=index.find(self.store.columns[key.bound]))
            self._indexes[bind.id] = index
        return self._indexes[bind.id]

    def _groups(self, index: Index, bound: Expression, table: Table) -> Ints:
        """For each partial match its group in the index, -1 for none."""
        if index.group_of_row is not None and isinstance(bound, ColumnRef):
            return np.asarray(index.group_of_row[table[bound.slot]])
        return index.find(self.value(bound, table))

    def _tests(self, bind: Bind, table: Table, rows: Ints) -> Tests:
        ints: list[tuple[Array, Array, int]] = [(rows, table[other], OPERATORS["!="]) for other in bind.distinct]
        floats: list[tuple[Array, Array, int]] = []
        if bind.id not in self._compared:
            self._compared[bind.id] = [self.value_of(compare.new, rows) for compare in bind.compare]
        for compare, new in zip(bind.compare, self._compared[bind.id], strict=True):
            bound = self.value(compare.bound, table)
            op = OPERATORS[compare.op]
            for column, is_new in ((new, True), (bound, False)):
                if column.valid is not None:
                    valid, one = column.valid.astype(np.int64), np.ones(1, np.int64)
                    ints.append(
                        (valid, np.broadcast_to(one, len(table)), OPERATORS["="])
                        if is_new
                        else (np.broadcast_to(one, len(rows)), valid, OPERATORS["="])
                    )
            if new.values.dtype == np.int64 and bound.values.dtype == np.int64:
                ints.append((new.values, bound.values, op))
            else:
                floats.append((new.values, bound.values, op))
        return (*stacked(ints, np.int64), *stacked(floats, np.float64))

    def note_bytes(self) -> None:
        """Take note of what views hold now."""
        self.parts.note_bytes()

    # Values.

    def value_of(self, value: Expression, rows: Ints) -> Column:
        """A value that depends on one event, for each of some rows."""
        return evaluate(value, len(rows), lambda ref: self.store.columns[ref].take(rows), self.store.columns)

    def value(self, value: Expression, table: Table) -> Column:
        """A value that depends on bound events, for each partial match."""
        return evaluate(value, len(table), partial(self._bound_column, table=table), self.store.columns)

    def _bound_column(self, ref: ColumnRef, table: Table) -> Column:
        return self.store.columns[ref].take(table[ref.slot])

    # Filtering.

    def _filter(self, predicates: tuple[Residual, ...], table: Table) -> Table:
        for predicate in predicates:
            lookup = partial(self._bound_column, table=table)
            kept = holds(predicate.condition, len(table), lookup, self.store.columns) | ~_applies(predicate, table)
            table = table.where(kept)
            if not len(table):
                break
        return table

    def _reject(self, reject: Reject, table: Table) -> Table:
        guarded_rows = np.flatnonzero(table.last(reject.guard) >= 0) if reject.guard else None
        outer = table if guarded_rows is None else table.take(guarded_rows)
        # Computed before START and END are replaced: the bounds may be those of the interval around.
        start, end = self.rows_at(reject.lower, outer), self.rows_at(reject.upper, outer)
        nonempty = np.flatnonzero(start < end)
        if not len(nonempty):
            return table
        columns = [*(outer[c] for c in reject.outer), start, end]
        inner = np.empty((len(columns), len(nonempty)), np.int64)
        for target, column in zip(inner, columns, strict=True):
            np.take(column, nonempty, out=target)
        rejected = nonempty[self.parts[reject].exists(Table((*reject.outer, START, END), inner), self)]
        kept = np.ones(len(table), np.bool_)
        kept[rejected if guarded_rows is None else guarded_rows[rejected]] = False
        return table.where(kept)


def _applies(predicate: Residual, table: Table) -> Bools:
    """Where the predicate applies: its slots and its guard are taken."""
    applies = np.ones(len(table), np.bool_)
    for slot in predicate.optional:
        applies &= table[slot] >= 0
    if predicate.guard:
        applies &= table.last(predicate.guard) >= 0
    return applies
