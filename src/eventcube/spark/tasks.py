"""How far Spark is with what it is doing."""

from __future__ import annotations

from pyspark.sql import SparkSession


def running_tasks(session: SparkSession) -> tuple[int, int, int]:
    """Of the stages that run now: how many there are, their tasks done, and all their tasks."""
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    there = [stage for stage in stages if stage is not None]
    return len(there), sum(s.numCompletedTasks for s in there), sum(s.numTasks for s in there)
