"""Spark's settings for the state of streams."""

from __future__ import annotations

from pyspark.sql import SparkSession

from eventcube.errors import OptionError

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
# The partitions of state alone; those of other shuffles stay as they are.
_STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"


def use_state_store(session: SparkSession, buckets: int) -> None:
    """Set what the stateful operator needs, unless the user has set it; refuse what it cannot run with.

    Spark reads these settings when a query starts, and goes on with those of its checkpoint.
    """
    provider = session.conf.get(PROVIDER, None)
    if provider is None:
        session.conf.set(PROVIDER, ROCKSDB)
    elif provider != ROCKSDB:
        raise OptionError(
            f"{PROVIDER} is {provider}, but matches over a stream need the state store RocksDB",
            code="EC493",
            hint=f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )
    if session.conf.get(_CHANGELOG, None) is None:
        session.conf.set(_CHANGELOG, "true")
    if session.conf.get(_SHUFFLE_PARTITIONS, None) is None and session.conf.get(_STATE_PARTITIONS, None) is None:
        session.conf.set(_STATE_PARTITIONS, str(buckets))
