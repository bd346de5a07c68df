"""The progress of Spark's running jobs."""

from __future__ import annotations

from pyspark.sql import SparkSession


def running_tasks(session: SparkSession) -> tuple[int, int, int]:
    """The number of running stages, of their finished tasks, and of all their tasks."""
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    running = [stage for stage in stages if stage is not None]
    return len(running), sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running)
