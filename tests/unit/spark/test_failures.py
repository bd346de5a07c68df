from __future__ import annotations

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException, PythonException

from eventcube.errors import InputError
from eventcube.spark.failures import failure_to_error, plain_failures


def test_a_missing_file() -> None:
    failure = AnalysisException("[PATH_NOT_FOUND] Path does not exist: file:/data/events.parquet. SQLSTATE: 42K03")
    assert str(failure_to_error(failure)) == "error[EC320]: no such file or folder: /data/events.parquet"


def test_a_file_that_cannot_be_read_is_named_and_spark_s_log_too() -> None:
    said = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///data/part-0.parquet. SQLSTATE: KD001\n"
        "\tat org.apache.spark.Foo.bar(Foo.scala:1)"
    )
    error = failure_to_error(PySparkException(said), "/tmp/spark.log")
    assert error.code == "EC321"
    assert "/data/part-0.parquet" in error.message
    assert "\tat" not in str(error)
    assert error.hint == "Spark's own messages are in /tmp/spark.log"


def test_what_failed_in_a_micro_batch_and_why() -> None:
    said = (
        "[STREAM_FAILED] Query [id = 8acd5030, runId = b8f9d80f] terminated with exception: "
        "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. "
        "Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
        '  File "readwriter.py", line 1, in parquet\n'
        ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:///data/4.csv.  SQLSTATE: KD001\n\tat org.apache.spark.Foo.bar(Foo.scala:1)\n"
        "Caused by: org.apache.spark.SparkException: Job aborted.\n\tat x.y(Z.scala)\n"
        "Caused by: org.apache.spark.SparkIllegalArgumentException: CSV header does not conform to the schema.\n"
        " Header: ts, n\n SQLSTATE: XXKST"
    )
    error = failure_to_error(PySparkException(said))
    assert error.message == "cannot read /data/4.csv: CSV header does not conform to the schema"


def test_an_error_of_ours_in_a_worker_comes_through_as_it_was() -> None:
    said = (
        "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
        '  File "partition.py", line 1, in run\n'
        "eventcube.errors.InputError: error[EC306]: columns differ\nhint: give all batches the same\n"
        " SQLSTATE: 39000 SQLSTATE: XXKST\n=== Streaming Query ===\n"
    )
    error = failure_to_error(PythonException(said))
    assert (error.code, error.message, error.hint) == ("EC306", "columns differ", "give all batches the same")


def test_a_micro_batch_that_was_not_read_to_its_end() -> None:
    said = "[STREAM_FAILED] Query [id = 1] terminated with exception: [STATE_STORE_COMMIT_VALIDATION_FAILED.X] State"
    assert failure_to_error(PySparkException(said)).code == "EC621"
    failure = PySparkException("[STREAM_FAILED] Query terminated with exception: Exception thrown in awaitResult:")
    failure._stackTrace = f"awaitResult\nCaused by: x.StateStoreCommitValidationFailed: {said}"  # type: ignore[attr-defined]
    assert failure_to_error(failure).code == "EC621"


def test_a_missing_connector_is_named_in_the_version_of_pyspark() -> None:
    error = failure_to_error(AnalysisException("Failed to find data source: kafka. Please deploy the application as"))
    assert error.code == "EC487"
    assert f"spark-sql-kafka-0-10_2.13:{pyspark.__version__};" in str(error.hint)


def test_a_full_disk_is_told_whatever_failed_because_of_it() -> None:
    said = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] "
        "Error writing state store files for provider RocksDBStateStore. SQLSTATE: 58030\n"
        "\tat x.y(Z.scala:1)\nCaused by: java.io.IOException: No space left on device\n"
    )
    error = failure_to_error(PySparkException(said))
    assert error.code == "EC620"
    assert "checkpoint" in error.message


def test_anything_else_is_told_in_one_line() -> None:
    error = failure_to_error(PySparkException("java.lang.OutOfMemoryError: Java heap space\n\tat x.y(Z.java)"))
    assert str(error) == "error[EC329]: Spark could not do it: Java heap space"


@pytest.mark.parametrize("after", [PySparkException("Answer from Java side is empty"), KeyError("m")])
def test_what_breaks_after_an_interrupt_is_the_interrupt(after: Exception) -> None:
    @plain_failures()
    def stopped() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise after

    with pytest.raises(KeyboardInterrupt):
        stopped()


def test_other_errors_pass() -> None:
    with pytest.raises(InputError, match="mine"), plain_failures():
        raise InputError("mine")


@pytest.mark.parametrize(
    "said",
    [
        "[COLUMN_ALREADY_EXISTS] The column `x` already exists. Choose another name. SQLSTATE: 42711",
        "[AMBIGUOUS_REFERENCE] Reference `x` is ambiguous, could be: [`x`, `x`]. SQLSTATE: 42704",
    ],
)
def test_columns_that_differ_only_in_case(said: str) -> None:
    error = failure_to_error(AnalysisException(said))
    assert error.code == "EC301"
    assert error.message == "Spark takes 'x' and another column, in upper or lower case, for the same"
