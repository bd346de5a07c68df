"""Turns errors of reading a file into one plain message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from eventcube.errors import InputError

MAX_REASON_LENGTH = 200


@contextmanager
def plain_read_errors(files: Sequence[str], format_: str) -> Iterator[None]:
    """Raise an InputError that names the file and the reason, for errors in the block."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        file, reason = _file_and_reason(error, files)
        raise InputError(
            f"cannot read {file} as {_NAMES[format_]}: {reason}", code="EC321", hint=_hint(reason)
        ) from None


_NAMES = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}


def _file_and_reason(error: Exception, files: Sequence[str]) -> tuple[str, str]:
    """The file that an error names, or "the input", and the reason without Arrow's context."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    file = next((f for f in files if f in text), files[0] if len(files) == 1 else "the input")
    reason = re.sub(r"^.*input source '.*?': (Invalid: )?", "", text)
    reason = re.sub(r"(: |^)Could not open .*?'\.?$", "", reason)
    printable = "".join(c if c.isprintable() and c != "\ufffd" else "?" for c in reason)[:MAX_REASON_LENGTH]
    return file, printable.rstrip(".")


def _hint(reason: str) -> str | None:
    if "CSV parse error" in reason:
        return "every row needs as many fields as there are columns: mend it, or take it out"
    if "changed from" in reason:
        return "without Spark all values of a column must be of one kind: leave out --no-spark"
    if "JSON parse error" in reason:
        return "on Spark, lines that are not JSON are skipped: leave out --no-spark"
    if "not a parquet file" in reason or "magic bytes" in reason:
        return "is it another format? say --input-format csv or jsonl"
    return None
