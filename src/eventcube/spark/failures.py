"""Turns exceptions of Spark into one plain message without a stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from eventcube.errors import EventCubeError, InputError, OptionError

_OURS = re.compile(
    r"^[\w.]*eventcube[\w.]*: (error\[(EC\d+)\]: .*?)(?=\n\n|\n\s*SQLSTATE|\Z)", re.MULTILINE | re.DOTALL
)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*(.*?)(?:\s*SQLSTATE: \w+|\n|$)", re.DOTALL)
_FULL = "No space left on device"
_PARTLY_READ = "STATE_STORE_COMMIT_VALIDATION_FAILED"
_NO_KAFKA = "Failed to find data source: kafka"
_FILE = re.compile(r"(?<=\s)([\w+.-]*:?//?[^\s,]+?)\.?(?=[\s,]|$)")
# What says only where something failed, around what did.
_AROUND = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "FOREACH_USER_FUNCTION_ERROR")
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.*)$", re.MULTILINE)


@contextmanager
def plain_failures(log: str | None = None) -> Iterator[None]:
    """Turn Spark's exceptions into an InputError; `log` says where Spark's own messages can be read."""
    try:
        yield
    except Exception as error:
        # A signal can break the connection to the JVM, which then fails in any way.
        interrupted = _interruption(error)
        if interrupted is not None:
            raise interrupted from None
        if isinstance(error, PySparkException | Py4JError):
            raise failure_to_error(error, log) from None
        raise


def failure_to_error(failure: Exception, log: str | None = None) -> EventCubeError:
    """The error in one line, with a hint."""
    text = str(failure.java_exception) if isinstance(failure, Py4JJavaError) else str(failure)
    ours = _OURS.search(text)
    if ours:
        message, _, hint = ours[1].partition("\nhint: ")
        return InputError(message.removeprefix(f"error[{ours[2]}]: ").strip(), code=ours[2], hint=hint.strip() or None)
    if _NO_KAFKA in text:
        return no_kafka_connector()
    if _FULL in text:
        return InputError(
            "a disk is full: that of the checkpoint, of the results, or of Spark's temporary files (spark.local.dir)",
            code="EC620",
            hint="make space and start again; a stream goes on from its checkpoint",
        )
    if _PARTLY_READ in text or _PARTLY_READ in str(getattr(failure, "_stackTrace", "")):
        return InputError(
            "the function of foreachBatch did not read all rows of a micro-batch, so a part of the state was not saved",
            code="EC621",
            hint="read all of the DataFrame, or persist and count it first; this checkpoint cannot go on: take a copy "
            "of it, or a new one",
        )
    conditions = [found for found in _CONDITION.finditer(text) if found[1] not in _AROUND]
    condition, detail = conditions[0].groups() if conditions else ("", text.strip().split("\n")[0])
    named = _FILE.search(detail)
    file = re.sub(r"^file:(//)?", "", named[1]) if named else "the input"
    hint = f"Spark's own messages are in {log}" if log else None
    match condition.split(".")[0]:
        case "PATH_NOT_FOUND":
            return InputError(f"no such file or folder: {file}", code="EC320")
        case "COLUMN_ALREADY_EXISTS" | "AMBIGUOUS_REFERENCE":
            column = detail.partition("`")[2].partition("`")[0]
            return InputError(
                f"Spark takes {column!r} and another column, in upper or lower case, for the same",
                code="EC301",
                hint="rename one of the two, or say --conf spark.sql.caseSensitive=true",
            )
        case "FAILED_READ_FILE" | "UNABLE_TO_INFER_SCHEMA" | "MALFORMED_RECORD_IN_PARSING":
            causes = _CAUSE.findall(text)
            reason = _first_sentence(causes[-1] if causes else detail)
            return InputError(f"cannot read {file}: {reason}", code="EC321", hint=hint)
        case _:
            return InputError(f"Spark could not do it: {_first_sentence(detail)}", code="EC329", hint=hint)


def no_kafka_connector() -> OptionError:
    """The error for a session without Spark's connector for Kafka."""
    return OptionError(
        "Spark has no connector for Kafka",
        code="EC487",
        hint="start the session, or spark-submit, with spark.jars.packages="
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}; on the command line say it with --conf",
    )


def _interruption(failure: BaseException | None) -> BaseException | None:
    """The Ctrl-C, or other signal, that caused the failure by breaking the connection to the JVM."""
    while failure is not None and not isinstance(failure, KeyboardInterrupt | SystemExit):
        failure = failure.__context__
    return failure


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    line = re.sub(r"^[\w.$]+(Exception|Error): ", "", line)
    return re.split(r"(?<=[a-z\)])\. ", line)[0].rstrip(".")
