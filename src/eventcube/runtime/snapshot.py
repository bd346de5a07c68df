"""The state of a runtime as bytes and back: one Arrow stream for each table, behind a header that says what they are.

A state begins with a mark, the length of the header and a checksum of all that follows. The layout has a version; a
state of another version, or one that is damaged, is refused with the reason. `restore.py` puts a state into a runtime.
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
# Arrow wants its buffers to begin at multiples of this.
_ALIGNED = 64
# What is kept of each event beside its columns and the slots that it can fill.
ROW_NUMBERS, ROW_FLAGS = ("ts", "seq", "pos", "rank"), ("done", "ahead")


def save(fingerprint: str, workload: Workload | None, *, finished: bool) -> bytes:
    """The state of a runtime."""
    tables: dict[str, pa.Table] = {}
    counters = Counters() if workload is None else workload.own_counters
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
        tables["aside"] = ingest.aside_table()
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
        numbers = {name: getattr(rows, name) for name in (*ROW_NUMBERS, *ROW_FLAGS)}
        members = {f"member{i}": own for i, own in enumerate(rows.member)}
        found["rows"] = pa.table({n: pa.array(v) for n, v in {**numbers, **members}.items()})
    if engine.positions is not None:
        found["positions"] = engine.positions
    sink = engine.sink
    if isinstance(sink, GroupSink) and sink.groups.partial is not None:
        found["groups"] = sink.groups.partial
    if isinstance(sink, EarliestSink) and sink.earliest.held is not None:
        table, keys = sink.earliest.held
        found["limit"] = table
        found["limit_keys"] = pa.table({f"key{i}": pa.array(k) for i, k in enumerate(keys)})
    return found


def read(state: Any) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables of a saved state, whole and each valid by itself; whether they fit is not looked at."""
    if not isinstance(state, bytes) or not state.startswith(_MAGIC):
        raise OptionError("this is not a state of eventcube", code="EC410")
    at = len(_MAGIC)
    length, check = (int.from_bytes(state[i : i + 8], "little") for i in (at, at + 8))
    if zlib.crc32(memoryview(state)[_START:]) != check:
        raise damaged("its checksum is another")
    if length > len(state) - _START or (_START + length) % _ALIGNED:
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
    """The error that a saved state is not as it was saved."""
    return OptionError(f"the state is damaged: {reason}", code="EC410")
