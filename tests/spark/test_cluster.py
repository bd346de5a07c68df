"""A real cluster: executors are other processes, which have nothing of the package but what was shipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eventcube as ec
from tests.spark.ask_cluster import QUERIES, events
from tests.spark.cluster import standalone

ROOT = Path(__file__).parents[2]
# Python reads this as it starts; without it executors here would find the sources through the virtual environment.
_HIDE = """
import sys
sys.path[:] = [p for p in sys.path if not p.rstrip("/").endswith(("/src", "/eventcube"))]
"""


@pytest.mark.cluster
def test_the_package_reaches_executors_that_do_not_have_it(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(_HIDE)
    home = tmp_path / "home"
    home.mkdir()
    bare = {"PYTHONPATH": str(tmp_path / "bare"), "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    with standalone(tmp_path, workers=2, environment=bare) as master:
        command = [sys.executable, "-W", "ignore", "-m", "tests.spark.ask_cluster", master]
        driver = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=driver)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout)
    assert answer["before"].startswith("error[EC436]: Spark's workers run Python ")
    assert "which lacks eventcube; you run Python " in answer["before"]
    for name, query in QUERIES.items():
        expected = ec.match(events(), query, type="type").to_pylist()
        assert len(answer["answers"][name]) == len(expected) > 0
        assert answer["answers"][name] == sorted(map(str, expected))
    archive = Path(answer["shipped"]).name
    assert all(archive in row["package"] for row in answer["where"])
    # Both executors use what one of them unpacked.
    assert {row["kernels"].startswith(str(home)) for row in answer["where"]} == {True}
    assert len({row["executor"] for row in answer["where"]}) == 2
