"""What CSV files hold, counted from their text, is what is counted from their events."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventcube.cli.arrow_input import text_columns
from eventcube.cli.csv_survey import CsvSurvey
from eventcube.cli.in_process import InProcess
from eventcube.cli.inputs import find_inputs
from eventcube.cli.settings import Settings
from eventcube.cli.survey import Survey
from eventcube.language.parse import parse
from eventcube.slips import wanted_types

QUERY = parse("PATTERN SEQ(A a, B b) WITHIN 1 s")


def survey(path: Path, settings: Settings) -> Survey | None:
    inputs = find_inputs([str(path)])
    counted = CsvSurvey(settings.time, settings.type, wanted_types(QUERY, None) if settings.type else {})
    columns = text_columns(inputs, counted.look_at)
    assert columns is not None
    return counted.survey(columns, settings.time_unit)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("ts,k\n2026-01-01,A\n2026-01-02,B\n", Settings(type="k"), id="dates"),
        pytest.param("ts,k\n2026-01-01 09:00,A\n,B\n2026-01-02,\n,\n", Settings(type="k"), id="nulls"),
        pytest.param("ts,k\n2026-01-01T09:00:00Z,A\n2026-01-01T09:00:00+02:00,C\n", Settings(type="k"), id="missing"),
        pytest.param("t,k\n1,A\n-2,\n", Settings(time="t", time_unit="s", type="k"), id="seconds"),
        pytest.param("ts,k\n1,A\n,x\n", Settings(), id="no types"),
        pytest.param('ts,k\n999999999999999999,"A"\n', Settings(type="k"), id="far away"),
    ],
)
def test_the_same_as_of_the_events(text: str, settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(text)
    found = survey(path, settings)
    expected = InProcess(find_inputs([str(path)]), QUERY, settings, quiet=True).survey
    assert found is not None
    assert (found.events, dict(found.set_aside)) == (expected.events, dict(expected.set_aside))
    assert (found.missing, found.some_types) == (expected.missing, expected.some_types)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("ts,k\n2026-01-01,A\nnoon,B\n", Settings(type="k"), id="times in text"),
        pytest.param("ts,k\n4611686018427387905,A\n", Settings(type="k"), id="too far away"),
        pytest.param("ts,k\n4611686018427,A\n", Settings(type="k", time_unit="s"), id="too many seconds"),
        pytest.param("ts,k\n,A\n", Settings(type="k"), id="no time at all"),
        pytest.param("ts,k\n1,A\n", Settings(type="kind"), id="a column of the folder's name"),
    ],
)
def test_what_text_does_not_tell(text: str, settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(text)
    assert survey(path, settings) is None


def test_several_files_and_many_types(tmp_path: Path) -> None:
    for i in range(3):
        rows = "".join(f"{j},T{i * 900 + j}\n" for j in range(900))
        (tmp_path / f"{i}.csv").write_text(f"ts,k\n{rows}")
    found = survey(tmp_path, Settings(type="k"))
    assert found is not None
    assert found.events == 2700
    assert found.missing == {"A", "B"}
    assert len(found.some_types) == 1000
