from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from eventcube.cli.result_files import write_batches

SCHEMA = pa.schema(
    {
        "start": pa.timestamp("us", "UTC"),
        "gap": pa.duration("us"),
        "e": pa.struct({"text": pa.string(), "tags": pa.list_(pa.string())}),
    }
)
ROWS = [
    {"start": 1, "gap": timedelta(milliseconds=1500), "e": {"text": 'say "hi", ø', "tags": ["x", "y"]}},
    {"start": None, "gap": None, "e": None},
]


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_a_file_without_rows_still_has_its_columns(format_: str, tmp_path: Path) -> None:
    path = tmp_path / f"none.{format_}"
    assert write_batches([], SCHEMA, format_, path) == 0
    assert path.exists()


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    batch = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
    assert write_batches([batch, batch], SCHEMA, "csv", path) == 4
    header, first, second, *_ = path.read_text("utf-8").splitlines()
    assert header == '"start","gap","e.text","e.tags"'
    assert first == '1970-01-01 00:00:00.000001Z,1.5,"say ""hi"", ø","[""x"", ""y""]"'
    assert second == ",,,"


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write_batches([pa.RecordBatch.from_pylist(ROWS, SCHEMA)], SCHEMA, "jsonl", path)
    first, second = map(json.loads, path.read_text("utf-8").splitlines())
    assert first == {
        "start": "1970-01-01T00:00:00.000001+00:00",
        "gap": 1.5,
        "e": {"text": 'say "hi", ø', "tags": ["x", "y"]},
    }
    assert second == {"start": None, "gap": None, "e": None}


def test_nothing_is_left_behind_if_the_matches_break_off(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist(ROWS, SCHEMA)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_batches(broken(), SCHEMA, "parquet", tmp_path / "m.parquet")
    assert list(tmp_path.iterdir()) == []
