"""What a saved state and a runtime do not have in common, in words."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from itertools import chain

import pyarrow as pa

# The most differences shown, and the most characters of each side.
_SHOWN, _WIDTH = 5, 100


def other_queries(saved: object, own: str) -> str:
    """What differs between two fingerprints; nothing if the saved one cannot be read."""
    try:
        theirs, ours = _read(str(saved)), _read(own)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return ""
    return differences(theirs, ours)


def differences(saved: Mapping[str, Mapping[str, str]], own: Mapping[str, Mapping[str, str]]) -> str:
    """What differs between values with names, by what they are; nothing if they are the same."""
    return _listed(chain.from_iterable(_differences(what, saved[what], own[what]) for what in own))


def other_columns(saved: pa.Schema, own: pa.Schema) -> str:
    """What differs between two schemas."""
    theirs, ours = ({field.name: _type(field) for field in schema} for schema in (saved, own))
    return _listed(_differences("column", theirs, ours))


def _type(column: pa.Field) -> str:
    return f"{column.type}{'' if column.nullable else ' not null'}"


def _read(fingerprint: str) -> dict[str, dict[str, str]]:
    """The queries, settings and types of a fingerprint: a Python expression, `([queries], Options(…), [types])`."""
    match ast.parse(fingerprint, mode="eval").body:
        case ast.Tuple(elts=[queries, ast.Call(keywords=settings), types]):
            texts = (str(text).partition(": PATTERN ") for text in ast.literal_eval(queries))
            return {
                "query": {name: f"PATTERN {text}" for name, _, text in texts},
                "setting": {str(setting.arg): ast.unparse(setting.value) for setting in settings},
                "type": {child: f"below {parent!r}" for child, parent in ast.literal_eval(types)},
            }
    raise ValueError(fingerprint)


def _differences(what: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[str]:
    for name in {**theirs, **ours}:
        if name not in ours:
            yield f"{what} {name!r} is missing here"
        elif name not in theirs:
            yield f"{what} {name!r} is new"
        elif theirs[name] != ours[name]:
            was, is_ = (
                textwrap.shorten(_plain(value), _WIDTH, placeholder="…") for value in (theirs[name], ours[name])
            )
            yield f"{what} {name!r} was {was}, and is {is_}"
    if theirs == ours and list(theirs) != list(ours):
        was, is_ = next((was, is_) for was, is_ in zip(theirs, ours, strict=True) if was != is_)
        yield f"the order is another: {what} {was!r} was where {is_!r} is"


def _plain(value: str) -> str:
    """The value of a setting, without Python's way to write lists of columns and nothing."""
    if value == "None":
        return "none"
    if not value.startswith("("):
        return value
    try:
        return ", ".join(map(str, ast.literal_eval(value))) or "none"
    except (SyntaxError, ValueError, TypeError):
        return value


def _listed(differences: Iterator[str]) -> str:
    """Differences after a colon, if there are any."""
    found = list(differences)
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return f": {'; '.join([*found[:_SHOWN], *more])}" if found else ""
