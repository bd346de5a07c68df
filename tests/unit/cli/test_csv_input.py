"""Which types the columns of text have."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from eventcube.cli.arrow_input import input_schema, read_events, text_columns
from eventcube.cli.csv_input import value_that_does_not_fit
from eventcube.cli.inputs import find_inputs
from eventcube.errors import InputError


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "-2", ""], pa.int64()),
        (["1", "2.5", "1e3", "NaN", ".5"], pa.float64()),
        (["99999999999999999999"], pa.float64()),
        (["true", "FALSE"], pa.bool_()),
        (["true", "1"], pa.string()),
        (["0x1F"], pa.string()),
        (["inf"], pa.string()),
        (["NA", "1"], pa.string()),
        (["2026-01-01"], pa.date32()),
        (["2026-01-01", "2026-01-01 09:00"], pa.timestamp("us")),
        (["2026-01-01T09:00:00.1234567"], pa.timestamp("us")),
        (["2026-01-01T09:00:00Z", "2026-01-01 09:00:00.5+02:00"], pa.timestamp("us", "UTC")),
        (["2026-01-01T09:00:00Z", "2026-01-01T09:00:00"], pa.string()),
        (["2026-13-01"], pa.string()),
        (["09:00:00"], pa.string()),
        (["", ""], pa.string()),
    ],
    ids=str,
)
def test_types_of_csv_columns(values: list[str], type_: pa.DataType, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("\n".join(["x,y", *(f"{v},1" for v in values)]))
    found = find_inputs([str(tmp_path / "e.csv")])
    assert input_schema(found) == text_columns(found) == read_events(found).schema
    assert input_schema(found).field("x").type == type_
    assert read_events(found)["x"].null_count == values.count("")


def test_every_value_counts_not_just_the_first(tmp_path: Path) -> None:
    lines = ["x,y", *["1,2026-01-01"] * 500_000, "a,2026-01-01 09:00"]
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    read = read_events(find_inputs([str(tmp_path / "e.csv.gz")]))
    assert read.schema.types == [pa.string(), pa.timestamp("us")]
    assert read.num_rows == 500_001


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("ts,kind\n", "2.csv has no column 'user', and .*1.csv has"),
        ("ts,kind,user,room\n", "1.csv has no column 'room', and .*2.csv has"),
        ("ts,user,kind\n", "2.csv has the columns of .*1.csv in another order"),
    ],
)
def test_files_with_other_columns_are_named(second: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,kind,user\n1,A,x\n")
    (tmp_path / "2.csv").write_text(second)
    with pytest.raises(InputError, match=told) as error:
        text_columns(find_inputs([str(tmp_path)]))
    assert error.value.code == "EC331"


def test_a_ragged_row_is_told_with_its_file_and_number(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,kind\n1,A\n")
    (tmp_path / "2.csv").write_text("ts,kind\n1,A\n2\n")
    with pytest.raises(InputError, match=r"cannot read .*2\.csv as CSV: .*Row #3: Expected 2 columns, got 1"):
        text_columns(find_inputs([str(tmp_path)]))


def test_json_lines_keep_zones_and_all_columns(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"ts": "2026-01-01T09:00:00Z", "day": "2026-01-01 09:00:00.25", "n": null}\n')
    (tmp_path / "2.jsonl").write_text('{"ts": "2026-01-01T10:00:00+02:00", "room": 1.5}\n')
    (tmp_path / "3.jsonl").touch()
    read = read_events(find_inputs([str(tmp_path)]))
    assert read.schema == pa.schema(
        [("day", pa.timestamp("us")), ("n", pa.string()), ("room", pa.float64()), ("ts", pa.timestamp("us", "UTC"))]
    )
    assert [t.hour for t in read["ts"].to_pylist()] == [9, 8]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x,t,s\n1,2026-01-01,a\n,2026-01-01T00:00:00Z,\n", None),
        ("x,t,s\n1,2026-01-01,a\n2.5,,\n", ("x", "2.5")),
        ("x,t,s\n1,soon,a\n", ("t", "soon")),
    ],
)
def test_the_value_that_does_not_fit_a_given_type(text: str, found: object, tmp_path: Path) -> None:
    types = pa.schema({"x": pa.int32(), "t": pa.timestamp("us"), "s": pa.string(), "other": pa.int8()})
    (tmp_path / "1.csv").write_text(text)
    assert value_that_does_not_fit(str(tmp_path / "1.csv"), types) == found
