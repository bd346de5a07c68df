"""A state that goes on with other queries: retained events are put on the stacks of the new plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Ints
from eventcube.engine.payload import Payload
from eventcube.engine.positions import Positions
from eventcube.engine.released import Released
from eventcube.engine.retention import StackRetention
from eventcube.engine.rows import Rows
from eventcube.engine.state import BEGINNING, State
from eventcube.engine.type_codes import TypeCodes
from eventcube.plan.workload import StackScan, WorkloadPlan, WorkloadQuery


def take_over(new: State, old: State) -> None:
    """Let a state without events go on from another, which had other queries.

    A stack gets the events of all stacks that cover it, and is empty if there is none. Times since which queries see
    events are no matter where no earlier event is left.
    """
    old.gather()
    rows = old.rows
    new.sequence, new.watermark = old.sequence, old.watermark
    new.gapless &= old.gapless
    payload = _payload(rows.payload, new)
    plain = Rows(rows.ts, rows.seq, rows.rank, (), (), payload)
    positions = []
    for place, counted in enumerate(new.plan.partitionings):
        if counted in old.plan.partitionings:
            number = old.plan.partitionings.index(counted)
            new.positions[place] = old.positions[number]
            positions.append(rows.positions[number])
        else:
            positions.append(_counted(plain, new.positions[place]))
    had = _settled(old.plan.stacks, old)
    for place, wanted in enumerate(_settled(new.plan.stacks, old)):
        covering = [i for i, stack in enumerate(had) if stack.covers(wanted)]
        new.has_lost[place] = old.has_lost[covering].any()
        new.known_from[place] = _known_from(wanted, new.retention.stacks[place], covering, old)
    new.rows = replace(
        plain,
        positions=tuple(positions),
        stacks=tuple(
            new.stacking.fitting(stack, _places(stack, had, old), payload) for stack in _settled(new.plan.stacks, old)
        ),
    )


def _known_from(wanted: StackScan, retention: StackRetention, covering: Iterable[int], old: State) -> int:
    """The time before which a stack may lack more than its retention tells, given the stacks that cover it."""
    # All events that it takes are still to come, or at least those after the watermark.
    unseen = old.watermark if wanted.since is None else BEGINNING
    known = (
        max(_known(i, wanted, old), BEGINNING if old.retention.stacks[i].reaches(retention) else old.horizon([i]))
        for i in covering
    )
    return min(known, default=unseen)


def _known(number: int, wanted: StackScan, old: State) -> int:
    """The time before which a stack may lack events of one that it covers."""
    since = old.plan.stacks[number].since
    return max(int(old.known_from[number]), BEGINNING if since is None or wanted.since is not None else since)


def is_retained(query: WorkloadQuery, plan: WorkloadPlan, new: State, old: State) -> bool:
    """Whether a state that keeps all columns has all events that a query of another plan, `new`, could still need."""
    old.gather()
    counted = query.arrangement.positions
    if counted is not None and plan.partitionings[counted] not in old.plan.partitionings:
        return False
    by_type = _types_of(old) is not None
    had, wanted_of = _settled(old.plan.stacks, old), _settled(plan.stacks, old)
    return all(
        any(
            stack.covers(wanted)
            and (by_type or stack.types == wanted.types)
            and kept.reaches(new.retention.stacks[number])
            and old.is_long_ago(_known(i, wanted, old), new.retention.stacks[number])
            for i, (stack, kept) in enumerate(zip(had, old.retention.stacks, strict=True))
        )
        for number, wanted in ((number, wanted_of[number]) for number in set(query.stacks))
    )


def is_past(since: int, state: State) -> bool:
    """Whether there is no event before a time any more, nor will be."""
    return state.watermark >= since and not state.reaches_before(since)


def _settled(stacks: Iterable[StackScan], old: State) -> tuple[StackScan, ...]:
    """Stacks without times that are no matter any more."""
    return tuple(
        replace(stack, since=None) if stack.since is not None and is_past(stack.since, old) else stack
        for stack in stacks
    )


def _payload(payload: Payload, new: State) -> Payload:
    """The columns that the plan needs, with nulls where an event was retained without one."""
    table = payload.table
    arrays = [
        table.column(name) if name in table.column_names else pa.nulls(len(payload), new.columns.field(name).type)
        for name in new.plan.columns
    ]
    schema = pa.schema([new.columns.field(name) for name in new.plan.columns])
    return Payload(pa.table(arrays, schema=schema), len(payload))


def _counted(rows: Rows, positions: Positions) -> Ints:
    """Positions of events that were not counted when they came: their query sees none of them, so any will do."""
    return positions.add(Released(rows.payload.table, rows.ts, rows.rank, None))


def _places(wanted: StackScan, had: Sequence[StackScan], old: State) -> Ints:
    """The places of the retained events of a stack's types, given the stacks that there were."""
    found = [_of_types(wanted, i, old) for i, stack in enumerate(had) if stack.covers(wanted)]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _of_types(wanted: StackScan, number: int, old: State) -> Ints:
    places, stack = old.rows.stacks[number], old.plan.stacks[number]
    if wanted.types == stack.types or not len(places):
        return places
    types = _types_of(old)
    if types is None or wanted.types is None:
        return np.empty(0, np.int64)
    return places[TypeCodes(sorted(wanted.types)).codes(types)[places] >= 0]


def _types_of(state: State) -> pa.ChunkedArray | None:
    """The types of the retained events, if they are retained, too."""
    name = next(iter(state.plan.queries.values())).plan.schema.type
    if name is None or name not in state.plan.columns:
        return None
    types = state.rows.payload.column(name)
    return None if types.null_count else types
