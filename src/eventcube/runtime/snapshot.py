"""The state of a runtime as bytes, or what changed in it.

They begin with a magic string and a checksum of the rest. That is the version of the format, the length of what is
compressed, and that, by Zstandard: the length of a header, the header as JSON, and the tables that it lists, one after
the other. A whole state has the texts of the queries, the settings and the columns of the events in its header, changes
only a hash of them. `restore.py` puts a state into a runtime.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eventcube.engine.saved import pack
from eventcube.engine.state import NOTHING, Version
from eventcube.errors import OptionError
from eventcube.runtime import state_v1
from eventcube.runtime.workload import Workload

VERSION = 2
# Versions that can be read.
READABLE = (1, 2)
_MAGIC = b"eventcube\n"
_CHECKED = len(_MAGIC) + 4
_COMPRESSED = _CHECKED + 1 + 8
# Zstandard makes no more of a byte.
_MOST_OF_A_BYTE = 1 << 15


def save(fingerprint: str, workload: Workload | None, since: Version) -> bytes:
    """The state of a runtime, or what changed in it since a version."""
    if workload is None:
        return write({"fingerprint": fingerprint}, {})
    saved, columns = workload.changes(since), workload.schema.columns
    header: dict[str, Any] = {"workload": saved.values}
    if since == NOTHING:
        header["fingerprint"] = fingerprint
        header["schema"] = base64.b64encode(columns.serialize().to_pybytes()).decode()
    else:
        header["of"] = short_identity(fingerprint, columns)
    return write(header, saved.tables)


def short_identity(fingerprint: str, columns: pa.Schema) -> str:
    """A hash of the queries, settings and columns that changes are of."""
    text = "\n".join([fingerprint, *(f"{field.name} {field.type}" for field in columns)])
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def write(header: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> bytes:
    """A header and tables as bytes; an empty table is not written: a reader knows its columns."""
    packed = {name: pack(table) for name, table in tables.items() if table.num_rows}
    listed = {**header, "tables": {name: len(data) for name, data in packed.items()}}
    text = json.dumps(listed, separators=(",", ":")).encode()
    content = b"".join((len(text).to_bytes(4, "little"), text, *packed.values()))
    return seal(len(content), pa.compress(content, codec="zstd", asbytes=True))


def seal(length: int, compressed: bytes) -> bytes:
    """What is compressed, and how long it is if it is not, with the version and the checksum."""
    body = b"".join((VERSION.to_bytes(1, "little"), length.to_bytes(8, "little"), compressed))
    return b"".join((_MAGIC, zlib.crc32(body).to_bytes(4, "little"), body))


def read(state: Any) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The version, the header and the tables of a saved state; `restore.py` checks that they fit."""
    if isinstance(state, bytes) and state.startswith(state_v1.MAGIC):
        return 1, *state_v1.read(state)
    if not isinstance(state, bytes):
        hint = "give the bytes of a state, and those of changes as further arguments: restore(state, *changes)"
        raise OptionError(f"a state is bytes, not {type(state).__name__}", code="EC410", hint=hint)
    if not state.startswith(_MAGIC):
        raise OptionError("this is not a state of eventcube", code="EC410")
    view = memoryview(state)
    if zlib.crc32(view[_CHECKED:]).to_bytes(4, "little") != view[len(_MAGIC) : _CHECKED] or len(state) < _COMPRESSED:
        raise damaged("its checksum is another")
    if state[_CHECKED] != READABLE[-1]:
        raise OptionError(
            f"the state has version {state[_CHECKED]}, this eventcube reads versions {READABLE[0]} to {READABLE[-1]}",
            code="EC411",
        )
    content = _decompressed(view[_COMPRESSED:], int.from_bytes(view[_CHECKED + 1 : _COMPRESSED], "little"))
    start = 4 + int.from_bytes(content[:4], "little")
    try:
        header = json.loads(bytes(content[4:start]))
    except (ValueError, RecursionError) as error:
        raise damaged(f"its header is no JSON: {error}") from None
    sizes = header.pop("tables", None) if isinstance(header, dict) else None
    if not isinstance(sizes, dict) or not all(type(size) is int and size > 0 for size in sizes.values()):
        raise damaged("its header does not list its tables")
    if start + sum(sizes.values()) != len(content):
        raise damaged("its tables have other lengths than its header says")
    tables = {}
    for name, size in sizes.items():
        tables[name], start = content[start : start + size], start + size
    return VERSION, header, tables


def _decompressed(data: memoryview, length: int) -> memoryview:
    if length > len(data) * _MOST_OF_A_BYTE:
        raise damaged("it cannot be as long as it says")
    try:
        return memoryview(pa.decompress(pa.py_buffer(data), decompressed_size=length, codec="zstd")).cast("B")
    except (pa.ArrowException, ValueError, OSError) as error:
        raise damaged(str(error)) from None


def damaged(reason: str) -> OptionError:
    """The error for a damaged state."""
    return OptionError(f"the state is damaged: {reason}", code="EC410")
