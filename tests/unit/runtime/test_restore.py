"""A forged state, whose checksum is right, is refused and changes nothing, or gives a runtime that works.

`python -m tests.unit.runtime.test_restore 5000` forges so many states of each plan.
"""

from __future__ import annotations

import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.runtime import test_snapshot

import eventcube as ec
from eventcube.errors import OptionError
from eventcube.runtime import snapshot

EVENTS = test_snapshot.EVENTS
NESTED = {
    strategy: ("PATTERN SEQ(A a, !SEQ(B m, C n), SEQ(B b, C c), A d) WITHIN 12 us", {"strategy": strategy})
    for strategy in ("passive", "semantic", "balanced", "aggressive")
}
PLANS = test_snapshot.PLANS | NESTED
EXTREMES = [0, 1, -1, 2, 7, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63)]
VALUES = [*EXTREMES, None, True, False, 2**70, 1.5, float("nan"), "", "x", "__class__", [], [1], {}, {"x": 1}]
NAMES = ["held", "held_ts", "schema", "take", "counters", "lateness", "__class__", "x", "events", "events/rows"]


def make(name: str) -> ec.Runtime:
    query, settings = PLANS[name]
    return ec.Runtime(query, type="type", lateness="3 us", advise=False, **settings)


def saved(name: str, events: int) -> bytes:
    runtime = make(name)
    list(runtime.push(EVENTS.slice(0, events)))
    return runtime.snapshot()


def written(header: Any, tables: list[pa.Table]) -> bytes:
    """A state with this header and these tables, and the checksum that they have."""
    out = io.BytesIO()
    text = json.dumps(header).encode()
    text += b" " * (-(snapshot._START + len(text)) % snapshot._ALIGNMENT)
    out.write(text)
    for table in tables:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    return sealed(len(text), out.getvalue())


def sealed(length: int, body: bytes) -> bytes:
    return snapshot._MAGIC + length.to_bytes(8, "little") + zlib.crc32(body).to_bytes(8, "little") + body


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container in the header with each of its keys."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
    return [place for key in keys for place in [(node, key), *places(node[key])]]


def forge_header(rng: Random, header: dict[str, Any]) -> None:
    container, key = rng.choice([p for p in places(header) if p[1] not in ("fingerprint", "version")])
    match rng.randrange(4):
        case 0:
            del container[key]
        case 1:
            container[key] = deepcopy(rng.choice(VALUES))
        case 2 if isinstance(container, dict):
            container[rng.choice(NAMES)] = deepcopy(rng.choice([*VALUES, container[key]]))
        case _:
            other, name = rng.choice(places(header))
            container[key] = deepcopy(other[name])


def forge_table(rng: Random, table: pa.Table) -> pa.Table:
    rows = table.num_rows
    if not table.num_columns:
        return table
    at = rng.randrange(table.num_columns)
    field, column = table.schema.field(at), table.column(at)
    match rng.randrange(7):
        case 0:
            return table.slice(rng.randrange(3), rng.randrange(rows + 1))
        case 1:
            return pa.concat_tables([table, table.slice(rng.randrange(rows + 1))])
        case 2:
            return table.take(pa.array([rng.randrange(rows) for _ in range(rows)], pa.int64()))
        case 3:
            return table.remove_column(at) if rng.random() < 0.5 else table.append_column(field, column)
        case 4:
            other = rng.choice([pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.null(), pa.list_(pa.int8())])
            return table.set_column(at, pa.field(field.name, other), pa.nulls(rows, other))
        case 5:
            return table.set_column(at, field, pa.nulls(rows, field.type))
    values = column.to_pylist()
    for i in range(rows):
        if rng.random() < 0.5:
            new = {pa.int64(): rng.choice(EXTREMES), pa.bool_(): rng.random() < 0.5, pa.string(): rng.choice("ABC")}
            values[i] = new.get(field.type, None if rng.random() < 0.1 else values[i])
            if rng.random() < 0.5 and field.type == pa.int64() and isinstance(column[i].as_py(), int):
                values[i] = column[i].as_py() + rng.choice([-1, 1])
    return table.set_column(at, field, pa.array(values, field.type))


