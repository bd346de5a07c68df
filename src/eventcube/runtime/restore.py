"""Restores saved states into a runtime, all of them or nothing.

A state with a correct checksum may still be forged or made by a faulty program. So every invariant of the engine is
checked, and a state that breaks one is refused before the runtime changes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.saved import DamagedStateError, Saved, check_fields
from eventcube.errors import EventCubeError, OptionError
from eventcube.plan.logical import LogicalQuery
from eventcube.runtime import state_v1
from eventcube.runtime.snapshot import damaged, read, short_identity
from eventcube.runtime.workload import Workload

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime


def load(states: Sequence[bytes], runtime: Runtime) -> None:
    """Restore a saved state, and the changes that follow it, into a runtime."""
    try:
        workload: Workload | None = None
        queries: dict[str, LogicalQuery] = {}
        for state in states:
            # What changed since a state without columns is a whole state.
            if workload is None:
                workload, queries = _whole(state, runtime)
            else:
                _change(state, runtime, workload)
    except DamagedStateError as error:
        raise damaged(str(error)) from None
    runtime.use_workload(workload, queries)
    runtime.resume()


def _whole(state: bytes, runtime: Runtime) -> tuple[Workload | None, dict[str, LogicalQuery]]:
    """The queries planned for the columns of a whole state, at the point where it was saved."""
    version, header, tables = read(state)
    if "of" in header:
        raise DamagedStateError("it is what changed since another state, which must come first")
    if "fingerprint" not in header:
        raise DamagedStateError("its header has no fingerprint")
    if header["fingerprint"] != runtime.fingerprint:
        raise OptionError(
            "the state is of other queries or settings",
            code="EC412",
            hint="restore it into a Runtime made with the same queries, columns and options",
        )
    schema = state_v1.schema_of(header) if version == 1 else header.get("schema")
    workload, queries = (None, {}) if schema is None else _planned(schema, runtime)
    if version == 1:
        header, tables = state_v1.upgrade(header, tables, workload)
    check_fields(header, {"fingerprint"}, () if workload is None else {"schema", "workload"})
    saved = Saved(header.get("workload", {}), tables)
    if workload is not None:
        workload.apply(saved)
    saved.check_all_taken()
    return workload, queries


def _planned(schema: Any, runtime: Runtime) -> tuple[Workload, dict[str, LogicalQuery]]:
    """The queries planned for the columns of the saved state."""
    try:
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema, validate=True)))
    except (pa.ArrowException, ValueError, TypeError, OSError) as error:
        raise damaged(f"its columns cannot be read: {error}") from None
    if runtime.workload is not None and not runtime.workload.schema.columns.equals(columns):
        raise OptionError(
            "the state is of events with other columns",
            code="EC412",
            hint="restore it into a Runtime made without schema=, or with the schema it was saved with",
        )
    try:
        return runtime.plan(columns, Counters())
    except EventCubeError as error:
        if error.code == "EC418":
            # The strategy is this runtime's: the state may be of another one.
            raise
        raise damaged(f"the queries cannot have run over its columns: {error.message}") from None


def _change(state: bytes, runtime: Runtime, workload: Workload) -> None:
    """Apply changes to the workload."""
    _, header, tables = read(state)
    if "of" not in header:
        raise DamagedStateError("a whole state must come first, and then only changes")
    check_fields(header, {"of", "workload"})
    if header["of"] != short_identity(runtime.fingerprint, workload.schema.columns):
        raise OptionError("the changes are of other queries, settings or columns than the state", code="EC412")
    workload.apply(Saved(header["workload"], tables))
