"""A forged state, whose checksum is right, is refused and changes nothing, or gives a runtime that works.

`python -m tests.unit.runtime.test_restore 5000` forges so many states of each plan.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.unit.runtime import test_snapshot

import eventcube as ec
from eventcube.engine.state import NOTHING, Version
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
NAMES = ["held", "held_ts", "schema", "take", "counters", "lateness", "__class__", "x", "since", "query", "sink_left"]


def make(name: str) -> ec.Runtime:
    query, settings = PLANS[name]
    return ec.Runtime(query, type="type", lateness="3 us", advise=False, **settings)


def running(name: str, events: int) -> ec.Runtime:
    runtime = make(name)
    list(runtime.push(EVENTS.slice(0, events)))
    return runtime


def opened(runtime: ec.Runtime, since: Version = NOTHING) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables of a snapshot; `snapshot.write` makes the snapshot of them."""
    with patch.object(snapshot, "write", lambda header, tables: (header, tables)):
        header, tables = cast("Any", runtime.snapshot(since))
    return header, {name: table for name, table in tables.items() if table.num_rows}


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container in the header with each of its keys."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
    return [place for key in keys for place in [(node, key), *places(node[key])]]


def forge_header(rng: Random, header: dict[str, Any]) -> None:
    container, key = rng.choice([p for p in places(header) if p[1] not in ("fingerprint", "of")] or [(header, "x")])
    match rng.randrange(4):
        case 0:
            container.pop(key, None) if isinstance(container, dict) else container.pop(key)
        case 1:
            container[key] = deepcopy(rng.choice(VALUES))
        case 2 if isinstance(container, dict):
            container[rng.choice(NAMES)] = deepcopy(rng.choice([*VALUES, container.get(key)]))
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


def forged(rng: Random, header: dict[str, Any], tables: dict[str, pa.Table]) -> bytes:
    """A state with a few changes, and the checksum that goes with them."""
    if rng.random() < 0.2:
        return scratched(rng, snapshot.write(header, tables))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.5 or not tables:
            forge_header(rng, header)
            continue
        name = rng.choice(list(tables))
        match rng.randrange(8):
            case 0:
                del tables[name]
            case 1:
                tables[rng.choice([*tables, "x", "0/groups", "ingest/rows"])] = tables[name]
            case _:
                tables[name] = forge_table(rng, tables[name])
    return snapshot.write(header, tables)


def scratched(rng: Random, state: bytes) -> bytes:
    """A state with other bytes before it is compressed."""
    length = int.from_bytes(state[snapshot._CHECKED + 1 : snapshot._COMPRESSED], "little")
    content = bytearray(pa.decompress(state[snapshot._COMPRESSED :], length, codec="zstd", asbytes=True))
    header = int.from_bytes(content[:4], "little") + 4
    for _ in range(rng.randint(1, 4)):
        in_tables = rng.random() < 0.9 and header < len(content)
        content[rng.randrange(header, len(content)) if in_tables else rng.randrange(header)] = rng.randrange(256)
    return snapshot.seal(len(content) + rng.choice([0, 0, 0, 1, 2**63]), pa.compress(bytes(content), "zstd", True))


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
    source = running(name, rng.choice([0, 6, 9, 14]))
    states, version = [], NOTHING
    if rng.random() < 0.5:
        # What is forged are changes.
        states, version = [source.snapshot()], source.version
        list(source.push(EVENTS.slice(9, rng.randrange(6))))
    states.append(forged(rng, *opened(source, version)))
    try:
        runtime.restore(*states)
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


def changed(change: Callable[[dict[str, Any], dict[str, pa.Table]], None], name: str = "forward") -> OptionError:
    """What is said of a state of which something was changed."""
    header, tables = opened(running(name, 9))
    change(header, tables)
    runtime = make(name)
    with pytest.raises(OptionError) as caught:
        runtime.restore(snapshot.write(header, tables))
    assert runtime.snapshot() == make(name).snapshot()
    return caught.value


def test_the_header_sets_no_attributes() -> None:
    error = changed(lambda header, _: header["workload"]["events"].update(take="x"))
    assert error.code == "EC410"
    assert "nothing has the field 'take' of its header" in error.message


@pytest.mark.parametrize("field", ["workload", "schema", "fingerprint"])
def test_a_field_of_the_header_that_is_missing(field: str) -> None:
    def drop(header: dict[str, Any], _: dict[str, pa.Table]) -> None:
        del header[field]

    assert changed(drop).code == "EC410"


def test_a_table_that_nothing_has() -> None:
    def name(_: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        tables["events/lines"] = tables.pop("events/rows")

    assert changed(name).message == "the state is damaged: nothing has a table 'lines'"


def test_a_table_with_other_columns() -> None:
    def rename(_: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        rows = tables["events/rows"]
        tables["events/rows"] = rows.rename_columns([f"{name}?" for name in rows.column_names])

    assert changed(rename).message == "the state is damaged: the table rows has other columns"


def test_events_whose_order_the_engine_could_not_rely_on() -> None:
    def turn(_: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        rows = tables["events/rows"]
        back = pa.array([-1 if i else n for i, n in enumerate(rows.column(0).to_pylist())], pa.int64())
        tables["events/rows"] = rows.set_column(0, "ts", back)

    assert changed(turn).message == "the state is damaged: ts does not ascend"


def test_lists_of_numbers_that_do_not_fit_each_other() -> None:
    for wrong in ([0, 1], [], [1], [0, 0], 0, None, ["0"]):

        def replace(header: dict[str, Any], _: dict[str, pa.Table], wrong: Any = wrong) -> None:
            assert header["workload"]["queries"]["query"] == [0]
            header["workload"]["queries"]["query"] = wrong

        assert changed(replace, "backward").code == "EC410"


def test_a_state_that_would_take_all_memory() -> None:
    state = running("forward", 9).snapshot()
    with pytest.raises(OptionError) as caught:
        make("forward").restore(snapshot.seal(2**40, state[snapshot._COMPRESSED :]))
    assert caught.value.message == "the state is damaged: it cannot be as long as it says"


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
