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
from eventcube.runtime.snapshot import damaged, read
from eventcube.runtime.state_v1 import upgrade
from eventcube.runtime.workload import Workload

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime


def load(states: Sequence[bytes], runtime: Runtime) -> None:
    """Restore a saved state, and the changes that follow it, into a runtime."""
    workload: Workload | None = None
    queries: dict[str, LogicalQuery] = {}
    finished = False
    for state in states:
        header, tables = read(state)
        try:
            # What follows a state from before the first events is whole, too.
            is_first = workload is None
            if workload is None:
                workload, queries = _planned(header, runtime)
            finished = _apply(header, tables, runtime, workload, is_first=is_first)
        except DamagedStateError as error:
            raise damaged(str(error)) from None
    runtime.use_workload(workload, queries)
    runtime.resume(finished=finished)


def _planned(header: dict[str, Any], runtime: Runtime) -> tuple[Workload | None, dict[str, LogicalQuery]]:
    """The queries planned for the columns of the saved state, if it has any."""
    if "fingerprint" not in header:
        raise DamagedStateError("its header has no fingerprint")
    if header["fingerprint"] != runtime.fingerprint:
        raise OptionError(
            "the state is of other queries or settings",
            code="EC412",
            hint="restore it into a Runtime made with the same queries, columns and options",
        )
    saved = header.get("ingest") if header["version"] == 1 else header
    if saved is None or (header["version"] > 1 and "schema" not in saved):
        return None, {}
    columns = _columns(saved)
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


def _apply(
    header: dict[str, Any], tables: dict[str, pa.Table], runtime: Runtime, workload: Workload | None, *, is_first: bool
) -> bool:
    """Apply one state to the workload; gives whether its input had ended."""
    if header["version"] == 1:
        header, tables = upgrade(header, tables, workload)
    check_fields(header, {"version", "fingerprint", "finished", "tables"}, {"schema", "workload"})
    if header["fingerprint"] != runtime.fingerprint:
        raise OptionError("the changes are of other queries or settings", code="EC412")
    if not isinstance(header["finished"], bool):
        raise DamagedStateError("finished is neither true nor false")
    if ("workload" in header) != ("schema" in header):
        raise DamagedStateError("it has events without columns, or columns without events")
    if workload is not None and "workload" in header:
        values = header["workload"]
        if not isinstance(values, dict) or (values.get("since") == -1) is not is_first:
            raise DamagedStateError("a whole state must come first, and then only changes")
        workload.apply(Saved(values, tables))
    elif tables or (workload is not None and is_first):
        raise DamagedStateError("nothing has its tables")
    finished: bool = header["finished"]
    return finished


def _columns(saved: Any) -> pa.Schema:
    """The event columns of the saved state."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(saved["schema"], validate=True)))
    except (pa.ArrowException, ValueError, TypeError, KeyError, OSError) as error:
        raise damaged(f"its columns cannot be read: {error}") from None
