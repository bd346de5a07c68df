"""States of the first release were written otherwise; they can be read, and are refused if they are damaged."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.runtime.test_snapshot import DATA, EVENTS, make, rows

import eventcube as ec
from eventcube.errors import OptionError
from eventcube.runtime import state_v1


def kept(name: str) -> bytes:
    stored = json.loads(gzip.decompress((DATA / "state-v1.json.gz").read_bytes()))
    return bytes.fromhex(stored["states"][name])


def written(header: dict[str, Any], tables: dict[str, pa.Table]) -> bytes:
    """A state as version 1 wrote it."""
    text = json.dumps(header | {"tables": list(tables)}).encode()
    out = io.BytesIO()
    out.write(text + b" " * (-(32 + len(text)) % 64))
    length = out.tell()
    for table in tables.values():
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    body = out.getvalue()
    return state_v1.MAGIC + length.to_bytes(8, "little") + zlib.crc32(body).to_bytes(8, "little") + body


def refused(state: bytes) -> str:
    runtime = make("forward")
    with pytest.raises(OptionError) as caught:
        runtime.restore(state)
    assert runtime.snapshot() == make("forward").snapshot()
    return caught.value.code


def test_damage_anywhere() -> None:
    state = kept("forward")
    for at in range(16, len(state), 41):
        assert refused(state[:at]) == "EC410"
        assert refused(state[:at] + bytes([state[at] ^ 1]) + state[at + 1 :]) == "EC410"


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", 2), ("version", None), ("finished", True), ("ingest", {}), ("ingest", None), ("engines", [])],
)
def test_a_header_that_no_run_wrote(field: str, value: Any) -> None:
    header, tables = state_v1.read(kept("forward"))
    assert refused(written(header | {field: value}, tables)) == "EC410"


def test_a_number_of_matches() -> None:
    def counting() -> ec.Runtime:
        return ec.Runtime("PATTERN SEQ(A a, B b) WITHIN 9 us AGG COUNT(*)", type="type", lateness="3 us")

    half = EVENTS.num_rows // 2
    runtime, again = counting(), counting()
    list(runtime.push(EVENTS.slice(0, half)))
    found = runtime.counters["matches"]
    (expected,) = rows([*runtime.push(EVENTS.slice(half)), *runtime.finish()])
    header, tables = state_v1.read(kept("AGG without groups"))
    header["fingerprint"] = again.fingerprint
    for column, code in (("a0", None), ("b", "EC410")):
        tables["q1/groups"] = pa.table({column: [found]})
        if code is None:
            again.restore(written(header, tables))
        else:
            with pytest.raises(OptionError, match=code):
                again.restore(written(header, tables))
    assert found
    assert rows([*again.push(EVENTS.slice(half)), *again.finish()]) == [expected]
