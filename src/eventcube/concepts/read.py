"""Read hierarchies of types from YAML and JSON files and from tables of parents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from eventcube.concepts.yaml_nodes import node_to_text, repeated_names, text_to_node
from eventcube.errors import InputError, did_you_mean

_EXAMPLE = "write, say, Computer: [INTC, MSFT]"


def yaml_to_children(path: str | Path) -> dict[str, Any]:
    """The content of a YAML file, which must be a mapping."""
    text = read_text(path, "YAML")
    try:
        node = text_to_node(text)
        for first, again in repeated_names(node) if node is not None else ():
            lines = first.start_mark.line + 1, again.start_mark.line + 1
            where = f"at line {lines[0]}" if lines[0] == lines[1] else f"at lines {lines[0]} and {lines[1]}"
            raise _twice(path, first.value, f", {where}")
        content = node_to_text(node) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it is not text"
        raise InputError(f"{path} is not YAML{place}: {problem}", code="EC311") from None
    except RecursionError:
        raise _too_deep(path) from None
    return _mapping(content, path, _EXAMPLE)


def json_to_children(path: str | Path) -> dict[str, Any]:
    """The content of a JSON file, which must be an object."""
    try:
        content = json.loads(read_text(path, "JSON"), object_pairs_hook=lambda pairs: _without_repeats(pairs, path))
    except json.JSONDecodeError as error:
        place = f" at line {error.lineno}, column {error.colno}"
        raise InputError(f"{path} is not JSON{place}: {error.msg}", code="EC311") from None
    except RecursionError:
        raise _too_deep(path) from None
    return _mapping(content, path, 'write, say, {"Computer": ["INTC", "MSFT"]}')


def table_to_children(table: Any, child: str, parent: str) -> dict[str, list[str]]:
    """The types below each type of a table with a row for each type; the rows of roots have no parent."""
    columns = _arrow(table)
    below: dict[str, list[str]] = {}
    roots: set[str] = set()
    parents: dict[str, str] = {}
    names, above = (_column(columns, name, role) for name, role in ((child, "child"), (parent, "parent")))
    for row, (name, parent_name) in enumerate(zip(names, above, strict=True), 1):
        if name is None:
            raise InputError(f"row {row} of the hierarchy has no type in column {child!r}", code="EC311")
        if parent_name is None:
            roots.add(name)
            below.setdefault(name, [])
        else:
            parents[name] = parent_name
            below.setdefault(parent_name, []).append(name)
    for name, parent_name in parents.items():
        if name in roots:
            raise InputError(
                f"{name!r} is a root in one row and below {parent_name!r} in another",
                code="EC312",
                hint="a type has one parent or none; leave one of the rows out",
            )
    return below


def read_text(path: str | Path, language: str) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="EC314") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", code="EC311", hint=f"is it really {language}?") from None


def _mapping(content: Any, path: str | Path, example: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise InputError(f"{path} has no hierarchy of types", code="EC311", hint=example)
    return content


def _without_repeats(pairs: list[tuple[str, Any]], path: str | Path) -> dict[str, Any]:
    """The pairs of a JSON object as a mapping; of two with one name, JSON would drop the first."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _twice(path, twice, " in one object")
    return content


def _twice(path: str | Path, name: str, place: str) -> InputError:
    return InputError(f"{path} lists {name!r} twice{place}", code="EC311", hint="join the two lists")


def _too_deep(path: str | Path) -> InputError:
    return InputError(
        f"the hierarchy in {path} is nested too deeply",
        code="EC311",
        hint="write its levels side by side: Stock: [Computer], Computer: [INTC]",
    )


def _arrow(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
        # A lazy frame of polars.
        table = table.collect()
    if hasattr(table, "__arrow_c_stream__") or isinstance(table, dict):
        return pa.table(table)
    raise InputError(
        f"cannot read a hierarchy from {type(table).__module__}.{type(table).__qualname__}",
        code="EC307",
        hint="give an Arrow table, or a pandas or polars frame",
    )


def _column(table: pa.Table, name: str, role: str) -> list[str | None]:
    """The names in a column of the table; null where there is none."""
    if name not in table.column_names:
        hint = did_you_mean(name, table.column_names, "the table")
        raise InputError(f"no column {name!r} for {role}", code="EC302", hint=hint)
    return [None if value is None or value != value else str(value) for value in table.column(name).to_pylist()]
