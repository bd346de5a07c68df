"""Checksums tell results apart in any value, and not by the order of their rows."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eventcube.bench.checksum import Checksum, MatchesDifferError, checksum, same_matches

SCHEMA = pa.schema(
    {
        "start": pa.timestamp("us"),
        "a": pa.struct({"ts": pa.timestamp("us"), "symbol": pa.string(), "price": pa.float64(), "volume": pa.int64()}),
        "n": pa.int64(),
    }
)


def row(i: int, **changed: Any) -> dict[str, Any]:
    moment = datetime.fromtimestamp(i, UTC).replace(tzinfo=None)
    event = {"ts": moment, "symbol": f"S{i % 3}", "price": i / 7, "volume": i}
    return {"start": moment, "a": event, "n": i} | changed


def summed(rows: list[dict[str, Any]], size: int = 1000) -> Checksum:
    return checksum(pa.Table.from_pylist(rows, SCHEMA).to_batches(size))


ROWS = [row(i) for i in range(50)]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_order_and_the_cut_of_rows_do_not_matter(size: int) -> None:
    shuffled = list(ROWS)
    Random(1).shuffle(shuffled)
    assert summed(shuffled, size) == summed(ROWS)


@pytest.mark.parametrize(
    "other",
    [
        ROWS[:-1],
        [*ROWS, ROWS[0]],
        [*ROWS[:-1], row(49, n=50)],
        [*ROWS[:-1], row(49, n=None)],
        [*ROWS[:-1], row(49, a=None)],
        [*ROWS[:-1], row(49, a=ROWS[49]["a"] | {"symbol": "S9"})],
        [*ROWS[:-1], row(49, a=ROWS[49]["a"] | {"symbol": None})],
        [*ROWS[:-1], row(49, a=ROWS[49]["a"] | {"price": 7.1})],
        # Sums and counts of every column would agree.
        [row(0, n=1), row(1, n=0), *ROWS[2:]],
        [row(0, a=ROWS[1]["a"]), row(1, a=ROWS[0]["a"]), *ROWS[2:]],
    ],
)
def test_another_value_anywhere_gives_another_checksum(other: list[dict[str, Any]]) -> None:
    assert summed(other) != summed(ROWS)


def test_no_rows() -> None:
    assert checksum([]) == summed([]) == Checksum(0, 0)


def test_contestants_that_differ_are_refused() -> None:
    assert same_matches("Q1", {"ours": summed(ROWS), "theirs": summed(ROWS[::-1])}) == 50
    with pytest.raises(MatchesDifferError, match="Q1: different matches") as caught:
        same_matches("Q1", {"ours": summed(ROWS), "theirs": summed([*ROWS[:-1], row(7)])})
    assert caught.value.code == "EC390"
