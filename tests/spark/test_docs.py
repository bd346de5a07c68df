"""What the documents say about Spark runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventcube.spark import settings, slices

TEXT = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")


def test_every_example_runs(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What it does is tested on a cluster; here it would only make workers compile everything again.
    shipped: list[object] = []
    monkeypatch.setattr("eventcube.spark.ship.ship", shipped.append)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, "docs/spark.md", "exec"), names)
    finally:
        for name in (settings.PARTITIONS, settings.TASK_MEMORY):
            spark.conf.unset(name)
    shown = capsys.readouterr().out
    assert shipped == [spark]
    assert "theatre 1" in shown
    assert "the time is null" in shown
    assert re.search(r"washed\|\s*1", shown)


def test_the_figures_are_those_of_the_code() -> None:
    minute = 60_000_000
    for window, windows in ((10**6, 64), (10 * minute, 16), (60 * minute, 8), (61 * minute, 4)):
        assert slices.slice_width(window) == windows * window
    for name in (settings.PARTITIONS, settings.TASK_MEMORY):
        assert f"`{name}`" in TEXT
