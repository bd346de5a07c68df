"""The state of a runtime as bytes: a JSON header, then one Arrow stream for each table.

A state begins with a magic string, the length of the header and a checksum of the rest. The format has a version; a
state that is damaged or of another version is refused. `restore.py` restores a state into a runtime.
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from typing import Any

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.engine.sinks.earliest import EarliestSink
from eventcube.engine.sinks.groups import GroupSink
from eventcube.errors import OptionError
from eventcube.runtime.workload import Workload

VERSION = 1
_MAGIC = b"eventcube state\n"
_START = len(_MAGIC) + 16
# Arrow buffers start at multiples of this.
_ALIGNMENT = 64
# Columns of a retained row, beside the event's own and those of the slots.
ROW_NUMBERS, ROW_FLAGS = ("ts", "seq", "pos", "rank"), ("done", "ahead")


def save(fingerprint: str, workload: Workload | None, *, finished: bool) -> bytes:
    """The state of a runtime."""
    tables: dict[str, pa.Table] = {}
    counters = Counters() if workload is None else workload.ingest.counters
    header: dict[str, Any] = {
        "version": VERSION,
        "fingerprint": fingerprint,
        "finished": finished,
        "counters": counters.as_dict(),
        "engines": {},
    }
    if workload is not None:
        ingest, columns = workload.ingest, workload.schema.columns
        header["ingest"] = {
            "schema": base64.b64encode(columns.serialize().to_pybytes()).decode(),
            **{name: getattr(ingest, name) for name in ("watermark", "latest", "rank")},
        }
        tables["held"] = pa.concat_tables([columns.empty_table(), *ingest.held])
        tables["aside"] = ingest.skipped_table()
    for name, engine in workload.engines.items() if workload is not None else ():
        engine.gather()
        header["engines"][name] = {
            "sequence": engine.sequence,
            "position": engine.position,
            "counters": engine.counters.as_dict(),
            "left": engine.sink.earliest.left if isinstance(engine.sink, EarliestSink) else None,
        }
        tables |= {f"{name}/{part}": table for part, table in _engine_tables(engine).items()}
    header["tables"] = list(tables)
    text = json.dumps(header).encode()
    text += b" " * (-(_START + len(text)) % _ALIGNMENT)
    out = io.BytesIO()
    out.write(text)
    for table in tables.values():
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    body = out.getvalue()
    return _MAGIC + len(text).to_bytes(8, "little") + zlib.crc32(body).to_bytes(8, "little") + body


def _engine_tables(engine: Engine) -> dict[str, pa.Table]:
    tables: dict[str, pa.Table] = {}
    rows = engine.rows
    if rows is not None:
        tables["payload"] = rows.payload
        numbers = {name: getattr(rows, name) for name in (*ROW_NUMBERS, *ROW_FLAGS)}
        members = {f"member{i}": mask for i, mask in enumerate(rows.member)}
        tables["rows"] = pa.table({n: pa.array(v) for n, v in {**numbers, **members}.items()})
    if engine.positions is not None:
        tables["positions"] = engine.positions
    sink = engine.sink
    if isinstance(sink, GroupSink) and sink.groups.partial is not None:
        tables["groups"] = sink.groups.partial
    if isinstance(sink, EarliestSink) and sink.earliest.held is not None:
        table, keys = sink.earliest.held
        tables["limit"] = table
        tables["limit_keys"] = pa.table({f"key{i}": pa.array(k) for i, k in enumerate(keys)})
    return tables


def read(state: Any) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables of a saved state, each valid by itself; `restore.py` checks that they fit."""
    if not isinstance(state, bytes) or not state.startswith(_MAGIC):
        raise OptionError("this is not a state of eventcube", code="EC410")
    at = len(_MAGIC)
    length, stored_checksum = (int.from_bytes(state[i : i + 8], "little") for i in (at, at + 8))
    if zlib.crc32(memoryview(state)[_START:]) != stored_checksum:
        raise damaged("its checksum is another")
    if length > len(state) - _START or (_START + length) % _ALIGNMENT:
        raise damaged("its header has another length")
    try:
        header = json.loads(state[_START : _START + length])
    except (ValueError, RecursionError) as error:
        raise damaged(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict) or type(header.get("version")) is not int:
        raise damaged("its header has no version")
    if header["version"] != VERSION:
        raise OptionError(
            f"the state has version {header['version']}, this eventcube reads version {VERSION}", code="EC411"
        )
    names = header.get("tables")
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise damaged("its header does not list its tables")
    source = pa.BufferReader(pa.py_buffer(state)[_START + length :])
    try:
        tables = {name: pa.ipc.open_stream(source).read_all() for name in names}
        for table in tables.values():
            table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise damaged(str(error)) from None
    if source.tell() != source.size():
        raise damaged("there is more in it than its header says")
    return header, tables


def damaged(reason: str) -> OptionError:
    """The error for a damaged state."""
    return OptionError(f"the state is damaged: {reason}", code="EC410")
