"""Generates stock trades: the events of the papers' queries, and of the benchmarks here.

The sequence of trades depends on the seed and the shape alone. It is drawn in blocks of fixed size, so a shorter run is
a prefix of a longer one and no way of cutting it into batches, row groups or files changes a value.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SYMBOLS = (
    "INTC", "MSFT", "FCF", "ROM", "EFC", "ANAT", "OREL", "DELL", "QQQ", "YHOO", "AMAT", "ORCL", "IPIX",
)  # fmt: skip
SCHEMA = pa.schema(
    {
        "symbol": pa.string(),
        "ts": pa.timestamp("us"),
        "price": pa.float64(),
        "volume": pa.int64(),
        "account": pa.int64(),
    }
)
START_US = 1_767_225_600_000_000  # 2026-01-01 00:00:00

_BLOCK = 1 << 16
_MARKER = "_trades.json"


@dataclass(frozen=True, slots=True)
class Trades:
    """The shape of the trades: their number, distance in time, accounts, and relative rates of the symbols.

    So many trades of one symbol follow each other in a `run`, on average, beside those that do so by chance.
    """

    events: int = 1_000_000
    seed: int = 7
    step_us: int = 1000
    accounts: int = 1000
    rates: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(SYMBOLS, 1.0))
    run: int = 1

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The trades in order of time, in batches of bounded size."""
        symbols = pa.array(self.rates, pa.string())
        shares = np.array(list(self.rates.values()), dtype=np.float64)
        shares /= shares.sum()
        level = np.zeros(len(shares))
        for first in range(0, self.events, _BLOCK):
            draw = np.random.default_rng([self.seed, first // _BLOCK])
            codes = draw.choice(len(shares), size=_BLOCK, p=shares).astype(np.int32)
            if self.run > 1:
                codes = np.repeat(codes, draw.geometric(1 / self.run, _BLOCK))[:_BLOCK]
            price = _reflected(_walk(codes, draw.normal(0.0, 0.2, _BLOCK), level))
            volume = draw.integers(1, 1001, _BLOCK)
            account = draw.integers(1, self.accounts + 1, _BLOCK)
            ts = START_US + self.step_us * np.arange(first, first + _BLOCK, dtype=np.int64)
            columns = [
                pa.DictionaryArray.from_arrays(codes, symbols).cast(pa.string()),
                pa.array(ts).cast(pa.timestamp("us")),
                pa.array(np.round(price, 4)),
                pa.array(volume),
                pa.array(account),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA).slice(0, self.events - first)

    def table(self) -> pa.Table:
        """All the trades in memory."""
        return pa.Table.from_batches(self.batches(), SCHEMA).combine_chunks()

    def write(self, folder: Path, *, file_events: int = 2_500_000, group_events: int = 250_000) -> Path:
        """Writes Parquet files into the folder, in bounded memory; does nothing if it has the same trades."""
        wanted = {**asdict(self), "file_events": file_events, "group_events": group_events}
        marker = folder / _MARKER
        if marker.exists() and json.loads(marker.read_text()) == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, batches in enumerate(_cut(self.batches(), file_events)):
            with pq.ParquetWriter(folder / f"part-{number:05d}.parquet", SCHEMA) as writer:
                for group in _cut(batches, group_events):
                    writer.write_table(pa.Table.from_batches(group, SCHEMA), row_group_size=group_events)
        # The marker comes last, so that an interrupted run is repeated.
        marker.write_text(json.dumps(wanted))
        return folder


def up_to_each(table: pa.Table, symbol: str) -> list[pa.Table]:
    """The trades in pieces, each up to one of a symbol."""
    last = np.flatnonzero(np.asarray(table.column("symbol")) == symbol) + 1
    cuts = [0, *last.tolist(), table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts) if b > a]


def trades(
    events: int = 1_000_000,
    seed: int = 7,
    step_us: int = 1000,
    rates: Mapping[str, float] | None = None,
    accounts: int = 1000,
) -> pa.Table:
    """A table of trades: symbol, ts, price (a random walk around 100 for each symbol), volume, account from 1 on."""
    return Trades(events, seed, step_us, accounts, dict(rates) if rates else dict.fromkeys(SYMBOLS, 1.0)).table()


def _walk(codes: NDArray[np.int32], steps: NDArray[np.float64], level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each symbol's running sum of its steps, starting at its level; updates the levels."""
    order = np.argsort(codes, kind="stable")
    sums = np.cumsum(steps[order])
    counts = np.bincount(codes, minlength=len(level))
    ends = np.cumsum(counts)
    before = np.concatenate(([0.0], sums))[ends - counts]
    walked = np.empty_like(steps)
    walked[order] = sums + np.repeat(level - before, counts)
    level += np.concatenate(([0.0], sums))[ends] - before
    return walked


def _reflected(walk: NDArray[np.float64]) -> NDArray[np.float64]:
    """The walk reflected at 90 and 110, so that prices stay around 100."""
    return 90.0 + np.abs((walk + 10.0) % 40.0 - 20.0)


def _cut(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """The same rows in runs of `size`; each run must be consumed before the next."""
    rest = next(batches, None)

    def run() -> Iterator[pa.RecordBatch]:
        nonlocal rest
        remaining = size
        while remaining and rest is not None:
            head, tail = rest.slice(0, remaining), rest.slice(remaining)
            remaining -= head.num_rows
            rest = tail if tail.num_rows else next(batches, None)
            yield head

    while rest is not None:
        yield run()
