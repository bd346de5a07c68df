from __future__ import annotations

from pathlib import Path

import pytest

from eventcube.cli.inputs import find_inputs, format_by_name
from eventcube.errors import InputError


def test_a_folder_stays_a_folder_so_that_its_partitions_are_seen(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "part.parquet").touch()
    (tmp_path / "_SUCCESS").touch()
    found = find_inputs([str(tmp_path)])
    assert found.paths == (str(tmp_path),)
    assert found.files == (str(tmp_path / "day=1" / "part.parquet"),)
    assert found.format == "parquet"


def test_addresses_are_left_to_spark() -> None:
    found = find_inputs(["s3a://bucket/day.parquet"])
    assert found.remote
    assert found.format == "parquet"


def test_a_given_format_overrules_names(tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    file.touch()
    assert find_inputs([str(file)], "jsonl").format == "jsonl"
    with pytest.raises(InputError, match="cannot tell the format"):
        find_inputs([str(file)])


@pytest.mark.parametrize(
    ("name", "format_"),
    [("a.parquet", "parquet"), ("a.CSV", "csv"), ("a.json.gz", "jsonl"), ("a.ndjson", "jsonl"), ("a", None)],
)
def test_formats_by_name(name: str, format_: str | None) -> None:
    assert format_by_name(name) == format_