def forged(rng: Random, state: bytes) -> bytes:
    """The state with a few changes, and the checksum that goes with them."""
    header, named = snapshot.read(state)
    if rng.random() < 0.2:
        length = int.from_bytes(state[16:24], "little")
        body = bytearray(state[snapshot._START :])
        for _ in range(rng.randint(1, 4)):
            in_tables = rng.random() < 0.9 and length < len(body)
            body[rng.randrange(length, len(body)) if in_tables else rng.randrange(length)] = rng.randrange(256)
        return sealed(length + rng.choice([0, 0, 0, 1, 2**63]), bytes(body))
    tables = list(named.values())
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.5:
            forge_header(rng, header)
        elif tables:
            at = rng.randrange(len(tables))
            match rng.randrange(8):
                case 0:
                    del tables[at]
                    header["tables"] = list(named)[:at] + list(named)[at + 1 :]
                case 1:
                    tables[at] = rng.choice(tables)
                case _:
                    tables[at] = forge_table(rng, tables[at])
    return written(header, tables)


def go_on(runtime: ec.Runtime) -> None:
    """Use the runtime as one does."""
    found = []
    if runtime._finished:
        return
    if runtime.workload is None or runtime.workload.schema.columns.equals(EVENTS.schema):
        for start in range(9, EVENTS.num_rows, 4):
            found += runtime.push(EVENTS.slice(start, 4))
            runtime.snapshot()
    for batch in [*found, *runtime.finish()]:
        batch.validate(full=True)
    assert runtime.counters["matches"] >= 0
    runtime.set_aside.validate(full=True)


def outcome(name: str, seed: int) -> str:
    """Restore a forged state into a runtime that has seen something, and use it."""
    rng = Random(f"{name} {seed}")
    runtime = make(name)
    list(runtime.push(EVENTS.slice(0, 3)))
    before = runtime.snapshot()
    try:
        runtime.restore(forged(rng, saved(name, rng.choice([0, 6, 9, 14]))))
    except OptionError as error:
        assert runtime.snapshot() == before
        return error.code
    go_on(runtime)
    return "restored"


@pytest.mark.parametrize("name", PLANS)
def test_a_forged_state_is_refused_or_works(name: str) -> None:
    found = Counter(outcome(name, seed) for seed in range(25))
    assert found["EC410"] > 5
    assert found["restored"], "some changes do no harm"
    assert set(found) <= {"restored", "EC410", "EC412"}


def changed(change: Callable[[dict[str, Any], dict[str, pa.Table]], None]) -> OptionError:
    """What is said of a state of which something was changed."""
    header, tables = snapshot.read(saved("forward", 9))
    change(header, tables)
    runtime = make("forward")
    with pytest.raises(OptionError) as caught:
        runtime.restore(written(header, list(tables.values())))
    assert runtime.snapshot() == make("forward").snapshot()
    return caught.value


def test_the_header_sets_no_attributes() -> None:
    error = changed(lambda header, _: header["workload"]["parts"]["events"].update(take="x"))
    assert error.code == "EC410"
    assert "its header needs the fields sequence, totals, watermark, and no others" in error.message


@pytest.mark.parametrize("field", ["finished", "workload", "schema", "fingerprint", "tables"])
def test_a_field_of_the_header_that_is_missing(field: str) -> None:
    def drop(header: dict[str, Any], _: dict[str, pa.Table]) -> None:
        del header[field]

    assert changed(drop).code == "EC410"


def test_a_table_that_is_missing() -> None:
    def drop(header: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        del tables["events/rows"]
        header["tables"] = list(tables)

    assert changed(drop).message == "the state is damaged: there are more or fewer rows than events"


def test_events_whose_order_the_engine_could_not_rely_on() -> None:
    def turn(_: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        tables["events/rows"] = tables["events/rows"].take([2, 1, 0])

    assert changed(turn).message == "the state is damaged: ts does not ascend"


def test_events_of_which_no_column_is_needed() -> None:
    query = "PATTERN OR(A a, B b) AGG COUNT(*) AS n"
    first, second = (ec.Runtime(query, type="type", lateness="3 us") for _ in range(2))
    list(first.push(EVENTS.slice(0, 9)))
    assert first.kept
    second.restore(first.snapshot())
    for runtime in (first, second):
        list(runtime.push(EVENTS.slice(9)))
    assert [b.to_pylist() for b in first.finish()] == [b.to_pylist() for b in second.finish()]


if __name__ == "__main__":
    for name in PLANS:
        print(name, dict(Counter(outcome(name, seed) for seed in range(int(sys.argv[1])))))
