"""Streams go on from what earlier versions stored, and what is damaged or does not fit is refused.

`tests/data/stream-v1.json.gz` was stored by the first version that has streams. A change of what a bucket stores needs
a new format (`FORMAT` in `spark/chunks.py`), and a file beside this one, which `python -m
tests.unit.spark.test_saved_streams` writes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.spark.buckets import FakeHandle, FakeState, FakeStream, bucket_task

from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.spark import chunks
from eventcube.spark.chunks import FORMAT

DATA = Path(__file__).parents[2] / "data"
# Formats that can be read.
READABLE = (1,)
COUNT = 220
# How many milliseconds the watermark is behind.
DELAY = 20
END = 10**9

PAIR = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 60 ms"
UNUSED = "PATTERN SEQ(A a, !(C c, c.k = a.k)) WITHIN 30 ms"
NESTED = "PATTERN SEQ(A a, !AND(B b, C c, b.k = c.k), D d, a.k = d.k) WITHIN 90 ms"
# Queries, and what they are changed to before the state is stored, if they are; settings; whether late rows are kept.
STREAMS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, Any], bool]] = {
    "several queries": ({"pair": PAIR, "unused": UNUSED, "nested": NESTED}, {}, {}, False),
    "nested part": ({"q": NESTED}, {}, {}, False),
    "trailing negation": ({"q": UNUSED}, {}, {}, False),
    "groups": ({"q": f"{PAIR} GROUPBY a.k AGG COUNT(*) AS n, MAX(b.x) AS x, AVG(b.x) AS y"}, {}, {}, False),
    "window of events": ({"q": "PATTERN SEQ(A a, !C c, B b) WITHIN 8 events"}, {}, {}, False),
    "window of events over partitions": (
        {"q": "PATTERN SEQ(A a, B b) WITHIN 4 events"},
        {},
        {"partition_by": "k"},
        False,
    ),
    "large window": ({"q": "PATTERN SEQ(A a, B b, a.k = b.k, a.x = b.x) WITHIN 1 hour"}, {}, {}, False),
    "order column": ({"q": PAIR}, {}, {"order_by": "x"}, False),
    "hierarchy": ({"q": "PATTERN SEQ(P p, C c, p.k = c.k) WITHIN 40 ms"}, {}, {"concepts": {"P": ["A", "B"]}}, False),
    "late rows": ({"pair": PAIR}, {}, {}, True),
    "query added": ({"pair": PAIR, "unused": UNUSED}, {"nested": NESTED, "pair": PAIR}, {}, False),
}


def table() -> pa.Table:
    """Events that come out of order, some later than the watermark lets them be."""
    rng = Random(3)
    times = sorted(rng.randrange(900) for _ in range(COUNT))
    arrived = sorted(times, key=lambda time: time + rng.choice([0, 5, 15, 40]))
    rows = [
        {"ts": 1000 * time, "type": rng.choice("ABCD"), "k": rng.choice([1, 2, None]), "x": rng.randrange(5), "id": i}
        for i, time in enumerate(arrived)
    ]
    types = {"ts": pa.timestamp("us"), "type": pa.string(), "k": pa.int64(), "x": pa.int64(), "id": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(types.items()))


def stream_of(name: str, *, changed: bool = True) -> FakeStream:
    """A stream, with its last queries or its first ones."""
    first, last, settings, keep_late = STREAMS[name]
    queries = {n: parse(text) for n, text in (last if changed and last else first).items()}
    chosen = options(type="type", lateness=1000 * DELAY, **settings)
    single = [*queries] == ["q"]
    return FakeStream(bucket_task(queries, table().schema, chosen, keep_late=keep_late, single=single))


def batches(first: int, last: int) -> Iterator[tuple[pa.Table, int]]:
    """Micro-batches of one row, each with its watermark."""
    times = [time // 1000 for time in table().column("ts").cast(pa.int64()).to_pylist()]
    for at in range(first, last):
        yield table().slice(at, 1), max([0, *(time - DELAY for time in times[:at])])


def rows(found: list[pa.RecordBatch]) -> list[str]:
    return sorted(repr(row) for batch in found for row in batch.to_pylist())


def rest(stream: FakeStream) -> list[str]:
    """What a stream gives for the second half of the events."""
    found = [batch for piece, watermark in batches(COUNT // 2, COUNT) for batch in stream.run(piece, watermark)]
    return rows([*found, *stream.run(None, END)])


def stored(name: str) -> FakeStream:
    """A stream after the first half of the events."""
    stream, last = stream_of(name, changed=False), stream_of(name).task
    for at, (piece, watermark) in enumerate(batches(0, COUNT // 2)):
        stream.run(piece, watermark)
        if at == COUNT // 2 - 3 and STREAMS[name][1]:
            stream.task = last
    return stream


def to_json(stream: FakeStream) -> dict[str, Any]:
    """What the state store has of a bucket."""
    states = stream.committed.states
    values = {name: states[name].values[()][0].hex() for name in ("origin", "manifest")}
    kept = {number: data.hex() for (number,), (data,) in states["chunks"].values.items()}
    return {**values, "chunks": kept, "timers": sorted(stream.committed.timers)}


def from_json(stream: FakeStream, saved: dict[str, Any]) -> FakeStream:
    """The stream with what the state store had."""
    handle = FakeHandle()
    for name in ("origin", "manifest"):
        handle.states[name] = FakeState()
        handle.states[name].update((bytes.fromhex(saved[name]),))
    handle.states["chunks"] = FakeState()
    for number, data in saved["chunks"].items():
        handle.states["chunks"].updateValue((int(number),), (bytes.fromhex(data),))
    handle.timers = set(saved["timers"])
    stream.committed = handle
    return stream


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("version", READABLE)
def test_streams_of_earlier_versions_go_on(name: str, version: int) -> None:
    kept = json.loads(gzip.decompress((DATA / f"stream-v{version}.json.gz").read_bytes()))[name]
    assert rest(from_json(stream_of(name), kept["state"])) == kept["expected"]


def test_the_streams_that_are_kept_have_what_a_state_can_have() -> None:
    streams = {name: stored(name) for name in STREAMS}
    manifests = {n: json.loads(s.committed.states["manifest"].get()[0]) for n, s in streams.items()}
    assert {tier for m in manifests.values() for _, tier, *_ in m["chunks"]} >= {0, 1}
    assert max(len(m["chunks"]) for m in manifests.values()) > chunks.PER_TIER // 2
    added = streams["query added"].workers[0].popitem()[1].bucket.workload.added
    assert [*added] == ["nested"]
    assert all(rest(stream) for stream in streams.values())


def flipped(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


class TestDamage:
    """Whatever happened to what is stored, the stream stops with the reason, and gives no wrong match."""

    def refused(self, change: Callable[[dict[str, FakeState]], None]) -> OptionError:
        stream = stored("large window")
        assert len(stream.committed.states["chunks"].values) > 3
        change(stream.committed.states)
        for worker in stream.workers:
            worker.clear()
        with pytest.raises(OptionError) as caught:
            stream.run(table().slice(COUNT // 2, 1), 500)
        return caught.value

    def test_a_missing_chunk(self) -> None:
        def change(states: dict[str, FakeState]) -> None:
            states["chunks"].removeKey([*states["chunks"].values][2])

        error = self.refused(change)
        assert (error.code, error.message) == ("EC410", "the state is damaged: one of its chunks is missing")

    def test_a_chunk_with_another_byte(self) -> None:
        def change(states: dict[str, FakeState]) -> None:
            number, (data,) = [*states["chunks"].values.items()][1]
            states["chunks"].updateValue(number, (flipped(data),))

        assert self.refused(change).code == "EC410"

    @pytest.mark.parametrize("place", [0, 1, -1])
    def test_a_chunk_of_another_stream(self, place: int) -> None:
        other = [data for (data,) in stored("nested part").committed.states["chunks"].values.values()]

        def change(states: dict[str, FakeState]) -> None:
            states["chunks"].updateValue([*states["chunks"].values][place], (other[place],))

        error = self.refused(change)
        assert (error.code, error.message) == ("EC410", "the state is damaged: one of its chunks is of another stream")

    @pytest.mark.parametrize("place", [0, 1, -1])
    def test_a_chunk_of_another_bucket(self, place: int) -> None:
        other = [data for (data,) in stored("large window").committed.states["chunks"].values.values()]

        def change(states: dict[str, FakeState]) -> None:
            states["chunks"].updateValue([*states["chunks"].values][place], (other[place],))

        assert self.refused(change).code == "EC410"

    def test_chunks_in_each_others_places(self) -> None:
        def change(states: dict[str, FakeState]) -> None:
            (one, two), values = [*states["chunks"].values][2:4], states["chunks"].values
            values[one], values[two] = values[two], values[one]

        assert self.refused(change).code == "EC410"

    @pytest.mark.parametrize("name", ["origin", "manifest"])
    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\xff", b'{"format":1,"chunks":[[1]],"timer":null}'])
    def test_what_is_stored_beside_the_chunks(self, name: str, data: bytes) -> None:
        error = self.refused(lambda states: states[name].update((data,)))
        assert error.code == "EC410"
        assert "cannot be read" in error.message

    def test_no_origin(self) -> None:
        assert self.refused(lambda states: states["origin"].values.clear()).code == "EC410"

    def test_a_checkpoint_of_a_later_format(self) -> None:
        def change(states: dict[str, FakeState]) -> None:
            later = {**json.loads(states["manifest"].get()[0]), "format": FORMAT + 1, "chunks": {"new": "layout"}}
            states["manifest"].update((json.dumps(later).encode(),))

        error = self.refused(change)
        assert error.code == "EC411"
        assert error.message == f"the checkpoint has format {FORMAT + 1}, this eventcube reads formats up to {FORMAT}"


if __name__ == "__main__":
    kept = {}
    for each in STREAMS:
        kept[each] = {"state": to_json(stream := stored(each)), "expected": rest(stream)}
    data = json.dumps(kept).encode()
    (DATA / f"stream-v{FORMAT}.json.gz").write_bytes(gzip.compress(data, mtime=0))
