"""Restores saved states into a runtime, all of them or nothing.

A state with a correct checksum may still be forged or made by a faulty program. So every invariant of the engine is
checked, and a state that breaks one is refused before the runtime changes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventcube.engine.saved import BOUND, DamagedStateError, Saved, check_fields, integer
from eventcube.errors import EventCubeError, OptionError
from eventcube.plan.planned import Planned
from eventcube.plan.workload import Added
from eventcube.runtime import state_v1
from eventcube.runtime.snapshot import damaged, read, short_identity
from eventcube.runtime.state_difference import other_columns, other_queries
from eventcube.runtime.workload import Workload

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime

# The version, the header and the tables of a state.
_State = tuple[int, dict[str, Any], dict[str, Any]]


def load(states: Sequence[bytes], runtime: Runtime) -> None:
    """Restore a saved state, and the changes that follow it, into a runtime."""
    try:
        workload: Workload | None = None
        plans: dict[str, Planned] = {}
        for state in _after_replaced([read(state) for state in states]):
            if workload is None:
                workload, plans = _whole(state, runtime)
            else:
                _change(state, runtime, workload)
    except DamagedStateError as error:
        raise damaged(str(error)) from None
    runtime.use_workload(workload, plans)
    runtime.resume()


def _after_replaced(states: list[_State]) -> list[_State]:
    """The states from the last one on that replaces those before it, as one does that follows a state without columns.

    What was replaced may be of other queries.
    """
    first = 0
    for place, (_, header, _) in enumerate(states):
        before = states[place - 1][1] if place else None
        if header.pop("replaces", None) is not None or (before is not None and not {"of", "workload"} & set(before)):
            first = place
    return states[first:]


def _whole(state: _State, runtime: Runtime) -> tuple[Workload | None, dict[str, Planned]]:
    """The queries planned for the columns of a whole state, at the point where it was saved."""
    version, header, tables = state
    if "of" in header:
        raise DamagedStateError("it is what changed since another state, which must come first")
    if "fingerprint" not in header:
        raise DamagedStateError("its header has no fingerprint")
    if header["fingerprint"] != runtime.fingerprint:
        raise OptionError(
            f"the state is of other queries or settings{other_queries(header['fingerprint'], runtime.fingerprint)}",
            code="EC412",
            hint="restore it into a Runtime made with the same queries, columns and options",
        )
    schema = state_v1.schema_of(header) if version == 1 else header.get("schema")
    workload, plans = (None, {}) if schema is None else _planned(schema, added_in(header, runtime.queries), runtime)
    if version == 1:
        header, tables = state_v1.upgrade(header, tables, workload)
    check_fields(header, {"fingerprint"}, () if workload is None else {"schema", "workload"})
    saved = Saved(header.get("workload", {}), tables)
    if workload is not None:
        workload.apply(saved)
    saved.check_all_taken()
    return workload, plans


def added_in(header: Mapping[str, Any], queries: Iterable[str]) -> dict[str, int]:
    """The queries that were added to others at work before a state was saved, and since when they see events."""
    saved = header.get("workload", {})
    added = saved.get("added", {}) if isinstance(saved, dict) else {}
    if not isinstance(added, dict) or not set(added) <= set(queries):
        raise DamagedStateError("it names queries that it does not have")
    return {name: integer(time, -BOUND, BOUND, "added") for name, time in added.items()}


def _planned(schema: Any, added: Added, runtime: Runtime) -> tuple[Workload, dict[str, Planned]]:
    """The queries planned for the columns of the saved state."""
    try:
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema, validate=True)))
    except (pa.ArrowException, ValueError, TypeError, OSError) as error:
        raise damaged(f"its columns cannot be read: {error}") from None
    if runtime.workload is not None and not (own := runtime.workload.schema.columns).equals(columns):
        raise OptionError(
            f"the state is of events with other columns{other_columns(columns, own)}",
            code="EC412",
            hint="restore it into a Runtime made without schema=, or with the schema it was saved with",
        )
    try:
        return runtime.plan(columns, added)
    except EventCubeError as error:
        if error.code == "EC418":
            # The strategy is this runtime's: the state may be of another one.
            raise
        raise damaged(f"the queries cannot have run over its columns: {error.message}") from None


def _change(state: _State, runtime: Runtime, workload: Workload) -> None:
    """Apply changes to the workload."""
    _, header, tables = state
    if "of" not in header:
        raise DamagedStateError("a whole state must come first, and then only changes")
    check_fields(header, {"of", "workload"})
    if header["of"] != short_identity(runtime.fingerprint, workload.schema.columns):
        raise OptionError("the changes are of other queries, settings or columns than the state", code="EC412")
    workload.apply(Saved(header["workload"], tables))
