"""What the streams of these tests are asked, and events for them: out of order, some of them late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
START = 1_767_600_000 * SECOND
LATENESS = 5
COLUMNS = "ts timestamp, kind string, k long, v double, id long"
SETTINGS = {"time": "ts", "type": "kind", "order_by": "id"}
# Those with a negation at the end wait for the watermark, until it is so many seconds after their first event.
QUERIES = {
    "pair": "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds",
    "nested": "PATTERN SEQ(A a, !AND(B b, C c, b.k = c.k), D d, a.k = d.k = b.k) WITHIN 30 seconds",
    "unused": "PATTERN SEQ(A a, !C c, a.k = c.k) WITHIN 15 seconds",
    "counted": "PATTERN SEQ(A a, B b, !D d, C c) WITHIN 6 events",
    "unkeyed": "PATTERN SEQ(A a, C c, !(B b, b.v > a.v + 0.3), c.v < 0.05 * a.v) WITHIN 2 seconds",
}
LOOKS_AHEAD = {"unused": 15, "unkeyed": 2}
WORKLOADS = {
    "keyed": ("pair", "nested", "unused"),
    "unkeyed": ("counted", "unkeyed"),
    "mixed": ("pair", "unused", "counted"),
}


def queries_of(workload: str) -> dict[str, str]:
    """The queries of a workload."""
    return {name: QUERIES[name] for name in WORKLOADS[workload]}


@dataclass(frozen=True, slots=True)
class Feed:
    """Events as they arrive: so many rows in each piece, which takes so many seconds of their time.

    Each is up to `jitter` seconds behind, which can be more than the lateness; and so many of all are behind by the
    time of two pieces, so they are late. `skew` of all events have one key.
    """

    pieces: int
    rows: int = 1000
    seconds: float = 30
    begin: float = 0
    first: int = 0
    keys: int = 100
    jitter: float = 6
    behind: float = 0.01
    skew: float = 0
    seed: int = 17

    def tables(self) -> Sequence[pa.Table]:
        """The events of each piece."""
        rng = np.random.default_rng(self.seed)
        count = self.pieces * self.rows
        times = self.begin + np.round(np.sort(rng.uniform(0, self.pieces * self.seconds, count)), 1)
        delays = rng.uniform(0, self.jitter, count) + np.where(rng.random(count) < self.behind, 2 * self.seconds, 0)
        keys = np.where(rng.random(count) < self.skew, 0, rng.integers(0, self.keys, count))
        order = np.argsort(times + delays, kind="stable")
        table = events(times, rng.choice(list("ABCD"), count), keys, rng.random(count), self.first)
        arrived = table.take(pa.array(order))
        return [arrived.slice(i * self.rows, self.rows) for i in range(self.pieces)]


def events(seconds: object, kinds: object, keys: object, values: object = None, first: int = 0) -> pa.Table:
    """Events at some seconds, with ids from the first one on."""
    micros = START + np.round(np.array(seconds, dtype=float) * SECOND).astype(np.int64)
    count = len(micros)
    return pa.table(
        {
            "ts": pa.array(micros, pa.timestamp("us", "UTC")),
            "kind": pa.array(kinds, pa.string()),
            "k": pa.array(keys, pa.int64()),
            "v": pa.array(np.zeros(count) if values is None else values, pa.float64()),
            "id": pa.array(range(first, first + count), pa.int64()),
        }
    )
