"""The state of a runtime as bytes: a JSON header, then one Arrow stream for each table.

A state begins with a magic string, the length of the header and a checksum of the rest. The format has a version; a
state that is damaged or of an unknown version is refused. `restore.py` restores a state into a runtime.
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from typing import Any

import pyarrow as pa

from eventcube.engine.saved import Saved
from eventcube.engine.state import Version
from eventcube.errors import OptionError
from eventcube.runtime.workload import Workload

VERSION = 2
# Versions that can be read.
READABLE = (1, 2)
_MAGIC = b"eventcube state\n"
_START = len(_MAGIC) + 16
# Arrow buffers start at multiples of this.
_ALIGNMENT = 64


def save(fingerprint: str, workload: Workload | None, since: Version, *, finished: bool) -> bytes:
    """The state of a runtime, or what changed in it since a version."""
    saved = Saved({}, {}) if workload is None else workload.changes(since)
    header: dict[str, Any] = {"version": VERSION, "fingerprint": fingerprint, "finished": finished}
    if workload is not None:
        header["schema"] = base64.b64encode(workload.schema.columns.serialize().to_pybytes()).decode()
        header["workload"] = saved.values
    # What a table has for columns is known, so that an empty one need not be written.
    tables = {name: table for name, table in saved.tables.items() if table.num_rows}
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
    if header["version"] not in READABLE:
        raise OptionError(
            f"the state has version {header['version']}, this eventcube reads versions {READABLE[0]} to {READABLE[-1]}",
            code="EC411",
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
