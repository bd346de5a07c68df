"""Events from topics of Kafka whose records are JSON objects, and matches as such records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from eventcube.errors import OptionError
from eventcube.options import invalid_argument
from eventcube.schema import INTERNAL, MATCH_ID
from eventcube.spark.columns import column
from eventcube.spark.failures import no_kafka_connector
from eventcube.spark.files import WRITTEN, json_columns

_PARSED, _CORRUPT = INTERNAL + "parsed", INTERNAL + "corrupt"
# Spark itself would read a time of day as one of today. Times without a zone are in UTC, as everywhere here.
_TIME = "yyyy-MM-dd[['T'][' ']HH:mm[:ss[.SSSSSSSSS]]]"
_READ = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "timeZone": "UTC",
    "timestampFormat": f"{_TIME}[XXX][XX]",
    "timestampNTZFormat": _TIME,
}


def events_from_kafka(
    session: SparkSession,
    servers: str | Sequence[str],
    topic: str | Sequence[str],
    columns: str | StructType | pa.Schema,
    *,
    stream: bool = True,
    starting: str = "earliest",
    max_per_batch: int | None = None,
    record: str | None = "kafka",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The events of topics, as a streaming DataFrame; without `stream`, those that are there now, as a table.

    `columns` are the fields that are read from each JSON object, as DDL (`ts TIMESTAMP, kind STRING`) or a schema. A
    record that is not such an object is an event whose columns are null, so it is set aside. The column `record` has
    the record itself. `starting` is earliest, latest or offsets in JSON; `max_per_batch` limits the records of a
    micro-batch; `options` are further ones of Spark's connector, such as `kafka.security.protocol`.
    """
    chosen = {
        "kafka.bootstrap.servers": _joined(servers),
        "subscribe": _joined(topic),
        "startingOffsets": starting,
        **({} if max_per_batch is None else {"maxOffsetsPerTrigger": str(max_per_batch)}),
        **(options or {}),
    }
    reader = session.readStream if stream else session.read
    try:
        records = reader.format("kafka").options(**chosen).load()
    except AnalysisException as error:
        if "find data source: kafka" not in str(error):
            raise
        raise no_kafka_connector() from None
    return events_of_records(records, columns, record)


def events_of_records(
    records: DataFrame, columns: str | StructType | pa.Schema, record: str | None = "kafka"
) -> DataFrame:
    """The events in records as Spark's connector reads them, for those who configure it themselves."""
    fields = from_arrow_schema(columns) if isinstance(columns, pa.Schema) else columns
    fields = StructType.fromDDL(fields) if isinstance(fields, str) else fields
    if not isinstance(fields, StructType):
        raise invalid_argument("columns", columns, "their names and types, as in 'ts TIMESTAMP, kind STRING'")
    if record is not None and record.lower() in (name.lower() for name in fields.names):
        raise OptionError(
            f"the events have a column {record!r}, which is that of the record itself",
            code="EC488",
            hint="events_from_kafka(…, record='another name'), or record=None to leave it out",
        )
    text = F.col("value").cast("string")
    whole = StructType([*fields.fields, StructField(_CORRUPT, StringType())])
    parsed = records.withColumn(_PARSED, F.from_json(text, whole, _READ))
    # Of a record of which Spark can read a part, it would give that part.
    is_read = F.col(f"{_PARSED}.{_CORRUPT}").isNull()
    found = [F.when(is_read, F.col(_PARSED)[name]).alias(name) for name in fields.names]
    if record is not None:
        texts = F.col("key").cast("string").alias("key"), text.alias("value")
        found.append(F.struct("topic", "partition", "offset", "timestamp", *texts).alias(record))
    return parsed.select(*found)


def to_kafka(matches: DataFrame, *, key: str = MATCH_ID) -> DataFrame:
    """The matches as records for `writeStream.format("kafka")`: `key`, and `value` with all columns as JSON.

    Kafka may get a record twice, after a failure. The key is `match_id` unless you name another column; `match_id` is
    in the value, too. By either of them readers drop repeats.
    """
    if key not in matches.columns:
        raise OptionError(
            f"the matches have no column {key!r} to be the key of their records",
            code="EC489",
            hint="ec.match(…, match_id=True)" if key == MATCH_ID else f"they have {', '.join(matches.columns)}",
        )
    value = F.to_json(F.struct(*json_columns(matches)), WRITTEN)
    return matches.select(column(key).cast("string").alias("key"), value.alias("value"))


def _joined(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)
