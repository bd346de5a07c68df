"""The checkpoint of a stream that has stopped: what its state is of, read before the stream starts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from eventcube.spark.origin import Origin
from eventcube.spark.processor import ORIGIN


def stored_origin(session: SparkSession, checkpoint: str) -> Origin | None:
    """What the state in a checkpoint is of; None if it has none yet, or Spark cannot read it before the stream runs."""
    if "://" not in checkpoint and not Path(checkpoint, "commits").is_dir():
        return None
    # Spark's reader of states needs the service of the streams of a session.
    _ = session.streams
    with suppress(PySparkException, Py4JError):
        states = session.read.format("statestore").option("stateVarName", ORIGIN).load(checkpoint)
        found = states.select(F.col("value.data")).where("data IS NOT NULL").first()
        return None if found is None else Origin.from_bytes(bytes(found[0]))
    return None


def changed_queries(before: Origin, now: Origin) -> str | None:
    """Which queries of a stream come and go with a start, in words; None if they stay."""
    removed, added = (
        ", ".join(name for name in queries if name not in others)
        for queries, others in ((before.queries, now.queries), (now.queries, before.queries))
    )
    parts = [f"removed: {removed}"] if removed else []
    parts += [f"added: {added}, from later events on"] if added else []
    return "; ".join(parts) or None
