"""How Parquet files hold times, and in which zone they come out."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import Call

from eventcube.cli.arrow_input import input_schema, read_events, scan_events
from eventcube.cli.inputs import find_inputs
from eventcube.cli.parquet_times import parquet_times, zone_of_times

BERLIN, TOKYO = (pa.timestamp("us", zone) for zone in ("Europe/Berlin", "Asia/Tokyo"))
PLAIN = pa.timestamp("us")


@pytest.mark.parametrize(
    ("columns", "zone"),
    [
        pytest.param({"sent": TOKYO, "ts": BERLIN}, "Europe/Berlin", id="that of the time column"),
        pytest.param({"ts": PLAIN, "sent": TOKYO, "got": BERLIN}, "Asia/Tokyo", id="of the first that has one"),
        pytest.param({"ts": PLAIN, "x": pa.int64()}, None, id="none"),
        pytest.param({"ts": pa.timestamp("us", "UTC")}, "UTC", id="UTC, as files without Arrow's own schema have it"),
    ],
)
def test_the_zone_of_a_file(columns: dict[str, pa.DataType], zone: str | None) -> None:
    assert zone_of_times(pa.schema(columns), "ts") == zone


def test_times_of_96_bits_are_instants(tmp_path: Path) -> None:
    far = datetime(3026, 1, 1, 12)
    table = pa.table({"ts": pa.array([far], PLAIN), "kind": ["A"]})
    pq.write_table(table, tmp_path / "e.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    inputs = find_inputs([str(tmp_path / "e.parquet")])
    assert parquet_times(inputs.files, "ts").int96 == {"ts"}
    assert read_events(inputs)["ts"].type == input_schema(inputs).field("ts").type == pa.timestamp("us", "UTC")
    assert read_events(inputs)["ts"][0].as_py().replace(tzinfo=None) == far


def test_all_times_with_a_zone_come_out_in_one(tmp_path: Path) -> None:
    columns = {
        "ts": BERLIN,
        "sent": TOKYO,
        "clock": PLAIN,
        "inner": pa.struct({"at": TOKYO, "clock": PLAIN}),
        "some": pa.list_(TOKYO),
        "by": pa.map_(pa.string(), TOKYO),
    }
    pq.write_table(pa.schema(columns).empty_table(), tmp_path / "e.parquet")
    inputs = find_inputs([str(tmp_path)])
    expected = ["timestamp[us, tz=Europe/Berlin]"] * 2 + ["timestamp[us]"]
    shown = input_schema(inputs)
    assert [str(field.type) for field in shown][:3] == expected
    assert "Tokyo" not in str(shown)
    assert read_events(inputs).schema == shown
    assert [str(t.schema.field("sent").type) for t in scan_events(inputs, ["sent"])] in ([], expected[:1])


def test_results_are_written_as_clocks_there_show_them_and_can_be_read_again(call: Call, folder: Path) -> None:
    times = [datetime(2026, 3, 29, 0, 30), datetime(2026, 3, 29, 1, 30)]
    events = pa.table({"ts": pa.array(times, PLAIN).cast(BERLIN), "kind": ["A", "A"]})
    pq.write_table(events, folder / "e.parquet")
    query = "PATTERN A a WITHIN 1 s RETURN a.ts AS ts, a.kind AS kind"
    call("run", query, "e.parquet", "--type", "kind", "--no-spark", "--out", "m.csv")
    assert [line.split(",")[2] for line in (folder / "m.csv").read_text().splitlines()[1:]] == [
        '"2026-03-29 01:30:00.000000+01:00"',
        '"2026-03-29 03:30:00.000000+02:00"',
    ]
    again = call("run", query, "m.csv", "--type", "kind", "--no-spark", "--format", "jsonl")
    assert [json.loads(line)["ts"] for line in again.stdout.splitlines()] == [
        "2026-03-29T00:30:00+00:00",
        "2026-03-29T01:30:00+00:00",
    ]
