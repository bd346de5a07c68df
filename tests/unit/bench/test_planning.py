"""The benchmark of planning measures what runs: plans from text, and engines from pickled plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eventcube.bench import planning


def test_each_query_is_planned_and_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "QUERIES", {"README": planning.QUERIES["README"]})
    (row,) = planning.bench_planning(tmp_path, repetitions=1)
    assert row.plan_bytes > 500
    assert row.ready_ms > 0
    assert json.loads((tmp_path / "planning.json").read_text("utf-8"))["rows"][0]["query"] == "README"
