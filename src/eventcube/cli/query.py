"""Reads the QUERY argument: a file, or the text itself. Several queries come from a workload file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventcube.errors import InputError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.options import Options, options
from eventcube.workload_files.workload import read_workload

# What a command asks: one query, or several by their names.
Asked = Query | Mapping[str, Query]

_FILE_LIKE = re.compile(r"[^\s()]+\.\w+|[^\s()]*[/\\][^\s()]*")
# What workload files have, and no query.
_WORKLOAD = re.compile(r"^queries\s*:", re.MULTILINE)
_IS_WORKLOAD = "EC332"


def each_query(asked: Asked) -> tuple[Query, ...]:
    """The one query, or all of several."""
    return (asked,) if isinstance(asked, Query) else tuple(asked.values())


def read_asked(text_or_path: str, given: Mapping[str, Any]) -> tuple[Asked, Options]:
    """One query, or those of a workload file, with the `given` settings, which win over those of the file."""
    try:
        return read_query(text_or_path), options(**given)
    except InputError as error:
        if error.code != _IS_WORKLOAD:
            raise
    workload = read_workload(text_or_path, given)
    return workload.queries, workload.options


def read_query(text_or_path: str) -> Query:
    """The query, parsed, from the file of that name if there is one, else from the text itself."""
    if "\n" in text_or_path or not (_FILE_LIKE.fullmatch(text_or_path) or Path(text_or_path).is_file()):
        return parse(text_or_path)
    path = Path(text_or_path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"there is no query file {text_or_path}",
            code="EC320",
            hint="give the path of a file, or the query itself in quotes: 'PATTERN SEQ(A a, B b) WITHIN 10 minutes'",
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {text_or_path}: {error.strerror}", code="EC321") from None
    except UnicodeDecodeError:
        raise InputError(f"{text_or_path} is not text in UTF-8", code="EC321", hint="is it really a query?") from None
    if _WORKLOAD.search(text):
        raise InputError(
            f"{text_or_path} is a workload file, not a query",
            code=_IS_WORKLOAD,
            hint=f"eventcube cube {text_or_path} INPUT asks its queries",
        )
    return parse(text, path.name)
