"""What CSV files hold, counted from their text, is what is counted from their events."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventcube.cli.arrow_input import text_columns
from eventcube.cli.csv_survey import CsvSurvey
from eventcube.cli.in_process import InProcess
from eventcube.cli.inputs import find_inputs
from eventcube.cli.survey import Survey
from eventcube.language.parse import parse
from eventcube.options import Options, options
from eventcube.slips import wanted_types

QUERY = parse("PATTERN SEQ(A a, B b) WITHIN 1 s")


def survey(path: Path, chosen: Options) -> Survey | None:
    inputs = find_inputs([str(path)])
    counted = CsvSurvey(chosen.time, chosen.type, wanted_types(QUERY, None) if chosen.type else {})
    columns = text_columns(inputs, counted.observe)
    assert columns is not None
    return counted.survey(columns, chosen.time_unit)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        pytest.param("ts,k\n2026-01-01,A\n2026-01-02,B\n", options(type="k"), id="dates"),
        pytest.param("ts,k\n2026-01-01 09:00,A\n,B\n2026-01-02,\n,\n", options(type="k"), id="nulls"),
        pytest.param("ts,k\n2026-01-01T09:00:00Z,A\n2026-01-01T09:00:00+02:00,C\n", options(type="k"), id="missing"),
        pytest.param("t,k\n1,A\n-2,\n", options(time="t", time_unit="s", type="k"), id="seconds"),
        pytest.param("ts,k\n1,A\n,x\n", options(), id="no types"),
        pytest.param('ts,k\n999999999999999999,"A"\n', options(type="k"), id="far away"),
    ],
)
def test_the_same_as_of_the_events(text: str, chosen: Options, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(text)
    found = survey(path, chosen)
    expected = InProcess(find_inputs([str(path)]), QUERY, chosen, quiet=True).survey
    assert found is not None
    assert (found.events, dict(found.set_aside)) == (expected.events, dict(expected.set_aside))
    assert (found.missing, found.some_types) == (expected.missing, expected.some_types)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        pytest.param("ts,k\n2026-01-01,A\nnoon,B\n", options(type="k"), id="times in text"),
        pytest.param("ts,k\n4611686018427387905,A\n", options(type="k"), id="too far away"),
        pytest.param("ts,k\n4611686018427,A\n", options(type="k", time_unit="s"), id="too many seconds"),
        pytest.param("ts,k\n,A\n", options(type="k"), id="no time at all"),
        pytest.param("ts,k\n1,A\n", options(type="kind"), id="a column of the folder's name"),
    ],
)
def test_what_text_does_not_tell(text: str, chosen: Options, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(text)
    assert survey(path, chosen) is None


def test_several_files_and_many_types(tmp_path: Path) -> None:
    for i in range(3):
        rows = "".join(f"{j},T{i * 900 + j}\n" for j in range(900))
        (tmp_path / f"{i}.csv").write_text(f"ts,k\n{rows}")
    found = survey(tmp_path, options(type="k"))
    assert found is not None
    assert found.events == 2700
    assert found.missing == {"A", "B"}
    assert len(found.some_types) == 1000
