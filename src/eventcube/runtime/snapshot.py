"""The state of a runtime as bytes and back: one Arrow stream for each table, behind a header that says what they are.

A state begins with a mark, the length of the header and a checksum of all that follows. The layout has a version. A
snapshot of another version, or of other queries or settings, or one that is damaged, is refused with the reason.
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.engine.rows import Rows
from eventcube.errors import OptionError
from eventcube.runtime.ingest import Ingest, read_times

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime

VERSION = 1
_MAGIC = b"eventcube state\n"
_START = len(_MAGIC) + 16
# Arrow wants its buffers to begin at multiples of this.
_ALIGNED = 64
_ROWS = ("ts", "seq", "pos", "rank", "done", "ahead")


def save(
    fingerprint: str, ingest: Ingest | None, engines: dict[str, Engine], counters: Counters, *, finished: bool
) -> bytes:
    """The state of a runtime."""
    tables: dict[str, pa.Table] = {}
    header: dict[str, Any] = {
        "version": VERSION,
        "fingerprint": fingerprint,
        "finished": finished,
        "counters": counters.as_dict(),
        "engines": {},
    }
    if ingest is not None:
        columns = ingest.schema.columns
        header["ingest"] = {
            "schema": base64.b64encode(columns.serialize().to_pybytes()).decode(),
            **{name: getattr(ingest, name) for name in ("watermark", "latest", "rank")},
        }
        tables["held"] = pa.concat_tables([columns.empty_table(), *ingest.held])
        tables["aside"] = ingest.aside_table()
    for name, engine in engines.items():
        header["engines"][name] = {
            "sequence": engine.sequence,
            "position": engine.position,
            "counters": engine.counters.as_dict(),
            "left": engine.limit.left if engine.limit is not None else None,
        }
        tables |= {f"{name}/{part}": table for part, table in _engine_tables(engine).items()}
    header["tables"] = list(tables)
    text = json.dumps(header).encode()
    text += b" " * (-(_START + len(text)) % _ALIGNED)
    out = io.BytesIO()
    out.write(text)
    for table in tables.values():
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    body = out.getvalue()
    return _MAGIC + len(text).to_bytes(8, "little") + zlib.crc32(body).to_bytes(8, "little") + body


def _engine_tables(engine: Engine) -> dict[str, pa.Table]:
    found: dict[str, pa.Table] = {}
    rows = engine.rows
    if rows is not None:
        found["payload"] = rows.payload
        numbers = {name: getattr(rows, name) for name in _ROWS}
        members = {f"member{i}": own for i, own in enumerate(rows.member)}
        found["rows"] = pa.table({n: pa.array(v) for n, v in {**numbers, **members}.items()})
    if engine.positions is not None:
        found["positions"] = engine.positions
    if engine.groups is not None and engine.groups.partial is not None:
        found["groups"] = engine.groups.partial
    if engine.limit is not None and engine.limit.held is not None:
        table, keys = engine.limit.held
        found["limit"] = table
        found["limit_keys"] = pa.table({f"key{i}": pa.array(k) for i, k in enumerate(keys)})
    return found


def load(state: bytes, runtime: Runtime) -> None:
    """Put a saved state into a runtime."""
    header, tables = _read(state)
    if header["version"] != VERSION:
        raise OptionError(
            f"the state has version {header['version']}, this eventcube reads version {VERSION}", code="EC411"
        )
    if header["fingerprint"] != runtime.fingerprint:
        raise OptionError(
            "the state is of other queries or settings",
            code="EC412",
            hint="restore it into a Runtime made with the same queries, columns and options",
        )
    columns = _saved_columns(header)
    if columns is not None and runtime._ingest is not None and not runtime._ingest.schema.columns.equals(columns):
        raise OptionError(
            "the state is of events with other columns",
            code="EC412",
            hint="restore it into a Runtime made without schema=, or with the schema it was saved with",
        )
    runtime._finished = header["finished"]
    runtime._running = None
    runtime._engines.clear()
    runtime._counters = Counters(**header["counters"])
    if columns is None:
        runtime._ingest = None
        return
    ingest = runtime.start(columns)
    for name, value in header["ingest"].items():
        setattr(ingest, name, value)
    held = tables["held"]
    ingest.held, ingest.held_ts = [], []
    if held.num_rows:
        ingest.held, ingest.held_ts = [held], [read_times(held.column(ingest.schema.time), ingest.schema)[0]]
    ingest.aside = [tables["aside"]] if tables["aside"].num_rows else []
    for name, saved in header["engines"].items():
        _restore_engine(runtime._engines[name], saved, {k: tables.get(f"{name}/{k}") for k in _PARTS})


def _saved_columns(header: dict[str, Any]) -> pa.Schema | None:
    """The columns of the events that were pushed before the state was saved, if any were."""
    if "ingest" not in header:
        return None
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["ingest"].pop("schema"))))


_PARTS = ("payload", "rows", "positions", "groups", "limit", "limit_keys")


def _restore_engine(engine: Engine, saved: dict[str, Any], tables: dict[str, pa.Table | None]) -> None:
    engine.sequence, engine.position = saved["sequence"], saved["position"]
    engine.counters = Counters(**saved["counters"])
    engine.positions = tables["positions"]
    rows, payload = tables["rows"], tables["payload"]
    if rows is not None and payload is not None:
        arrays = {name: np.array(rows.column(name)) for name in rows.column_names}
        member = [arrays.pop(f"member{i}") for i in range(len(engine.logical.slots))]
        shaped = np.stack(member) if rows.num_rows else np.zeros((len(member), 0), np.bool_)
        engine.rows = Rows(**arrays, member=shaped, payload=payload.combine_chunks())
    if engine.groups is not None:
        engine.groups = Groups(engine.logical, tables["groups"])
    if engine.limit is not None:
        engine.limit.left = saved["left"]
        held, keys = tables["limit"], tables["limit_keys"]
        if held is not None and keys is not None:
            engine.limit.held = held, [np.array(c) for c in keys.columns]


def _read(state: Any) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    if not isinstance(state, bytes) or not state.startswith(_MAGIC):
        raise OptionError("this is not a state of eventcube", code="EC410")
    at = len(_MAGIC)
    length, check = (int.from_bytes(state[i : i + 8], "little") for i in (at, at + 8))
    if zlib.crc32(memoryview(state)[_START:]) != check:
        raise OptionError("the state is damaged: its checksum is another", code="EC410")
    try:
        header: dict[str, Any] = json.loads(state[_START : _START + length])
        source = pa.BufferReader(pa.py_buffer(state)[_START + length :])
        tables = {name: pa.ipc.open_stream(source).read_all() for name in header["tables"]}
    except (ValueError, pa.ArrowInvalid, OSError) as error:
        raise OptionError(f"the state is damaged: {error}", code="EC410") from None
    return header, tables
