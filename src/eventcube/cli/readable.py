"""Tells which file could not be read, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from eventcube.errors import InputError

LONGEST_REASON = 200


@contextmanager
def readable(files: Sequence[str], format_: str) -> Iterator[None]:
    """Tell what could not be read, and why, in one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        file, reason = _told(error, files)
        raise InputError(
            f"cannot read {file} as {_NAMES[format_]}: {reason}", code="EC321", hint=_hint(reason)
        ) from None


_NAMES = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}


def _told(error: Exception, files: Sequence[str]) -> tuple[str, str]:
    """The file that an error names, or else the input, and the reason without what Arrow says around it."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    file = next((f for f in files if f in text), files[0] if len(files) == 1 else "the input")
    reason = re.sub(r"^.*input source '.*?': (Invalid: )?", "", text)
    reason = re.sub(r"(: |^)Could not open .*?'\.?$", "", reason)
    readable = "".join(c if c.isprintable() and c != "\ufffd" else "?" for c in reason)[:LONGEST_REASON]
    return file, readable.rstrip(".")


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
